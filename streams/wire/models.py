"""One model per record kind: pydantic's validators, made from the core's frozen dataclasses.

The core stays free of pydantic, and pydantic's own reading of its types would go round in circles
on the recursive ``Json``, so the few kinds of types that records are made of are named here.
Scalars are strict (``"1"`` is no number), fields that a record has and the model has not are
ignored, so that records of a newer minor version are readable. What a number or a name can be is in
``bounds.py``.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeGuard, TypeVar, Union, get_args, get_origin

from pydantic_core import CoreSchema, SchemaValidator
from pydantic_core import core_schema as cs

from streams.core.values import Inline, Json, Reference
from streams.wire.bounds import UNBOUNDED, Bounds, Limit

T = TypeVar("T")

_SCALARS: dict[object, Callable[..., CoreSchema]] = {
    str: partial(cs.str_schema, strict=True),
    int: partial(cs.int_schema, strict=True),
    float: partial(cs.float_schema, strict=True, allow_inf_nan=False),
}
_OTHERS: dict[object, CoreSchema] = {
    # At the border Json is what the parser made: nothing is left to check.
    Json: cs.any_schema(),
    bool: cs.bool_schema(strict=True),
    types.NoneType: cs.none_schema(),
}


def validator_of(cls: type[T], bounds: Bounds = UNBOUNDED) -> Callable[[object], T]:
    """Makes a value of *cls* from parsed JSON; raises pydantic's ``ValidationError``."""
    return SchemaValidator(model_of(cls, bounds)).validate_python


def model_of(hint: object, bounds: Bounds = UNBOUNDED, limit: Limit = MappingProxyType({})) -> CoreSchema:
    """The validation schema of a type that records are made of.

    Args:
        bounds: Of the fields of records in it.
        limit: Of scalars that are not inside of another record.

    Raises:
        TypeError: records are not made of such types.
    """
    if (scalar := _SCALARS.get(hint)) is not None:
        return scalar(**limit)
    if (other := _OTHERS.get(hint)) is not None:
        return other
    if _is_record(hint):
        return _record(hint, bounds)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return cs.literal_schema(list(args))
    if origin is tuple:
        if args[-1] is Ellipsis:
            return cs.tuple_schema([model_of(args[0], bounds, limit)], variadic_item_index=0)
        return cs.tuple_schema([model_of(arg, bounds, limit) for arg in args])
    if origin is Mapping:
        return cs.dict_schema()
    if origin in {Union, types.UnionType}:
        return _union(args, bounds, limit)
    raise TypeError(f"no model for {hint!r}")


def _is_record(hint: object) -> TypeGuard[type[Any]]:
    return isinstance(hint, type) and is_dataclass(hint)


def _record(cls: type[Any], bounds: Bounds) -> CoreSchema:
    names, schemas = [], []
    for field in fields(cls):
        schema = model_of(field.type, bounds, bounds.of(cls, field.name))
        if field.default is not MISSING:
            schema = cs.with_default_schema(schema, default=field.default)
        names.append(field.name)
        schemas.append(cs.dataclass_field(field.name, schema, kw_only=True))
    return cs.dataclass_schema(cls, cs.dataclass_args_schema(cls.__name__, schemas), names, slots=True)


def _union(args: tuple[object, ...], bounds: Bounds, limit: Limit) -> CoreSchema:
    choices = tuple(arg for arg in args if arg is not types.NoneType)
    if len(choices) < len(args):
        inner = model_of(choices[0], bounds, limit) if len(choices) == 1 else _union(choices, bounds, limit)
        return cs.nullable_schema(inner)
    if set(choices) == {Inline, Reference}:
        # In turn rather than by a tag: a call into Python would cost more than the whole record.
        return cs.union_schema(
            [_record(Inline, bounds), _record(Reference, bounds)],
            mode="left_to_right",
            custom_error_type="value",
            custom_error_message="Input should be {value} or {topic, partition, offsets, size, digest}",
        )
    records = [choice for choice in choices if _is_record(choice)]
    if len(records) == len(choices):
        kinds = {cls.__name__: _record(cls, bounds) for cls in records}
        return cs.tagged_union_schema(kinds, discriminator="type")
    return cs.union_schema([model_of(choice, bounds, limit) for choice in choices], mode="left_to_right")
