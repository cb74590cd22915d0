"""What is wrong with a configuration is told with its line, all at once, with what to do, and no secret."""

import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.configuration.positions import find
from agents.configuration.problems import BadConfiguration, Problem, is_secret
from agents.configuration.reading import MAX_BYTES, decoded, read_configuration
from tests.agents.configuration.reading import problems, read
from tests.agents.configuration.test_reading import ENVIRONMENT, WHOLE

KEY = "sk-8hTqLm2VbN4c8hTqLm2VbN4c"
TWO = '[endpoints.a]\nbase_url = "http://a/v1"\n[endpoints.b]\nbase_url = "http://b/v1"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[endpoint.a]", "1: endpoint is no table that there is; did you mean endpoints?"),
        ("endpoints = 3", "1: endpoints is 3; write a table, [endpoints.NAME]"),
        ("[models]\na = 3", "2: models.a is 3; write a table, [models.a]"),
        (
            '[endpoints.a]\n\nbase_ulr = "http://h"',
            "3: endpoints.a.base_ulr is no key; did you mean base_url?",
        ),
        ("[endpoints.a]\nrpm = 3", "2: endpoints.a.rpm is no key; did you mean requests_per_minute?"),
        (
            "[models.a]\nconcurrency = 3",
            "2: models.a.concurrency is no key; it belongs to [endpoints.NAME]",
        ),
        (
            '[endpoints.a]\napi_key = "x"',
            (
                "2: endpoints.a.api_key is no key; keys stand in environment variables, and their names "
                'here: key_variables = ["NAME"]'
            ),
        ),
        (
            "[endpoints.a]\nconcurrency = 0",
            "2: endpoints.a.concurrency is 0; write a number from 1 to 1,000,000,000",
        ),
        (
            "[endpoints.a]\nstall_s = -1",
            "2: endpoints.a.stall_s is -1; write a number above 0 and up to 86,400",
        ),
        ("[endpoints.a]\nstall_s = inf", "2: endpoints.a.stall_s is inf; write a number that is finite"),
        ("[endpoints.a]\nconcurrency = true", "2: endpoints.a.concurrency is true; write a whole number"),
        (
            '[endpoints.a]\njson_mode = "Schema"',
            (
                "2: endpoints.a.json_mode is 'Schema'; did you mean \"schema\"? "
                'write one of "schema", "object", "none"'
            ),
        ),
        (
            '[endpoints.a]\nbase_url = "api.moonshot.ai/v1"',
            (
                "2: endpoints.a.base_url is 'api.moonshot.ai/v1', which is no address; "
                "write http:// or https:// and a host"
            ),
        ),
        ("[endpoints.a]\nkey_variables = []", "2: endpoints.a.key_variables is empty; name at least one"),
        (
            '[endpoints."a b"]',
            (
                "1: a name in [endpoints] is 'a b', which is no name; "
                "write 1 to 64 of the letters A-Z and a-z, digits, - and _"
            ),
        ),
        (
            (
                "[endpoints.a-b]\nbase_url='http://a'\n[endpoints.a_b]\nbase_url='http://b'\n"
                "[models.m]\nendpoint='a_b'"
            ),
            "3: endpoints.a_b and endpoints.a-b would be set by the same variables",
        ),
        (TWO, "1: there are several endpoints, and no model says which of them it is at"),
        (
            '[endpoints.a]\n[endpoints.b]\nbase_url = "http://b/v1"\n[models.m]\nendpoint = "b"',
            "1: endpoints.a has no base_url, and there are several endpoints",
        ),
        (TWO + "[models.m]", "5: models.m has no endpoint, and there are several"),
        (
            TWO + '[models.m]\nendpoint = "c"',
            "6: models.m.endpoint is 'c', and no endpoint has that name; there are: a, b",
        ),
        (
            '[models."kimi-k2.6"]\n[kinds.default]\nmodels = [\n  "kimi-k2.6",\n  "kimi-k26",\n]',
            "5: kinds.default.models names 'kimi-k26', and no model has that name; did you mean kimi-k2.6?",
        ),
        (
            "[models.kimi-k2.6]",
            '1: models.kimi-k2.6 is no key; a name with a dot in it stands in quotes: [models."kimi-k2.6"]',
        ),
        ("[models.a]\n[models.b]", "1: nothing says which model is used where goal, plan and kind name none"),
        (
            "[models.a]\nid = ''",
            "2: models.a.id is empty",
        ),
        (
            "[models.a]\nprices = { tokens_in = 1 }",
            "2: models.a.prices.tokens_out is missing; write it, or leave out the whole table",
        ),
        (
            "[models.a]\nprices = { tokens_in = 1, tokens_out = 1, tokens_cache = 1 }",
            "2: models.a.prices.tokens_cache is no key; did you mean tokens_cached?",
        ),
        (
            "[kinds.default]\nmodels = ['a', 'a']",
            "2: kinds.default.models names 'a' twice; name it once",
        ),
        ("[kinds.planner]\ntools = []", "2: kinds.planner.tools is no key; did you mean models?"),
        ("[kinds.a]\nturn_tokens = 5_000", "2: kinds.a allows 5,000 tokens a turn and 4,000 a task"),
        (
            '[kinds.a]\ntools = ["noop", "*"]',
            "2: kinds.a.tools[1] is '*', a wildcard; name the tools, each by its own name",
        ),
        (
            '[kinds.a]\ntools = ["fils.read"]\n[servers.files]\ncommand = ["x"]',
            "2: kinds.a.tools[0] is 'fils.read', and no tool server has the name 'fils'; did you mean files?",
        ),
        (
            '[kinds.a]\ntools = ["files.raed"]\n[servers.files]\ncommand = ["x"]\ntools = ["read"]',
            (
                "2: kinds.a.tools[0] is 'files.raed', which servers.files.tools does not name; "
                "did you mean read?"
            ),
        ),
        (
            '[kinds.a.scopes.files.read]\npath = "/"\n[servers.files]\ncommand = ["x"]',
            (
                "1: kinds.a.scopes.files is the scope of a server, not of a tool; "
                'write the whole name in quotes: [kinds.a.scopes."files.TOOL"]'
            ),
        ),
        (
            '[kinds.a]\ntools = ["noop"]\n[kinds.a.scopes.list]\nx = {max = 1}',
            "3: kinds.a.scopes.list is the scope of a tool that the kind may not use",
        ),
        (
            '[kinds.a.scopes.noop]\nx = {max = 1}\npath = {udner = ["/data"]}',
            (
                "3: kinds.a.scopes.noop.path: there is no rule 'udner'; is it 'under'?; "
                "docs/tools.md has all rules"
            ),
        ),
        ("[kinds.a.scopes.'x*']\nx = {max = 1}", "1: kinds.a.scopes.\"x*\" is 'x*', a wildcard"),
        (
            "[kinds.a.scopes.noop]\nx = {matches = 'a{99999999999}'}",
            "2: kinds.a.scopes.noop.x cannot be kept: the repetition number is too large",
        ),
        (
            "[kinds.a.scopes.noop]\nx = 1979-05-27",
            (
                "2: kinds.a.scopes.noop.x is 1979-05-27, a date or time, which JSON does not have; "
                "write it in quotes"
            ),
        ),
        (
            '[kinds.a.schema]\ntype = "objekt"',
            "2: kinds.a.schema.type is no JSON Schema: 'objekt' is not valid",
        ),
        (
            '[kinds.a.schema]\nitems."$ref" = "#/$defs/row"',
            "2: kinds.a.schema.items refers to '#/$defs/row', which is not in the schema",
        ),
        (
            '[kinds.a.schema]\nitems."$ref" = "https://example.com/row.json"',
            "2: kinds.a.schema.items refers to 'https://example.com/row.json', which is not in the schema",
        ),
        (
            '[kinds.a.schema]\n"$dynamicRef" = "#row"',
            "2: kinds.a.schema refers to '#row', which is not in the schema",
        ),
        (
            '[kinds.a.schema]\nmaximum = 5\nitems."$ref" = "#/maximum/x"',
            "3: kinds.a.schema.items refers to '#/maximum/x', which is not in the schema",
        ),
        (
            '[kinds.a.schema]\ntype = "object"\nitems."$ref" = "#/type"',
            "3: kinds.a.schema.items refers to '#/type', which is not in the schema",
        ),
        (
            '[kinds.a.schema]\npattern = "("',
            "2: kinds.a.schema.pattern is no JSON Schema: '(' is not a 'regex'",
        ),
        (
            '[kinds.a.schema]\n"$ref" = "#"',
            "1: kinds.a.schema refers to itself before it says anything of a value, without an end",
        ),
        (
            '[kinds.a.schema]\n"$defs".b.anyOf = [{ "$ref" = "#/$defs/c" }]\n"$defs".c."$ref" = "#/$defs/b"',
            '2: kinds.a.schema."$defs".b refers to itself before it says anything',
        ),
        ("[servers.x]", "1: servers.x has neither command nor url"),
        ('[servers.x]\ncommand = ["x"]\nurl = "http://h/mcp"', "3: servers.x has a command and a url"),
        (
            '[servers.x]\nurl = "http://h/mcp"\nenvironment = { A = "b" }',
            "3: servers.x.environment is for a server that is started by command",
        ),
        (
            '[servers.x]\ncommand = ["x"]\nheaders = {A="b"}',
            "3: servers.x.headers is for a server with a url",
        ),
        ('[servers.x]\ncommand = ["x"]\ntools = ["*"]', "3: servers.x.tools[0] is '*', a wildcard"),
        ('[servers.x]\ncommand = "npx x"', "2: servers.x.command is 'npx x'; write a list, in [ ]"),
        ('[servers.x]\ncommand = ["x"]\nargs = ["y"]', "3: servers.x.args is no key; did you mean command?"),
        (
            '[servers.x]\ncommand = ["x"]\nenvironment.A = "${NOWHERE}"',
            "3: servers.x.environment.A wants the variable NOWHERE, which is not set; set NOWHERE",
        ),
        (
            '[servers.x]\nurl = "http://h/mcp"\nheaders.X-Api-Key = "abc"',
            "3: servers.x.headers.X-Api-Key holds its secret itself",
        ),
        (
            '[servers.x]\ncommand = ["x"]\nonce = ["w"]\nread_only = ["r", "w"]',
            "4: servers.x has 'w' among once and read_only",
        ),
        (
            '[servers.x]\ncommand = ["x"]\ntools = ["read"]\nonce = ["raed"]',
            "4: servers.x.once names 'raed', which servers.x.tools does not; did you mean read?",
        ),
        (
            '[tools]\nmodules = ["mine.tools"]',
            "2: tools.modules[0] is 'mine.tools', which is no place of a tool; write \"package.module:name\"",
        ),
        ("[tenants.'a b']", "1: a name in [tenants] is 'a b', which is no tenant; write 1 to 128 letters"),
        ("[tenants.a]\nweight = 0", "2: tenants.a.weight is 0; write a number from 1 to 1,000"),
        ("[tenant]\nday = { usd = 0 }", "2: tenant.day.usd is 0; write a number above 0"),
        ("[tenant]\ndefaults = {}", "2: tenant.defaults is no key; it belongs to [tenants.NAME]"),
        ("[tenants.a.gate]\nlongst = 1", "2: tenants.a.gate.longst is no key; did you mean longest?"),
        (
            "[tenant]\ngate.refuse = [{ pattern = '(a', reason = 'x' }]",
            "2: tenant.gate.refuse[0].pattern is '(a', which is no pattern: unclosed group",
        ),
        ("[defaults]\ninput = 2026-01-01", "2: defaults.input is no default: defaults.input is 2026-01-01"),
        ("[entry]\nworker = 'w'", "1: entry lets nobody in; write header and principals"),
        ("[entry]\nheader = 'x'", "2: entry has header and no principals"),
        ("[entry.keys.a]\nvariable = 'A'\ntenants = []", "3: entry.keys.a.tenants is empty"),
        (
            "[entry.keys.a]\nvariable = 'A'\ntenants = ['*']",
            "2: entry.keys.a.variable wants the variable A, which is not set; set A",
        ),
        ("[tools]\nsand_box = true", "2: tools.sand_box is no key; did you mean sandbox?"),
        (".".join(["a"] * 1_000) + " = 1", "1: it is nested more than 64 levels deep"),
        ("[models.a]\n\n[models.a]", "3: this is no TOML: cannot declare ('models', 'a') twice"),
        ("[models.a]\nid = kimi", "2: this is no TOML: invalid value"),
        ("[models.a]\nid = '''\n\n", "2: this is no TOML:"),
    ],
)
def test_each_mistake_is_told_where_it_stands(text: str, told: str) -> None:
    """With what to write instead."""
    found = problems(text)
    assert len([each for each in found if each.startswith(told)]) == 1, found
    assert len(found) == 1, found
    assert "; " in found[0]


