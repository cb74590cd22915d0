"""An installed Kafka: the command lines that run it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_JVM: Final = (
    "-Xmx512m",
    # A broker that lives for minutes never earns back what the optimising compiler costs: without
    # it 1,600 transactions took half the processor time, and the start two thirds of the time.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",  # would write to /tmp
    "-XX:+ExitOnOutOfMemoryError",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
    "--enable-native-access=ALL-UNNAMED",  # for the compression libraries; else a warning
    "--sun-misc-unsafe-memory-access=allow",  # for Kafka 4.3 itself; likewise
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)
_MEDDLING: Final = frozenset({"CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "JMX_PORT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """An installed distribution.

    Attributes:
        java: The Java runtime's executable.
        jars: The class path; the start-up cache depends on its order.
        cache: The JVM's start-up cache (JEP 483, JEP 514): up in 1 s instead of 3. An empty file
            where this machine cannot make one; all works without.
    """

    java: Path
    jars: tuple[Path, ...]
    cache: Path

    def command(self, main: str, *args: str, temporary: Path, record: Path | None = None) -> list[str]:
        """The command line that runs class *main*.

        Args:
            temporary: Where the compression libraries unpack themselves.
            record: Where to write a start-up cache when the process ends.
        """
        cache = []
        if record:
            cache = [f"-XX:AOTCacheOutput={record}"]
        elif self.cache.exists() and self.cache.stat().st_size:
            cache = [f"-XX:AOTCache={self.cache}"]
        place = f"-Djava.io.tmpdir={temporary}"
        class_path = os.pathsep.join(map(str, self.jars))
        return [str(self.java), *_JVM, *cache, place, "-cp", class_path, main, *args]


def java_environment() -> dict[str, str]:
    """This process's environment, without what would change how Java or Kafka start."""
    return {name: value for name, value in os.environ.items() if name not in _MEDDLING}
