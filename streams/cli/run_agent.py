"""``anabranch run-agent``: one sub-agent in the foreground, without Kafka, step by step."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.exits import Exit, Stop, run
from streams.cli.options import AsJson, Config

if TYPE_CHECKING:
    from agents.configuration.values import Kind
    from agents.ports import Crew, Done, GaveUp
    from streams.core.commands import RunSubTask
    from streams.settings import Settings

JOB = "local/run-agent"
"""The job of a sub-agent that belongs to none."""

WAIT_S = 10.0
"""Seconds to wait for an endpoint at the start."""


def run_agent(
    goal: Annotated[str, typer.Argument(help="What the sub-agent is to do, in words.", show_default=False)],
    kind: Annotated[
        str, typer.Option(help="extract, summarize, translate, analyze, or your own.")
    ] = "analyze",
    tools: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Tools that it may use, of those its kind may. [dim]\\[the kind's own list, or none][/dim]",
            show_default=False,
        ),
    ] = None,
    input_: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="FILE|-",
            help="What to work on: a file of JSON, else taken as text.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds it may take.")] = 120.0,
    config: Config = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The model. [dim]\\[the kind's own, ANABRANCH_MODEL, or the endpoint's only one][/dim]",
            show_default=False,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="The model endpoint, with /v1. [dim]\\[OPENAI_BASE_URL, or OpenAI's own][/dim]",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run one sub-agent here and show each step: what prompts and tools do, before a system runs them.

    It has the models, tools and bounds that sub-agents of its kind have in a worker, but no Kafka,
    no journal and no other sub-agents. Every call of a model is shown with its tokens, time, cost
    and endpoint, every failed one with what is made of it, and every call of a tool with its result.
    The steps go to stderr and the result to stdout; with --json all of it goes to stdout, an object
    a line. Exit code 1 where there is no result, 4 where its time was over.

    [bold]Examples[/bold]

    anabranch run-agent "Which licence has orjson?" --kind extract --tools distribution_metadata

    anabranch run-agent "Name the three main risks" --input contract.json --model kimi-k2.6

    anabranch run-agent "Sum up" --kind summarize --input - --json | jq -c 'select(.type == "Done")'
    """
    run(
        _run(
            goal,
            kind,
            None if tools is None else tuple(filter(None, (name.strip() for name in tools.split(",")))),
            input_,
            timeout,
            config,
            model,
            base_url,
            as_json=as_json,
        ),
        uvloop=True,
    )


async def _run(
    goal: str,
    kind: str,
    tools: tuple[str, ...] | None,
    input_: str | None,
    timeout_s: float,
    config: Path | None,
    model: str | None,
    base_url: str | None,
    *,
    as_json: bool,
) -> None:
    from agents.crew import assemble
    from streams.cli.environment import configured, settings
    from streams.cli.quiet import quiet
    from streams.cli.submit import read_input, text_of
    from streams.cli.worker_start import with_models
    from streams.core.commands import RunSubTask
    from streams.core.values import Inline

    if not goal.strip():
        raise Stop("the goal is empty", Exit.USAGE)
    given = None if input_ is None else Inline(value=read_input(text_of(input_, "--input")))
    ours = settings(model=model, base_url=base_url)
    ours = configured(ours, config=config, base_url=base_url, model=model)
    quiet(ours)
    ours = await with_models(ours, asyncio.get_running_loop().time() + WAIT_S)
    crew = await assemble(ours.configuration)
    try:
        command = RunSubTask(
            job=JOB,
            task="agent",
            attempt=1,
            ordinal=1,
            timeout_s=timeout_s,
            goal=goal,
            kind=kind,
            tools=granted(crew, ours.configuration.kind(kind), tools),
            input=given,
            alone=True,
        )
        ended = await _watched(crew, command, ours, as_json=as_json)
    finally:
        await crew.close()
    from agents.ports import GaveUp

    if isinstance(ended, GaveUp):
        raise typer.Exit(Exit.LATE if ended.kind == "timeout" else Exit.POOR)


async def _watched(
    crew: "Crew", command: "RunSubTask", ours: "Settings", *, as_json: bool
) -> "Done | GaveUp":
    from agents.ports import GaveUp
    from streams.cli.agent_steps import WatchedAttempt
    from streams.cli.agent_view import JsonSteps, LineSteps
    from streams.redaction import Redactor

    view = JsonSteps() if as_json else LineSteps()
    attempt = WatchedAttempt(command.timeout_s, view.show, redactor=Redactor(ours.secrets))
    ended: Done | GaveUp
    try:
        async with asyncio.timeout(command.timeout_s):
            ended = await crew.sub_agent.run(command, attempt)
    except TimeoutError:
        reason = f"no result within {command.timeout_s:g} s"
        ended = GaveUp(kind="timeout", reason=reason, final=False, usage=attempt.usage)
    view.end(ended, simulated=attempt.simulated)
    return ended


def granted(crew: "Crew", kind: "Kind", asked: tuple[str, ...] | None) -> tuple[str, ...]:
    """The tools that were asked for; none named: those on the kind's own list.

    Raises:
        Stop: there is no tool of a name, or sub-agents of this kind may not use it.
    """
    from agents.configuration.problems import nearest

    if asked is None:
        return kind.tools or ()
    there = {spec.name for spec in crew.tools.specs(asked)}
    for name in asked:
        if name not in there:
            known = names(crew)
            hint = f"; {nearest(name, known)}" if known else ""
            raise Stop(f"--tools {name}: there is no such tool{hint}", Exit.USAGE)
        if kind.tools is not None and name not in kind.tools:
            raise Stop(
                f"--tools {name}: sub-agents of kind {kind.name} may not use it; "
                f"they may use {', '.join(kind.tools) or 'none'}",
                Exit.USAGE,
            )
    return asked


def names(crew: "Crew") -> list[str]:
    """The tools there are, where they can be listed."""
    listed = getattr(crew.tools, "names", None)
    return list(listed()) if callable(listed) else []
