"""What a program in the sandbox may try: none of it reaches the host, and nothing is left of it."""

import asyncio
import os
import platform
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents.configuration.values import LocalToolSettings
from agents.tools.local import LocalTools
from agents.tools.sandbox import sandbox_problem, sandbox_tools
from agents.tools.sandbox.calls import FORBIDDEN

PROBLEM = sandbox_problem()
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=str(PROBLEM))

MEGABYTE = 1_048_576
SETTINGS = LocalToolSettings(
    sandbox=True, sandbox_s=20.0, sandbox_bytes=192 * MEGABYTE, sandbox_output=20_000
)
SHORT = LocalToolSettings(sandbox=True, sandbox_s=0.5)


async def python(code: str, settings: LocalToolSettings = SETTINGS, stdin: str = "") -> dict[str, Any]:
    """What a run of this program is told as."""
    return await called("run_python", {"code": code, "stdin": stdin}, settings)


async def shell(code: str, settings: LocalToolSettings = SETTINGS) -> dict[str, Any]:
    """What a run of this script is told as."""
    return await called("run_shell", {"code": code}, settings)


async def called(name: str, arguments: dict[str, str], settings: LocalToolSettings) -> dict[str, Any]:
    reply = await LocalTools(sandbox_tools(settings)).call(name, arguments, timeout_s=60)
    assert reply.error is None, reply.output
    assert isinstance(reply.output, dict)
    return dict(reply.output)


def running(mark: str) -> list[int]:
    """Processes of this machine with *mark* among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(entry.name))
    return found


async def gone(mark: str) -> None:
    """Wait until there are none."""
    async with asyncio.timeout(30):
        while running(mark):
            await asyncio.sleep(0.01)


async def test_programs_run() -> None:
    """They read their input, write files in their own place, and their output and exit code come back."""
    told = await python(
        "import sys, pathlib, subprocess\n"
        "pathlib.Path('note').write_text(sys.stdin.read())\n"
        "print(subprocess.run(['sort', 'note'], capture_output=True, text=True).stdout, end='')\n"
        "sys.stderr.write('fine'); sys.exit(3)",
        stdin="b\na\n",
    )
    assert told == {"exit_code": 3, "stdout": "a\nb\n", "stderr": "fine"}
    told = await shell("ls; echo $HOME; exit 4")
    assert told == {"exit_code": 4, "stdout": "main.sh\nstdin\n/work\n", "stderr": ""}  # nothing was kept


@pytest.fixture
async def listener() -> AsyncIterator[tuple[int, list[int]]]:
    """A port of this machine, and who came."""
    came: list[int] = []

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(1)
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], came
    server.close()
    await server.wait_closed()


async def test_there_is_no_network(listener: tuple[int, list[int]]) -> None:
    """Not even this machine's own, nor sockets that live outside of the file system."""
    port, came = listener
    told = await python(
        "import socket, os\n"
        f"for place in (('127.0.0.1', {port}), ('192.0.2.1', 80)):\n"
        "    try: socket.create_connection(place, timeout=2); print('connected')\n"
        "    except OSError as e: print(type(e).__name__)\n"
        "print(sorted(name for _, name in socket.if_nameindex()))\n"
        "print(open('/proc/net/unix').read().count(chr(10)))\n"
        "try: socket.getaddrinfo('localhost.example', 80); print('resolved')\n"
        "except OSError: print('no names')\n"
        "try: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('raw')\n"
        "except PermissionError: print('not raw')\n"
    )
    lines = told["stdout"].splitlines()
    assert "connected" not in lines
    assert lines[2:] == ["['lo']", "1", "no names", "not raw"], told
    assert came == []


async def test_there_are_no_other_ways_out() -> None:
    """Neither to the host of a virtual machine, nor through parts of the kernel that few programs need."""
    told = await python(
        "import ctypes, os, socket\n"
        "for family in (socket.AF_VSOCK, socket.AF_ALG, socket.AF_PACKET, 31, 21, 0x100000001):\n"
        "    try: socket.socket(family, socket.SOCK_STREAM); print('made', family)\n"
        "    except (OSError, OverflowError) as error: print(error)\n"
        "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"for number in {[pair[platform.machine() == 'aarch64'] for pair in FORBIDDEN.values()]}:\n"
        "    if number is not None and libc.syscall(number, 0, 0, 0, 0, 0) != -1: print('called', number)\n"
        "    if ctypes.get_errno() != 1: print(number, os.strerror(ctypes.get_errno()))\n"
    )
    lines = told["stdout"].splitlines()
    assert lines[:5] == ["[Errno 1] Operation not permitted"] * 5, told
    assert not any("made" in line or "called" in line for line in lines)
    assert lines[6:] == ["b'x'"]


async def test_nothing_of_the_worker_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not its environment, not its processes, not its files, by whatever way they are looked for."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    secret = tmp_path / "secret"
    secret.write_text("sk-very-secret")
    secret.chmod(0o644)
    told = await shell(
        f"""
        env; cat /proc/[0-9]*/environ /proc/self/environ
        cat {secret} /etc/passwd /etc/shadow {__file__} /proc/1/root{secret} /proc/self/cwd/../..{secret}
        ln -s {secret} link; cat link; ln -s /proc/1/root outside; cat outside{secret}
        cat /proc/1/fd/* /proc/1/mem /proc/1/maps /dev/mem /dev/kmsg
        ls -a {tmp_path} / /root /home /var /run /sys /etc /usr/local /dev
        tr '\\0' ' ' < /proc/1/cmdline | head -c 0; cat /proc/[0-9]*/cmdline | grep -c "[p]ytest"
        """
    )
    said = told["stdout"]
    assert "secret" not in said.replace(str(tmp_path), "")
    assert "root:x:" not in said
    assert said.splitlines()[-1] == "0"
    names = set(said.split())
    assert not {"passwd", "hostname", "machine-id", "vda", "log", ".ssh"} & names
    assert Path(__file__).parent.name not in said


