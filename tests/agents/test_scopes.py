"""What arguments may be, kept where the call is made."""

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.tools.scopes import BadScope, read_scopes, refusal, refuse_wildcards


def why_not(rules: dict[str, Any], value: Any) -> str | None:
    """What is wrong with argument ``it`` by these rules."""
    return refusal(read_scopes({"server.tool": {"it": rules}})["server.tool"], {"it": value})


@pytest.mark.parametrize(
    ("rules", "good", "bad"),
    [
        ({"one_of": ["a", 1]}, ["a", 1, ["a", 1]], ["b", True, None, ["a", "b"]]),
        ({"matches": "[a-z]+"}, ["abc"], ["ABC", "abc\n", "abc1", 7, "a" * 20_000]),
        ({"min": 1, "max": 10}, [1, 10, 5.5], [0, 11, "5", True, float("nan"), None]),
        (
            {"under": ["/data", "notes"]},
            ["/data", "/data/", "/data/a/b.txt", "/data/./a", "notes/x", "./notes/x", ["/data/a"]],
            [
                *(
                    "/",
                    "/etc/passwd",
                    "/database",
                    "data/x",
                    "/data/../etc/passwd",
                    "/data/..",
                    "..",
                    "notes/../x",
                ),
                *(
                    "~/data",
                    "/data\\..\\x",
                    "/data/$HOME",
                    "/data/%2e%2e/x",
                    "//data/x",
                    "/data/a\x00b",
                    "",
                    7,
                ),
                *("file:///data/x", ["/data/a", "/etc/passwd"], "/notes/x"),
            ],
        ),
        (
            {"hosts": ["example.org", ".docs.test", "local.test:8080"]},
            [
                *("https://example.org", "http://example.org/a?b=c#d", "https://EXAMPLE.org:443/x"),
                *(
                    "https://a.docs.test/x",
                    "https://docs.test/",
                    "http://local.test:8080/",
                    "https://example.org./",
                ),
            ],
            [
                *("https://example.org.evil.test/", "https://evilexample.org", "https://sub.example.org"),
                *(
                    "https://user@example.org/",
                    "https://evil.test@example.org/",
                    "https://evil.test#@example.org",
                ),
                *(
                    "https://evil.test\\@example.org/",
                    "ftp://example.org/",
                    "file:///etc/passwd",
                    "example.org",
                ),
                *("http://local.test/", "https://example.org\n.evil.test/", " https://example.org", 7),
                *("https://evildocs.test", "http://127.0.0.1/", "https://examp\u2113e.org/", "https://[::1/"),
            ],
        ),
    ],
)
def test_a_rule_takes_what_it_says_and_nothing_else(
    rules: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    assert [value for value in good if why_not(rules, value) is not None] == []
    assert [value for value in bad if why_not(rules, value) is None] == []


@pytest.mark.parametrize(
    "query",
    [
        "select * from orders",
        "SELECT o.id, count(*) FROM Orders AS o JOIN main.items i ON i.id = o.id GROUP BY 1",
        "with users as (select * from orders) select * from users",
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9) select i from n, orders",
        "select julianday(day) from orders",
        'select "a;b" from orders -- a comment',
        "select * from orders; -- a comment",
    ],
)
def test_queries_on_the_allowed_tables_pass(query: str) -> None:
    assert why_not(SQL, query) is None


SQL = {"tables": ["orders", "main.items"], "dialect": "sqlite", "functions": ["julianday"]}


@pytest.mark.parametrize(
    "query",
    [
        "select * from users",
        "select * from items",
        'select * from "main.items"',
        "select * from temp.orders",
        "select (select password from users) from orders",
        "select * from orders where id in (select id from users)",
        "select * from (select * from users) as orders",
        "select * from orders union select * from users",
        "with users as (select * from users) select * from users",
        "select * from users union select * from (with users as (select 1) select * from users)",
        "with a as (select * from b), b as (select 1) select * from a",
        "select * from orders; drop table orders",
        "delete from orders",
        "insert into orders select * from orders",
        "with gone as (delete from orders returning *) select * from gone",
        "select * into copy from orders",
        "select load_extension('x') from orders",
        "select * from pragma_table_info('orders')",
        "pragma table_info(orders)",
        "attach 'other.db' as other",
        "explain select * from orders",
        "select /*!50000 * from users */ 1 from orders",
        "selec",
        "",
        7,
        "select " + "(" * 500 + "1" + ")" * 500,
    ],
)
def test_other_statements_do_not(query: str) -> None:
    assert why_not(SQL, query) is not None


