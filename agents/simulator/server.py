"""The HTTP server: the OpenAI chat API in front of the simulated model, with counters for verifiers.

Routes: ``GET /v1/models``, ``GET /v1/models/simulated``, ``POST /v1/chat/completions``,
``GET /counters``, ``GET /calls``. Every response has the header ``x-anabranch-simulated: 1``.
"""

import asyncio
import hmac
import time
from collections.abc import Callable

import orjson
from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from agents.simulator import asked as asking
from agents.simulator import directives, problems, replies
from agents.simulator.asked import Asked
from agents.simulator.behaviour import MODEL, Behaviour
from agents.simulator.chance import Repetitions, draw
from agents.simulator.counters import Call, Counters
from agents.simulator.limits import Account
from agents.simulator.prefix_cache import PrefixCache
from agents.simulator.problems import Problem, Rejected
from agents.simulator.replies import Reply

LABEL_HEADER = "x-anabranch-simulated"
CALL_ID_HEADER = "x-client-request-id"
"""Request header by which the client names a call for the endpoint's log."""

_MOST_BYTES = 64 * 2**20
_CLOSE_S = 0.1  # calls in flight are cancelled then; they may be hanging on purpose
_BACKLOG = 1_024  # 500 clients that come at once are no reason to refuse a connection

_MODEL = {"id": MODEL, "object": "model", "created": 0, "owned_by": "anabranch"}


