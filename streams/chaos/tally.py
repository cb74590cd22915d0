"""The figures of many rounds together."""

from collections import Counter
from statistics import median
from typing import Any, Final

from rich.table import Table

from streams.chaos.plans import Plan
from streams.chaos.rounds import Played
from streams.chaos.verifier import Figures


class Tally:
    """Counts rounds as they are played.

    Attributes:
        rounds: Rounds that were played to their end.
        calm: Of these, those without faults.
        broken: Seeds of those in which the promise was broken.
        failed: Seeds of rounds that could not be played.
        faults: How often each fault struck.
        figures: Of all rounds together.
        recoveries: Seconds from the end of the last fault to the answer of a goal sent after it.
        crashes: Workers that ended by themselves.
    """

    def __init__(self) -> None:
        self.rounds = self.calm = self.crashes = 0
        self.broken: list[int] = []
        self.failed: list[int] = []
        self.faults: Counter[str] = Counter()
        self.figures = Figures()
        self.recoveries: list[float] = []
        self.seconds = 0.0

    def add(self, played: Played) -> None:
        """Count a round."""
        self.rounds += 1
        self.calm += not played.plan.strikes
        self.crashes += played.crashes
        self.seconds += played.took_s
        self.faults.update(strike.fault for strike in played.plan.strikes)
        self.figures += played.verdict.figures
        if played.recovery_s is not None:
            self.recoveries.append(played.recovery_s)
        if played.verdict.findings:
            self.broken.append(played.plan.seed)

    def unplayed(self, plan: Plan) -> None:
        """A round could not be played."""
        self.failed.append(plan.seed)

    @property
    def good(self) -> bool:
        """All were played, and the promise was kept in all."""
        return not self.broken and not self.failed

    def verdict(self) -> str:
        """What is not good, for a person."""
        told = []
        if self.broken:
            told.append(f"the promise was broken in rounds {', '.join(map(str, self.broken))}")
        if self.failed:
            told.append(f"rounds {', '.join(map(str, self.failed))} could not be played")
        return "; ".join(told)

    def report(self) -> dict[str, Any]:
        """All of it, for programs."""
        figures = self.figures
        return {
            "rounds": self.rounds,
            "calm": self.calm,
            "faults": dict(sorted(self.faults.items())),
            "goals": figures.goals,
            "jobs": figures.jobs,
            "lost": figures.lost,
            "duplicated": figures.duplicated,
            "wrong": figures.wrong,
            "others": figures.others,
            "kinds": dict(figures.kinds),
            "dead_letters": figures.dead_letters,
            "calls": figures.calls,
            "repeated": figures.repeated,
            "recovery_p50_s": round(median(self.recoveries), 2) if self.recoveries else None,
            "recovery_max_s": round(max(self.recoveries), 2) if self.recoveries else None,
            "workers_crashed": self.crashes,
            "seconds": round(self.seconds),
            "broken": self.broken,
            "failed": self.failed,
        }

    def table(self) -> Table:
        """All of it, for people."""
        report = self.report()
        made = Table("what", "how many", title="Rounds on a real Kafka")
        made.columns[1].justify = "right"
        for key, what in _ROWS.items():
            value = report[key]
            made.add_row(what, "-" if value is None else f"{value:,}")
            if key == "calm":
                made.add_row("faults", f"{self.faults.total():,}")
                for name, count in report["faults"].items():
                    made.add_row(f"  {name}", f"{count:,}")
        return made


_ROWS: Final = {
    "rounds": "rounds",
    "calm": "of them without faults",
    "goals": "records on goals",
    "jobs": "jobs",
    "lost": "answers lost",
    "duplicated": "answers duplicated",
    "wrong": "answers wrong",
    "others": "other findings",
    "dead_letters": "dead letters",
    "calls": "model calls",
    "repeated": "repeated, their reply lost with a worker",
    "recovery_p50_s": "seconds to recover, p50",
    "recovery_max_s": "seconds to recover, max",
    "workers_crashed": "workers that ended by themselves",
    "seconds": "seconds in all",
}
