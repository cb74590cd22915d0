"""All measurements in one run: ``python -m bench [NAME ...] [--json FILE]``.

They run one after the other on one embedded Kafka, each on topics, an endpoint and a worker of its
own; everything shares this machine.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson

from bench import folding, latency, throughput
from bench.figures import Figure, markdown
from bench.stage import HOME, machine
from streams import broker

Measurement = Callable[[str], Awaitable[list[Figure]]]

MEASUREMENTS: dict[str, tuple[str, Measurement]] = {
    "plain": (
        "1,000 sub-tasks at zero latency, 100 in flight, against the plain way",
        throughput.against_the_plain_way,
    ),
    "ideal": ("1,000 sub-tasks that take their time, 100 in flight", throughput.against_the_ideal),
    "answer": ("Goal to answer", latency.goal_to_answer),
    "chain": ("From a result to the start of what it unblocked", latency.result_to_start),
    "fold": ("The fold alone", lambda _: folding.fold_alone()),
    "orchestrator": ("The orchestrator on a pre-filled log", folding.prefilled),
    "sweep": ("By calls in flight, 0.1 s each", throughput.sweep),
}


async def main(names: list[str], target: Path | None) -> int:
    """Measure, print, and say by the exit code whether every floor holds."""
    results: dict[str, list[Figure]] = {}
    sys.stdout.write(f"Machine: {machine()}; broker, endpoint, worker and client share it.\n")
    running = await broker.start(HOME)
    try:
        for name in names:
            title, measurement = MEASUREMENTS[name]
            results[name] = await measurement(running.servers)
            sys.stdout.write(f"\n{markdown(title, results[name])}\n")
            sys.stdout.flush()
    finally:
        await running.stop()
    if target is not None:
        target.write_bytes(
            orjson.dumps({"machine": machine(), "figures": results}, option=orjson.OPT_INDENT_2)
        )
    return int(any(not figure.holds for figures in results.values() for figure in figures))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - MEASUREMENTS.keys():
        parser.error(f"no measurement {', '.join(sorted(unknown))}; there are {', '.join(MEASUREMENTS)}")
    sys.exit(asyncio.run(main(arguments.names or list(MEASUREMENTS), arguments.json)))
