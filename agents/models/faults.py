"""What went wrong with a model call: replies and exceptions as :class:`ModelError`.

Kinds and types of errors as OpenAI and Moonshot document them
(https://platform.openai.com/docs/guides/error-codes, https://platform.moonshot.ai/docs/api/chat).
"""

import re
from collections.abc import Mapping

import aiohttp
import httpx2
import orjson

from agents.configuration.values import DEFAULT, Endpoint
from agents.models.waits import reset_of, wait_of
from agents.ports import ModelError
from streams.core.values import NO_USAGE

PUBLIC_URL = "https://api.openai.com/v1"

URL_VARIABLE = "OPENAI_BASE_URL"
"""Where the address of the endpoint stands that no file configures."""

QUOTA = re.compile(r"quota|balance|billing|insufficient.?funds|payment|suspended", re.IGNORECASE)
CONTEXT = re.compile(
    r"context.?(length|window|size|limit)|token length too long|too many (input )?tokens"
    r"|(prompt|input|request) is too (long|large)|exceed\w{0,10}.{0,40}(context|model token limit)",
    re.IGNORECASE,
)
FILTERED = re.compile(r"content.?(filter|policy)|high risk|moderation", re.IGNORECASE)
OVERLOADED = re.compile(r"overload|at capacity", re.IGNORECASE)
BAD_KEY = re.compile(r"authentication|invalid_api_key", re.IGNORECASE)
RATE_LIMITED = re.compile(r"rate.?limit", re.IGNORECASE)
NO_SUCH_MODEL = re.compile(
    r"model.?not.?(found|exist)|not.?found the model|model\b.{0,80}\b(not found|(does|do) not exist)"
    r"|(unknown|no such|invalid) model\b",
    re.IGNORECASE,
)

MAX_QUOTED = 300
"""Characters of a provider's own words that go into a reason."""

MAX_READ = 4_000
"""Characters of a provider's own words that are looked at: what an error is stands at its beginning."""

OK = 200
ERRORS = range(400, 600)
SERVER_ERRORS = 500
"""From this status on a web page is a gateway's error page, not the wrong address."""

# kind -> whether the same call may succeed later
RETRY = {
    "rate_limited": True,
    "overloaded": True,
    "server_error": True,
    "timeout": True,
    "connection": True,
    "malformed": True,
    "content_filter": False,
    "context_exceeded": False,
    "bad_request": False,
    "bad_key": False,
    "quota": False,
    "misconfigured": False,
    "no_such_model": False,
}


ANY = re.compile("")

RULES: tuple[tuple[str, frozenset[int], re.Pattern[str], re.Pattern[str]], ...] = (
    # kind, statuses, what the type says, what type or words say; the first that fits counts
    ("quota", frozenset({402}), ANY, ANY),
    ("quota", frozenset({200, 403, 429}), QUOTA, ANY),
    ("quota", frozenset({403}), ANY, QUOTA),
    ("content_filter", frozenset({200, 400, 403, 422}), ANY, FILTERED),
    ("bad_key", frozenset({200, 400, 401, 403}), BAD_KEY, ANY),
    ("bad_key", frozenset({401, 403}), ANY, ANY),
    ("context_exceeded", frozenset({200, 400, 413, 422}), ANY, CONTEXT),
    ("no_such_model", frozenset({200, 400, 404, 410}), ANY, NO_SUCH_MODEL),
    ("overloaded", frozenset({200, 429, 500, 503}), ANY, OVERLOADED),
    ("rate_limited", frozenset({200}), RATE_LIMITED, ANY),
    ("bad_request", frozenset({200}), re.compile("invalid_request"), ANY),
)

BY_STATUS = {
    200: "server_error",
    404: "misconfigured",
    405: "misconfigured",
    408: "timeout",
    409: "server_error",
    413: "context_exceeded",
    425: "server_error",
    429: "rate_limited",
    504: "timeout",
    529: "overloaded",
}
BY_CLASS = {3: "misconfigured", 4: "bad_request", 5: "server_error"}