def test_what_parsers_choke_on_has_its_line() -> None:
    """Hundreds of brackets, thousands of digits."""
    assert problems("[tools]\na = " + "[" * 2_000) == [
        "2: this is no TOML: nested too deeply; see https://toml.io/en/v1.0.0"
    ]
    assert problems("# x\n\na = " + "9" * 5_000) == [
        "3: this is no TOML: a number that is too long; see https://toml.io/en/v1.0.0"
    ]
    assert problems("a" + ".a" * 100 + " = 1") == ["1: it is nested more than 64 levels deep; leave out some"]


def test_all_mistakes_are_told_together_in_the_order_of_their_lines() -> None:
    """One run of the doctor is enough."""
    found = problems("""
        [endpoints.kimi]
        base_ulr = "https://api.moonshot.ai/v1"
        [models.a]
        endpoint = "kmi"
        [kinds.default]
        models = ["b"]
        tools = [
          "noop",
          "files.*",
        ]
        [servers.files]
    """)
    assert [int(each.partition(":")[0]) for each in found] == [2, 4, 6, 9, 11]


@pytest.mark.parametrize(
    "text",
    [
        f'[endpoints.a]\nkey_variables = ["{KEY}"]',
        f'[endpoints.a]\nkey = "{KEY}"',
        f'[endpoints.a]\nbase_url = "https://me:{KEY}@h/v1"',
        f'[models.a]\nid = "{KEY}"',
        f'[servers.a]\nurl = "http://h"\nheaders.X = "Bearer {KEY}"',
        f'[servers.a]\ncommand = ["x", "{KEY}"]',
        f'[servers.a]\ncommand = ["x"]\nenvironment.TOKEN = "{KEY}"',
        f'[kinds."{KEY}"]\nx = 1',
        f'[endpoints.a]\nthinking = "{KEY}"',
        f'[tools]\nmodules = ["{KEY}"]',
        f'["{KEY}"]',
        f"[endpoints.{KEY}]\nx = 1",
    ],
)
def test_a_key_in_the_file_is_refused_and_never_shown(text: str) -> None:
    """Whoever pastes one is told where it belongs."""
    found = problems(text)
    assert found
    assert not any(KEY in each for each in found)


