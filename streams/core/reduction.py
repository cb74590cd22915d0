"""The tree by which results are joined that are too many for one model call: map, reduce, reduce again.

The results to be joined, in the plan's order, are grouped greedily so that no group has more than
``join.chunk_bytes`` bytes of JSON; a longer one is worked on in parts of about the same size, each for
itself. Each group is a step ``~reduce-N`` on the lanes, whose result stands for it on the next level. When
all that is left fits, it is joined as if it had been that from the start. Nothing is cut away: every byte
of every result is in exactly one leaf, or waits for a higher level.

Above the leaves each level leaves fewer results than it was given, or it is not begun: then what is left is
joined as it is, and the synthesis shortens what does not fit. So there are at most ``n (n + 1) / 2`` steps
over ``n`` leaves, and less than two times ``n`` where each step sums up in half of ``chunk_bytes`` at most,
as it is asked to: then all that is left fits in the end, and nothing is shortened.
Leaves are little more than :data:`MOST_LEAVES` at most: for more there are larger groups.
"""

from collections.abc import Iterable, Sequence

from streams.core.commands import Part
from streams.core.states import Open, Succeeded
from streams.core.values import TaskId

MOST_LEAVES = 512
"""About so many steps the first level has at most."""

Group = tuple[Part, ...]
Sized = tuple[TaskId, int]


def grouped(results: Sequence[Sized], chunk: int) -> list[Group]:
    """Results in groups of at most *chunk* bytes, in order; a longer one in parts, each its own group."""
    chunk = max(chunk, 2 * sum(size for _, size in results) // MOST_LEAVES)
    groups: list[Group] = []
    room = 0
    for task, size in results:
        if size > chunk:
            parts = -(-size // chunk)
            groups += [(Part(task=task, part=part, parts=parts),) for part in range(1, parts + 1)]
            room = 0
        elif groups and size <= room:
            groups[-1] = (*groups[-1], Part(task=task))
            room -= size
        else:
            groups.append((Part(task=task),))
            room = chunk - size
    return groups


def next_level(job: Open, results: Iterable[TaskId]) -> list[Group]:
    """The groups to be summed up next; none where what is left can be joined.

    Args:
        results: What is to be joined, before anything was reduced.
    """
    chunk = job.submitted.goal.join.chunk_bytes
    left = [(name, state.size) for name in frontier(job, results) if (state := _result(job, name))]
    if sum(size for _, size in left) <= chunk:
        return []
    groups = grouped(left, chunk)
    if reductions(job) and len(groups) >= len(left):
        return []
    # One short result is as short as its summary may be: it waits for the next level as it is.
    return [group for group in groups if len(group) > 1 or _large(job, group[0], chunk)]


def frontier(job: Open, results: Iterable[TaskId]) -> list[TaskId]:
    """What stands for the results now: themselves, or the steps that summed them up, in the plan's order."""
    steps = reductions(job)
    taken = {part.task for name in steps for part in job.steps[name].of}
    order = {name: place for place, name in enumerate(results)}
    for name in steps:  # each after those that it is made of
        order[name] = min((order[part.task] for part in job.steps[name].of if part.task in order), default=0)
    left = [name for name in order if name not in taken]
    return sorted(left, key=lambda name: order[name])


def reductions(job: Open) -> list[TaskId]:
    """The steps of the tree, each after those that it is made of."""
    return [name for name, step in job.steps.items() if step.role == "reduce"]


def leaves(job: Open, name: TaskId) -> list[TaskId]:
    """The sub-tasks whose results are in what this one stands for; itself where it is no step of the tree."""
    step = job.steps.get(name)
    if step is None or step.role != "reduce":
        return [name]
    return [*dict.fromkeys(leaf for part in step.of for leaf in leaves(job, part.task))]


def lost(job: Open) -> dict[TaskId, TaskId]:
    """Sub-tasks of whose results something is missing, since a step of the tree failed: which one."""
    found: dict[TaskId, TaskId] = {}
    for name in reductions(job):
        if _result(job, name) is None:
            found.update(dict.fromkeys(leaves(job, name), name))
    return found


def _large(job: Open, part: Part, chunk: int) -> bool:
    state = _result(job, part.task)
    return state is not None and 2 * state.size > chunk


def _result(job: Open, name: TaskId) -> Succeeded | None:
    state = job.states.get(name)
    return state if isinstance(state, Succeeded) else None
