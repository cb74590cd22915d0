"""Jobs of every shape, for lives."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from streams.chaos.scenarios import Job
from streams.chaos.simulation.tenants import FEW, POOR
from streams.core.values import Json

Goal = dict[str, Json]


def a_job(name: str, chance: Random) -> Job:
    """A job whose goal has this id."""
    made = chance.choice(SHAPES)(name, chance)
    goal: Goal = {"id": name, **made.goal}
    if "tenant" not in goal and chance.random() < 0.3:  # noqa: PLR2004 - a share
        goal["tenant"] = chance.choice(("a", "b", FEW, FEW))
    if chance.random() < 0.2:  # noqa: PLR2004 - a share
        goal["priority"] = chance.randint(0, 9)
    return replace(made, goal=goal)


def _planned(words: str, **fields: Json) -> Job:
    return Job(goal={"goal": f"Compare what there is {words}", **fields})


def _fan_out(_: str, chance: Random) -> Job:
    count = chance.choice((1, 2, 3, 5, 8, 20))
    return _planned(f"[[plan {count}]] [[slow {chance.uniform(0.1, 6):.1f} @1]]")


def _chain(_: str, chance: Random) -> Job:
    return _planned(f"[[chain {chance.randint(2, 5)}]]")


def _diamond(_: str, chance: Random) -> Job:
    return _planned(f"[[diamond]] [[slow {chance.uniform(0.1, 3):.1f} @{chance.randint(1, 4)}]]")


def _join(_: str, chance: Random) -> Job:
    return _planned(f"[[join {chance.randint(2, 9)}]]")


def _failing(_: str, chance: Random) -> Job:
    shape = chance.choice(("plan 4", "chain 3", "diamond"))
    rule: Goal = {"min_success_ratio": chance.choice((0.0, 0.5, 1.0))}
    return _planned(f"[[{shape}]] [[fail @{chance.randint(1, 3)}]]", join=rule)


def _flaky(_: str, chance: Random) -> Job:
    return _planned(f"[[plan 3]] [[flaky {chance.randint(1, 3)} @{chance.randint(1, 3)}]]")


def _without_models(_: str, chance: Random) -> Job:
    return _planned(f"[[{chance.choice(('plan 5', 'chain 4', 'join 3', 'join 40'))} noop]]", tools=["noop"])


def _replanned(_: str, chance: Random) -> Job:
    """The first plan is refused; with another chance the second is as well."""
    return _planned(chance.choice(("[[cycle once]]", "[[cycle]]")))


def _hanging(_: str, chance: Random) -> Job:
    """Longer than its time, in every attempt.

    Of a single sub-task: an answer that tells why would tell how much of its time was left.
    """
    limits: Goal = {"timeout_s": chance.choice((4.0, 9.0, 80.0)), "max_attempts": 2}
    return _planned("[[plan 1]] [[hang]]", limits=limits)


def _partly_hanging(_: str, chance: Random) -> Job:
    limits: Goal = {"timeout_s": chance.choice((9.0, 20.0)), "max_attempts": 3}
    made = _planned("[[plan 3]] [[hang @2]]", limits=limits)
    return Job(goal=made.goal, exact=False)


def _stuck_tool(_: str, chance: Random) -> Job:
    limits: Goal = {"timeout_s": chance.choice((4.0, 9.0)), "max_attempts": 2}
    tool = chance.choice(("stuck", "broken"))
    return _own([{"id": "only", "tool": tool}], limits=limits, tools=[tool])


def _own(plan: list[Json], **fields: Json) -> Job:
    return Job(goal={"goal": "Do as planned", "plan": plan, **fields})


def _own_graph(name: str, chance: Random) -> Job:
    """A graph that the goal brings: models, tools, large results, in any order.

    One part of it at most is broken: what needs two that fail says which of them failed first.
    """
    entries: list[Json] = []
    tools: list[Json] = []
    count = chance.randint(2, 8)
    broken = chance.randrange(2 * count)
    for n in range(count):
        needs: list[Json] = [f"s{k}" for k in range(n) if chance.random() < 0.3]  # noqa: PLR2004 - a share
        entry: Goal = {"id": f"s{n}", "dep": needs}
        kind = "broken" if n == broken else chance.choice(("model", "model", "model", "bulk", "noop"))
        if kind == "model":
            entry["goal"] = f"Part {n} of {name}"
        else:
            entry["tool"] = kind
            tools.append(kind)
        entries.append(entry)
    return _own(entries, tools=tools)


def _with_tools(name: str, chance: Random) -> Job:
    """Turns of a model with calls of tools side by side, for each item of the input."""
    items: list[Json] = [{"name": f"{name}-{n}"} for n in range(chance.randint(1, 4))]
    tools: list[Json] = list(chance.choice((("look_up",), ("look_up", "weigh"))))
    plan: list[Json] = [{"id": "each", "goal": "Look at it", "input": chance.choice(("all", "each"))}]
    return _own(plan, input=items, tools=tools)


def _once(name: str, chance: Random) -> Job:
    """A tool that must not run twice: with an unknown outcome its sub-task fails."""
    if chance.random() < 0.5:  # noqa: PLR2004 - a half
        plan: list[Json] = [
            {"id": f"r{n}", "tool": "record", "args": {"name": f"{name}-{n}"}} for n in range(3)
        ]
        made = _own(plan, tools=["record"])
    else:
        items: list[Json] = [{"name": f"{name}-{n}"} for n in range(2)]
        made = _own([{"id": "each", "goal": "Record it", "input": "all"}], input=items, tools=["record"])
    return Job(goal=made.goal, certain=False)


def _late(_: str, chance: Random) -> Job:
    made = _planned("[[plan 4]] [[slow 4 @2]]", deadline_s=round(chance.uniform(0.5, 8.0), 1))
    return Job(goal=made.goal, certain=False)


def _late_with_tools(name: str, chance: Random) -> Job:
    """Its time is over between two calls of an attempt: the next one is not made."""
    made = _with_tools(name, chance)
    return Job(goal={**made.goal, "deadline_s": round(chance.uniform(0.5, 8.0), 1)}, certain=False)


def _hedged(_: str, chance: Random) -> Job:
    """A slow attempt is overtaken by its hedge, or that is as slow, or neither ends in time."""
    count = chance.choice((12, 14, 20))
    ordeal = chance.choice(("straggle 20", "straggle 20", "straggle 6", "slow 6", "flaky 1", "hang"))
    hedge: Goal = {"share": chance.choice((0.05, 0.2, 1.0)), "floor_s": chance.choice((0.1, 1.0))}
    limits: Goal = {"timeout_s": chance.choice((9.0, 60.0)), "max_attempts": 2}
    made = _planned(f"[[plan {count}]] [[{ordeal} @{chance.randint(1, 12)}]]", hedge=hedge, limits=limits)
    return Job(goal=made.goal, exact=ordeal != "hang")


def _poor(_: str, chance: Random) -> Job:
    made = _planned("[[chain 4]]", budget={"calls": chance.randint(1, 4)})
    return Job(goal=made.goal, certain=False)


def _tight(_: str, chance: Random) -> Job:
    """Little time an attempt: whether it is enough depends on what goes wrong."""
    made = _planned("[[plan 4]] [[slow 2 @2]]", limits={"timeout_s": round(chance.uniform(1.0, 6.0), 1)})
    return Job(goal=made.goal, certain=False)


def _of_a_poor_tenant(_: str, chance: Random) -> Job:
    """What is left of its tenant's day decides; who gets nothing waits until its deadline."""
    shape = chance.choice(("plan 3", "chain 4", "plan 8", "diamond"))
    made = _planned(f"[[{shape}]]", tenant=POOR, deadline_s=round(chance.uniform(5.0, 60.0), 1))
    return Job(goal=made.goal, certain=False)


