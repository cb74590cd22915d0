"""The code interpreter and the shell, as tools."""

import asyncio
import os
from typing import Annotated, Any, Final

from pydantic import Field

from agents.configuration.values import LocalToolSettings
from agents.tools.local import LocalTool, local_tool
from agents.tools.sandbox.mechanism import INSTALL, Bounds, Program, lacking, mechanism, python
from agents.tools.sandbox.running import Ended, SandboxFailed, run

MAX_PROGRAM: Final = 100_000
MAX_INPUT: Final = 1_000_000

Code = Annotated[str, Field(description="The program.", max_length=MAX_PROGRAM)]
Stdin = Annotated[str, Field(description="What it reads from standard input.", max_length=MAX_INPUT)]

_PROBE: Final = Bounds(seconds=5.0, bytes=268_435_456, output=4_096)


def sandbox_tools(settings: LocalToolSettings) -> tuple[LocalTool, ...]:
    """``run_python`` and ``run_shell``, each run in a sandbox of its own that is gone afterwards."""
    bounds = Bounds(seconds=settings.sandbox_s, bytes=settings.sandbox_bytes, output=settings.sandbox_output)
    places = asyncio.Semaphore(os.cpu_count() or 1)  # more at once would only be slower, each

    async def perform(program: Program) -> dict[str, Any]:
        async with places:
            return _told(await run(program, bounds), bounds)

    async def run_python(code: Code, stdin: Stdin = "") -> dict[str, Any]:
        """Run a Python program and return what it prints.

        It has the standard library, no network, and no files but those that it writes itself. Nothing
        is kept from one run to the next.
        """
        files = {"main.py": code, "stdin": stdin}
        return await perform(Program(argv=(python(), "-I", "/work/main.py"), files=files, stdin="stdin"))

    async def run_shell(code: Code, stdin: Stdin = "") -> dict[str, Any]:
        """Run a shell script (sh) and return what it prints.

        It has the usual programs (awk, sed, sort, grep), no network, and no files but those that it
        writes itself. Nothing is kept from one run to the next.
        """
        files = {"main.sh": code, "stdin": stdin}
        return await perform(Program(argv=("/bin/sh", "/work/main.sh"), files=files, stdin="stdin"))

    return local_tool(run_python), local_tool(run_shell)


def _told(ended: Ended, bounds: Bounds) -> dict[str, Any]:
    told: dict[str, Any] = {"exit_code": ended.exit, "stdout": ended.out, "stderr": ended.err}
    match ended.why:
        case "time":
            told["ended"] = f"it was ended after {bounds.seconds:g} s"
        case "memory":
            told["ended"] = f"it was ended: more than {bounds.bytes} bytes of memory and files"
        case "processes":
            told["ended"] = f"it was ended: more than {bounds.processes} processes"
        case "output":
            told["ended"] = f"it was ended: more than {bounds.output} bytes of output; these are the first"
    return told


def sandbox_problem() -> str | None:
    """Why programs cannot be run in a sandbox here, and what to do; None where they can.

    It tries, which takes a moment. To be called in a thread without an event loop.
    """
    if reason := lacking():
        return reason
    program = Program(argv=("/bin/sh", "/work/main.sh"), files={"main.sh": "(echo well) | cat"})
    try:
        ended = asyncio.run(run(program, _PROBE))
    except (SandboxFailed, OSError) as error:
        return f"the sandbox by {mechanism()} does not work here ({error}); {_remedy()}"
    if ended.out != "well\n":
        why = ended.err.strip() or ended.why or f"exit code {ended.exit}"
        return f"the sandbox by {mechanism()} does not work here ({why}); {_remedy()}"
    return None


def _remedy() -> str:
    if mechanism() == "namespaces" and os.geteuid() != 0:
        return (
            f"{INSTALL}, and let this user have user namespaces (sysctl user.max_user_namespaces; Ubuntu: "
            "kernel.apparmor_restrict_unprivileged_userns=0)"
        )
    return (
        "in a container it needs namespaces of its own: run the worker as root with CAP_SYS_ADMIN and "
        "without Docker's seccomp and AppArmor profiles, in a machine that has nothing else, or leave "
        "`sandbox` off"
    )
