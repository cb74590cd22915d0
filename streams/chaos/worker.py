"""A worker that strikes itself: ``python -m streams.chaos.worker [faults] -- worker [its options]``.

Behind ``--`` stands what would stand behind ``anabranch``; that runs unchanged, with the faults around it.
"""

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from streams.chaos import clocks, disk


def main(arguments: Sequence[str] | None = None) -> None:
    """Set up the faults, then be the worker."""
    parser = argparse.ArgumentParser(prog="python -m streams.chaos.worker", description=__doc__)
    parser.add_argument(
        "--clock",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="the clock is so far ahead; may be negative",
    )
    parser.add_argument(
        "--kill-at", metavar="POINT:before|after:N", help="SIGKILL when that point is passed the N-th time"
    )
    parser.add_argument("--disk-full", action="store_true", help="nothing can be written to files")
    parser.add_argument(
        "--tools", type=Path, metavar="DIR", help="tools that break once are there; DIR holds what was broken"
    )
    parser.add_argument("command", nargs="+", help="what would stand behind `anabranch`")
    asked = parser.parse_args(arguments)
    if asked.clock:
        clocks.set_apart(asked.clock)  # before anything is imported that asks for the time
    if asked.disk_full:
        disk.fill()
    if asked.tools is not None:
        from streams.chaos.tools import offer  # noqa: PLC0415 - as above

        offer(asked.tools)
    sys.argv[1:] = asked.command
    if asked.kill_at is None:
        anabranch()
        return
    from streams.chaos.fault_points import Moment, kill_at, told  # noqa: PLC0415 - as above

    try:
        moment = Moment.parse(asked.kill_at)
    except ValueError as error:
        parser.error(str(error))
    with told(kill_at(moment)):
        anabranch()


def anabranch() -> None:
    """Be the program, as ``python -m streams.cli`` would."""
    runpy.run_module("streams.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
