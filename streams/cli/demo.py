"""``anabranch demo``: real goals answered on a real Kafka by one command, which leaves nothing behind."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from streams.cli.exits import Exit, Stop, run
from streams.cli.options import AsJson, Home

if TYPE_CHECKING:
    from agents.simulator import Behaviour
    from streams.cli.demo_view import DemoJobs
    from streams.client import Swarm
    from streams.demo.goals import DemoGoal
    from streams.settings import Settings

LATENCY = "p50=0.38,p99=1.12"
"""Log-normal, as measured at a provider's small model; long enough to see sub-agents at work."""

_HOME = Path(".anabranch")


def demo(
    goals: Annotated[
        Path | None,
        typer.Option(
            "--goals",
            metavar="FILE",
            help="Your own second, third, ... goals: a line each, a JSON string or a JSON object with "
            "`goal` and any other field.",
            show_default="the two that come with Anabranch",
        ),
    ] = None,
    latency: Annotated[
        str,
        typer.Option(
            help="Seconds a call of the simulated model takes: 0.3, or log-normal as p50=0.38,p99=1.12."
        ),
    ] = LATENCY,
    home: Home = _HOME,
    as_json: AsJson = False,
    svg: Annotated[Path | None, typer.Option(hidden=True, help="Write a picture of the terminal.")] = None,
) -> None:
    """Answer goals on a real Kafka: everything is started, shown at work, and stopped again.

    The first goal audits the licences of the packages installed here, one sub-agent a package.
    Without a key a simulated model answers: Kafka, the tools and the joins are real then, too, its
    texts say `(simulated)`. With OPENAI_API_KEY or OPENAI_BASE_URL the same goals go to that model,
    for its price. ANABRANCH_BROKERS names another Kafka than one started here. Exit code 1 where
    an answer is not `succeeded`.

    [bold]Examples[/bold]

    anabranch demo

    anabranch demo --goals my-goals.jsonl

    anabranch demo --json | jq .report.subtasks

    OPENAI_API_KEY=... OPENAI_BASE_URL=https://api.moonshot.ai/v1 ANABRANCH_MODEL=kimi-k2.6 anabranch demo
    """
    run(_until_stopped(goals, latency, home, svg, as_json=as_json), uvloop=True)


async def _until_stopped(
    goals: Path | None, latency: str, home: Path, svg: Path | None, *, as_json: bool
) -> None:
    from streams.cli.output import console
    from streams.cli.stopping import stopped_by_signal

    stop = stopped_by_signal()
    running = asyncio.create_task(_demo(goals, latency, home, svg, as_json=as_json))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not running.done():
        console(stderr=True).print("Stopping everything; once more ends it at once.")
        running.cancel()
        await asyncio.wait({running})
        _end(Exit.INTERRUPTED)
    running.result()


def _end(code: Exit) -> NoReturn:
    """End now: a thread that is at a download would keep the interpreter waiting for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def _demo(
    goals_file: Path | None, latency: str, home: Path, svg: Path | None, *, as_json: bool
) -> None:
    from streams.cli.demo_view import DemoJobs, show
    from streams.cli.environment import settings
    from streams.cli.output import answer_json, console, print_json
    from streams.cli.quiet import quiet
    from streams.client import Swarm
    from streams.demo.running import Late, answer_all
    from streams.demo.stage import stage
    from streams.demo.worker import WorkerDied
    from streams.report import report, to_dict

    quiet()
    ours = settings()
    goals = await asyncio.to_thread(_goals, goals_file)
    behaviour = await _model(ours, latency)
    notes = console(stderr=True)
    live = DemoJobs([goal.job for goal in goals], notes, simulated=behaviour is not None)
    try:
        async with (
            stage(
                ours,
                home=home,
                own_broker=not os.environ.get("ANABRANCH_BROKERS", "").strip(),
                simulated=behaviour,
                say=lambda line: notes.print(line, style="dim", markup=False, soft_wrap=True),
            ) as place,
            Swarm(
                place.settings.brokers,
                prefix=place.settings.prefix,
                access=place.settings.access,
                entry_key=ours.entry_key,
            ) as swarm,
        ):
            with live:
                answers = await answer_all(swarm, goals, place.worker, live)
            simulated = behaviour is not None or await _was_simulated(swarm, live)
    except (WorkerDied, Late) as error:
        raise Stop(str(error), Exit.LATE if isinstance(error, Late) else Exit.FAILED) from None
    told = report(live.events, simulated=simulated)
    if as_json:
        print_json(
            {"simulated": simulated, "answers": [answer_json(a) for a in answers], "report": to_dict(told)}
        )
    else:
        show(console(), answers, told)
    if svg is not None:
        from streams.cli.picture import save

        save(svg, live, answers, told)
    if any(answer.outcome != "succeeded" for answer in answers):
        raise typer.Exit(Exit.POOR)


def _goals(file: Path | None) -> "tuple[DemoGoal, ...]":
    from streams.demo.goals import BadGoals, licence_audit, read_goals

    try:
        read = read_goals(file)
    except BadGoals as error:
        raise Stop(str(error), Exit.USAGE) from None
    audit = licence_audit()
    if any(goal.job == audit.job for goal in read):
        raise Stop(f"{file} has a goal with the id of the audit, {audit.job}: give it another", Exit.USAGE)
    return (audit, *read)


async def _model(settings: "Settings", latency: str) -> "Behaviour | None":
    """How the simulated model is to behave; None where a real one is configured, and answers.

    Raises:
        Stop: the configured endpoint cannot be used.
    """
    from agents.configuration.values import DEFAULT
    from agents.ports import ModelError
    from agents.simulator import Behaviour, parse_latency
    from streams.cli.endpoint import advice, list_models

    endpoint = settings.configuration.endpoints[DEFAULT]
    if not settings.api_key.strip() and not settings.base_url:
        return Behaviour(latency=parse_latency(latency))
    try:
        await list_models(endpoint)
    except ModelError as error:
        # One that only has no list of its models may still answer.
        if error.kind in {"bad_key", "connection"} or not settings.model:
            raise Stop(f"{error.reason}; to do: {advice(endpoint, error)}", Exit.POOR) from None
    return None


async def _was_simulated(swarm: "Swarm", live: "DemoJobs") -> bool:
    from streams.core.events import JobSubmitted
    from streams.replay.simulated import was_simulated

    first = next((e for events in live.events.values() for e in events if isinstance(e, JobSubmitted)), None)
    return first is not None and await was_simulated(swarm.log, first)
