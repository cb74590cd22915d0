"""From settings to connections: the one place that knows how aiokafka's and Faust's clients are let in.

aiokafka keeps to itself why brokers do not let it in: it says that it cannot connect, and goes on
trying. :func:`why_not` asks once, by a connection of its own, and says why.
"""

import asyncio
import socket
import ssl
from functools import lru_cache
from typing import Any, Final

from aiokafka.conn import create_conn
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest
from faust.auth import OAuthCredentials, SASLCredentials, SSLCredentials

from streams.access import OAUTHBEARER, VARIABLES, Access, BadAccess
from streams.kafka import overrides  # noqa: F401 - for every client that is made by what is here
from streams.kafka.tokens import TokenRefused, Tokens, TokenUnavailable
from streams.log import LogUnavailable, NotAllowed
from streams.settings import Settings

ASK_S: Final = 10.0
"""Seconds that a broker has to let us in, or to say why not."""


def client_options(settings: Settings) -> dict[str, Any]:
    """What every aiokafka client needs to reach the brokers: producers, consumers, administration.

    Raises:
        BadAccess: a file of certificates or keys cannot be used.
    """
    access = settings.access
    return {
        "bootstrap_servers": settings.brokers.split(","),
        "security_protocol": access.protocol,
        "ssl_context": trust(access),
        **_sasl(access),
    }


def _sasl(access: Access) -> dict[str, Any]:
    if not access.with_sasl:
        return {}
    options: dict[str, Any] = {"sasl_mechanism": access.mechanism}
    if access.mechanism == OAUTHBEARER:
        return options | {"sasl_oauth_token_provider": tokens(access)}
    return options | {"sasl_plain_username": access.user, "sasl_plain_password": access.password}


def faust_credentials(
    settings: Settings,
) -> SSLCredentials | SASLCredentials | OAuthCredentials | None:
    """The same for ``faust.App(broker_credentials=…)``.

    Raises:
        BadAccess: as of :func:`client_options`.
    """
    access = settings.access
    context = trust(access)
    if access.mechanism == OAUTHBEARER:
        return OAuthCredentials(oauth_cb=tokens(access), ssl_context=context)
    if access.with_sasl:
        return SASLCredentials(
            username=access.user,
            password=access.password,
            ssl_context=context,
            mechanism=access.mechanism,
        )
    return None if context is None else SSLCredentials(context)


@lru_cache(maxsize=8)
def trust(access: Access) -> ssl.SSLContext | None:
    """Whom to trust, and what to show of ourselves; None without TLS. Read once a process.

    Raises:
        BadAccess: a file of certificates or keys cannot be used.
    """
    if not access.with_tls:
        return None
    try:
        context = ssl.create_default_context(cafile=access.ca_file or None)
    except (OSError, ValueError) as error:
        raise BadAccess(f"{VARIABLES['ca_file']}: {access.ca_file} cannot be used: {error}") from error
    if access.certificate_file:
        try:
            # A password always: without one OpenSSL would ask for it on the terminal.
            context.load_cert_chain(access.certificate_file, access.key_file, lambda: access.key_password)
        except (OSError, ValueError) as error:
            raise BadAccess(
                f"{VARIABLES['certificate_file']} {access.certificate_file} and {VARIABLES['key_file']} "
                f"{access.key_file} cannot be used: {error}; is it that certificate's key, and is its "
                f"password, where it has one, in {VARIABLES['key_password']}?"
            ) from error
    return context


@lru_cache(maxsize=8)
def tokens(access: Access) -> Tokens:
    """The one place of this process where such tokens come from."""
    return Tokens(access)


def unanswered(settings: Settings, error: BaseException) -> LogUnavailable:
    """What to tell of brokers that a client could not reach, or that gave no answer."""
    return LogUnavailable(
        f"Kafka at {settings.brokers} does not answer ({_words(error)}): is it reachable? "
        "`anabranch broker start` starts one here, ANABRANCH_BROKERS names another."
    )


async def why_not(settings: Settings, error: LogUnavailable) -> LogUnavailable:
    """What to tell in place of *error*, which came of clients that could not connect.

    :class:`~streams.log.NotAllowed` where the brokers refuse us, and *error* itself where nothing
    more can be said.
    """
    found = await asyncio.gather(*(_ask(settings, server.strip()) for server in settings.brokers.split(",")))
    told = [each for each in found if each is not None]
    if len(told) < len(found):
        return error  # one of them lets us in
    refused = [each for each in told if isinstance(each, NotAllowed)]
    return next(iter((*refused, *(each for each in told if str(each)), error)))


async def _ask(settings: Settings, server: str) -> LogUnavailable | None:
    """Why this broker does not let us in, with no words where it is not there; None where it does."""
    host, _, port = server.rpartition(":")
    options = client_options(settings)
    del options["bootstrap_servers"]
    try:
        async with asyncio.timeout(ASK_S):
            connection = await create_conn(
                host.strip("[]"), int(port), request_timeout_ms=int(ASK_S * 1000), **options
            )
            try:
                await connection.send(MetadataRequest([]))
            finally:
                connection.close()
    except TokenRefused as error:
        return NotAllowed(f"Kafka at {server}: {error}")
    except TokenUnavailable as error:
        return LogUnavailable(f"Kafka at {server}: {error}")
    except (KafkaError, OSError, TimeoutError, ValueError) as error:
        return _why(settings.access, server, error)
    return None


def _why(access: Access, server: str, error: Exception) -> LogUnavailable:
    cause = error.__cause__ if isinstance(error, KafkaConnectionError) else None
    match cause or error:
        case SaslAuthenticationFailed() if access.mechanism == OAUTHBEARER:
            todo = f"it does not take the tokens of {access.token_url}; check {VARIABLES['scope']}, too"
        case SaslAuthenticationFailed():
            todo = f"check {VARIABLES['user']}, {VARIABLES['password']} and {VARIABLES['mechanism']}"
        case UnsupportedSaslMechanismError():
            todo = f"set {VARIABLES['mechanism']} to one that it has"
        case IllegalSaslStateError():
            todo = f"this listener asks for no SASL: take another one, or another {VARIABLES['protocol']}"
        case ssl.SSLCertVerificationError():
            todo = f"set {VARIABLES['ca_file']} to the certificates of whoever signed the brokers' ones"
        case ssl.SSLError() as fault if "ALERT" in str(fault):
            todo = f"set {VARIABLES['certificate_file']} and {VARIABLES['key_file']} to ones that it trusts"
        case ConnectionRefusedError() | TimeoutError() | socket.gaierror():
            return LogUnavailable()
        case hung_up:  # or is just being started or stopped
            words = _words(hung_up)
            return LogUnavailable(
                f"Kafka at {server} ends the connection ({words}); if that lasts: does this listener speak "
                f"{access.protocol}? {VARIABLES['protocol']} says so"
            )
    who = f"{access.user or access.client_id} ({access.mechanism})" if access.with_sasl else "us"
    return NotAllowed(f"Kafka at {server} does not let {who} in: {_words(cause or error)}; to do: {todo}")


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
