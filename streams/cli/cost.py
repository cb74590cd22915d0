"""``anabranch cost``: what a goal costs, by model, a day and a month."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.exits import Exit, Stop, run
from streams.cli.options import AsJson, Brokers, Config, Prefix, Since
from streams.cli.output import print_json

if TYPE_CHECKING:
    from agents.configuration.values import Configuration
    from streams.replay.costs import Recorded

FETCH_S = 30.0
"""Seconds that fetching the newest price list may take."""


def cost(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="What `anabranch export` wrote, or answers as `anabranch answers --json` prints them.",
            show_default=False,
        ),
    ] = None,
    like: Annotated[
        str | None, typer.Option("--like", metavar="JOB", help="A job of the log, tenant/id, instead.")
    ] = None,
    per_day: Annotated[
        int | None, typer.Option("--per-day", min=1, metavar="N", help="So many such goals a day.")
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="What all of it would cost at this model, too: one of anabranch.toml, or as its provider "
            "calls it. May be given several times.",
        ),
    ] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Fetch today's price list instead of the installed one.")
    ] = False,
    brokers: Brokers = None,
    prefix: Prefix = None,
    since: Since = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Tell what a goal like this one costs: by model, and with --per-day a day and a month of 30 days.

    Tokens are those that were recorded, call by call; prices are those of the installed genai-prices
    (or today's, with --latest), or your own in anabranch.toml. Nothing is guessed: a price that nobody
    knows is said to be unknown, and tokens that an endpoint did not tell are marked as estimates.
    Models of anabranch.toml are compared as well, as if they read and wrote the same tokens.

    [bold]Examples[/bold]

    anabranch cost --like order-17 --per-day 1000

    anabranch export order-17 order-17.jsonl && anabranch cost order-17.jsonl --per-day 1000 --model kimi-k3
    """
    from streams.cli.cost_view import Told
    from streams.replay.costs import all_at, as_it_was, others, prices_of

    if (file is None) == (like is None):
        raise typer.BadParameter("name either a FILE, or a job by --like")
    what, recorded, configuration = run(_recorded(file, like, brokers, prefix, since, config))
    told = Told(
        what=what,
        source=run(asyncio.to_thread(price_list, latest=latest)),
        recorded=recorded,
        per_day=per_day,
        was=as_it_was(recorded, prices := prices_of(configuration)),
        would=tuple(all_at(model, recorded, prices) for model in others(models or (), configuration)),
    )
    if as_json:
        for line in told.lines():
            print_json(line)
    else:
        told.show()


async def _recorded(
    file: Path | None,
    like: str | None,
    brokers: str | None,
    prefix: str | None,
    since: str,
    config: Path | None,
) -> "tuple[str, Recorded, Configuration]":
    """What it is, what it took, and what is configured."""
    from streams.cli.environment import configured, settings
    from streams.replay.costs import of_job

    ours = configured(settings(brokers=brokers, prefix=prefix), config=config)
    if file is not None:
        what, recorded = await asyncio.to_thread(_from_file, file)
    else:
        from streams.cli.replay import from_log

        recording = await from_log(like or "", brokers, prefix, since)
        what, recorded = recording.job, of_job(recording)
    if not recorded.usage.calls:
        raise Stop(f"no model call of {what} is recorded: nothing to reckon with", Exit.POOR)
    return what, recorded, ours.configuration


def _from_file(path: Path) -> "tuple[str, Recorded]":
    import orjson

    from streams.log import Record
    from streams.replay.costs import of_answers, of_job
    from streams.replay.files import KIND, NotAnExport, read_lines
    from streams.topics import ANSWERS
    from streams.wire.answers import read_answer
    from streams.wire.envelope import Unreadable

    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise Stop(f"{path} cannot be read: {error.strerror or error}", Exit.USAGE) from None
    try:
        head = orjson.loads(lines[0]) if lines else None
    except orjson.JSONDecodeError:
        head = None
    if not isinstance(head, dict) or head.get("type") == KIND or "usage" not in head:
        recording = read_lines(lines)
        return recording.job, of_job(recording)
    answers = []
    for number, line in enumerate(lines, 1):
        try:
            key = str(orjson.loads(line).get("job")).encode()
            record = Record(topic=ANSWERS, partition=0, offset=number, timestamp=0, key=key, value=line)
            answers.append(read_answer(record))
        except (Unreadable, orjson.JSONDecodeError, AttributeError) as error:
            raise NotAnExport(f"line {number} of {path} is no answer: {error}") from None
    recorded = of_answers(answers)
    return f"{recorded.goals} answers of {path}", recorded


def price_list(*, latest: bool) -> str:
    """Which price list is used; the newest is fetched where it is asked for.

    Raises:
        Stop: it could not be fetched.
    """
    import logging
    from importlib.metadata import version

    if not latest:
        return f"genai-prices {version('genai-prices')}"
    from genai_prices import UpdatePrices

    logging.getLogger("genai-prices").setLevel(logging.CRITICAL)  # what it logs is told below
    updater = UpdatePrices()
    try:
        with updater:
            there = updater.wait(FETCH_S)
        why = "" if there else f"it took longer than {FETCH_S:g} s"
    except Exception as error:  # noqa: BLE001 - whatever kept it from the list, the user is to know
        why = str(error)
    if why:
        raise Stop(f"today's price list was not to be had from {updater.url}: {why}", Exit.UNREACHABLE)
    return f"today's list of genai-prices, {updater.url}"
