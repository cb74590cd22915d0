"""Takes secrets out of what is about to be written: logs, reasons, what tools gave, records.

Two kinds of secrets are known. Those that this process was *given* (keys, passwords) are taken out of
everything, records among it, whatever stands around them. What only *looks like* one (a provider's
key, a bearer token) is taken out of logs, reasons and the outputs of tools; in a goal it stays, since
what a sender wrote is the sender's.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus

from streams.core.values import Json
from streams.log import Headers

HIDDEN: Final = "<secret>"
"""Stands where a secret stood."""

REDACTED: Final = "anabranch-redacted"
"""A record's header: parts of the record that are no longer as they were, ``value`` or names of headers."""

SURE_CHARS: Final = 8
"""A given secret with fewer characters than this is not taken out of records, where it could be part of
any word; nor is a word of letters alone with fewer than :data:`SURE_LETTERS`."""
SURE_LETTERS: Final = 16

NAMES: Final = frozenset(
    {
        *("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "api_key"),
        *("x-goog-api-key", "password", "client_secret", "access_token", "refresh_token"),
    }
)
"""Names whose value is a secret, in the output of a tool."""

_Hide = Callable[[str], str]

_EDGE: Final = r"(?:(?<![A-Za-z0-9_])|(?<=\[\dm)|(?<=\[\d\dm))"
"""Where a word begins, also behind a terminal's colour."""

# Each with what must stand in a text before its pattern is worth a try: that is a hundred times faster.
_SHAPES: Final[tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...]] = (
    (
        ("sk-", "sk_", "pk-", "pk_", "rk_", "gsk_", "xai-"),
        re.compile(
            _EDGE + r"(?:sk|pk|rk|gsk|xai)[-_](?:(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{12,}|[A-Za-z0-9]{16,})"
        ),  # keys of model providers and of Stripe
        HIDDEN,
    ),
    (
        ("eyJ",),
        re.compile(_EDGE + r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
        HIDDEN,
    ),  # RFC 7519
    (
        ("earer ", "EARER "),
        re.compile(r"(bearer )(?=\S*\d|\S{20})[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE),  # RFC 6750
        rf"\g<1>{HIDDEN}",
    ),
    (
        ("uthorization", "UTHORIZATION", "api-key", "Api-Key", "API-KEY", "ookie", "OOKIE"),
        re.compile(
            r"((?:proxy-)?authorization|x-api-key|api-key|x-goog-api-key|cookie|set-cookie)"
            r"((?:\\?[\"'])?\s*[:=,]\s*b?(?:\\?[\"'])?(?:(?:bearer|basic|token|digest)\s+)?)"
            r"(?!bearer\b|basic\b|token\b|digest\b)[^\s\"'\\,;&<>]{6,}",
            re.IGNORECASE,
        ),
        rf"\g<1>\g<2>{HIDDEN}",
    ),
    (("://",), re.compile(r"(://)[^/\s:@\"']+:[^/\s@\"']+@"), rf"\g<1>{HIDDEN}@"),
    (("AKIA", "ASIA"), re.compile(_EDGE + r"A[KS]IA[0-9A-Z]{16}\b"), HIDDEN),  # AWS
    (("ghp_", "gho_", "ghs_", "ghu_", "ghr_"), re.compile(_EDGE + r"gh[pousr]_[A-Za-z0-9]{30,}"), HIDDEN),
    (("github_pat_", "glpat-"), re.compile(_EDGE + r"(?:github_pat_|glpat-)[A-Za-z0-9_-]{20,}"), HIDDEN),
    (("xox",), re.compile(_EDGE + r"xox[abprs]-[A-Za-z0-9-]{10,}"), HIDDEN),  # Slack
    (("AIza",), re.compile(_EDGE + r"AIza[A-Za-z0-9_-]{35}"), HIDDEN),  # Google
    (
        ("PRIVATE KEY-----",),
        re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|\Z)", re.DOTALL),  # RFC 7468
        rf"\g<1>{HIDDEN}\g<2>",
    ),
)


class Redactor:
    """Knows the secrets of one process.

    Args:
        secrets: Those it was given.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        given = [secret for secret in secrets if secret.strip()]
        self._forms = _longest_first(form for secret in given for form in forms(secret))
        sure = [secret for secret in given if is_sure(secret)]
        self._sure = _longest_first(form for secret in sure for form in forms(secret))
        self._sure_bytes = tuple(form.encode() for form in self._sure)

    def text(self, text: str) -> str:
        """*text* without given secrets and without what looks like one: for logs and reasons."""
        return _without_shapes(_without(text, self._forms))

    def output(self, value: Json) -> Json:
        """The output of a tool without given secrets, and without what looks like one or is named so."""
        return _walked(value, lambda text: _without_shapes(self._given(text)), NAMES)

    def message(self, message: Mapping[str, Json]) -> Mapping[str, Json]:
        """What a model says without given secrets, and else as it was."""
        if not self._sure:
            return message
        return {name: _walked(value, self._given, frozenset()) for name, value in message.items()}

    def data(self, data: bytes) -> bytes:
        """A record's bytes without given secrets; the same object where there is none."""
        for form in self._sure_bytes:
            if form in data:
                data = data.replace(form, HIDDEN.encode())
        return data

    def record(self, value: bytes | None, headers: Headers) -> tuple[bytes | None, Headers]:
        """Value and headers of a record without given secrets.

        Where there were some a header :data:`REDACTED` is added, so that nobody takes the record for
        what its sender wrote.
        """
        if not self._has_any(value, headers):
            return value, headers
        kept = None if value is None else self.data(value)
        clean = tuple((name, None if each is None else self.data(each)) for name, each in headers)
        changed = ["value"] if kept is not value else []
        changed += [name for (name, was), (_, now) in zip(headers, clean, strict=True) if was is not now]
        return kept, (*clean, (REDACTED, ",".join(changed).encode()))

    def _has_any(self, value: bytes | None, headers: Headers) -> bool:
        """In loops of their own: this is asked of every record."""
        for form in self._sure_bytes:
            if value is not None and form in value:
                return True
            for _, each in headers:
                if each is not None and form in each:
                    return True
        return False

    def _given(self, text: str) -> str:
        return _without(text, self._sure)


def _without(text: str, secrets: Iterable[str]) -> str:
    for form in secrets:
        if form in text:
            text = text.replace(form, HIDDEN)
        # Whoever cut the text may have left the first half of it.
        for end in range(len(form) - 1, SURE_CHARS - 1, -1):
            if text.endswith(form[:end]):
                text = text[:-end] + HIDDEN
                break
    return text


def _without_shapes(text: str) -> str:
    for marks, shape, instead in _SHAPES:
        if any(mark in text for mark in marks):
            text = shape.sub(instead, text)
    return text


@lru_cache(maxsize=32)
def redactor(secrets: tuple[str, ...]) -> Redactor:
    """The redactor of these secrets."""
    return Redactor(secrets)


def is_sure(secret: str) -> bool:
    """No text holds *secret* by accident."""
    return len(secret) >= (SURE_LETTERS if secret.isalpha() else SURE_CHARS)


def forms(secret: str) -> tuple[str, ...]:
    """How a secret looks as it is, in JSON, in a Python literal and in an address."""
    quoted = (
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(secret)[1:-1],
        repr(secret)[1:-1],
        repr(f"{secret}\"'")[1:-4],  # beside both kinds of quotation marks
        *(quote(secret, safe=safe) for safe in ("", "/")),
        quote_plus(secret),
    )
    return tuple(dict.fromkeys((secret, *quoted)))


def _longest_first(forms: Iterable[str]) -> tuple[str, ...]:
    """One may be a part of another."""
    return tuple(sorted(set(forms), key=len, reverse=True))


def _walked(value: Json, hide: _Hide, names: frozenset[str]) -> Json:
    match value:
        case str():
            return hide(value)
        case Mapping():
            return {
                hide(name): HIDDEN
                if name.lower() in names and isinstance(each, str)
                else _walked(each, hide, names)
                for name, each in value.items()
            }
        case list() | tuple():
            return [_walked(each, hide, names) for each in value]
        case _:
            return value


NO_SECRETS: Final = Redactor()
"""The redactor of a process that was given none."""
