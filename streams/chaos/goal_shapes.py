"""What the goals of rounds ask: by directives that the simulated model obeys, or by plans of their own."""

from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from streams.core.values import Json
from streams.log import Headers

Fields: TypeAlias = dict[str, Json]
Shape: TypeAlias = Callable[[Random], Fields]

_CHECKED_IN_BYTES: Final = 20_000
"""More than a record carries inline: the value goes by claim check."""


def _words(directives: str, **fields: Json) -> Fields:
    return {"goal": f"Compare what there is {directives}", **fields}


def _fan_out(chance: Random) -> Fields:
    return _words(f"[[plan {chance.choice((1, 1, 2, 3, 5, 8, 13))}]]")


def _chain(chance: Random) -> Fields:
    return _words(f"[[chain {chance.randint(2, 8)}]]")


def _diamond(chance: Random) -> Fields:
    return _words(f"[[diamond]] [[slow {chance.uniform(0.1, 3):.1f} @{chance.randint(1, 4)}]]")


def _join(chance: Random) -> Fields:
    return _words(f"[[join {chance.randint(2, 20)}]]")


def large(chance: Random) -> Fields:
    """About a hundred sub-tasks: side by side, or into one.

    A model that joins 99 results says more than it may, and its sub-task would be tried again and again.
    """
    shape = chance.choice(("plan 40", "plan 100", "join 99 noop", "noop 100"))
    return _words(f"[[{shape}]]", tools=["noop"] if "noop" in shape else [])


def _failing(chance: Random) -> Fields:
    """One branch fails, and what needs it is skipped. One only: of two, which failed first would tell."""
    shape, most = chance.choice((("plan 5", 5), ("chain 4", 4), ("diamond", 4), ("join 4", 5)))
    rule: Fields = {"min_success_ratio": chance.choice((0.0, 0.5, 1.0))}
    return _words(f"[[{shape}]] [[fail @{chance.randint(1, most)}]]", join=rule)


def _flaky(chance: Random) -> Fields:
    return _words(f"[[plan 4]] [[flaky {chance.randint(1, 2)} @{chance.randint(1, 4)}]]")


def _without_models(chance: Random) -> Fields:
    return _words(f"[[{chance.choice(('plan 6', 'chain 5', 'join 5', 'plan 20'))} noop]]", tools=["noop"])


def _in_words(chance: Random) -> Fields:
    """Planned by what the words say."""
    return {
        "goal": chance.choice(
            (
                "Compare Kafka, Pulsar and Redpanda for a small team",
                "Read the report, then list its claims, then check each of them",
                "Say what an anabranch is",
            )
        )
    }


def _of_items(chance: Random) -> Fields:
    """A sub-task for each item of a list."""
    items: list[Json] = [{"name": f"item {n}", "size": n} for n in range(chance.randint(1, 12))]
    return {"goal": "Summarise each of these", "input": items}


def _checked_in(chance: Random) -> Fields:
    """An input that no record carries inline."""
    return _words(f"[[plan {chance.randint(1, 3)}]]", input={"text": "x" * _CHECKED_IN_BYTES})


def _own_graph(chance: Random) -> Fields:
    """A graph that the goal brings, of models and tools."""
    plan: list[Json] = []
    for n in range(chance.randint(2, 9)):
        needs: list[Json] = [f"s{k}" for k in range(n) if chance.random() < 0.3]  # noqa: PLR2004 - a share
        what: Fields = {"tool": "noop"} if chance.random() < 0.4 else {"goal": f"Part {n}"}  # noqa: PLR2004 - a share
        plan.append({"id": f"s{n}", "dep": needs, **what})
    return {"goal": "Do as planned", "plan": plan, "tools": ["noop"]}


def _replanned(chance: Random) -> Fields:
    """The first plan is refused; sometimes the second as well, and with it the job."""
    return _words(chance.choice(("[[cycle once]]", "[[cycle once]]", "[[cycle]]")))