class Simulator:
    """A running endpoint. Made by :func:`start`.

    Attributes:
        behaviour: How it behaves.
        counters: What it counted.
        url: The base URL for clients of the OpenAI API, ending in ``/v1``.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.counters = Counters(kept=behaviour.calls_kept)
        self.url = ""
        self._account = Account(behaviour)
        self._cache = PrefixCache()
        self._repetitions = Repetitions()
        self._keys = tuple(f"Bearer {key}".encode() for key in behaviour.keys)
        self._runner: web.ServerRunner | None = None
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time

    async def listen(self, host: str, port: int) -> None:
        """Open the port. Raises OSError where it is taken."""
        server = web.Server(
            self._handle, request_factory=self._request, handler_cancellation=True, access_log=None
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=_CLOSE_S)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port, backlog=_BACKLOG).start()
        except OSError:
            await self._runner.cleanup()
            raise
        name, bound = self._runner.addresses[0][:2]
        self.url = f"http://{f'[{name}]' if ':' in name else name}:{bound}/v1"

    async def close(self) -> None:
        """Stop; calls in flight are cut."""
        if self._runner is not None:
            await self._runner.cleanup()

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        return web.BaseRequest(
            message, payload, protocol, writer, task, self._loop, client_max_size=_MOST_BYTES
        )

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.method, request.path.rstrip("/"):
            case "POST", "/v1/chat/completions":
                return await self._chat(request)
            case "GET", "/v1/models":
                return self._unauthorised(request) or _json({"object": "list", "data": [_MODEL]})
            case "GET", path if path == f"/v1/models/{MODEL}":
                return self._unauthorised(request) or _json(_MODEL)
            case "GET", "/counters":
                return _json(self.counters.report())
            case "GET", "/calls":
                return _json(self.counters.log())
            case method, path:
                text = f"unknown request URL: {method} {path[:200]}"
                return _problem(Problem(status=404, message=text, type="invalid_request_error"))

    def _unauthorised(self, request: web.BaseRequest) -> web.Response | None:
        if not self._keys:
            return None
        given = request.headers.get(hdrs.AUTHORIZATION, "").encode()
        if any(hmac.compare_digest(given, key) for key in self._keys):
            return None
        text = "the API key is missing or not one that this endpoint accepts"
        return _problem(
            Problem(status=401, message=text, type="invalid_request_error", code="invalid_api_key")
        )

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        came = self._now()
        call = self.counters.came(came, time.time(), request.headers.get(CALL_ID_HEADER, ""))
        status = "left"  # a handler that is cancelled has lost its client
        try:
            response = await self._admit(request, call, came)
            status = "cut" if isinstance(response, _Cut) else str(response.status)
        except Rejected as rejected:
            response = _problem(rejected.problem)
            status = str(response.status)
        finally:
            self.counters.ended(call, status, self._now() - came)
        response.headers["x-request-id"] = f"sim-{call.number}"
        return response

    async def _admit(self, request: web.BaseRequest, call: Call, came: float) -> web.StreamResponse:
        """Answer a call that the account allows, refuse another."""
        unauthorised = self._unauthorised(request)
        if unauthorised is not None:
            return unauthorised
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            text = f"the body has more than {_MOST_BYTES} bytes"
            raise Rejected(Problem(status=413, message=text, type="invalid_request_error")) from None
        asked = asking.read(body)
        self.counters.read(call, asked.role)
        call.digest = asked.digest
        call.call_id = call.call_id or asked.user
        call.nth = self._repetitions.note(asked.digest)
        said = replies.reply(asked)
        over = self._account.admit(came, in_flight=self.counters.in_flight, tokens=asked.tokens + said.tokens)
        if over is not None:
            call.limit = over.limit
            return self._rate_limited(over.reason, over.wait_s)
        self.counters.began()
        try:
            return await self._run(call, asked, said, came)
        finally:
            self.counters.in_flight -= 1

    async def _run(self, call: Call, asked: Asked, said: Reply, came: float) -> web.StreamResponse:
        """Let an accepted call take its time, then end it as a directive or chance says."""
        behaviour = self.behaviour
        ordeal = directives.ordeal(asked.directives, asked.role)
        problem = ordeal.strikes(call.nth)
        if behaviour.failures and problem is None and not ordeal.hang:
            call.failure = behaviour.failure(draw(behaviour.seed, asked.digest, call.nth, "failure"))
        if call.failure == "rate_limited":
            return self._rate_limited("too many requests", behaviour.retry_after_s)
        if call.failure == "overloaded":
            return _problem(problems.OVERLOADED)
        if ordeal.hang or call.failure == "timeout":
            await asyncio.sleep(behaviour.hang_s)
            return _Cut(b"", 0)
        if call.failure == "server_error":
            problem = problems.SERVER_ERROR
        if problem is None:
            call.tokens_cached = self._cache.note(asked.rendered)
        latency = ordeal.slow_s
        if latency is None:
            latency = behaviour.latency.draw(draw(behaviour.seed, asked.digest, call.nth, "latency"))
        if latency > 0:
            await asyncio.sleep(came + min(latency, behaviour.hang_s) - self._now())
        if problem is not None:
            return _problem(problem)
        self.counters.latency_s += latency
        return self._answer(call, asked, said)

    def _answer(self, call: Call, asked: Asked, said: Reply) -> web.StreamResponse:
        """Send the reply, or what chance left of it."""
        if call.failure == "truncated":
            said = replies.halved(said)
        call.tokens_in, call.tokens_out = asked.tokens, said.tokens
        self.counters.answered(self._now(), call)
        body = replies.body(asked, said, call.tokens_cached)
        if call.failure == "cut":
            return _Cut(body, len(body) // 2)
        if call.failure == "malformed":
            body = body[: len(body) * 2 // 3]
        return _bytes(body, headers=self._account.headers(self._now()))

    def _rate_limited(self, reason: str, wait_s: float) -> web.Response:
        wait_s = max(0.001, round(wait_s, 3))
        headers = self._account.headers(self._now())
        headers[hdrs.RETRY_AFTER] = f"{wait_s:g}"
        problem = problems.rate_limited(reason, wait_s)
        return _bytes(problem.body(), status=problem.status, headers=headers)


class _Cut(web.StreamResponse):
    """A response whose connection ends after *sent* bytes of the body; after none, before its head."""

    def __init__(self, body: bytes, sent: int) -> None:
        super().__init__(headers={LABEL_HEADER: "1", hdrs.CONTENT_TYPE: "application/json"})
        self.content_length = len(body)
        self._part = body[:sent]
        self.force_close()

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Begin, unless there is nothing to send."""
        if not self._part:
            raise ConnectionResetError("cut on purpose")  # aiohttp closes the connection for it
        return await super().prepare(request)

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002 - aiohttp's own signature
        """Send the part, and end."""
        await super().write_eof(self._part)


def _bytes(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    labelled = {LABEL_HEADER: "1", hdrs.CONTENT_TYPE: "application/json"}
    return web.Response(body=body, status=status, headers={**labelled, **headers} if headers else labelled)


def _json(value: object) -> web.Response:
    return _bytes(orjson.dumps(value))


def _problem(problem: Problem) -> web.Response:
    return _bytes(problem.body(), status=problem.status)


async def start(behaviour: Behaviour, *, host: str = "127.0.0.1", port: int = 0) -> Simulator:
    """Start an endpoint on this event loop; port 0 takes a free one.

    Raises:
        OSError: the port is taken.
    """
    simulator = Simulator(behaviour)
    await simulator.listen(host, port)
    return simulator


async def serve(
    behaviour: Behaviour,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[Simulator], None] | None = None,
) -> None:
    """Run an endpoint until cancelled; *ready* is called once it listens.

    Raises:
        OSError: the port is taken.
    """
    simulator = await start(behaviour, host=host, port=port)
    try:
        if ready is not None:
            ready(simulator)
        await asyncio.Event().wait()
    finally:
        await simulator.close()
