"""How long a provider asks to wait: in its headers, or in its words only."""

import email.utils
import math
import re
import time
from collections.abc import Mapping
from datetime import UTC

MAX_DATE = 300
"""Characters of a header that may be a date."""

WAIT_IN_TEXT = re.compile(
    r"(?:try again|retry|wait)\s+(?:after|in|for)\s+"
    r"(?:(?P<h>\d{1,9})\s*h(?:ours?)?\s*)?(?:(?P<m>\d{1,9})\s*m(?:in(?:ute)?s?)?(?![a-z])\s*)?"
    r"(?:(?P<s>\d{1,9}(?:\.\d{1,9})?)\s*(?P<unit>ms|milliseconds?|s(?:ec(?:ond)?s?)?)(?![a-z]))?",
    re.IGNORECASE,
)

DURATION = re.compile(
    r"(?:(?P<d>\d{1,9})d)?(?:(?P<h>\d{1,9})h)?(?:(?P<m>\d{1,9})m(?!s))?"
    r"(?:(?P<s>\d{1,9}(?:\.\d{1,9})?)s)?(?:(?P<ms>\d{1,9}(?:\.\d{1,9})?)ms)?"
)
"""As OpenAI and Groq write the time until a limit is whole again: ``6m0s``, ``120ms``."""

EPOCH_S = 1e9
"""From here on a number of seconds is a moment, not a wait; from a thousand times of it on, one in
milliseconds, as OpenRouter writes it."""


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


def reset_of(headers: Mapping[str, str]) -> float | None:
    """Seconds until the limit that is used up is there again, or None.

    From ``X-RateLimit-Reset`` and its kin for requests and for tokens, where ``Remaining`` of the
    same is 0. It is later than need be, since it says when the whole limit is there again, so it
    counts only where the provider says nothing of a wait itself.
    """
    waits: list[float] = []
    for kin in ("", "-requests", "-tokens"):
        left, reset = headers.get(f"x-ratelimit-remaining{kin}"), headers.get(f"x-ratelimit-reset{kin}")
        if left is None or reset is None or _number(left) != 0:
            continue
        wait = _until(reset.strip(), headers)
        if wait is not None:
            waits.append(wait)
    return max(waits, default=None)


def _until(reset: str, headers: Mapping[str, str]) -> float | None:
    """Seconds until a reset: given as seconds, as a duration, or as a moment since 1970."""
    number = _number(reset)
    if number is None:
        found = DURATION.fullmatch(reset)
        if found is None or not reset:
            return None
        part = {name: float(value or 0) for name, value in found.groupdict().items()}
        return part["d"] * 86_400 + part["h"] * 3_600 + part["m"] * 60 + part["s"] + part["ms"] / 1_000
    if number < EPOCH_S:
        return number
    moment = number / 1_000 if number >= EPOCH_S * 1_000 else number
    now = _http_date(headers.get("date", ""))
    return max(0.0, moment - (time.time() if now is None else now))


def _number(text: str) -> float | None:
    """A number from 0 on, or None; less than nothing is nothing."""
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _http_date(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date, or None."""
    try:
        moment = email.utils.parsedate_to_datetime(text[:MAX_DATE])
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):  # its parser was not made for strangers
        return None
