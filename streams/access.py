"""How a process proves to Kafka who it is, and what of that must never be shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"

PROTOCOLS: Final = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
"""Kafka's ``security.protocol``: TLS or not, SASL or not."""

OAUTHBEARER: Final = "OAUTHBEARER"

WITH_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Mechanisms with a user and a password."""

MECHANISMS: Final = (*WITH_PASSWORD, OAUTHBEARER)
"""Kafka's ``sasl.mechanism``, as far as they are supported."""


class BadAccess(ValueError):
    """The settings for Kafka contradict each other, or lack one; the message names the variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the clients of one process connect to Kafka.

    Attributes:
        protocol: One of :data:`PROTOCOLS`.
        mechanism: One of :data:`MECHANISMS`; empty without SASL.
        user, password: Of the mechanisms with a password.
        ca_file: Certificates that brokers are trusted by, PEM; empty means the machine's own. The
            token endpoint is trusted by these and by the machine's own.
        certificate_file, key_file, key_password: The client's own certificate and key, PEM, where
            the brokers ask for one. A key file that is not encrypted has no password.
        token_url: Where OAUTHBEARER gets its tokens (RFC 6749, section 4.4, client credentials).
        client_id, client_secret: Who asks there.
        scope: What for; empty leaves it to the endpoint.

    Raises:
        BadAccess: they do not fit together.
    """

    protocol: str = PLAINTEXT
    mechanism: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = field(default="", repr=False)
    token_url: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise BadAccess(f"{_name('protocol')} is {self.protocol!r}; it is one of {', '.join(PROTOCOLS)}")
        if self.mechanism and self.mechanism not in MECHANISMS:
            raise BadAccess(
                f"{_name('mechanism')} is {self.mechanism!r}; it is one of {', '.join(MECHANISMS)}"
            )
        self._check_mechanism()
        self._check_files()

    def _check_mechanism(self) -> None:
        if self.with_sasl != bool(self.mechanism):
            has = f"{_name('mechanism')} is {self.mechanism}" if self.mechanism else "no mechanism is set"
            raise BadAccess(
                f"{_name('protocol')} is {self.protocol}, and {has}: set {_name('mechanism')} to one of "
                f"{', '.join(MECHANISMS)} for SASL_SSL, or leave both"
            )
        needed = {
            OAUTHBEARER: ("token_url", "client_id", "client_secret"),
            **dict.fromkeys(WITH_PASSWORD, ("user", "password")),
        }.get(self.mechanism, ())
        for name in needed:
            if not getattr(self, name):
                raise BadAccess(f"{self.mechanism} needs {_name(name)}{_or_file(name)}")
        used = (*needed, "scope") if self.mechanism == OAUTHBEARER else needed
        for name in ("user", "password", "token_url", "client_id", "client_secret", "scope"):
            if getattr(self, name) and name not in used:
                raise BadAccess(f"{_name(name)} is set, but not used by {self.mechanism or self.protocol}")
        address = urlsplit(self.token_url)
        if self.token_url and (address.scheme not in {"http", "https"} or not address.hostname):
            raise BadAccess(f"{_name('token_url')} is no address: write https://HOST/PATH")
        if address.username is not None or address.password is not None:
            raise BadAccess(
                f"{_name('token_url')} holds a user or a password; they go into {_name('client_id')} and "
                f"{_name('client_secret')}"
            )

    def _check_files(self) -> None:
        if bool(self.certificate_file) != bool(self.key_file):
            missing = "key_file" if self.certificate_file else "certificate_file"
            raise BadAccess(f"{_name(missing)} is missing: a client's certificate needs its key")
        if self.key_password and not self.key_file:
            raise BadAccess(f"{_name('key_password')} is set, but {_name('key_file')} is not")
        for name in ("ca_file", "certificate_file"):
            if getattr(self, name) and not self.with_tls:
                raise BadAccess(
                    f"{_name(name)} is set, but not used: {_name('protocol')} is {self.protocol}, not SSL or "
                    f"SASL_SSL"
                )

    @property
    def with_tls(self) -> bool:
        """Connections are encrypted."""
        return self.protocol in {SSL, SASL_SSL}

    @property
    def with_sasl(self) -> bool:
        """The client says who it is by SASL."""
        return self.protocol in {SASL_PLAINTEXT, SASL_SSL}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown, of that which is set."""
        return tuple(filter(None, (self.password, self.key_password, self.client_secret)))


VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "protocol": "ANABRANCH_KAFKA_SECURITY_PROTOCOL",
        "mechanism": "ANABRANCH_KAFKA_SASL_MECHANISM",
        **{
            each.name: f"ANABRANCH_KAFKA_{each.name.upper()}"
            for each in fields(Access)
            if each.name not in {"protocol", "mechanism"}
        },
    }
)
"""The environment variable of each field."""

IN_FILES: Final = ("password", "key_password", "client_secret")
"""Fields that a file can hold, too: the one named by their variable with ``_FILE`` at its end."""


def _name(name: str) -> str:
    return VARIABLES[name]


def _or_file(name: str) -> str:
    return f" or {VARIABLES[name]}_FILE" if name in IN_FILES else ""