def test_an_argument_with_rules_must_be_given_unless_it_is_optional() -> None:
    scope = read_scopes({"files.list": {"path": {"under": ["/data"]}}})["files.list"]
    assert refusal(scope, {}) == "argument path must be given, since what it may be is limited"
    scope = read_scopes({"files.list": {"path": {"under": ["/data"], "optional": True}}})["files.list"]
    assert refusal(scope, {}) is None
    assert refusal(scope, {"path": "/etc"}) is not None
    assert refusal(scope, {"other": "/etc"}) is None


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"udner": ["/data"]}, "there is no rule 'udner'; is it 'under'?"),
        ({}, "rules are wanted"),
        (["/data"], "rules are wanted"),
        ({"under": []}, "under is a list of texts"),
        ({"under": ["/data/../etc"]}, "goes up"),
        ({"under": [7]}, "under is a list of texts"),
        ({"hosts": ["*.example.org"]}, "write example.org"),
        ({"matches": "("}, "no regular expression"),
        ({"min": "1"}, "min is a number"),
        ({"max": True}, "max is a number"),
        ({"one_of": "a"}, "one_of is a list"),
        ({"optional": True}, "says nothing"),
        ({"under": ["/data"], "optional": 1}, "optional is true or false"),
        ({"tables": ["a"], "dialect": "sqlight"}, "does not know the dialect 'sqlight'"),
        ({"dialect": "sqlite", "max": 1}, "belong to tables"),
    ],
)
def test_a_scope_that_cannot_be_kept_is_refused_at_start(rules: Any, words: str) -> None:
    with pytest.raises(BadScope, match="path") as refused:
        read_scopes({"files.read": {"path": rules}})
    assert words in str(refused.value)
    assert refused.value.tool == "files.read"


@pytest.mark.parametrize("name", ["*", "files.*", "files.re?d", "files.[a-z]"])
def test_patterns_are_no_names_of_tools(name: str) -> None:
    with pytest.raises(ValueError, match="name the tools"):
        refuse_wildcards((name,), "kinds.research.tools")
    with pytest.raises(ValueError, match="name the tools"):
        read_scopes({name: {"path": {"under": ["/data"]}}})


STEPS = st.lists(st.sampled_from(["a", "..", ".", "", "data", "datax", "etc", "%2e%2e"]), max_size=6)


@given(STEPS, st.booleans())
def test_whatever_passes_lies_below_the_folder(steps: list[str], absolute: bool) -> None:
    """Told by going the way step by step."""
    path = ("/" if absolute else "") + "/".join(steps)
    if why_not({"under": ["/data"]}, path) is None:
        place: list[str] = []
        for step in path.split("/"):
            if step == "..":
                place = place[:-1]
            elif step not in ("", "."):
                place.append(step)
        assert path.startswith("/")
        assert place[0] == "data"


@given(
    st.text(alphabet="abc.@:/\\#?%[]!*\t é", max_size=12),
    st.sampled_from(["http://", "https://", "https:/", "", "HTTPS://"]),
)
def test_whatever_passes_goes_to_the_host(rest: str, scheme: str) -> None:
    """No spelling of an address gets past the host's name: what follows the scheme begins with it."""
    address = f"{scheme}{rest}"
    if why_not({"hosts": ["a.b"]}, address) is None:
        host = re.split("[/?#]", rest)[0]
        assert host.rpartition(":")[0] in ("a.b", "a.b.") or host in ("a.b", "a.b.", "a.b:")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_no_value_breaks_a_rule(value: Any) -> None:
    for rules in (
        {"one_of": ["a"]},
        {"matches": "a"},
        {"max": 1},
        {"under": ["/a"]},
        {"hosts": ["a.b"]},
        SQL,
    ):
        said = why_not(rules, value)
        assert said is None or json.dumps(said)
    assert why_not({"hosts": ["a.b"]}, f"https://a.b/{quote(str(value))}") is None or len(str(value)) > 3_000
