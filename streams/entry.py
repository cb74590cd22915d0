"""Entry: who may submit goals, and words about jobs, for which tenant.

Consumers of Kafka are not told which principal wrote a record. So either a gateway that alone may write to
``goals`` says in a header for whom it does, or whoever sends signs: HMAC-SHA256 (RFC 2104) with a key that
the workers have, too. A record that may not come in is a dead letter and nothing else; no job hears of it,
since its id may be another tenant's.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from agents.configuration.tenants import ALL, EntryRules
from streams.log import Headers, Record
from streams.wire.headers import SIGNATURE

SHOWN: Final = 100
"""Characters that a reason repeats of what a record says of its sender."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """What somebody signs with.

    Attributes:
        name: Of the key, as the workers have it configured.
        secret: Never shown.
    """

    name: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAdmitted:
    """A record may not come in; *reason* says why, for whoever sent it."""

    reason: str


def signing_key(text: str) -> SigningKey:
    """The key of ``name:secret``.

    Raises:
        ValueError: it is none; the message does not repeat it.
    """
    name, colon, secret = text.strip().partition(":")
    if not (name and colon and secret):
        raise ValueError("a key to sign goals with is written NAME:SECRET")
    return SigningKey(name=name, secret=secret)


def sign(value: bytes | None, headers: Headers, key: SigningKey | None) -> Headers:
    """The headers with a signature of the record behind them; as they are without a key."""
    if key is None:
        return headers
    digest = _digest(key.secret, value, headers)
    return (*headers, (SIGNATURE, f"{key.name}:{digest}".encode()))


def _digest(secret: str, value: bytes | None, headers: Headers) -> str:
    """Of the value, and of those headers that say what it means.

    A line ``anabranch-1 COUNT``, then for each such header a line with the lengths of its name and value and
    both of them, then the value. So what was signed as one thing cannot come in as another.
    """
    said = [(name.lower().encode(), content or b"") for name, content in headers if _means(name.lower())]
    parts = [b"anabranch-1 %d\n" % len(said)]
    parts += [b"%d %d %b%b\n" % (len(name), len(content), name, content) for name, content in said]
    return hmac.new(secret.encode(), b"".join([*parts, value or b""]), sha256).hexdigest()


def _means(name: str) -> bool:
    return name == "content-type" or (name.startswith(("ce_", "anabranch-")) and name != SIGNATURE)


class Entry:
    """Who may come in.

    Args:
        rules: As configured. None: whoever may write to ``goals``, for anybody.
    """

    def __init__(self, rules: EntryRules | None) -> None:
        self._rules = rules

    def admitted(self, record: Record, tenant: str, *, only_workers: bool = False) -> str | NotAdmitted:
        """Who sent a record that may come in for *tenant*; empty where nobody is asked.

        The record as it stands on the log: before secrets are taken out of it.

        Args:
            only_workers: It says what only workers may say: which tool call waits for the answer.
        """
        rules = self._rules
        if rules is None:
            return ""
        reasons: list[str] = []
        signer, principal = self._signer(record, reasons), self._principal(record, reasons)
        for (by, tenants), signed in ((signer, True), (principal, False)):
            if not by:
                continue
            if tenant not in tenants and ALL not in tenants:
                reasons.append(f"{by!r} may not submit for the tenant {tenant}")
            elif only_workers and not (signed and by == rules.worker):
                reasons.append(f"{by!r} is not the workers' key, and only workers name the call that waits")
            else:
                return by
        if not reasons:
            ways = [f"the header {rules.header}"] if rules.header else []
            ways += [f"a signature in {SIGNATURE}"] if rules.keys else []
            reasons.append(f"nothing says who sent it: it needs {' or '.join(ways)}")
        return NotAdmitted(reason=f"not admitted: {'; '.join(reasons)}")

    def sign(self, value: bytes, headers: Headers = ()) -> Headers:
        """The headers of a record that this worker itself sends to ``goals``, for a job's sub-agent.

        Without ``entry.worker`` they are as they were, and such a record is not admitted.
        """
        key = self._rules.keys.get(self._rules.worker) if self._rules else None
        return sign(value, headers, SigningKey(name=key.name, secret=key.secret) if key else None)

    def _signer(self, record: Record, reasons: list[str]) -> tuple[str, Sequence[str]]:
        """The key that a record is rightly signed with, and its tenants; else an empty name."""
        assert self._rules is not None
        found = [content or b"" for name, content in record.headers if name.lower() == SIGNATURE]
        if not found or not self._rules.keys:
            return "", ()
        told, _, digest = found[0].decode(errors="replace").partition(":")
        key = self._rules.keys.get(told)
        if len(found) > 1:
            reasons.append(f"it has {len(found)} signatures")
        elif key is None:
            reasons.append(f"its signature is of a key that nobody knows here, {told[:SHOWN]!r}")
        elif not hmac.compare_digest(
            _digest(key.secret, record.value, record.headers).encode(), digest.strip().lower().encode()
        ):
            reasons.append(f"its signature is not that of the key {key.name!r} for this record")
        else:
            return key.name, key.tenants
        return "", ()

    def _principal(self, record: Record, reasons: list[str]) -> tuple[str, Sequence[str]]:
        """Whom the header of a trusted gateway names, and its tenants; else an empty name."""
        assert self._rules is not None
        header = self._rules.header
        found = [content or b"" for name, content in record.headers if header and name.lower() == header]
        if not found:
            return "", ()
        named = found[0].decode(errors="replace")
        if len(found) > 1:
            reasons.append(f"it has {len(found)} headers {header}")
        elif named not in self._rules.principals:
            reasons.append(f"{named[:SHOWN]!r} in the header {header} is nobody known here")
        else:
            return named, self._rules.principals[named]
        return "", ()
