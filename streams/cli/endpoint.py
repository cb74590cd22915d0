"""What can be told of a model endpoint and its key without spending anything."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx2
import orjson
from openai import APIConnectionError, APIStatusError, AsyncOpenAI

from agents.configuration.values import DEFAULT, Endpoint
from agents.configuration.variables import BASE_URL
from agents.models.client import SIMULATED_HEADER
from agents.models.faults import PUBLIC_URL, Faults
from agents.ports import ModelError

ASK_S: Final = 10.0
"""Seconds that an endpoint may take to list its models."""

KEYS_OF: Final = (
    # What a key begins with, whose it is, a part of that endpoint's host, its address.
    ("sk-kimi-", "Kimi Code", "api.kimi.com", "https://api.kimi.com/coding/v1"),
    ("sk-or-", "OpenRouter", "openrouter.ai", "https://openrouter.ai/api/v1"),
    ("sk-ant-", "Anthropic", "anthropic.com", "https://api.anthropic.com/v1"),
    ("sk-proj-", "OpenAI", "openai.com", PUBLIC_URL),
    ("gsk_", "Groq", "groq.com", "https://api.groq.com/openai/v1"),
    ("xai-", "xAI", "x.ai", "https://api.x.ai/v1"),
)

MOONSHOT: Final = {
    "api.moonshot.ai": ("platform.moonshot.ai", "https://api.moonshot.cn/v1", "platform.moonshot.com"),
    "api.moonshot.cn": ("platform.moonshot.com", "https://api.moonshot.ai/v1", "platform.moonshot.ai"),
}
"""By host: the platform whose keys it takes, the other host's address, and that one's platform."""

_PLACEHOLDER: Final = re.compile(
    r"\.\.\.|…|x{3,}|\*{3,}|<.*>|\{.*\}|\$|\b(your|my)[-_ ]?(own[-_ ]?)?(\w+[-_ ])?(api[-_ ]?)?(key|token)"
    r"|change[-_ ]?me|placeholder|insert|replace|api[-_]?key|sk-1234|example|todo",
    re.IGNORECASE,
)
_SHORTEST: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What an endpoint has.

    Attributes:
        models: Their names.
        simulated: It is the simulated one.
    """

    models: tuple[str, ...]
    simulated: bool


async def list_models(asked: Endpoint, key: str | None = None, *, within_s: float = ASK_S) -> Listing:
    """Ask the endpoint for its models (``GET /models``), once.

    Args:
        asked: The endpoint.
        key: One of its keys; None: its first, where it has one.
        within_s: Seconds that it may take.

    Raises:
        ModelError: it did not list them; its kind says why.
    """
    given = next(iter(asked.keys), "") if key is None else key
    endpoint, sent = Faults(asked), given.strip()
    if not sent.isascii() or re.search(r"\s|[^ -~]", sent):
        raise endpoint.error("bad_key", "the key was not sent: it has blanks, or letters that no key has")
    client = AsyncOpenAI(base_url=endpoint.url, api_key=sent or "none", max_retries=0, timeout=within_s)
    try:
        response = await client.get("/models", cast_to=httpx2.Response)
    except APIStatusError as refused:
        answer = refused.response
        raise endpoint.refused(answer.status_code, answer.headers, answer.content, key=given) from None
    except Exception as exception:
        wrapped = exception.__cause__ if isinstance(exception, APIConnectionError) else None
        error = endpoint.failed(wrapped if isinstance(wrapped, Exception) else exception)
        if error is None:
            raise
        raise error from None  # the cause may quote headers, and with them the key
    finally:
        await client.close()
    try:
        names = tuple(str(model["id"]) for model in orjson.loads(response.content)["data"])
    except (ValueError, KeyError, TypeError):
        raise endpoint.refused(response.status_code, response.headers, response.content, key=given) from None
    return Listing(models=names, simulated=response.headers.get(SIMULATED_HEADER) == "1")


def is_local(base_url: str) -> bool:
    """The endpoint is on this machine, where none asks for a key."""
    return urlsplit(base_url).hostname in {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104 - a name


def key_fault(api_key: str) -> str:
    """What is wrong with a key by its looks, without quoting it; empty where nothing is."""
    if api_key != api_key.strip():
        return "has blanks or a line's end around it"
    if re.search(r"\s", api_key):
        return "has blanks in it" + (": leave out `Bearer`" if api_key.lower().startswith("bearer") else "")
    if api_key[:1] in "\"'`" or api_key[-1:] in "\"'`":
        return "has quotes around it"
    if not api_key.isascii():
        return "has letters that no key has"
    if _PLACEHOLDER.search(api_key):
        return "is a placeholder, not a key"
    if len(api_key) < _SHORTEST:
        return f"has {len(api_key)} characters, which is too short for a key"
    return ""


def wrong_endpoint(base_url: str, api_key: str) -> str:
    """Whose key this is by its first letters, where the endpoint is another's; else empty."""
    host = urlsplit(base_url or PUBLIC_URL).hostname or ""
    for start, whose, place, address in KEYS_OF:
        if api_key.startswith(start):
            fits = host == place or host.endswith(f".{place}")
            return "" if fits else f"the key is one of {whose}, whose endpoint is {address}"
    return ""


def address(endpoint: Endpoint) -> str:
    """Where the address of an endpoint is configured."""
    return BASE_URL if endpoint.name == DEFAULT else f"base_url of endpoints.{endpoint.name}"


def variables(endpoint: Endpoint, key: str = "") -> str:
    """Where this very key is configured, else all keys of the endpoint."""
    if key in endpoint.keys and len(endpoint.keys) == len(endpoint.key_variables):
        return endpoint.key_variables[endpoint.keys.index(key)]
    named = " or ".join(endpoint.key_variables)
    return named or f"key_variables of endpoints.{endpoint.name}"


def advice(endpoint: Endpoint, error: ModelError, key: str | None = None) -> str:
    """What to do about an endpoint that did not list its models.

    Args:
        endpoint: The endpoint.
        error: What came of asking it.
        key: The key that it was asked with; None: its first.
    """
    host = urlsplit(endpoint.base_url or PUBLIC_URL).hostname or ""
    given = next(iter(endpoint.keys), "") if key is None else key
    where = address(endpoint)
    match error.kind:
        case "bad_key":
            if foreign := wrong_endpoint(endpoint.base_url, given):
                return f"{foreign}: set {where} to it"
            if host in MOONSHOT:
                platform, other, theirs = MOONSHOT[host]
                becomes = "=" if where == BASE_URL else " to "
                return (
                    f"{host} takes keys of {platform} only, and the two platforms' keys are not "
                    f"interchangeable: for a key of {theirs} set {where}{becomes}{other}"
                )
            return f"set {variables(endpoint, given)} to a key of {host}"
        case "connection" | "timeout":
            if is_local(endpoint.base_url):
                return "start it, or a simulated one by `anabranch model`"
            return f"check {where}, and whether this machine reaches it"
        case "quota":
            return "top up the account, or use another key"
        case "misconfigured":
            return f"check {where}: it ends with /v1 at most endpoints"
        case _:
            return "try again in a while; if it stays so, ask the provider"