def _growing(_: str, chance: Random) -> Job:
    """A sub-task proposes others; of those that do so ever, the cap lets only some in."""
    ever = chance.random() < 0.3  # noqa: PLR2004 - a share
    plan: list[Json] = [
        {"id": "list", "goal": f"List [[map {chance.randint(1, 6)}{' ever' if ever else ''}]]"},
        {"id": "sum", "goal": "Add up", "dep": ["list"]},
    ]
    made = _own(plan, grow=True, limits={"max_subtasks": chance.choice((4, 12, 20))})
    return replace(made, certain=not ever)


def _noting(_: str, chance: Random) -> Job:
    """What a sub-task sees of the others' notes depends on who was first."""
    plan: list[Json] = [
        {"id": "a", "goal": "Watch [[note tide high]]", "notes": True},
        {"id": "b", "goal": f"Watch [[note tide low]] [[slow {chance.choice((1, 3))}]]", "notes": True},
        {"id": "c", "goal": "Watch [[note wind none]]", "notes": True},
        {"id": "d", "goal": "Say which", "dep": ["a", "b"], "notes": True},
    ]
    made = _own(plan, notes=True, limits={"concurrency": chance.choice((1, 2, 20))})
    return replace(made, exact=False)


def _planned_again(_: str, chance: Random) -> Job:
    """After a failure another plan is asked for: it is good, fails as well, or is refused."""
    words = chance.choice(("", "", "[[replan again]]", "[[replan cycle]]"))
    limits: Goal = {"max_attempts": chance.choice((1, 2)), "max_replans": chance.choice((1, 2))}
    shape = chance.choice(("plan 3", "chain 3", "diamond"))
    fields: Goal = {"on_failure": "replan", "limits": limits}
    made = _planned(f"[[{shape}]] [[fail @{chance.randint(1, 3)}]] {words}", **fields)
    return replace(made, exact=False)  # of two that fail, which one was first is told


