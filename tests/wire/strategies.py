"""Hypothesis strategies for whatever records are made of, from the types themselves."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st

from streams.core.values import Json

I64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | I64 | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type; ``at`` and ``offset`` are left at their defaults, as no JSON has them."""
    scalars = {Json: JSON, str: TEXT, int: I64, float: FLOATS, bool: st.booleans(), types.NoneType: st.none()}
    if hint in scalars:
        return scalars[hint]
    if isinstance(hint, type) and is_dataclass(hint):
        placed = {f.name for f in fields(hint) if f.name in {"at", "offset"} and f.default is not MISSING}
        return st.builds(hint, **{f.name: values_of(f.type) for f in fields(hint) if f.name not in placed})
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(values_of(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*(values_of(arg) for arg in args))
    if origin is Mapping:
        return st.dictionaries(TEXT, JSON, max_size=3)
    assert origin in {Union, types.UnionType}, hint
    return st.one_of(*(values_of(arg) for arg in args))
