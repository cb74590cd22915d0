"""``anabranch dead-letters``: what could not be read or handled."""

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.exits import Exit, Stop, run
from streams.cli.options import AsJson, Brokers, Prefix, Since, moment
from streams.cli.output import console, print_json, say

if TYPE_CHECKING:
    from streams.dead_letters import DeadLetter

app = typer.Typer(
    no_args_is_help=True, help="Records that could not be read or handled, whole, each with the reason."
)


@app.command("list")
def list_(brokers: Brokers = None, prefix: Prefix = None, since: Since = "", as_json: AsJson = False) -> None:
    """List them, oldest first: their place, where the original stands, and why.

    [dim]anabranch dead-letters list --since 1d[/dim]
    """
    run(_list(brokers, prefix, since, as_json=as_json))


@app.command()
def show(
    place: Annotated[str, typer.Argument(metavar="PARTITION:OFFSET", help="Its place, as `list` shows it.")],
    brokers: Brokers = None,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """Show one whole: key, headers and value of the original, byte for byte.

    [dim]anabranch dead-letters show 3:17[/dim]
    """
    run(_show(place, brokers, prefix, as_json=as_json))


async def _list(brokers: str | None, prefix: str | None, since: str, *, as_json: bool) -> None:
    from streams import dead_letters
    from streams.cli.environment import settings
    from streams.cli.quiet import quiet
    from streams.cli.words import clock, cut
    from streams.client import Swarm
    from streams.topics import DEAD_LETTERS

    quiet()
    ours, start = settings(brokers=brokers, prefix=prefix), moment(since)
    async with Swarm(ours.brokers, prefix=ours.prefix, access=ours.access) as swarm:
        letters = [
            dead_letters.read(record)
            for partition in range(await swarm.log.partitions(DEAD_LETTERS))
            async for records in swarm.log.read(DEAD_LETTERS, partition, since=start)
            for record in records
        ]
    letters.sort(key=lambda letter: (letter.at, letter.partition, letter.offset))
    out = console()
    for letter in letters:
        if as_json:
            print_json(_fields(letter, whole=False))
        else:
            place, why = f"{letter.partition}:{letter.offset}", cut(letter.reason)
            line = f"{place:<8} {clock(letter.at)}  {_original(letter)}  {why}"
            say(out, line)
    if not letters and not as_json:
        typer.echo("There are none.", err=True)


async def _show(place: str, brokers: str | None, prefix: str | None, *, as_json: bool) -> None:
    from streams import dead_letters
    from streams.cli.environment import settings
    from streams.cli.quiet import quiet
    from streams.cli.words import clock
    from streams.client import Swarm
    from streams.topics import DEAD_LETTERS

    quiet()
    ours = settings(brokers=brokers, prefix=prefix)
    partition, offset = _place(place)
    async with Swarm(ours.brokers, prefix=ours.prefix, access=ours.access) as swarm:
        if partition >= await swarm.log.partitions(DEAD_LETTERS):
            raise Stop(f"{DEAD_LETTERS} has no partition {partition}", Exit.USAGE)
        found = None
        async for records in swarm.log.read(DEAD_LETTERS, partition, offset=offset):
            found = next((record for record in records if record.offset == offset), None)
            break
    if found is None:
        raise Stop(f"there is no dead letter at {place}; `anabranch dead-letters list` shows them", Exit.POOR)
    letter = dead_letters.read(found)
    if as_json:
        print_json(_fields(letter, whole=True))
        return
    out = console()
    for name, value in (
        ("reason", letter.reason),
        ("original", _original(letter)),
        ("buried", clock(letter.at)),
        ("key", "" if letter.key is None else letter.key.decode(errors="replace")),
        *((f"header {name}", (value or b"").decode(errors="replace")) for name, value in letter.headers),
    ):
        say(out, f"{name + ':':<10} {value}")
    if letter.lost_bytes is not None:
        out.print(
            f"value:     left out, {letter.lost_bytes} bytes, SHA-256 {letter.lost_digest}", markup=False
        )
    elif letter.value is None:
        out.print("value:     none (a tombstone)")
    else:
        out.print("value:")
        say(out, letter.value.decode(errors="replace"))


def _place(text: str) -> tuple[int, int]:
    partition, _, offset = text.partition(":")
    if not (partition.isascii() and partition.isdigit() and offset.isascii() and offset.isdigit()):
        raise Stop(f"{text!r} is no place: write PARTITION:OFFSET, as `list` shows it", Exit.USAGE)
    return int(partition), int(offset)


def _original(letter: "DeadLetter") -> str:
    return f"{letter.place.topic}[{letter.place.partition}]@{letter.place.offset}"


def _fields(letter: "DeadLetter", *, whole: bool) -> dict[str, object]:
    from base64 import b64encode

    from streams.wire.headers import read_headers

    told: dict[str, object] = {
        "place": f"{letter.partition}:{letter.offset}",
        "at": letter.at,
        "reason": letter.reason,
        "original": letter.place,
        "source": letter.source,
        "key": letter.key,
        "bytes": letter.lost_bytes if letter.lost_bytes is not None else len(letter.value or b""),
    }
    if not whole:
        return told
    try:
        told["value"] = None if letter.value is None else letter.value.decode()
    except UnicodeDecodeError:
        told["value_base64"] = b64encode(letter.value or b"").decode()
    return {**told, "headers": read_headers(letter.headers), "lost_sha256": letter.lost_digest or None}
