"""How Kafka is reached, from the environment: what fits together is taken, anything else is told."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from streams.access import IN_FILES, VARIABLES, Access, BadAccess
from streams.cli.environment import settings
from streams.cli.exits import Exit, Stop
from streams.settings import Settings

K = "ANABRANCH_KAFKA_"
PASSWORD = {K + "USER": "me", K + "PASSWORD": "a secret 1"}
TOKENS = {
    K + "SASL_MECHANISM": "oauthbearer",
    K + "TOKEN_URL": "https://login.example.org/token",
    K + "CLIENT_ID": "me",
    K + "CLIENT_SECRET": "a secret 2",
}


def access(environment: Mapping[str, str]) -> Access:
    return settings(environment).access


@pytest.mark.parametrize(
    ("environment", "protocol", "mechanism"),
    [
        ({}, "PLAINTEXT", ""),
        ({K + "CA_FILE": "ca.pem"}, "SSL", ""),
        ({K + "CERTIFICATE_FILE": "c.pem", K + "KEY_FILE": "k.pem"}, "SSL", ""),
        ({K + "SECURITY_PROTOCOL": "ssl"}, "SSL", ""),
        (PASSWORD | {K + "SASL_MECHANISM": "scram-sha-512"}, "SASL_SSL", "SCRAM-SHA-512"),
        (
            PASSWORD | {K + "SASL_MECHANISM": "PLAIN", K + "SECURITY_PROTOCOL": "SASL_PLAINTEXT"},
            "SASL_PLAINTEXT",
            "PLAIN",
        ),
        (TOKENS | {K + "SCOPE": "kafka", K + "CA_FILE": "ca.pem"}, "SASL_SSL", "OAUTHBEARER"),
    ],
)
def test_what_is_not_said_follows_from_what_is(
    environment: dict[str, str], protocol: str, mechanism: str
) -> None:
    """A mechanism means SASL_SSL, certificates mean SSL, nothing means nothing."""
    found = access(environment)
    assert (found.protocol, found.mechanism) == (protocol, mechanism)


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({K + "SECURITY_PROTOCOL": "TLS"}, "SECURITY_PROTOCOL is 'TLS'; it is one of PLAINTEXT, SSL"),
        ({K + "SASL_MECHANISM": "GSSAPI"}, "SASL_MECHANISM is 'GSSAPI'; it is one of PLAIN, SCRAM"),
        ({K + "SECURITY_PROTOCOL": "SASL_SSL"}, "no mechanism is set: set ANABRANCH_KAFKA_SASL_MECHANISM"),
        (
            PASSWORD | {K + "SASL_MECHANISM": "PLAIN", K + "SECURITY_PROTOCOL": "SSL"},
            "SECURITY_PROTOCOL is SSL, and ANABRANCH_KAFKA_SASL_MECHANISM is PLAIN",
        ),
        (
            {K + "SASL_MECHANISM": "PLAIN", K + "USER": "me"},
            "PLAIN needs ANABRANCH_KAFKA_PASSWORD or .*_FILE",
        ),
        (PASSWORD, "ANABRANCH_KAFKA_USER is set, but not used by PLAINTEXT"),
        (TOKENS | PASSWORD, "ANABRANCH_KAFKA_USER is set, but not used by OAUTHBEARER"),
        (TOKENS | {K + "TOKEN_URL": "login.example.org"}, "TOKEN_URL is no address: write https://"),
        (TOKENS | {K + "TOKEN_URL": "https://a:b@c/"}, "TOKEN_URL holds a user or a password"),
        ({K + "CERTIFICATE_FILE": "c.pem"}, "KEY_FILE is missing: a client's certificate needs its key"),
        ({K + "KEY_FILE": "k.pem"}, "CERTIFICATE_FILE is missing"),
        ({K + "KEY_PASSWORD": "x"}, "KEY_PASSWORD is set, but ANABRANCH_KAFKA_KEY_FILE is not"),
        (
            {K + "CA_FILE": "ca.pem", K + "SECURITY_PROTOCOL": "PLAINTEXT"},
            "CA_FILE is set, but not used: .* is PLAINTEXT",
        ),
        ({K + "PASSWORD_FILE": "/nowhere/password"}, "PASSWORD_FILE /nowhere/password cannot be read"),
        (PASSWORD | {K + "PASSWORD_FILE": "f"}, "PASSWORD and ANABRANCH_KAFKA_PASSWORD_FILE are both set"),
    ],
)
def test_what_does_not_fit_together_is_told(environment: dict[str, str], says: str) -> None:
    """With the variable, and without any value that may be a secret."""
    with pytest.raises(Stop, match=says) as stop:
        access(environment)
    assert stop.value.code is Exit.USAGE
    assert "a secret" not in str(stop.value)


@pytest.mark.parametrize("name", IN_FILES)
def test_a_secret_may_stand_in_a_file(name: str, tmp_path: Path) -> None:
    """Without the end of its line, and else as it is."""
    file = tmp_path / "secret"
    file.write_text(" of mine \r\n", encoding="utf-8")
    others = {
        "password": {K + "SASL_MECHANISM": "PLAIN", K + "USER": "me"},
        "client_secret": {k: v for k, v in TOKENS.items() if not k.endswith("SECRET")},
        "key_password": {K + "CERTIFICATE_FILE": "c.pem", K + "KEY_FILE": "k.pem"},
    }[name]
    found = access(others | {f"{VARIABLES[name]}_FILE": str(file)})
    assert getattr(found, name) == " of mine "
    assert found.secrets == (" of mine ",)


def test_no_secret_is_in_a_representation() -> None:
    """Which ends up in logs and tracebacks."""
    own = Settings(
        api_key="a secret 0",
        access=Access(
            protocol="SASL_SSL",
            mechanism="PLAIN",
            user="me",
            password="a secret 1",
            certificate_file="c",
            key_file="k",
            key_password="a secret 2",
        ),
    )
    assert "a secret" not in repr(own)
    assert set(own.secrets) == {"a secret 0", "a secret 1", "a secret 2"}


def test_every_field_has_a_variable() -> None:
    """And no two the same one."""
    assert VARIABLES.keys() == {each.name for each in fields(Access)}
    assert len(set(VARIABLES.values())) == len(VARIABLES)


def test_the_client_of_a_program_is_told_as_well() -> None:
    """By an error of its own, when it is made."""
    with pytest.raises(BadAccess, match="needs ANABRANCH_KAFKA_USER"):
        Access(protocol="SASL_SSL", mechanism="SCRAM-SHA-256")
