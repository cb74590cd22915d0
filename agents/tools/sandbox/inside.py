"""The first process inside of the sandbox: it closes the last doors, runs the program, and watches it.

It is read as text and run by ``python -I -S -c``, with the standard library alone, because the file
itself cannot be seen from inside. In the sandbox it is process 1: no signal from inside ends it, and
when it ends, the kernel ends everything else there.

The numbers are of Linux: ``mount(2)``, ``pivot_root(2)``, ``capabilities(7)``, ``prctl(2)``, ``unshare(2)``.
"""

import ctypes
import json
import os
import platform
import resource
import select
import struct
import sys
import time
from typing import Any, NoReturn

_WATCH_S = 0.02
_ROOM = "/work"
_FILES = 10_000

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 32, 4_096, 16_384, 1 << 18
_MNT_DETACH = 2
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_CLONE_NEWUSER = 0x10000000
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 4, 24, 28, 38
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_NO_ROOT_LOCKED = 0b101111  # noroot, no_setuid_fixup, keep_caps off: all locked
_CAPABILITIES_V3 = 0x20080522
_JOIN_SESSION_KEYRING = 1
_CALLS = {"x86_64": (155, 250), "aarch64": (41, 219)}  # pivot_root and keyctl, by machine
_INSIDE_ID = 1_000  # user and group that the program believes to be

_libc = ctypes.CDLL(None, use_errno=True)


def main(spec_fd: int, status_fd: int, lifeline: int) -> None:
    """Run what the file *spec_fd* asks for, and say on *status_fd* how it ended.

    Args:
        lifeline: A pipe whose other end the worker holds: it is at its end when the worker is gone.
    """
    with os.fdopen(spec_fd, "rb") as file:
        spec = json.load(file)
    try:
        if spec["build"]:
            _build(spec)
        _write(spec["files"])
        child = os.fork()
    except OSError as error:
        _tell(status_fd, {"why": "setup", "error": str(error)})
        os._exit(1)
    if child == 0:
        try:
            os.close(status_fd)
            os.close(lifeline)
            _become(spec)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the program must not run
            os.write(2, f"sandbox: {error}\n".encode())
            os._exit(125)
    _prctl(_PR_SET_DUMPABLE, 0)  # nobody inside may look into this process, or change it
    _drop_capabilities()
    for fd in (0, 1, 2):
        os.close(fd)
    _tell(status_fd, _watch(child, spec, lifeline))
    os._exit(0)


def _watch(child: int, spec: dict[str, Any], lifeline: int) -> dict[str, Any]:
    """Wait for the program, and see to it that all that runs inside stays within its bounds."""
    ends = time.monotonic() + spec["seconds"]
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        while True:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return {"why": "setup", "error": "the program is gone"}
            if ended == child:
                return {"exit": os.waitstatus_to_exitcode(status)}
            if not ended:
                break
        if time.monotonic() >= ends:
            return {"why": "time"}
        room = os.statvfs(_ROOM)
        processes, used = 0, (room.f_blocks - room.f_bfree) * room.f_frsize
        for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would make each start slower
            if name.isdecimal() and name != "1":
                processes += 1
                try:
                    with open(f"/proc/{name}/statm", "rb") as file:  # noqa: PTH123 - as above
                        used += int(file.read().split()[1]) * page
                except OSError:
                    continue
        if used > spec["bytes"] or room.f_files - room.f_ffree > _FILES:
            return {"why": "memory"}
        if processes > spec["processes"]:
            return {"why": "processes"}
        if select.select([lifeline], [], [], _WATCH_S)[0]:
            return {"why": "worker"}


def _write(files: dict[str, str]) -> None:
    for name, text in files.items():
        path = f"{_ROOM}/{name}"
        with open(path, "w", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as above
            file.write(text)
        os.chmod(path, 0o644)  # noqa: PTH101 - as above


def _tell(fd: int, status: dict[str, Any]) -> None:
    os.write(fd, json.dumps(status).encode())


def _become(spec: dict[str, Any]) -> NoReturn:
    """Give up all that the program must not have, and become it."""
    os.setsid()
    keyctl = _CALLS[platform.machine()][1]
    _libc.syscall(keyctl, _JOIN_SESSION_KEYRING, None)  # an empty one; kernels without keyrings have none
    if spec["build"]:
        if spec["user"]:
            os.setgroups([])
            os.setresgid(*[spec["user"]] * 3)
            os.setresuid(*[spec["user"]] * 3)
            _prctl(_PR_SET_DUMPABLE, 1)  # or its own /proc would not be its own
        _own_user_namespace()
    for what, most in spec["limits"].items():
        resource.setrlimit(getattr(resource, what), (most, most))
    _drop_capabilities()
    with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - as above
        file.write("1000")
    os.nice(10)
    os.chdir(_ROOM)
    given = (
        os.open(f"{_ROOM}/{spec['stdin']}", os.O_RDONLY)
        if spec["stdin"]
        else os.open(os.devnull, os.O_RDONLY)
    )
    os.dup2(given, 0)
    os.closerange(3, 4_096)
    _filter_calls(spec["calls"])
    os.execve(spec["argv"][0], spec["argv"], spec["environment"])  # noqa: S606 - that is what this is for


def _own_user_namespace() -> None:
    """Live in a user namespace where nothing of the outside can be named, and which can have no other.

    A user namespace within it would give the program capabilities again, over namespaces of its own, and
    most holes of the kernel are found there.
    """
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(_CLONE_NEWUSER), "unshare")
    lines = {
        "/proc/self/setgroups": "deny",
        "/proc/self/uid_map": f"{_INSIDE_ID} {user} 1",
        "/proc/self/gid_map": f"{_INSIDE_ID} {group} 1",
        "/proc/sys/user/max_user_namespaces": "0",
    }
    for path, line in lines.items():
        with open(path, "w", encoding="ascii") as file:  # noqa: PTH123 - as above
            file.write(line)


