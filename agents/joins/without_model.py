"""Answers that no model writes: results one after the other, rows by a schema, the best of the candidates."""

from collections.abc import Iterator, Mapping
from typing import Final

from agents.json_answers import faults
from agents.ports import Done, GaveUp
from agents.prompt_data import inline
from streams.core.commands import MakeAnswer, TaskResult
from streams.core.values import Json

NAMED: Final = 100
"""Rows that a table names one by one of those that it leaves out."""

_LISTS: Final = ("rows", "items")
"""What an object calls the rows that it holds."""


def made(command: MakeAnswer) -> Done | GaveUp:
    """The answer by the command's strategy; one that breaks its schema is none, and asking again no use."""
    results = [one for one in command.results if one.result is not None]
    match command.join.strategy:
        case "table":
            answer = table(results, command.join.row)
        case "rank":
            answer = [_value(one) for one in results]
        case _:
            answer = concat(results)
    if isinstance(command.schema, Mapping) and (why := faults(answer, command.schema)):
        reason = f"the {command.join.strategy} of the results breaks the answer's schema: {'; '.join(why)}"
        return GaveUp(kind="bad_json", reason=reason, final=True)
    return Done(result=answer)


def concat(results: list[TaskResult]) -> Json:
    """Results one after the other: texts as one, lists as one, all else as a list of the results."""
    values = [_value(one) for one in results]
    if all(isinstance(value, str) for value in values):
        return "\n\n".join(str(value) for value in values)
    if all(isinstance(value, list) for value in values):
        return [each for value in values if isinstance(value, list) for each in value]
    return values


def table(results: list[TaskResult], row: Json) -> Json:
    """The rows of all results, and which were left out since they are none by the schema *row*."""
    schema = row if isinstance(row, Mapping) else {"type": "object"}
    rows: list[Json] = []
    left_out: list[Json] = []
    count = 0
    for one in results:
        for number, each in enumerate(_rows(_value(one)), 1):
            if why := faults(each, schema):
                count += 1
                if len(left_out) < NAMED:
                    left_out.append({"task": one.task, "row": number, "reason": "; ".join(why)})
            else:
                rows.append(each)
    if not count:
        return {"rows": rows}
    return {"rows": rows, "left_out": left_out, "rows_left_out": count}


def _rows(value: Json) -> Iterator[Json]:
    """A list's entries, those of an object that holds nothing but a list of them, or the value itself."""
    if isinstance(value, Mapping) and len(value) == 1:
        only, inner = next(iter(value.items()))
        if only in _LISTS and isinstance(inner, list):
            value = inner
    if isinstance(value, list):
        yield from value
    else:
        yield value


def _value(one: TaskResult) -> Json:
    return None if one.result is None else inline(one.result)