def _joined(_: str, chance: Random) -> Job:
    """Results become the answer by any rule; who was first counts by some of them."""
    strategy = chance.choice(("vote", "vote", "rank", "first", "concat", "table", "synthesize"))
    join: Goal = {"strategy": strategy}
    if strategy in ("vote", "rank", "first") and chance.random() < 0.7:  # noqa: PLR2004 - a share
        join["candidates"] = chance.choice((2, 3, 5))
    if strategy == "vote":
        join["equality"] = chance.choice(("exact", "normalised", "judged"))
    if strategy == "rank":
        join["keep"] = chance.choice((1, 2))
    if strategy in ("concat", "synthesize"):
        join |= {"duplicates": chance.choice(("keep", "exact", "near")), "check": chance.random() < 0.5}  # noqa: PLR2004 - a half
        join["tie_break"] = join["check"]
        join["chunk_bytes"] = chance.choice((1_024, 262_144))
    early = strategy != "vote" and chance.random() < 0.3  # noqa: PLR2004 - a share
    if early:
        join["quorum"] = chance.choice((1, 2))
    said = chance.choice(("", "[[say yes]]", "[[contradict step-1 step-2]]"))
    made = _planned(f"[[plan {chance.choice((2, 3, 5))}]] [[slow 2 @1]] {said}", join=join)
    return replace(made, certain=strategy != "first" and not early, exact=False)


def _approved(name: str, chance: Random) -> Job:
    """A person looks at it now and then, or ends it."""
    makers = (_growing, _planned_again, _joined, _fan_out, _once, _with_tools, _hedged, _poor)
    made = chance.choice(makers)(name, chance)
    what: list[Json] = list(
        chance.choice((("plan",), ("answer",), ("plan", "answer"), ("plan", "tools", "answer")))
    )
    made = replace(made, goal={**made.goal, "approve": what}, approved_s=chance.choice((0.7, 3.0)))
    return _cancelled(made, chance) if chance.random() < 0.3 else made  # noqa: PLR2004 - a share


def _tried_often(_: str, chance: Random) -> Job:
    """Each call is made again and again for seconds: whoever is not heard is found out by the next one."""
    return _planned(f"[[plan {chance.choice((3, 6))}]] [[flaky 4]]")


def _ended_by_a_person(name: str, chance: Random) -> Job:
    makers = (_hanging, _family, _hedged, _joined, _with_tools, _tried_often, _tried_often, _tried_often)
    return _cancelled(chance.choice(makers)(name, chance), chance)


def _cancelled(made: Job, chance: Random) -> Job:
    return replace(made, cancelled_s=round(chance.uniform(0.5, 5.0), 2), certain=False)


def _family(name: str, chance: Random) -> Job:
    """A parent that waits for a child, or for several one after the other; and a child that has its own."""
    shape = chance.choice(("plan 1", "plan 2", "chain 3", "plan 3]] [[fail @2"))
    children: list[Json] = [
        {"goal": f"Count the boats {n} of {name} [[{shape}]]"} for n in range(chance.randint(1, 3))
    ]
    plan: list[Json] = [
        {"id": "a", "goal": "Hand it over", "input": "all"},
        {"id": "b", "goal": "Hand on how it went", "dep": ["a"]},
    ]
    return replace(_own(plan, input=children, tools=["submit_goal"]), exact=False)


def _bad(_: str, chance: Random) -> Job:
    unfit: tuple[Goal, ...] = ({"colour": "red"}, {"priority": 99}, {"plan": [{"id": "a", "dep": ["b"]}]})
    fields = chance.choice(unfit)
    return _planned("", **fields)


SHAPES: tuple[Callable[[str, Random], Job], ...] = (
    _fan_out,
    _fan_out,
    _chain,
    _diamond,
    _join,
    _failing,
    _flaky,
    _without_models,
    _replanned,
    _hanging,
    _partly_hanging,
    _stuck_tool,
    _own_graph,
    _own_graph,
    _with_tools,
    _with_tools,
    _once,
    _late,
    _late_with_tools,
    _hedged,
    _hedged,
    _hedged,
    _hedged,
    _poor,
    _of_a_poor_tenant,
    _of_a_poor_tenant,
    _tight,
    _growing,
    _growing,
    _noting,
    _planned_again,
    _joined,
    _joined,
    _joined,
    _approved,
    _approved,
    _ended_by_a_person,
    _ended_by_a_person,
    _family,
    _family,
    _bad,
)
