"""Figures: what was measured, against what floor."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number.

    Attributes:
        floor: The worst value allowed, or None where it only informs.
        higher: Higher is better.
    """

    name: str
    value: float
    unit: str
    floor: float | None = None
    higher: bool = False

    @property
    def holds(self) -> bool:
        """Whether the floor is met."""
        if self.floor is None:
            return True
        return self.value >= self.floor if self.higher else self.value <= self.floor


def percentile(values: Sequence[float], share: float) -> float:
    """By nearest rank: a value that was measured."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return percentile(values, 0.5)


def markdown(title: str, figures: Sequence[Figure]) -> str:
    """A table for docs/benchmarks.md."""
    lines = [f"### {title}", "", "| what | measured | floor | |", "|---|---|---|---|"]
    for figure in figures:
        floor = "" if figure.floor is None else f"{'≥' if figure.higher else '≤'} {figure.floor:g}"
        mark = "" if figure.floor is None else ("holds" if figure.holds else "**missed**")
        lines.append(f"| {figure.name} | {figure.value:,.4g} {figure.unit} | {floor} | {mark} |")
    return "\n".join(lines)
