"""What went wrong with a model call: replies and exceptions as :class:`ModelError`.

Kinds and types of errors as OpenAI and Moonshot document them
(https://platform.openai.com/docs/guides/error-codes, https://platform.moonshot.ai/docs/api/chat).
"""

import email.utils
import re
import time
from collections.abc import Mapping
from datetime import UTC

import aiohttp
import httpx2
import openai
import orjson

from agents.ports import ModelError

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"

QUOTA = re.compile(r"quota|balance|billing|insufficient.?funds|payment|suspended", re.IGNORECASE)
CONTEXT = re.compile(
    r"context.?(length|window|size|limit)|token length too long|too many (input )?tokens"
    r"|(prompt|input|request) is too (long|large)|exceed\w*.{0,40}(context|model token limit)",
    re.IGNORECASE,
)
FILTERED = re.compile(r"content.?(filter|policy)|high risk|moderation", re.IGNORECASE)
OVERLOADED = re.compile(r"overload|at capacity", re.IGNORECASE)
RATE_LIMITED = re.compile(r"rate.?limit", re.IGNORECASE)

WAIT_IN_TEXT = re.compile(
    r"(?:try again|retry|wait)\s+(?:after|in|for)\s+"
    r"(?:(?P<h>\d+)\s*h(?:ours?)?\s*)?(?:(?P<m>\d+)\s*m(?:in(?:ute)?s?)?(?![a-z])\s*)?"
    r"(?:(?P<s>\d+(?:\.\d+)?)\s*(?P<unit>ms|milliseconds?|s(?:ec(?:ond)?s?)?)(?![a-z]))?",
    re.IGNORECASE,
)

MAX_QUOTED = 300
"""Characters of a provider's own words that go into a reason."""

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
}


class Endpoint:
    """Where calls go, for the words of an error; it knows the key only to keep it out of them."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self.url = str(httpx2.URL(base_url).copy_with(username=None, password=None, query=None))
        self._api_key = api_key

    def error(self, kind: str, reason: str, *, wait_s: float | None = None) -> ModelError:
        """An error of this kind that names the endpoint, without the key."""
        words = f"{self.url}: {reason}"
        if self._api_key:
            words = words.replace(self._api_key, "<key>")
        return ModelError(kind, words, retry=RETRY[kind], wait_s=wait_s if RETRY[kind] else None)

    def refused(self, status: int, headers: Mapping[str, str], content: bytes) -> ModelError:
        """What a reply without a completion means: an HTTP error, or an error in a reply of status 200."""
        kind_of_error, words = provider_words(content)
        if kind_of_error is None and is_html(headers, content) and status < 500:
            return self.error(
                "misconfigured",
                f"answered {status} with a web page, so it is no model endpoint; check {URL_VARIABLE}",
            )
        kind = classify(status, kind_of_error or "", words)
        advice = {
            "bad_key": f"; set {KEY_VARIABLE} to a key of this endpoint",
            "quota": f"; top up the account or set another {KEY_VARIABLE}",
            "misconfigured": f"; check {URL_VARIABLE} and the model's name",
        }.get(kind, "")
        told = words[:MAX_QUOTED].rstrip() or kind_of_error or "no reason given"
        error = self.error(kind, f"{status} {told}{advice}", wait_s=wait_of(headers, words))
        if error.retry and headers.get("x-should-retry") == "false":
            error.retry = False
        return error

    def failed(self, exception: Exception) -> ModelError | None:
        """What an exception of the client means, or None where the program is broken."""
        if isinstance(exception, openai.APIStatusError):
            response = exception.response
            return self.refused(response.status_code, response.headers, response.content)
        cause = exception.__cause__
        why = str(cause or exception)[:MAX_QUOTED] or type(cause or exception).__name__
        if isinstance(cause, (httpx2.UnsupportedProtocol, httpx2.InvalidURL)) or isinstance(
            exception, httpx2.InvalidURL
        ):
            return self.error("misconfigured", f"no usable address: {why}; check {URL_VARIABLE}")
        # The aiohttp transport reports connections that broke as timeouts, so look for its own word.
        roots = (exception, cause, cause.__cause__ if cause else None)
        if any(isinstance(e, aiohttp.ClientError) and not isinstance(e, TimeoutError) for e in roots):
            return self.error("connection", f"connection failed: {why}")
        if isinstance(exception, (openai.APITimeoutError, TimeoutError)):
            return self.error("timeout", f"no reply in time: {why}")
        if isinstance(exception, (openai.APIConnectionError, httpx2.HTTPError, OSError)):
            return self.error("connection", f"connection failed: {why}")
        return None


def classify(status: int, error_type: str, words: str) -> str:
    """The kind of error, from the HTTP status, the provider's type or code, and its words."""
    said = f"{error_type} {words}"
    if status == 402 or (status in (200, 403, 429) and QUOTA.search(error_type)):
        return "quota"
    if status == 403 and QUOTA.search(words):
        return "quota"
    if status in (401, 403) or "authentication" in error_type or "invalid_api_key" in error_type:
        return "bad_key"
    if status in (400, 413, 422, 200) and CONTEXT.search(said):
        return "context_exceeded"
    if status in (400, 403, 422, 200) and FILTERED.search(said):
        return "content_filter"
    if status in (429, 503, 529, 200) and OVERLOADED.search(said):
        return "overloaded"
    if status == 429 or (status == 200 and RATE_LIMITED.search(error_type)):
        return "rate_limited"
    return _by_status(status, error_type)