async def test_it_has_no_powers() -> None:
    """No capability, no user but a nobody, no namespace of its own, and no mount."""
    told = await shell(
        """
        grep -E '^(Cap|NoNewPrivs)' /proc/self/status | tr -d '\\t'
        id -u
        unshare --user true && echo nested; unshare --net true && echo net; unshare --mount true && echo mnt
        mount -t tmpfs none /work && echo mounted; mount -o remount,rw / && echo mounted
        chroot / true && echo chrooted; mknod d c 1 1 && echo made; chown 0 stdin && echo owned
        for place in / /usr /usr/bin /etc /dev /proc/sys/kernel /proc/sys/user /root; do
            touch $place/x 2>&- && echo wrote $place
        done
        echo 1 2>&- > /proc/sys/user/max_user_namespaces && echo allowed
        nice -n -5 true 2>&1 | head -c 0
        true
        """
    )
    lines = told["stdout"].splitlines()
    assert {line.split(":")[1] for line in lines[:5]} == {"0000000000000000"}
    assert lines[5:] == ["NoNewPrivs:1", "1000"]


async def test_the_first_process_cannot_be_touched() -> None:
    """Neither ended, nor stopped, nor looked into: it is what ends the program."""
    told = await python(
        "import ctypes, os, signal, time\n"
        "for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV):\n"
        "    try: os.kill(1, number)\n"
        "    except PermissionError: pass\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.ptrace(16, 1, 0, 0), os.strerror(ctypes.get_errno()))\n"
        "try: print(open('/proc/1/mem', 'r+b'))\n"
        "except PermissionError: print('closed')\n"
        "time.sleep(60)",
        SHORT,
    )
    assert told["stdout"] == "" or told["stdout"].splitlines() == ["-1 Operation not permitted", "closed"]
    assert told["ended"] == "it was ended after 0.5 s"


@pytest.mark.parametrize(
    "script",
    ["b() { b | b & }; b", "while :; do sleep 30 & done"],
    ids=["fork bomb", "children without end"],
)
async def test_processes_are_bounded(script: str) -> None:
    """A fork bomb ends by itself, or with its time."""
    told = await shell(f"{script} 2>&-\nwait; sleep 30", SHORT)
    assert "ended" in told or told["exit_code"] != 0
    again = await shell("echo fine")  # and takes nothing from the next run
    assert again["stdout"] == "fine\n"


MANY = (
    "import os, time\n"
    "for _ in range(6):\n"
    "    if os.fork() == 0: x = bytearray(b'x') * (60 * 2**20); time.sleep(60)\n"
    "time.sleep(60)"
)


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("x = bytearray(10**9)", ""),  # MemoryError: one process may not have so much
        (MANY, "memory and files"),
        ("open('big', 'wb').write(bytes(150 * 2**20))", ""),
        (
            "for n in range(9): open(f'f{n}', 'wb', 0).write(bytes(20 * 2**20))\nopen('x', 'wb').write(b'x')",
            "",
        ),
        ("import os\nfor n in range(20_000): os.close(os.open(f'f{n}', os.O_CREAT))", ""),
        ("import os\nheld = [os.open('/dev/null', 0) for _ in range(2_000)]", ""),
    ],
    ids=["memory", "memory of many", "a big file", "many big files", "many files", "descriptors"],
)
async def test_memory_and_files_are_bounded(code: str, ended: str) -> None:
    """All processes and files together; the program is told, or ended."""
    told = await python(code)
    if ended:
        assert ended in told["ended"]
    else:
        assert told["exit_code"] != 0
        assert "Error" in told["stderr"] or "memory and files" in told["ended"]


async def test_output_without_end() -> None:
    """The first of it is kept, and the run ended."""
    told = await shell("yes")
    assert told["ended"] == "it was ended: more than 20000 bytes of output; these are the first"
    assert len(told["stdout"]) == 20_000


async def test_what_is_left_behind_is_ended() -> None:
    """A daemon in a session of its own, deaf to signals."""
    mark = f"3{os.getpid()}.25"
    told = await shell(
        f"trap '' TERM HUP INT; (setsid nohup sleep {mark} >&- 2>&- &) ; sleep 0.05; echo left"
    )
    assert told["stdout"] == "left\n"
    await gone(mark)


async def test_what_is_given_up_is_ended() -> None:
    """A cancelled call leaves nothing running."""
    mark = f"4{os.getpid()}.25"
    task = asyncio.create_task(shell(f"sleep {mark}"))
    async with asyncio.timeout(30):
        while not running(mark):
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(mark)


async def test_it_ends_with_its_worker(tmp_path: Path) -> None:
    """Also one that is killed and cannot clean up."""
    mark = f"5{os.getpid()}.25"
    program = (
        "import asyncio\n"
        "from agents.tools.sandbox.mechanism import Bounds, Program\n"
        "from agents.tools.sandbox.running import run\n"
        f"program = Program(argv=('/usr/bin/sleep', '{mark[:2]}' '{mark[2:]}'))\n"
        "asyncio.run(run(program, Bounds(seconds=60, bytes=2**28, output=100)))\n"
    )
    worker = subprocess.Popen(  # noqa: ASYNC220 - it begins at once
        [sys.executable, "-c", program], cwd=Path(__file__).parents[3]
    )
    try:
        async with asyncio.timeout(60):
            while not running(mark):
                await asyncio.sleep(0.02)
    finally:
        worker.kill()
        worker.wait()
    await gone(mark)
