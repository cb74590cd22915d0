"""The table of rounds: a line a fault, a round counted once in the last."""

from streams.chaos.table import Round, markdown, table
from streams.chaos.verifier import Figures

ROUNDS = (
    Round(faults=(), figures=Figures(goals=10, answers=10, calls=100)),
    Round(faults=("kill",), figures=Figures(goals=10, answers=10, calls=110, repeated=4), recovery_s=3.0),
    Round(
        faults=("outage", "kill", "kill"),
        figures=Figures(
            goals=1_000, answers=9, calls=90, repeated=1, kinds={"lost": 1, "unaccounted": 1, "cap": 2}
        ),
        recovery_s=9.25,
    ),
    Round(faults=("kill",), figures=Figures(kinds={"wrong": 1, "duplicated": 1})),
)


def test_a_page_has_a_line_a_fault_and_one_for_all() -> None:
    """Recovery is told where there was one."""
    head, rule, *lines = markdown(ROUNDS).splitlines()
    assert head.split(" | ")[-3:] == ["calls repeated", "recovery p50", "recovery max |"]
    assert rule.count("---:") == head.count(" | ")
    assert lines == [
        "| (none) | 1 | 10 | 10 | 0 | 0 | 0 | 0 | 100 | 0 |  |  |",
        "| kill | 3 | 1,010 | 19 | 2 | 1 | 1 | 2 | 200 | 5 | 3.0 s | 9.2 s |",
        "| outage | 1 | 1,000 | 9 | 2 | 0 | 0 | 2 | 90 | 1 | 9.2 s | 9.2 s |",
        "| all | 4 | 1,020 | 29 | 2 | 1 | 1 | 2 | 300 | 5 | 3.0 s | 9.2 s |",
    ]


def test_a_terminal_shows_the_same_lines() -> None:
    """The last one apart."""
    shown = table(ROUNDS)
    assert shown.row_count == 4
    assert shown.rows[2].end_section
    assert shown.title == "4 rounds"
