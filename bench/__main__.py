"""All measurements in one run: ``python -m bench [NAME ...] [--json FILE]``.

They run one after the other on one embedded Kafka, each on topics, an endpoint and a worker of its
own; everything shares this machine. Those that take long run only when they are named.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson

from bench import folding, latency, restoring, throughput, tool_servers
from bench.figures import Figure, markdown
from bench.flood import flood
from bench.hedging import hedging
from bench.resilience import resilience
from bench.soak import soak
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


def long_ones(arguments: argparse.Namespace) -> dict[str, tuple[str, Measurement]]:
    """Those that run only when they are named."""
    goals, minutes, rate = arguments.goals, arguments.minutes, arguments.rate
    return {
        "restoring": ("Restoring a table of 100,000 finished and 1,000 open jobs", restoring.restoring),
        "tool-servers": (
            f"{tool_servers.SUB_AGENTS} sub-agents on one shared client of a tool server, and on their own",
            tool_servers.shared_and_own,
        ),
        "hedging": ("Jobs of 100 sub-tasks with stragglers, without hedges and with them", hedging),
        "resilience": ("1,000 sub-tasks against an endpoint that misbehaves", resilience),
        "flood": (f"{goals:,} goals at once", lambda servers: flood(servers, goals=goals)),
        "soak": (
            f"{minutes:g} minutes of {rate:g} jobs a second",
            lambda servers: soak(servers, minutes=minutes, rate=rate),
        ),
    }


async def main(
    measurements: dict[str, tuple[str, Measurement]], names: list[str], target: Path | None
) -> int:
    """Measure, print, and say by the exit code whether every floor holds."""
    results: dict[str, list[Figure]] = {}
    sys.stdout.write(f"Machine: {machine()}; broker, endpoint, worker and client share it.\n")
    running = await broker.start(HOME)
    try:
        for name in names:
            title, measurement = measurements[name]
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
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"{', '.join(MEASUREMENTS)}; or restoring, tool-servers, resilience, flood, soak",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--goals", type=int, default=100_000, help="of the flood (default: 100,000)")
    parser.add_argument("--minutes", type=float, default=60, help="of the soak (default: 60)")
    parser.add_argument("--rate", type=float, default=20, help="jobs a second of the soak (default: 20)")
    arguments = parser.parse_args()
    known = MEASUREMENTS | long_ones(arguments)
    if unknown := set(arguments.names) - known.keys():
        parser.error(f"no measurement {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    sys.exit(asyncio.run(main(known, arguments.names or list(MEASUREMENTS), arguments.json)))