class Faults:
    """What goes wrong at one endpoint, in words that name it and say what to do, without its keys.

    Attributes:
        url: Its address, OpenAI's own where none is configured.

    Raises:
        ValueError: the URL holds a user or a password, which errors would show.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.url = endpoint.base_url or PUBLIC_URL
        self._endpoint = endpoint
        if httpx2.URL(self.url).userinfo:
            raise ValueError(f"{self._address} holds a user or a password; the key goes into {self._key()}")

    @property
    def _address(self) -> str:
        """Where its address is configured."""
        name = self._endpoint.name
        return URL_VARIABLE if name == DEFAULT else f"base_url of endpoints.{name}"

    def _key(self, key: str = "") -> str:
        """The variable of this very key, else all those of the endpoint."""
        names, keys = self._endpoint.key_variables, self._endpoint.keys
        if key in keys and len(names) == len(keys):
            return names[keys.index(key)]
        return " or ".join(names) or f"a key variable of endpoints.{self._endpoint.name}"

    def error(self, kind: str, reason: str, *, wait_s: float | None = None) -> ModelError:
        """An error of this kind that names the endpoint, without its keys."""
        named = "" if self._endpoint.name == DEFAULT else f"{self._endpoint.name}, "
        words = self._without_keys(f"{named}{self.url}: {reason}")
        error = ModelError(kind, words, retry=RETRY[kind], wait_s=wait_s if RETRY[kind] else None)
        error.endpoint = self._endpoint.name
        return error

    def _without_keys(self, words: str) -> str:
        for key in filter(None, self._endpoint.keys):
            words = words.replace(key, "<key>")
        return words

    def refused(
        self, status: int, headers: Mapping[str, str], content: bytes, *, key: str = ""
    ) -> ModelError:
        """What a reply without a completion means: an HTTP error, or an error in a reply of status 200.

        Args:
            status: The HTTP status.
            headers: Those of the reply.
            content: Its body.
            key: The key it was asked with, to name its variable.
        """
        kind_of_error, words = provider_words(content)
        if kind_of_error is None and is_html(headers, content) and status < SERVER_ERRORS:
            return self.error(
                "misconfigured",
                f"answered {status} with a web page, so it is no model endpoint; check {self._address}",
            )
        if status == OK:
            status = status_in(content) or status
        kind = classify(status, kind_of_error or "", words)
        advice = {
            "bad_key": f"; set {self._key(key)} to a key of this endpoint",
            "quota": f"; top up the account or set another {self._key(key)}",
            "misconfigured": f"; check {self._address} and the model's name",
            "no_such_model": "; check the model's name: `anabranch doctor` says what the endpoint has",
        }.get(kind, "")
        # Before it is cut, since a cut could leave half of a key.
        told = self._without_keys(words)[:MAX_QUOTED].rstrip() or kind_of_error or "no reason given"
        wait = wait_of(headers, words)
        if wait is None and kind == "rate_limited":
            wait = reset_of(headers)
        error = self.error(kind, f"{status} {told}{advice}", wait_s=wait)
        if error.retry and headers.get("x-should-retry") == "false":
            error.retry = False
        return error

    def unsendable(self, key: str) -> ModelError:
        """What a key means that no header can hold."""
        error = self.error(
            "bad_key",
            f"not asked: {self._key(key)} has characters that no key has, such as a line's end; set it to "
            "the key alone, as the provider shows it",
        )
        error.usage = NO_USAGE
        return error

    def failed(self, exception: Exception) -> ModelError | None:
        """What an exception of the client means, or None where the program is broken."""
        cause = exception.__cause__
        why = self._without_keys(str(cause or exception))[:MAX_QUOTED] or type(cause or exception).__name__
        # The last: a host's name that none can be, by its letters or its length.
        if isinstance(exception, (httpx2.UnsupportedProtocol, httpx2.InvalidURL, UnicodeError)):
            return self.error("misconfigured", f"no usable address: {why}; check {self._address}")
        # The aiohttp transport reports connections that broke as timeouts, so look for its own word.
        roots = (exception, cause, cause.__cause__ if cause else None)
        if any(isinstance(e, aiohttp.ClientConnectorError) for e in roots):
            error = self.error("connection", f"connection failed: {why}")
            error.usage = NO_USAGE  # nothing was asked
            return error
        if any(isinstance(e, aiohttp.ClientError) and not isinstance(e, TimeoutError) for e in roots):
            return self.error("connection", f"connection failed: {why}")
        if isinstance(exception, (httpx2.TimeoutException, TimeoutError)):
            return self.error("timeout", f"no reply in time: {why}")
        if isinstance(exception, (httpx2.HTTPError, OSError)):
            return self.error("connection", f"connection failed: {why}")
        return None


def classify(status: int, error_type: str, words: str) -> str:
    """The kind of error, from the HTTP status, the provider's type and code, and its words.

    A status of 200 with an error in it has only its type and words to tell; without a sign in
    them it is a server error.
    """
    said = f"{error_type} {words}"
    for kind, statuses, in_type, in_all in RULES:
        if status in statuses and in_type.search(error_type) and in_all.search(said):
            return kind
    return BY_STATUS.get(status) or BY_CLASS.get(status // 100, "bad_request")


def provider_words(content: bytes) -> tuple[str | None, str]:
    """The error's type and code in one, and its message. The type is None where the body is no JSON error."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None, ""
    error = (body.get("error") or body) if isinstance(body, dict) else body
    if isinstance(error, str):
        return "", error[:MAX_READ]
    if not isinstance(error, dict):
        return "", ""
    # Of a type and a code that are neither words nor numbers nothing is known.
    said = (error.get(name) for name in ("type", "code"))
    names = [str(name)[:MAX_QUOTED] for name in said if isinstance(name, str | int)]
    message = error.get("message") or error.get("detail") or ""
    return " ".join(names), (message if isinstance(message, str) else _json(message))[:MAX_READ]


def status_in(content: bytes) -> int | None:
    """The HTTP status that an error in a reply of 200 has as its code, as OpenRouter and vLLM send it."""
    try:
        code = orjson.loads(content)["error"]["code"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return code if isinstance(code, int) and code in ERRORS else None


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # nested deeper than orjson writes
        return ""


def is_html(headers: Mapping[str, str], content: bytes) -> bool:
    """The body is a web page."""
    return "html" in headers.get("content-type", "") or content.lstrip()[:1] == b"<"
