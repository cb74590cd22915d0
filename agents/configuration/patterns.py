"""Regular expressions whose time is linear in the text, whatever the pattern: texts come from strangers.

They are those of the Rust crate ``regex``, which pydantic brings along; :mod:`re` may take longer than the
world for one goal. What they lack is what cannot be linear: look-around and references back.
"""

from collections.abc import Callable
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

MOST_CHARS = 1_000
"""Characters of a pattern."""


class BadPattern(Exception):
    """It is no regular expression of this kind; the message says why."""


@lru_cache(maxsize=1_000)
def pattern(text: str) -> Callable[[str], bool]:
    """Whether the pattern is found anywhere in a text.

    Raises:
        BadPattern: there is no such pattern.
    """
    if len(text) > MOST_CHARS:
        raise BadPattern(f"it has {len(text)} characters, at most {MOST_CHARS} are read")
    try:
        found = SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex"))
    except SchemaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise BadPattern(lines[-1].removeprefix("error: ")[:200]) from None
    return found.isinstance_python
