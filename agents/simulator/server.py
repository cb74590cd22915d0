"""The HTTP server: the OpenAI chat API in front of the simulated model, with counters for verifiers.

Routes: ``GET /v1/models``, ``GET /v1/models/simulated`` (and the others there are),
``POST /v1/chat/completions``, ``GET /counters``, ``GET /calls``. Every response has the header
``x-anabranch-simulated: 1``.
"""

import asyncio
import hmac
import time
from collections.abc import Callable, Sequence

from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from agents.simulator import asked as asking
from agents.simulator import directives, problems, replies, streams
from agents.simulator.asked import Asked
from agents.simulator.behaviour import Behaviour
from agents.simulator.chance import Repetitions, draw
from agents.simulator.counters import Call, Counters
from agents.simulator.limits import Account
from agents.simulator.prefix_cache import PrefixCache
from agents.simulator.problems import Problem, Rejected
from agents.simulator.replies import Reply
from agents.simulator.responses import LABEL_HEADER, Cut, Stream, in_bytes, in_json, refusal

CALL_ID_HEADER = "x-client-request-id"
"""Request header by which the client names a call for the endpoint's log."""

_MOST_BYTES = 64 * 2**20
_CLOSE_S = 0.1  # calls in flight are cancelled then; they may be hanging on purpose
_BACKLOG = 1_024  # 500 clients that come at once are no reason to refuse a connection
_OTHER = "other"  # a key that is none of the endpoint's
_FIRST = 0.25  # share of its latency until a stream begins


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
        self._accounts: dict[str, Account] = {}
        self._cache = PrefixCache()
        self._repetitions = Repetitions()
        self._models = {name: _model(name) for name in behaviour.models}
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
                return self._unauthorised(request) or in_json(
                    {"object": "list", "data": list(self._models.values())}
                )
            case "GET", path if path.removeprefix("/v1/models/") in self._models:
                return self._unauthorised(request) or in_json(self._models[path.rpartition("/")[2]])
            case "GET", "/counters":
                return in_json(self.counters.report())
            case "GET", "/calls":
                return in_json(self.counters.log())
            case method, path:
                text = f"unknown request URL: {method} {path[:200]}"
                return refusal(Problem(status=404, message=text, type="invalid_request_error"))

    def _unauthorised(self, request: web.BaseRequest) -> web.Response | None:
        behaviour = self.behaviour
        if (behaviour.keys and self._key(request) == _OTHER) or _given(request, behaviour.refused_keys):
            text = "the API key is missing or not one that this endpoint accepts"
            return refusal(
                Problem(status=401, message=text, type="invalid_request_error", code="invalid_api_key")
            )
        return refusal(problems.SPENT) if _given(request, behaviour.spent_keys) else None

    def _key(self, request: web.BaseRequest) -> str:
        """Whose request it is, in words that do not tell the key."""
        behaviour = self.behaviour
        known = (*behaviour.keys, *behaviour.refused_keys, *behaviour.spent_keys)
        place = _given(request, known)
        return f"key {place}" if place else _OTHER if behaviour.keys else ""

    def _account(self, key: str) -> Account:
        return self._accounts.setdefault(key, Account(self.behaviour))

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        came = self._now()
        call_id, key = request.headers.get(CALL_ID_HEADER, ""), self._key(request)
        call = self.counters.came(came, time.time(), call_id=call_id, key=key)
        status = "left"  # a handler that is cancelled has lost its client
        try:
            response = await self._admit(request, call, came)
            cut = isinstance(response, Cut) or (isinstance(response, Stream) and response.cut)
            status = "cut" if cut else str(response.status)
        except Rejected as rejected:
            response = refusal(rejected.problem)
            status = str(response.status)
        finally:
            self.counters.ended(call, status, self._now() - came)
        if not response.prepared:
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
        asked = asking.read(body, self._models)
        call.model = asked.model
        self.counters.read(call, asked.role)
        call.digest = asked.digest
        call.call_id = call.call_id or asked.user
        call.nth = self._repetitions.note(asked.digest)
        said = replies.reply(asked)
        in_flight = self.counters.of(call.key).in_flight
        over = self._account(call.key).admit(came, in_flight=in_flight, tokens=asked.tokens + said.tokens)
        if over is not None:
            call.limit = over.limit
            return self._rate_limited(call, over.reason, over.wait_s)
        self.counters.began(call)
        try:
            return await self._run(request, call, asked, said, came=came)
        finally:
            self.counters.over(call)

    async def _run(
        self, request: web.BaseRequest, call: Call, asked: Asked, said: Reply, *, came: float
    ) -> web.StreamResponse:
        """Let an accepted call take its time, then end it as a directive or chance says."""
        behaviour = self.behaviour
        ordeal = directives.ordeal(asked.directives, asked.role)
        problem = ordeal.strikes(call.nth)
        if behaviour.failures and problem is None and not ordeal.hang:
            call.failure = behaviour.failure(draw(behaviour.seed, asked.digest, call.nth, "failure"))
        if call.failure == "rate_limited":
            return self._rate_limited(call, "too many requests", behaviour.retry_after_s)
        if call.failure == "overloaded":
            return refusal(problems.OVERLOADED)
        if ordeal.hang or call.failure == "timeout" or (call.failure == "stalled" and not asked.stream):
            await asyncio.sleep(behaviour.hang_s)
            return Cut(b"", 0)
        if call.failure == "server_error":
            problem = problems.SERVER_ERROR
        if problem is None:
            call.tokens_cached = self._cache.note(asked.rendered)
        latency = ordeal.seconds(call.nth)
        if latency is None:
            latency = behaviour.latency.draw(draw(behaviour.seed, asked.digest, call.nth, "latency"))
        latency = min(latency, behaviour.hang_s)
        first_s = latency * _FIRST if asked.stream and problem is None else latency
        if first_s > 0:
            await asyncio.sleep(came + first_s - self._now())
        if problem is not None:
            return refusal(problem)
        self.counters.latency_s += latency
        return await self._answer(request, call, asked, said, until=came + latency)

    async def _answer(
        self, request: web.BaseRequest, call: Call, asked: Asked, said: Reply, *, until: float
    ) -> web.StreamResponse:
        """Send the reply, or what chance left of it; the end of a stream comes *until* then."""
        if call.failure == "truncated":
            said = replies.halved(said)
        call.tokens_in, call.tokens_out = asked.tokens, said.tokens
        self.counters.answered(self._now(), call)
        if asked.stream:
            events = streams.events(asked, said, call.tokens_cached)
            return await self._stream(request, call, events, until=until)
        body = replies.body(asked, said, call.tokens_cached)
        if call.failure in ("cut", "unfinished"):
            return Cut(body, len(body) // 2)
        if call.failure == "malformed":
            body = body[: len(body) * 2 // 3]
        return in_bytes(body, headers=self._account(call.key).headers(self._now()))

    async def _stream(
        self, request: web.BaseRequest, call: Call, events: Sequence[bytes], *, until: float
    ) -> web.StreamResponse:
        """Send the events one after the other, or what chance left of them."""
        headers = {**self._account(call.key).headers(self._now()), "x-request-id": f"sim-{call.number}"}
        response = Stream(headers={LABEL_HEADER: "1", hdrs.CONTENT_TYPE: "text/event-stream", **headers})
        await response.prepare(request)
        if call.failure in ("cut", "malformed", "stalled", "unfinished"):
            events = events[: len(events) // 2]
        pause_s = (until - self._now()) / max(1, len(events))
        for event in events:
            await response.write(event)
            if pause_s > 0:
                await asyncio.sleep(pause_s)
        if call.failure == "malformed":
            await response.write(events[-1][:-9] + b"\n\n")
        if call.failure == "stalled":
            await asyncio.sleep(self.behaviour.hang_s)
        response.cut = call.failure in ("cut", "stalled")
        if response.cut and request.transport is not None:
            request.transport.close()
        else:
            await response.write_eof()
        return response

    def _rate_limited(self, call: Call, reason: str, wait_s: float) -> web.Response:
        wait_s = max(0.001, round(wait_s, 3))
        headers = self._account(call.key).headers(self._now())
        headers[hdrs.RETRY_AFTER] = f"{wait_s:g}"
        problem = problems.rate_limited(reason, wait_s)
        return in_bytes(problem.body(), status=problem.status, headers=headers)


def _given(request: web.BaseRequest, keys: Sequence[str]) -> int:
    """Which of these keys the request has, from 1; 0 where it is none of them."""
    given = request.headers.get(hdrs.AUTHORIZATION, "").encode()
    fitting = (
        place for place, key in enumerate(keys, 1) if hmac.compare_digest(given, f"Bearer {key}".encode())
    )
    return next(fitting, 0)


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "anabranch"}


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