@pytest.mark.parametrize(
    "text",
    [
        "task-with-a-long-name-2",
        "mcp-network-tools-20",
        "deepseek-ai/DeepSeek-V3",
        "Basic information about the token counter",
        "the bearer of bad news",
        "sqlite:///file:orders.db?mode=ro&uri=true",
        "https://user.example/v1:batch",
        "sk-model",
    ],
)
def test_what_only_resembles_a_key_is_none(text: str) -> None:
    """Names, addresses and sentences."""
    assert not is_secret(text)


@pytest.mark.parametrize(("value", "is_fine"), [("hunter2", False), ("${B}", True), ("/run/key", True)])
def test_a_variable_that_is_named_as_a_secret_refers_to_one(value: str, is_fine: bool) -> None:
    """Also a password that looks like nothing."""
    text = f'[servers.a]\ncommand = ["x"]\nenvironment.DB_PASSWORD = "{value}"'
    assert bool(problems(text, B="hunter3")) != is_fine


def test_bytes_that_are_no_text() -> None:
    """The line is told for these too; a mark of byte order is none of ours."""
    with pytest.raises(BadConfiguration, match=r"^a\.toml:2: there is a byte that is no UTF-8; "):
        decoded(b"# fine\nx = '\xff'", path="a.toml")
    with pytest.raises(BadConfiguration, match=r"^a\.toml:1: it has 1,048,577 bytes; "):
        decoded(b" " * (MAX_BYTES + 1), path="a.toml")
    assert decoded("\N{BYTE ORDER MARK}[tools]".encode(), path="a.toml") == "[tools]"


