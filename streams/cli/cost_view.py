"""What a goal costs, on the screen and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.markup import escape
from rich.table import Table

from streams.cli.output import console, say
from streams.replay.costs import MONTH_DAYS, NOT_RECORDED, Cost, Recorded

UNFOLDED = 500
"""Columns of a table for a pipe, as good as any number: it takes no more than it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is to be told.

    Attributes:
        what: Of which job, or which file.
        source: Whose prices they are.
        per_day: Such goals a day, None for one alone.
        was: What each model cost.
        would: What others would have.
    """

    what: str
    source: str
    recorded: Recorded
    per_day: int | None
    was: tuple[Cost, ...]
    would: tuple[Cost, ...]

    @property
    def together(self) -> Cost:
        """All models together; unknown where the price of one of them is."""
        known = [cost.usd for cost in self.was if cost.usd is not None]
        return Cost(
            model="all of them",
            usage=self.recorded.usage,
            usd=sum(known) if len(known) == len(self.was) else None,
            simulated=all(cost.simulated for cost in self.was),
        )

    def lines(self) -> Iterator[dict[str, object]]:
        """As JSON objects, the total last."""
        for of, costs in (("recorded", self.was), ("alternative", self.would)):
            for each in costs:
                yield {
                    "type": "Cost",
                    "of": of,
                    "model": each.model or None,
                    **_json(each, self.recorded.goals, self.per_day),
                }
        yield {
            "type": "Total",
            "what": self.what,
            "prices": self.source,
            **_json(self.together, self.recorded.goals, self.per_day),
            "unknown_prices": [cost.model or None for cost in self.was if cost.usd is None],
        }

    def show(self) -> None:
        """Print it."""
        out = console()
        goals, per_day = self.recorded.goals, self.per_day
        each = " each, on average" if goals > 1 else ""
        say(out, f"{self.what}: what such a goal costs{each}, by the prices of {self.source}")
        table = _table(per_day)
        for one in self.was:
            _row(table, one, goals, per_day)
        if len(self.was) > 1:
            _row(table, self.together, goals, per_day, style="bold")
        if self.would:
            table.add_section()
        for one in self.would:
            _row(table, one, goals, per_day, before="all at ")
        if not out.is_terminal:
            out.width = UNFOLDED
        out.print(table)
        for note in _notes(self.recorded, self.was, self.would):
            say(out, note)


def _json(cost: Cost, goals: int, per_day: int | None) -> dict[str, object]:
    usage, usd = cost.usage, cost.usd
    told: dict[str, object] = {
        "simulated": cost.simulated,
        "failed": cost.failed,
        "goals": goals,
        "calls": usage.calls,
        "tokens_in": usage.tokens_in,
        "tokens_cached": usage.tokens_cached,
        "tokens_out": usage.tokens_out,
        "estimated": usage.estimated,
        "usd_a_goal": usd,
    }
    if per_day is not None:
        told["usd_a_day"] = None if usd is None else usd * per_day
        told["usd_a_month"] = None if usd is None else usd * per_day * MONTH_DAYS
    return told


def _table(per_day: int | None) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("model", overflow="fold")
    for name in ("calls", "tokens in", "cached", "out", "a goal"):
        table.add_column(name, justify="right", no_wrap=True)
    if per_day is not None:
        table.add_column(f"{per_day:,} a day", justify="right", no_wrap=True)
        table.add_column("a month", justify="right", no_wrap=True)
    return table


def _row(
    table: Table, cost: Cost, goals: int, per_day: int | None, *, before: str = "", style: str = ""
) -> None:
    usage = cost.usage
    mark = "~" if usage.estimated else ""
    name = escape(cost.model or "not recorded") + (", tries without a reply" if cost.failed else "")
    name += " (simulated)" if cost.simulated else ""
    table.add_row(
        before + name,
        _number(usage.calls / goals),
        *(
            f"{mark}{_number(tokens / goals)}"
            for tokens in (usage.tokens_in, usage.tokens_cached, usage.tokens_out)
        ),
        *(_money(cost, times) for times in ((1,) if per_day is None else (1, per_day, per_day * MONTH_DAYS))),
        style=style or None,
    )


def _number(amount: float) -> str:
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.1f}"


def _money(cost: Cost, times: int) -> str:
    if cost.simulated:
        return "nothing"
    if cost.usd is None:
        return "unknown"
    usd = cost.usd * times
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.2g}" if usd < 0.001 else f"${usd:.4f}"  # noqa: PLR2004


def _notes(recorded: Recorded, was: Sequence[Cost], would: Sequence[Cost]) -> list[str]:
    """What the table cannot say."""
    notes = []
    unknown = dict.fromkeys(cost.model for cost in (*was, *would) if cost.usd is None and cost.model)
    if unknown:
        notes.append(
            f"Nobody knows the price of {', '.join(unknown)}: set `prices` of the model in anabranch.toml."
        )
    if estimated := recorded.usage.estimated:
        notes.append(
            f"~ The endpoint did not tell the tokens of {estimated} of {recorded.usage.calls} calls; "
            "those are estimates."
        )
    if any(cost.simulated for cost in was):
        notes.append(
            "The simulated endpoint answered: its tokens are counted, but no model read or wrote them."
        )
    if any(cost.model == NOT_RECORDED for cost in was):
        notes.append("Answers tell sums only: not which models, nor whether they were simulated.")
    return notes