def _by_status(status: int, error_type: str) -> str:
    if status in (408, 504):
        return "timeout"
    if status == 529:
        return "overloaded"
    if status == 413:
        return "context_exceeded"
    if status in (404, 405) or 300 <= status < 400:
        return "misconfigured"
    if status == 200 and error_type == "invalid_request_error":
        return "bad_request"
    if status in (200, 409, 425) or status >= 500:
        return "server_error"
    return "bad_request"


def provider_words(content: bytes) -> tuple[str | None, str]:
    """The error's type and code in one, and its message. The type is None where the body is no JSON error."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None, ""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, str):
        return "", error
    if not isinstance(error, dict):
        return "", ""
    names = [str(error[name]) for name in ("type", "code") if error.get(name) is not None]
    message = error.get("message") or error.get("detail") or ""
    return " ".join(names), message if isinstance(message, str) else orjson.dumps(message).decode()


def is_html(headers: Mapping[str, str], content: bytes) -> bool:
    """The body is a web page."""
    return "html" in headers.get("content-type", "") or content.lstrip()[:1] == b"<"


def wait_of(headers: Mapping[str, str], words: str) -> float | None:
    """Seconds the provider asked us to wait, or None.

    From ``Retry-After-Ms``, ``Retry-After`` (seconds, or an HTTP date, reckoned from the reply's
    own ``Date``, RFC 9110 section 10.2.3), or from the message, where some providers only say it.
    """
    milliseconds = headers.get("retry-after-ms")
    if milliseconds:
        try:
            return max(0.0, float(milliseconds) / 1000)
        except ValueError:
            pass
    asked = headers.get("retry-after")
    if asked:
        try:
            return max(0.0, float(asked))
        except ValueError:
            until = _http_date(asked)
            if until is not None:
                now = _http_date(headers.get("date", ""))
                return max(0.0, until - (time.time() if now is None else now))
    for found in WAIT_IN_TEXT.finditer(words):
        if any(found.group(part) for part in "hms"):
            seconds = float(found["s"] or 0) * (0.001 if (found["unit"] or "").lower().startswith("m") else 1)
            return int(found["h"] or 0) * 3600 + int(found["m"] or 0) * 60 + seconds
    return None


def _http_date(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date, or None."""
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