def test_where_keys_stand() -> None:
    """Headers, dotted keys, strings and arrays over several lines, tables in arrays."""
    text = '''# a comment
[a."b.c"]
x.y = """
[no.header]
"""
z = [ # one
  1, 2,
  "3", { w = 4 },
]

[[list]]
u = 1
[[list]]
u = 1
[list.inner]
v = [[
  5]]
'''
    found = find(text)
    assert {
        path: found.of(path)
        for path in (
            ("a",), ("a", "b.c"), ("a", "b.c", "x", "y"), ("a", "b.c", "z"), ("a", "b.c", "z", 1),
            ("a", "b.c", "z", 3, "w"), ("list", 0, "u"), ("list", 1, "u"), ("list", 1, "inner", "v"),
            ("list", 1, "nowhere"), ("nowhere",),
        )
    } == {
        ("a",): 2, ("a", "b.c"): 2, ("a", "b.c", "x", "y"): 3, ("a", "b.c", "z"): 6, ("a", "b.c", "z", 1): 7,
        ("a", "b.c", "z", 3, "w"): 8, ("list", 0, "u"): 12, ("list", 1, "u"): 14,
        ("list", 1, "inner", "v"): 16, ("list", 1, "nowhere"): 13, ("nowhere",): 1,
    }  # fmt: skip


