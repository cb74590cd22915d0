"""An endpoint that gives bearer tokens for client credentials."""

import base64
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote_plus

import orjson
from aiohttp import web

from streams.broker.node import HOST, free_port

CLIENTS = ("worker", "submitter", "with: odd/characters")


class TokenEndpoint:
    """Gives tokens for client credentials; counts what it was asked.

    Attributes:
        life_s: Seconds that its tokens live.
        asked: Requests so far.
        fails_with: The status it answers with instead, 0 for none.
        says: What it answers with instead.
        given: The tokens so far.
        secrets: By client.
    """

    def __init__(self) -> None:
        self.url = ""
        self.life_s = 3_600.0
        self.asked = 0
        self.fails_with = 0
        self.says = ""
        self.given: list[str] = []
        self.secrets = {user: secrets.token_urlsafe(18) for user in CLIENTS}

    async def answer(self, request: web.Request) -> web.Response:
        """One request for a token (RFC 6749, section 4.4)."""
        self.asked += 1
        if self.fails_with:
            return web.json_response({"error": "told_to"}, status=self.fails_with)
        if self.says:
            return web.Response(text=self.says)
        form = await request.post()
        kind, _, encoded = request.headers.get("Authorization", "").partition(" ")
        assert kind == "Basic"
        client, secret = (unquote_plus(word) for word in base64.b64decode(encoded).decode().split(":"))
        if self.secrets.get(client) != secret or form["grant_type"] != "client_credentials":
            said = {"error": "invalid_client", "error_description": f"unknown: {client} {secret}"}
            return web.json_response(said, status=401)
        token = unsigned_token(client, self.life_s)
        self.given.append(token)
        return web.json_response({"access_token": token, "token_type": "Bearer", "expires_in": self.life_s})


def unsigned_token(subject: str, life_s: float) -> str:
    """A JSON web token without a signature (RFC 7519, section 6)."""
    now = time.time()
    parts = {"alg": "none"}, {"sub": subject, "iat": now, "exp": now + life_s}
    return ".".join(base64.urlsafe_b64encode(orjson.dumps(part)).decode().rstrip("=") for part in parts) + "."


@asynccontextmanager
async def token_endpoint() -> AsyncIterator[TokenEndpoint]:
    """A running one."""
    endpoint = TokenEndpoint()
    app = web.Application()
    app.router.add_post("/token", endpoint.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, HOST, port).start()
    endpoint.url = f"http://{HOST}:{port}/token"
    try:
        yield endpoint
    finally:
        await runner.cleanup()
