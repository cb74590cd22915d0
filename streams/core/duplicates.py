"""Results that say the same as another one: all but the first of them, in the plan's order, are left out."""

from collections.abc import Iterable, Sequence

from streams.core.commands import Duplicate
from streams.core.fingerprints import exact, likeness, signature
from streams.core.goal import JoinRule
from streams.core.values import TaskId


def duplicates(results: Iterable[tuple[TaskId, str]], rule: JoinRule) -> tuple[Duplicate, ...]:
    """Which of these results are left out, and of which that stays each is a duplicate.

    A result is compared only with those that stay, so that a row of results, each a little like the one
    before, is not taken for one; and they come in the plan's order, so it does not matter which was first.

    Args:
        results: Sub-tasks and their fingerprints, in the plan's order. One without a fingerprint stays.
    """
    if rule.duplicates == "keep":
        return ()
    same: dict[str, TaskId] = {}
    kept: list[tuple[TaskId, Sequence[int]]] = []
    found = []
    for task, fingerprint in results:
        if not (digest := exact(fingerprint)):
            continue
        of = same.get(digest)
        if of is None and rule.duplicates == "near":
            own = signature(fingerprint)
            of = next((other for other, its in kept if likeness(own, its) >= rule.near), None)
            if of is None:
                kept.append((task, own))
        if of is None:
            same[digest] = task
        else:
            found.append(Duplicate(task=task, of=of))
    return tuple(found)