PIECES = st.sampled_from(
    [
        *("[endpoints.a]", "[models.m]", "[kinds.k]", "[kinds.planner]", "[servers.s]", "[tools]"),
        *("endpoint = 'a'", "base_url = 'http://h/v1'", "models = ['m', ", "'m'", "]", "[", "{", "}"),
        *("scopes.'s.t'.x = [1,\n2]", "schema = {type = 'object'}", "schema.'$ref' = '#/x'", "= ", "."),
        *("\n", "\r\n", '"', "'''", "# x", "inf", "1979-05-27", "-1", "true", "${X}", "\x00", "[[models]]"),
        *("environment = {A = '${B}'}", "headers = {A = 'Bearer ${B}'}", "url = 'http://h'"),
        *("prices.tokens_in = 1", "concurrency = 1", "rounds = 99999999999999999999999", "schema.a.b = nan"),
        *("schema.'$id' = '::'", "schema.'$ref' = '#'", "command = ['x']", "tools = ['s.t']"),
    ]
)  # fmt: skip


@given(st.one_of(st.lists(PIECES, max_size=12).map("\n".join), st.lists(PIECES).map("".join), st.text()))
@example("a = 1\r")
@example("[kinds.k.schema]\n'$ref' = 'http://[/'")
@example("[endpoints.a]\nbase_url = 'http://[/'")
@example("[endpoints.a]\nbase_url = 'http://h:99999/'")
def test_any_text_is_a_configuration_or_has_problems_on_lines_that_it_has(text: str) -> None:
    """And never anything else."""
    wrong: tuple[Problem, ...] = ()
    try:
        found = read_configuration(text, path="a.toml", environment={"B": "x\ny"})
    except BadConfiguration as bad:
        wrong = bad.problems
        found = None
    if found is None:
        assert wrong
        lines = max(1, text.count("\n") + (not text.endswith("\n")))
        assert all(1 <= problem.line <= lines for problem in wrong)
        assert all(problem.what and problem.to_do for problem in wrong)
    else:
        assert all(model in found.models for kind in found.kinds.values() for model in kind.models)
        assert all(model.endpoint in found.endpoints for model in found.models.values())


@given(st.data())
def test_one_changed_line_is_the_line_that_is_told(data: st.DataObject) -> None:
    """A misspelt key of a file that is right: one problem, on its line, with the right name."""
    lines = WHOLE.lstrip("\n").splitlines()
    wrong = [
        at for at, line in enumerate(lines) if " = " in line and not line.strip().startswith(("[", "path"))
    ]
    at = data.draw(st.sampled_from(wrong))
    name = lines[at].split("=")[0].strip()
    if name in {"base_url", "endpoint", "command", "url", "models", "tools"}:
        return  # others need it, and say so too
    lines[at] = lines[at].replace(name, f"{name}x", 1)
    [told] = problems("\n".join(lines), **ENVIRONMENT)
    assert told == f"{at + 1}: {told.partition(': ')[2]}"
    assert told.endswith(f"{name}x is no key; did you mean {name}?")


def test_positions_are_those_of_the_whole_file() -> None:
    """Cut into statements, a text means what it means as a whole."""
    text = WHOLE.lstrip("\n")
    found = find(text)
    assert found.stuck is None
    assert tomllib.loads(text)
    assert read(WHOLE, **ENVIRONMENT)
