"""What the sandbox is made by on this machine: bubblewrap, or Linux's namespaces by util-linux."""

import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any, Final, Literal, TypeAlias

from agents.tools.sandbox.calls import MACHINES, call_filter

Mechanism: TypeAlias = Literal["bubblewrap", "namespaces"]

PROCESSES: Final = 64
"""Processes and threads of one run."""

ROOM: Final = "/work"

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""What programs need of the host to run: programs and libraries, no settings and no data."""

FILES: Final = ("/etc/ld.so.cache", "/etc/alternatives")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
HIDDEN: Final = ("/usr/local", "/usr/src")
"""Of /usr what no package of the system put there; shown only where Python itself stands there."""

USERS: Final = range(61_184, 65_520)
"""Users that systemd keeps for short-lived services (https://systemd.io/UIDS-GIDS/): no file is theirs."""

INSTALL: Final = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or util-linux"

_ALONE: Final = ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--as-pid-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much one run may take.

    Attributes:
        seconds: Of the clock; of the processor each process may use as much.
        bytes: Of memory, all processes and files of the run together.
        output: Bytes of output and errors together.
    """

    seconds: float
    bytes: int
    output: int
    processes: int = PROCESSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is to run.

    Attributes:
        argv: Its first word is a path inside.
        files: Texts by name, written into the run's own directory, where the program begins.
        stdin: The name of the file that is its standard input; empty: it has none.
    """

    argv: Sequence[str]
    files: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""


def mechanism() -> Mechanism | None:
    """What there is here; None where there is neither.

    For root it is namespaces in any case: bubblewrap would leave the program the user it has, and root's
    processes cannot be bounded in number.
    """
    if os.geteuid() != 0 and shutil.which("bwrap"):
        return "bubblewrap"
    return "namespaces" if shutil.which("unshare") else None


def python() -> str:
    """The interpreter itself, not the link of a virtual environment."""
    return os.path.realpath(sys.executable)


def lacking() -> str:
    """Why there can be no sandbox here, and what to do; empty where there is nothing against it."""
    if sys.platform != "linux":
        return f"the sandbox is made of what Linux has, and this is {sys.platform}; run workers on Linux"
    if platform.machine() not in MACHINES:
        return f"the sandbox knows {' and '.join(MACHINES)} only; this is {platform.machine()}"
    if _python_home() == "/":
        return "Python stands in / itself, so all of the host would be shown; use one with a place of its own"
    if mechanism() is None:
        return f"neither bwrap nor unshare is on PATH; {INSTALL}"
    return ""


def command(how: Mechanism, inside: str, fds: Sequence[int], bounds: Bounds) -> list[str]:
    """The command that runs the text *inside* as process 1 of a new sandbox."""
    runs = [python(), "-I", "-S", "-c", inside, *map(str, fds)]
    if how == "namespaces":
        namespaces = ["--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup"]
        mapped = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        return [str(shutil.which("unshare")), *mapped, *namespaces, "--fork", "--kill-child", "--", *runs]
    view: list[str] = []
    for place in _shown():
        view += ["--ro-bind", place, place]
    for place, target in _links().items():
        view += ["--symlink", target, place]
    for place in _hidden():
        view += ["--tmpfs", place, "--remount-ro", place]
    room = ["--perms", "0777", "--size", str(_room(bounds)), "--tmpfs", ROOM]
    return [
        str(shutil.which("bwrap")),
        *_ALONE,
        *("--disable-userns", "--cap-drop", "ALL", "--clearenv", "--uid", "1000", "--gid", "1000"),
        *view,
        *("--dev", "/dev", "--proc", "/proc"),
        *room,
        *("--remount-ro", "/", "--remount-ro", "/dev", "--chdir", "/"),
        *runs,
    ]


def specification(how: Mechanism, program: Program, bounds: Bounds) -> dict[str, Any]:
    """What :mod:`agents.tools.sandbox.inside` is told."""
    return {
        "build": how == "namespaces",
        "user": SystemRandom().choice(USERS) if os.geteuid() == 0 else 0,
        "shown": [*_shown(), *DEVICES],
        "links": _links(),
        "hidden": _hidden(),
        "room": _room(bounds),
        "files": dict(program.files),
        "stdin": program.stdin,
        "argv": list(program.argv),
        "environment": {
            "PATH": "/usr/bin:/bin",
            "HOME": ROOM,
            "TMPDIR": ROOM,
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        "calls": call_filter(),
        "seconds": bounds.seconds,
        "bytes": bounds.bytes,
        "processes": bounds.processes,
        "limits": {
            "RLIMIT_AS": bounds.bytes,
            "RLIMIT_CORE": 1,  # with 0 the host's own program for core dumps would still run
            "RLIMIT_CPU": int(bounds.seconds) + 1,
            "RLIMIT_FSIZE": _room(bounds),
            "RLIMIT_MEMLOCK": 0,
            "RLIMIT_MSGQUEUE": 0,
            "RLIMIT_NOFILE": 256,
            "RLIMIT_NPROC": bounds.processes,
        },
    }


def _room(bounds: Bounds) -> int:
    """Bytes of files: half of the memory, of which they are."""
    return bounds.bytes // 2


def _shown() -> list[str]:
    places = [place for place in SYSTEM if Path(place).is_dir() and not Path(place).is_symlink()]
    places += [place for place in FILES if Path(place).exists()]
    home = _python_home()
    if not any(Path(home).is_relative_to(place) for place in places):
        places.append(home)
    return places


def _links() -> dict[str, str]:
    """``/bin`` and the like, where they are links into /usr."""
    links = {place: str(Path(place).readlink()) for place in SYSTEM if Path(place).is_symlink()}
    return links | {"/tmp": ROOM}  # noqa: S108 - inside


def _hidden() -> list[str]:
    home = Path(_python_home())
    return [place for place in HIDDEN if Path(place).is_dir() and not home.is_relative_to(place)]


def _python_home() -> str:
    return os.path.realpath(sys.base_prefix)
