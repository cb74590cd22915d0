"""Hypothesis strategies for whatever records are made of, from the types themselves."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import MappingProxyType
from typing import Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st

from streams.core.values import ACCOUNT, Json
from streams.wire.bounds import RECORDS, Bounds, Limit

I64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | I64 | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)


NAME = st.text("aZ0._~-", min_size=1, max_size=9)


def scalar_of(hint: Any, limit: Limit) -> st.SearchStrategy[Any]:
    """Values of a scalar within its limit."""
    if hint is int:
        return st.integers(limit.get("ge", -(2**63)), limit.get("le", 2**63 - 1))
    if hint is float:
        low, above = limit.get("ge"), limit.get("gt")
        return st.floats(
            low if above is None else above,
            limit.get("le"),
            exclude_min=above is not None,
            allow_nan=False,
            allow_infinity=False,
        )
    if hint is str and limit.get("pattern", "").endswith(f"/{ACCOUNT}$"):
        return NAME.map(lambda tenant: f"{tenant}/{ACCOUNT}")
    if hint is str and "|" in limit.get("pattern", ""):
        return st.sampled_from(limit["pattern"].strip("^()$").split("|"))
    if hint is str and "pattern" in limit:
        return st.builds("{}/{}".format, NAME, NAME) if "/" in limit["pattern"] else NAME
    return {Json: JSON, str: TEXT, bool: st.booleans(), types.NoneType: st.none()}[hint]


def values_of(
    hint: Any, bounds: Bounds = RECORDS, limit: Limit = MappingProxyType({})
) -> st.SearchStrategy[Any]:
    """Values of a type; ``at`` and ``offset`` are left at their defaults, as no JSON has them."""
    if hint in {Json, str, int, float, bool, types.NoneType}:
        return scalar_of(hint, limit)
    if isinstance(hint, type) and is_dataclass(hint):
        placed = {f.name for f in fields(hint) if f.name in {"at", "offset"} and f.default is not MISSING}
        kept = [f for f in fields(hint) if f.name not in placed]
        return st.builds(hint, **{f.name: values_of(f.type, bounds, bounds.of(hint, f.name)) for f in kept})
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(values_of(args[0], bounds, limit), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*(values_of(arg, bounds, limit) for arg in args))
    if origin is Mapping:
        return st.dictionaries(TEXT, JSON, max_size=3)
    assert origin in {Union, types.UnionType}, hint
    return st.one_of(*(values_of(arg, bounds, limit) for arg in args))