def _hanging(_: Random) -> Fields:
    """A sub-task that is never answered. The only one, since what is told of it depends on the moment."""
    return _words("[[plan 1]] [[hang]]", limits={"timeout_s": 3.0, "max_attempts": 2})


def _late(chance: Random) -> Fields:
    return _words("[[plan 4]] [[slow 4 @2]]", deadline_s=round(chance.uniform(1.0, 8.0), 1))


def _hedged(chance: Random) -> Fields:
    """Slow ones are overtaken; or the hedge fails, or is as slow."""
    ordeal = chance.choice(("straggle 20", "straggle 9", "slow 9", "flaky 1"))
    directives = f"[[plan {chance.choice((12, 14, 20))}]] [[{ordeal} @{chance.randint(1, 12)}]]"
    hedge: Fields = {"share": chance.choice((0.05, 0.2, 1.0)), "floor_s": chance.choice((0.1, 1.0))}
    return _words(directives, hedge=hedge, limits={"timeout_s": chance.choice((15.0, 120.0))})


def _growing(chance: Random) -> Fields:
    """A sub-task proposes others, which whoever needs it waits for."""
    plan: list[Json] = [
        {"id": "list", "goal": f"List [[map {chance.randint(1, 6)}]]"},
        {"id": "sum", "goal": "Add up", "dep": ["list"]},
    ]
    return {"goal": "Do as planned", "plan": plan, "grow": True}


def _joined(chance: Random) -> Fields:
    """By rules that need not know who was first."""
    joins: list[Fields] = [
        {"strategy": "concat", "check": True},
        {"strategy": "vote", "candidates": 3},
        {"strategy": "rank"},
        {"strategy": "synthesize", "duplicates": "exact", "chunk_bytes": 1_024},
    ]
    join = chance.choice(joins)
    return _words(f"[[plan {chance.choice((2, 4))}]]", join=join)


def _family(chance: Random) -> Fields:
    """A parent waits for its children, one after the other."""
    shapes = ("[[plan 1]]", "[[plan 2]]", "[[chain 3]]")
    children: list[Json] = [
        {"goal": f"Count {n} {chance.choice(shapes)}"} for n in range(chance.randint(1, 2))
    ]
    plan: list[Json] = [{"id": "a", "goal": "Hand it over", "input": "all"}]
    return {"goal": "Do as planned", "plan": plan, "input": children, "tools": ["submit_goal"]}


def _poor(chance: Random) -> Fields:
    return _words("[[chain 4]]", budget={"calls": chance.randint(1, 4)})


def refused(chance: Random) -> Fields:
    """What intake refuses although it can read its id: answered as rejected, and buried."""
    wrong: tuple[Fields, ...] = ({"colour": "red"}, {"priority": 99}, {"plan": [{"id": "a", "dep": ["b"]}]})
    return _words("", **chance.choice(wrong))


SHAPES: Final[tuple[Shape, ...]] = (
    *(_fan_out, _fan_out, _fan_out, _chain, _chain, _diamond, _diamond, _join, _join),
    *(_failing, _failing, _flaky, _without_models, _without_models, _in_words, _of_items, _checked_in),
    *(_own_graph, _own_graph, _replanned, _hanging, _late, _late, _hedged, _hedged, _poor, refused),
    *(_growing, _joined, _joined, _family),
)
"""As often as they stand here. All but those with a deadline or a budget have one possible answer."""

POISON: Final[tuple[tuple[bytes | None, Headers], ...]] = (
    (None, ()),
    (b"\xff\x00\xfe", ()),
    (b'{"goal": "half a ', ()),
    (b"[1, 2]", ()),
    (b'{"text": "no goal"}', ()),
    (b"", ()),
    (b"{}", (("ce_specversion", b"1.0"),)),
    (b'{"specversion": "0.3", "data": "x"}', ()),
)
"""Values and headers of records that open no job."""
