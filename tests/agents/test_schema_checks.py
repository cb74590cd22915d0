"""A list of many objects is looked at once, and found unique where jsonschema finds it so."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import (  # type: ignore[import-untyped]  # it ships without types
    Draft7Validator,
    Draft202012Validator,
)

from agents.schema_checks import quick

SCHEMA = {"uniqueItems": True}
SMALL = st.sampled_from([0, 1, 1.0, True, False, None, "", "1"])
VALUES = st.recursive(
    SMALL,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


@given(st.lists(VALUES, max_size=5) | VALUES)
def test_items_are_unique_where_jsonschema_says_so(items: Any) -> None:
    for slow in (Draft202012Validator, Draft7Validator):
        assert quick(slow)(SCHEMA).is_valid(items) == slow(SCHEMA).is_valid(items)


def test_that_items_may_repeat_is_no_wish() -> None:
    assert quick(Draft202012Validator)({"uniqueItems": False}).is_valid([1, 1])


def test_an_item_is_looked_at_once() -> None:
    looked_at = 0

    class Row(dict[str, int]):
        def items(self) -> Any:
            nonlocal looked_at
            looked_at += 1
            return super().items()

    rows = [Row(x=number) for number in range(500)]
    assert quick(Draft202012Validator)(SCHEMA).is_valid(rows)
    assert looked_at == len(rows)
