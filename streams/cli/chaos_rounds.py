"""Rounds on a real Kafka on the command line: a line each while they are played, a table at the end."""

import asyncio
import secrets
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

import orjson
import typer

from streams.broker import BrokerFailed
from streams.chaos.attacks import FAULTS, UnknownFault, known
from streams.chaos.evidence import Finding
from streams.chaos.ground import Ground, own_ground
from streams.chaos.keeping import NoEvidence, keep, kept
from streams.chaos.plans import Plan, plan
from streams.chaos.rounds import Played, play
from streams.chaos.table import Round, markdown, sum_of, table
from streams.chaos.verifier import Figures, judge
from streams.cli.exits import Exit, Stop
from streams.cli.output import console, print_json, say
from streams.log import LogUnavailable

HOME: Final = Path(".anabranch")
ROUND_S: Final = 600.0
"""Seconds after which a round is given up; a minute is usual."""
TRIES: Final = 3
"""How often it is tried to play a round, with so many seconds in between:"""
PAUSE_S: Final = 10.0
SHOWN: Final = 10
"""Findings of a round that are shown; the others are with the evidence."""


async def play_rounds(
    seeds: Sequence[int],
    *,
    brokers: int,
    workers: int,
    faults: Sequence[str],
    place: Path | None,
    as_json: bool,
) -> None:
    """Play one round after another, and say how they went and what they came to.

    Raises:
        Stop: the promise was broken, or a round could not be played.
        BrokerFailed: there are no brokers to play on.
    """
    run = place or HOME / "chaos" / secrets.token_hex(4)
    rounds: list[Round] = []
    broken: list[int] = []
    played: Played | None = None
    async with own_ground(HOME, run, brokers=brokers, workers=workers) as ground:
        try:
            chosen = known(faults, ground.offers)
        except UnknownFault as error:
            raise Stop(str(error), Exit.USAGE) from None
        for seed in seeds:
            played = await _again(ground, plan(seed, chosen), as_json=as_json)
            if played is not None:
                names = [strike.fault for strike in played.plan.strikes]
                figures, recovery_s = played.verdict.figures, played.recovery_s
                rounds.append(Round(faults=names, figures=figures, recovery_s=recovery_s))
            if played is None or played.verdict.findings:
                broken.append(seed)
            if played is None:
                break  # there is nothing to play on; the brokers' logs tell why
    if played is not None:
        shutil.rmtree(run / "brokers", ignore_errors=True)
    (run / "table.md").write_text(markdown(rounds), encoding="utf-8")
    if as_json:
        figures = sum_of(each.figures for each in rounds)
        print_json({"type": "Rounds", "rounds": len(rounds), "broken": broken, **_figures(figures)})
    else:
        console().print(table(rounds) if sys.stdout.isatty() else markdown(rounds), markup=False)
    if broken:
        raise Stop(f"not as they should be: rounds {', '.join(map(str, broken))}; see {run}", Exit.POOR)


async def _again(ground: Ground, planned: Plan, *, as_json: bool) -> Played | None:
    """Play a round, again where it could not be played."""
    for _ in range(TRIES):
        if (played := await _round(ground, planned, as_json=as_json)) is not None:
            return played
        await asyncio.sleep(PAUSE_S)
    return None


async def _round(ground: Ground, planned: Plan, *, as_json: bool) -> Played | None:
    """Play a round and say how it went; None where it could not be played."""
    place = ground.place / f"round-{planned.seed}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "plan.json").write_bytes(orjson.dumps(planned, option=orjson.OPT_INDENT_2))
    try:
        async with asyncio.timeout(ROUND_S):
            played = await play(ground, planned)
    except (LogUnavailable, BrokerFailed, TimeoutError, ExceptionGroup) as error:
        # One round that could not be played is no reason not to play the next.
        typer.secho(f"round {planned.seed} could not be played: {_reasons(error)}", fg="red", err=True)
        return None
    told = _told(played)
    with (ground.place / "rounds.jsonl").open("ab") as lines:
        lines.write(orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE))
    if as_json:
        print_json({"type": "Round", **told})
    else:
        _say(played)
    if played.verdict.findings:
        keep(played.evidence, place)
        (place / "played.json").write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    elif not played.crashes:
        shutil.rmtree(place, ignore_errors=True)
    return played


def _reasons(error: BaseException) -> str:
    """Of a group of errors, those in it."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(_reasons, error.exceptions))
    return repr(error)


def _told(played: Played) -> dict[str, object]:
    return {
        "seed": played.plan.seed,
        "faults": [strike.fault for strike in played.plan.strikes],
        "notes": played.notes,
        "took_s": round(played.took_s, 1),
        "recovery_s": None if played.recovery_s is None else round(played.recovery_s, 2),
        "workers_crashed": len(played.crashes),
        "crashes": played.crashes,
        **_figures(played.verdict.figures),
        "findings": [asdict(finding) for finding in played.verdict.findings],
    }


def _figures(figures: Figures) -> dict[str, object]:
    return {field.name: getattr(figures, field.name) for field in fields(figures)}


def _say(played: Played) -> None:
    out, figures = console(), played.verdict.figures
    faults = ", ".join(played.notes) or "no faults"
    recovery = "" if played.recovery_s is None else f", back after {played.recovery_s:.1f} s"
    say(
        out,
        f"round {played.plan.seed}: {figures.jobs} jobs, {figures.calls} calls, {figures.repeated} repeated"
        f"{recovery}, {played.took_s:.0f} s in all; {faults}",
        style="red" if played.verdict.findings else "",
    )
    for crash in played.crashes:
        say(out, f"  {crash}", style="yellow")
    say_findings(played.verdict.findings)


def say_findings(findings: Sequence[Finding]) -> None:
    """The first of them."""
    out = console()
    for finding in findings[:SHOWN]:
        say(out, f"  {finding.kind}: {finding.where}: {finding.what}", style="red")
    if len(findings) > SHOWN:
        say(out, f"  and {len(findings) - SHOWN} more", style="red")


def verify_kept(place: Path, *, as_json: bool) -> None:
    """Verify a round again whose evidence was kept.

    Raises:
        Stop: there is none, or the promise was broken.
    """
    try:
        verdict = judge(kept(place))
    except NoEvidence as error:
        raise Stop(str(error), Exit.USAGE) from None
    if as_json:
        findings = [asdict(finding) for finding in verdict.findings]
        print_json({"type": "Verdict", "figures": _figures(verdict.figures), "findings": findings})
    else:
        say_findings(verdict.findings)
        say(console(), f"{verdict.figures}")
    if verdict.findings:
        raise Stop(f"the promise was broken, {len(verdict.findings)} findings", Exit.POOR)


def say_faults() -> None:
    """All faults, what each needs, and what it does."""
    out = console()
    for name in sorted(FAULTS):
        needs = f" [{', '.join(sorted(FAULTS[name].needs))}]" if FAULTS[name].needs else ""
        say(out, f"{name}{needs}: {FAULTS[name].says}")
