"""Results in a prompt, the long ones shortened in the middle where all together are too long for it."""

from collections.abc import Sequence

from agents.cut import cut_values
from agents.prompt_data import results
from streams.core.commands import TaskResult
from streams.core.values import Json


def shortened(ended: Sequence[TaskResult], limit: int) -> list[dict[str, Json]]:
    """How sub-tasks ended, in *limit* bytes of JSON or little more."""
    told = results(ended)
    spare = limit - sum(len(one.task) + len(one.goal) for one in ended)
    words = ["result" if "result" in entry else "reason" for entry in told]
    cut = cut_values([entry[word] for entry, word in zip(told, words, strict=True)], max(spare, 0))
    for entry, word, value in zip(told, words, cut, strict=True):
        entry[word] = value
    return told
