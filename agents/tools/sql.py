"""Which tables a SQL text reads: the rule ``tables`` of :mod:`agents.tools.scopes`.

Told by sqlglot, a parser of some thirty dialects. What it cannot read, and what it cannot know the
tables of, is refused. It is not the database's own parser: a database that reads a text in another
way may do something else, so give the server a login that reads no more than it should.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

import sqlglot
from sqlglot import exp

from streams.core.values import Json

MAX_SQL: Final = 10_000
"""Characters of a statement; a longer one is refused, since reading it would hold up everything else."""

NOT_PLAIN: Final = ("/*!", "/*+", "--!")
"""Comments that some databases carry out."""

MAX_SHOWN: Final = 200

# Its warnings quote statements, which are the users' own; what it cannot read is refused anyway.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


def reads_only(
    tables: Sequence[str], *, dialect: str = "", functions: Sequence[str] = ()
) -> Callable[[Json], str | None]:
    """A rule: one query that reads no tables but these.

    Args:
        tables: Names, as they must be written: ``orders``, ``sales.orders``. Letters' case is ignored.
        dialect: Whose SQL it is, by sqlglot's name of it; empty: common SQL.
        functions: Functions that may be called beside those that sqlglot knows.

    Raises:
        ValueError: sqlglot does not know the dialect.
    """
    try:
        sqlglot.Dialect.get_or_raise(dialect or None)
    except ValueError:
        raise ValueError(f"sqlglot does not know the dialect {dialect!r}") from None
    allowed = frozenset(tuple(name.lower().split(".")) for name in tables)
    callable_ = frozenset(name.lower() for name in functions)
    shown = ", ".join(tables)[:MAX_SHOWN]

    def rule(given: Json) -> str | None:
        if not isinstance(given, str) or len(given) > MAX_SQL or any(sign in given for sign in NOT_PLAIN):
            return f"must be one SQL query on {shown}, without hints, of at most {MAX_SQL} characters"
        try:
            statements = sqlglot.parse(given, dialect=dialect or None)
        except (sqlglot.errors.SqlglotError, RecursionError) as broken:
            return f"cannot be read as SQL: {str(broken).splitlines()[0][:MAX_SHOWN] if str(broken) else ''}"
        # A comment behind the last semicolon is a statement to the parser.
        query, *more = [each for each in statements if not isinstance(each, exp.Semicolon)] or [None]
        if more or not isinstance(query, exp.Query):
            return f"must be one query that only reads, on {shown}"
        return _wrong(query, allowed, callable_, shown)

    return rule


def _wrong(
    query: exp.Query, tables: frozenset[tuple[str, ...]], functions: frozenset[str], shown: str
) -> str | None:
    """What a statement does beyond reading these tables, or None."""
    for node in query.walk():
        match node:
            case exp.Table(this=exp.Identifier()):
                name = tuple(part.name.lower() for part in node.parts)
                if name not in tables and not _is_cte(node):
                    return f"reads table {'.'.join(name)[:MAX_SHOWN]}; it may read {shown}"
            case exp.Table():
                return "reads from something that is no table"
            case exp.Anonymous() if node.name.lower() not in functions:
                return f"calls {node.name[:MAX_SHOWN]}(), which is not among the functions that are allowed"
            case exp.DML() | exp.DDL() | exp.Command() | exp.Into() | exp.Lock():
                if not isinstance(node, exp.Query):
                    return "does more than read"
    return None


def _is_cte(table: exp.Table) -> bool:
    """The name is that of a WITH around it, and so no table of the database."""
    if len(table.parts) != 1:
        return False
    inside: exp.CTE | None = None
    node: exp.Expr | None = table
    while node is not None:
        if isinstance(node, exp.CTE):
            inside = node
        around = node.args.get("with_")
        if isinstance(around, exp.With):
            for cte in around.expressions:
                if cte is inside and not around.recursive:
                    break  # it sees those before it only
                if cte.alias.lower() == table.name.lower():
                    return True
                if cte is inside:
                    break
        node = node.parent
    return False
