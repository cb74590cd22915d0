"""``anabranch replay`` and ``anabranch export``: a job's life, told again from its log."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.exits import Exit, Stop, fail, run
from streams.cli.options import AsJson, Brokers, Prefix, Since, moment
from streams.cli.output import print_json

if TYPE_CHECKING:
    from streams.core.commands import Answer
    from streams.replay.folding import Replay
    from streams.replay.recording import Recording


def replay(
    job: Annotated[
        str, typer.Argument(metavar="JOB|FILE", help="A job, tenant/id, or a file that `export` wrote.")
    ],
    calls: Annotated[
        bool, typer.Option("--calls", help="Show every model and tool call of every attempt, too.")
    ] = False,
    kcat: Annotated[
        bool, typer.Option("--kcat", help="Show under every event the kcat command that prints its record.")
    ] = False,
    brokers: Brokers = None,
    prefix: Prefix = None,
    since: Since = "",
    as_json: AsJson = False,
) -> None:
    """Show every event of a job with its time, what the fold made of it, and the commands it led to.

    At the end stands the answer that the events lead to, compared with the one that was published;
    exit code 1 where they differ. It reads without a group and writes nothing; from a file it
    needs no Kafka at all. Commands are those of the job's own concurrency; in the run they may
    have gone out later, as others took their turns.

    [bold]Examples[/bold]

    anabranch replay order-17 --calls

    anabranch export order-17 order-17.jsonl && anabranch replay order-17.jsonl

    anabranch replay order-17.jsonl --json | jq -c 'select(.orders) | .orders[]'
    """
    from streams.cli import replay_view
    from streams.cli.environment import settings
    from streams.replay.calls import calls as calls_of

    recording, told, answer = run(_replay(job, brokers, prefix, since))
    attempts = calls_of(recording) if calls else ()
    if as_json:
        for line in replay_view.lines(told, answer, attempts):
            print_json(line)
    else:
        ours = settings(brokers=brokers, prefix=prefix)
        replay_view.show(told, answer, attempts, kcat=(ours.brokers, ours.prefix) if kcat else None)
    if not told.agrees:
        raise typer.Exit(Exit.POOR)


def export(
    job: Annotated[
        str, typer.Argument(help="The job, tenant/id; of the tenant `default` the id alone will do.")
    ],
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Where to: JSON lines.")],
    brokers: Brokers = None,
    prefix: Prefix = None,
    since: Since = "",
) -> None:
    """Write all that the log has of a job into a file: its events, transcripts and answers.

    The file is what `anabranch replay` needs, and holds goal, input, results and all model and
    tool calls in plain JSON: mind whom you give it to.

    [dim]anabranch export order-17 - | gzip > order-17.jsonl.gz[/dim]
    """
    _to_file(run(from_log(job, brokers, prefix, since)), file)


async def _replay(
    job: str, brokers: str | None, prefix: str | None, since: str
) -> "tuple[Recording, Replay, Answer | None]":
    """The recording, its replay, and the folded answer with its value in place."""
    from streams.claims import Resolver
    from streams.cli.quiet import quiet
    from streams.replay.folding import replay as fold
    from streams.replay.recording import RecordedLog
    from streams.resolved import resolved

    quiet()
    path = Path(job)
    if await asyncio.to_thread(path.is_file):
        recording = await asyncio.to_thread(_from_file, path)
    elif path.suffix in {".jsonl", ".json"}:
        raise Stop(f"there is no file {job}", Exit.USAGE)
    else:
        recording = await from_log(job, brokers, prefix, since)
    told = fold(recording)
    if told.answer is None:
        return recording, told, None
    return recording, told, await resolved(Resolver(RecordedLog(recording)), told.answer)


def _from_file(path: Path) -> "Recording":
    from streams.replay.files import read_lines

    with path.open("rb") as lines:
        return read_lines(lines)


def _to_file(recording: "Recording", file: str) -> None:
    from streams.replay.files import write_lines

    if file == "-":
        sys.stdout.buffer.writelines(write_lines(recording))
        return
    try:
        with Path(file).open("wb") as out:
            out.writelines(write_lines(recording))
    except OSError as error:
        fail(f"{file} cannot be written: {error}", Exit.USAGE)
    typer.echo(f"{len(recording.records)} records of {recording.job} in {file}", err=True)


async def from_log(job: str, brokers: str | None, prefix: str | None, since: str) -> "Recording":
    """All that the log has of a job.

    Raises:
        JobUnknown: it has nothing of it.
        LogUnavailable: it cannot be read.
    """
    from streams.cli.environment import settings
    from streams.cli.quiet import quiet
    from streams.cli.watch import named
    from streams.client import Swarm
    from streams.replay.recording import record_job

    quiet()
    ours, start = settings(brokers=brokers, prefix=prefix), moment(since)
    async with Swarm(ours.brokers, prefix=ours.prefix, access=ours.access) as swarm:
        return await record_job(swarm.log, named(job), since=start)