def _drop_capabilities() -> None:
    """None from now on, whatever is executed."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    try:
        with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:  # noqa: PTH123 - as above
            last = int(file.read())
        for capability in range(last + 1):
            _prctl(_PR_CAPBSET_DROP, capability)
        _prctl(_PR_SET_SECUREBITS, _NO_ROOT_LOCKED)
    except PermissionError:  # there are none to drop
        pass
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def _filter_calls(instructions: list[list[int]]) -> None:
    """Let the kernel refuse the calls that this filter (a ``sock_fprog``) refuses, from now on."""
    code = b"".join(struct.pack("<HBBI", *each) for each in instructions)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(held))
    _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0), "the filter of system calls")


def _build(spec: dict[str, Any]) -> None:
    """Make a root of its own, of what is needed to run and nothing else, and leave the host's."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=1m")  # noqa: S108 - a place to stand on, in a mount namespace of its own
    os.chdir("/tmp")  # noqa: S108 - as above
    for name in ("new", "old"):
        os.mkdir(name)  # noqa: PTH102 - as above
    _pivot(".", "old")
    os.chdir("/")
    _mount("tmpfs", "/new", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=1m")
    for place in spec["shown"]:
        _show(place, writable=place.startswith("/dev/"))
    for place, target in spec["links"].items():
        os.makedirs(os.path.dirname(f"/new{place}"), exist_ok=True)  # noqa: PTH103, PTH120 - as above
        os.symlink(target, f"/new{place}")  # noqa: PTH211 - as above
    for place in spec["hidden"]:
        _mount("tmpfs", f"/new{place}", "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_RDONLY, "mode=755,size=4k")
    for place in ("/proc", _ROOM):
        os.makedirs(f"/new{place}", exist_ok=True)  # noqa: PTH103 - as above
    _mount("proc", "/new/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    room = f"mode=777,size={spec['room']},nr_inodes={_FILES}"
    _mount("tmpfs", f"/new{_ROOM}", "tmpfs", _MS_NOSUID | _MS_NODEV, room)
    os.chdir("/new")
    _pivot(".", ".")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount of the host's files")
    os.chdir("/")
    _mount("none", "/", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    os.umask(0o022)


def _show(place: str, *, writable: bool) -> None:
    """Show a file or directory of the host at its own place, to be read and run only."""
    old, new = f"/old{place}", f"/new{place}"
    if os.path.isdir(old):  # noqa: PTH112 - as above
        os.makedirs(new, exist_ok=True)  # noqa: PTH103 - as above
    else:
        os.makedirs(os.path.dirname(new), exist_ok=True)  # noqa: PTH103, PTH120 - as above
        os.close(os.open(new, os.O_CREAT | os.O_WRONLY))
    _mount(old, new, None, _MS_BIND | _MS_REC)
    if writable:
        return
    # All mounts below it, too: struct mount_attr of mount_setattr(2).
    attributes = (ctypes.c_uint64 * 4)(_MS_RDONLY | _MS_NOSUID | _MS_NODEV, 0, 0, 0)
    size = ctypes.sizeof(attributes)
    done = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, new.encode(), _AT_RECURSIVE, attributes, size)
    _check(done, f"read-only mount of {place}")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    done = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() if options else None,
    )
    _check(done, f"mount of {target}")


def _pivot(new: str, old: str) -> None:
    _check(_libc.syscall(_CALLS[platform.machine()][0], new.encode(), old.encode()), "pivot_root")


def _prctl(what: int, value: int) -> None:
    _check(_libc.prctl(what, ctypes.c_ulong(value), 0, 0, 0), f"prctl {what}")


def _check(returned: int, what: str) -> None:
    if returned != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
