"""Bearer tokens for Kafka's OAUTHBEARER, by the client credentials grant (RFC 6749, section 4.4)."""

import asyncio
import base64
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakKeyDictionary

import aiohttp
import orjson
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import AuthenticationFailedError, KafkaConnectionError

from streams.access import VARIABLES, Access
from streams.redaction import redactor

ASK_S: Final = 8.0
"""Seconds that the endpoint has for a token."""
FRESH: Final = 0.8
"""Part of a token's life after which a new one is asked for."""
UNSAID_S: Final = 60.0
"""Life of a token whose endpoint does not say how long it lives, in seconds."""

_SHOWN: Final = 300
_SAID: Final = ("error", "error_description")
_LASTING: Final = frozenset(range(400, 500)) - {408, 425, 429}
"""Answers that will be the same when asked again."""


class TokenRefused(AuthenticationFailedError):  # type: ignore[misc]  # aiokafka has no types
    """The endpoint gives us no token; the message says what to do, and holds no secret."""


class TokenUnavailable(KafkaConnectionError):  # type: ignore[misc]  # aiokafka has no types
    """The endpoint does not answer, or not with a token; trying again later may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token in hand.

    Attributes:
        fresh_until, valid_until: By the monotonic clock, in seconds.
    """

    text: str = field(repr=False)
    fresh_until: float
    valid_until: float


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """Gives every connection a token that is valid, and asks for a new one before the old one ends.

    One for all clients of a process. Faust's consumer has a thread and a loop of its own, so nothing
    here belongs to one loop: each asks for itself.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, access: Access, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._access, self._clock = access, clock
        self._token: Token | None = None
        self._asking: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def token(self) -> str:
        """A token that is still valid.

        Raises:
            TokenRefused: the endpoint will not give one.
            TokenUnavailable: it cannot be reached, and the last token is no longer valid. Nothing
                else: what is no error of Kafka's ends aiokafka's client.
        """
        async with self._asking.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            held, now = self._token, self._clock()
            if held is not None and now < held.fresh_until:
                return held.text
            try:
                self._token = held = await self._ask()
            except (TokenRefused, TokenUnavailable):
                if held is None or now >= held.valid_until:
                    raise
            return held.text

    async def _ask(self) -> Token:
        access, began = self._access, self._clock()
        form = {"grant_type": "client_credentials"} | ({"scope": access.scope} if access.scope else {})
        # RFC 6749, section 2.3.1: both are encoded as in a form first.
        who = f"{quote(access.client_id, safe='')}:{quote(access.client_secret, safe='')}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(who).decode()}", "Accept": "application/json"}
        timeout = aiohttp.ClientTimeout(total=ASK_S)
        try:
            trusted = await asyncio.to_thread(_trusted, access)  # reading the machine's certificates blocks
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(
                    access.token_url, data=form, headers=headers, ssl=trusted, allow_redirects=False
                ) as response,
            ):
                status, body = response.status, await response.read()
        except (aiohttp.ClientError, OSError, ValueError) as error:  # a TimeoutError is an OSError
            raise TokenUnavailable(
                f"no token from {access.token_url}: {str(error) or type(error).__name__}"
            ) from None  # the cause may quote headers, and with them the secret
        if status in _LASTING:
            raise TokenRefused(
                f"{access.token_url} gives {access.client_id} no token ({status}{self._words(body)}); "
                f"to do: check {VARIABLES['token_url']}, {VARIABLES['client_id']}, "
                f"{VARIABLES['client_secret']} and {VARIABLES['scope']}"
            )
        answer = _answer(body)
        text, life = answer.get("access_token"), answer.get("expires_in", UNSAID_S)
        if not isinstance(text, str) or not text or not isinstance(life, int | float):
            raise TokenUnavailable(f"{access.token_url} answers {status} without a token")
        return Token(text=text, fresh_until=began + FRESH * life, valid_until=began + life)

    def _words(self, body: bytes) -> str:
        """What the endpoint says of it (RFC 6749, section 5.2), and nothing else of its answer."""
        hide, answer = redactor(self._access.secrets).text, _answer(body)
        said = [words for name in _SAID if isinstance(words := answer.get(name), str)]
        return "".join(f", {hide(words)[:_SHOWN]}" for words in said)


def _trusted(access: Access) -> ssl.SSLContext | bool:
    if access.token_url.startswith("http:"):
        return True  # as good as any
    context = ssl.create_default_context()
    if access.ca_file:
        context.load_verify_locations(access.ca_file)
    return context


def _answer(body: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}
