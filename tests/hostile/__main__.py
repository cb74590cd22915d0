"""Many hostile inputs, repeatable by their seed: ``python -m tests.hostile --inputs 100000 --seed 1``.

Prints a table of what became of them, and what broke, each with what repeats it. Exits with 1 where
anything did.
"""

import argparse
import sys
import time

import structlog

from tests.hostile.kinds import KINDS, portions
from tests.hostile.tally import Tally, table

PORTION = 1_500
"""Inputs between two lines of progress."""


def main(names: list[str], inputs: int, seed: int) -> int:
    """Put them in, kind by kind, and print the table."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    began = time.monotonic()
    tallies = []
    for name, count in portions(inputs, names).items():
        tally = Tally(kind=name)
        for number in range(-(-count // PORTION)):
            tally.add(KINDS[name].put_in(seed + number, min(PORTION, count - number * PORTION)))
            sys.stderr.write(f"\r{name}: {tally.inputs:,} of {count:,}, {len(tally.crashes)} crashes\033[K")
            sys.stderr.flush()
        tallies.append(tally)
    sys.stderr.write("\r\033[K")
    sys.stdout.write(f"{table(tallies)}\n\nSeed {seed}, {time.monotonic() - began:,.0f} s.\n")
    crashes = [crash for tally in tallies for crash in tally.crashes]
    for crash in crashes:
        sys.stdout.write(f"- {crash}\n")
    return int(bool(crashes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--inputs", type=int, default=100_000, help="how many in all (100,000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - KINDS.keys():
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    sys.exit(main(arguments.names or list(KINDS), arguments.inputs, arguments.seed))
