"""``anabranch submit``: sends goals, and waits for their answers where asked."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.cli.exits import Exit, Stop, run
from streams.cli.options import AsJson, Brokers, Prefix
from streams.cli.output import print_json

if TYPE_CHECKING:
    from streams.client import Swarm

STDIN = "-"
AT_ONCE = 256
"""Goals on their way at once."""


def submit(
    goal: Annotated[str | None, typer.Argument(help="The goal, in words.", show_default=False)] = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="Many goals: a line each, plain text or a JSON object with `goal` and any other field.",
            show_default=False,
        ),
    ] = None,
    input_: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="FILE|-",
            help="What to work on: a file of JSON, else taken as text. A list's items are divided.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="The sub-tasks, where no planner is to be asked: a file with a JSON list of them.",
            show_default=False,
        ),
    ] = None,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id", help="Sent twice with one id it is one job. Random if none.", show_default=False
        ),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Who pays, and takes turns.", show_default=False)] = None,
    priority: Annotated[int | None, typer.Option(help="0 to 9, 9 first.", show_default=False)] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(help="A tool that sub-agents may use; may be given several times.", show_default=False),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to use.", show_default=False)] = None,
    deadline: Annotated[
        float | None,
        typer.Option(help="Seconds after which it is answered with what is there.", show_default=False),
    ] = None,
    concurrency: Annotated[int | None, typer.Option(help="Sub-tasks at once.", show_default=False)] = None,
    max_subtasks: Annotated[
        int | None, typer.Option(help="Sub-tasks in all, at most 100.", show_default=False)
    ] = None,
    brokers: Brokers = None,
    prefix: Prefix = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait for the answers, and print them.")] = False,
    within: Annotated[float, typer.Option(min=0, help="Seconds to wait; then exit code 4.")] = 600.0,
    as_json: AsJson = False,
) -> None:
    """Send a goal, or many; with --wait show how far they are, and print the answers.

    Without --wait the jobs' names go to stdout. With it the answers do, and progress and the
    report go to stderr; exit code 1 where an answer is not `succeeded`, 4 where one did not come
    in time (the jobs go on).

    [bold]Examples[/bold]

    anabranch submit "Compare Kafka and NATS" --wait

    pip list --format json | anabranch submit "Audit the licences" --input - --tool licence_files -w

    anabranch submit "Sum up these reports" --input reports.json --plan plan.json --wait

    anabranch submit --file goals.jsonl --tenant acme --wait --json > answers.jsonl

    anabranch watch $(anabranch submit "Compare Kafka and NATS")
    """
    if (goal is None) == (file is None):
        raise typer.BadParameter("give either a goal, or --file with many")
    if file is not None and any(given is not None for given in (id_, input_, plan)):
        raise typer.BadParameter(
            "--id, --input and --plan are of one goal: with --file they stand in its lines"
        )
    shared: dict[str, Any] = {
        "id": id_,
        "tenant": tenant,
        "priority": priority,
        "tools": tool or None,
        "model": model,
        "deadline_s": deadline,
    }
    limits = {"concurrency": concurrency, "max_subtasks": max_subtasks}
    if limits := {name: value for name, value in limits.items() if value is not None}:
        shared["limits"] = limits
    shared = {name: value for name, value in shared.items() if value is not None}

    async def send() -> None:
        goals = [{"goal": goal, **shared}] if file is None else read_goals(text_of(file, "--file"), shared)
        if input_ is not None:
            goals[0]["input"] = read_input(text_of(input_, "--input"))
        if plan is not None:
            goals[0]["plan"] = read_plan(text_of(plan, "--plan"))
        await _send(goals, brokers, prefix, within, wait=wait, as_json=as_json)

    run(send())


def read_goals(text: str, shared: dict[str, Any]) -> list[dict[str, Any]]:
    """The goals in a file's lines; what a line says itself goes before what is *shared* by all.

    Raises:
        Stop: a line that begins as an object is none.
    """
    import orjson

    goals: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not (line := line.strip()):
            continue
        if not line.startswith("{"):
            goals.append({**shared, "goal": line})
            continue
        try:
            goals.append({**shared, **orjson.loads(line)})
        except orjson.JSONDecodeError as error:
            raise Stop(f"--file, line {number}: no JSON object ({error})", Exit.USAGE) from None
    if not goals:
        raise Stop("--file has no goals", Exit.USAGE)
    return goals


def read_input(text: str) -> Any:
    """A goal's input: JSON as what it is, anything else as text."""
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def read_plan(text: str) -> Any:
    """A goal's plan: a JSON list.

    Raises:
        Stop: it is none; ``null``, which a goal may say, would mean that a planner is paid after all.
    """
    import orjson

    try:
        plan = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Stop(f"--plan: no JSON ({error})", Exit.USAGE) from None
    if not isinstance(plan, list):
        raise Stop("--plan: should be a JSON list of sub-tasks", Exit.USAGE)
    return plan


def text_of(file: str, option: str) -> str:
    """The text of a file, or of standard input.

    Raises:
        Stop: it cannot be read.
    """
    try:
        if file == STDIN:
            return typer.get_text_stream("stdin").read()
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Stop(f"{option} {file} cannot be read: {error}", Exit.USAGE) from None


async def _send(
    goals: list[dict[str, Any]],
    brokers: str | None,
    prefix: str | None,
    within: float,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    from streams.cli.environment import settings
    from streams.cli.quiet import quiet
    from streams.cli.waiting import wait_for
    from streams.client import Swarm

    quiet()
    ours = settings(brokers=brokers, prefix=prefix)
    jobs = [_checked(number, fields) for number, fields in enumerate(goals, 1)]  # before any is sent
    async with Swarm(ours.brokers, prefix=ours.prefix, access=ours.access, entry_key=ours.entry_key) as swarm:
        if wait:
            await wait_for(swarm, goals, jobs, within_s=within, as_json=as_json)
            return
        await send_all(swarm, goals)
    for job in jobs:
        if as_json:
            print_json({"job": job})
        else:
            typer.echo(job)


def _checked(number: int, fields: dict[str, Any]) -> str:
    """The goal's job; it has an id from now on."""
    from streams.wire.envelope import Unwritable
    from streams.wire.goal_fields import BadFields
    from streams.wire.goal_writing import write_goal

    options = {name: value for name, value in fields.items() if name != "goal"}
    try:
        job, _ = write_goal(fields.get("goal", ""), **options)
    except (BadFields, Unwritable) as error:
        raise Stop(f"goal {number}: {error}", Exit.USAGE) from None
    fields["id"] = job.partition("/")[2]
    return job


async def send_all(swarm: "Swarm", goals: list[dict[str, Any]]) -> None:
    """Send goals, some at a time.

    Raises:
        RecordRefused, LogUnavailable: one could not be sent.
    """
    import asyncio

    places = asyncio.Semaphore(AT_ONCE)

    async def send(fields: dict[str, Any]) -> None:
        async with places:
            await swarm.submit(**fields)

    await asyncio.gather(*map(send, goals))
