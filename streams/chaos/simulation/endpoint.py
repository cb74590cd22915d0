"""The model endpoint in memory: the simulated model's replies, on virtual time, and a log of calls."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from agents.configuration.values import DEFAULT, Endpoint, ModelSettings
from agents.models.bodies import request_body
from agents.models.faults import Faults
from agents.plain_json import dumps
from agents.ports import ModelError, ModelReply, ModelRequest
from agents.simulator import asked as asking
from agents.simulator import directives, replies
from agents.simulator.asked import Asked
from agents.simulator.behaviour import MODEL, Behaviour
from agents.simulator.chance import Repetitions, draw
from agents.simulator.problems import OVERLOADED, SERVER_ERROR, Problem, Rejected, rate_limited
from agents.simulator.replies import Reply
from streams.chaos.evidence import Call
from streams.core.values import NO_USAGE, Json, Usage

URL = "memory:"
_SIMULATED = ModelSettings(name=MODEL, endpoint=DEFAULT, id=MODEL)

UNREACHED_S = 0.05
"""Seconds until a call knows that nobody is there."""


@dataclass(slots=True)
class _Logged:
    call_id: str
    began: int
    ended: int | None = None
    status: str = "open"


class MemoryEndpoint:
    """The account that all workers share.

    A call goes on whatever becomes of the worker that made it; one whose worker died in the
    meantime ends as ``left``, as a server sees it where the connection closes.

    Args:
        now_ms: The clock of its log, milliseconds since 1970.
        url: What its errors say of where it is.

    Attributes:
        down: Nobody is there at the moment.
        slower_s: Seconds that every call takes longer at the moment.
        running, most: Calls under way at once, now and at most.
    """

    def __init__(self, behaviour: Behaviour, now_ms: Callable[[], int], *, url: str = URL) -> None:
        self._behaviour, self._now_ms = behaviour, now_ms
        self._endpoint = Endpoint(name=DEFAULT, base_url=url)
        self._errors = Faults(self._endpoint)
        self._repetitions = Repetitions()
        self._log: list[_Logged] = []
        self.down = False
        self.slower_s = 0.0
        self.running = self.most = 0

    def calls(self) -> tuple[Call, ...]:
        """Its log, oldest first."""
        return tuple(
            Call(call_id=each.call_id, began=each.began, ended=each.ended, status=each.status)
            for each in self._log
        )

    async def chat(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        """Ask once, as :class:`agents.ports.Model` does.

        Raises:
            ModelError: there is no reply.
        """
        if self.down:
            await asyncio.sleep(UNREACHED_S)
            error = self._errors.error("connection", "connection failed: nobody is there")
            error.usage = NO_USAGE
            raise error
        logged = _Logged(request.call_id, self._now_ms())
        self._log.append(logged)
        self.running += 1
        self.most = max(self.most, self.running)
        reply: asyncio.Future[ModelReply] = asyncio.get_running_loop().create_future()
        self._begin(request, logged, reply)
        try:
            async with asyncio.timeout(timeout_s):
                return await reply
        except TimeoutError:
            raise self._errors.error("timeout", f"no reply within {timeout_s:.1f} s") from None
        finally:
            self._end(logged, "left")

    def _begin(self, request: ModelRequest, logged: _Logged, reply: "asyncio.Future[ModelReply]") -> None:
        """Let the reply be there when it is due. No task: it goes on whatever becomes of the caller's."""
        try:
            asked = asking.read(dumps(request_body(request, endpoint=self._endpoint, model=_SIMULATED)))
            nth = self._repetitions.note(asked.digest)
            said: Reply | Problem | None = replies.reply(asked)
            wait, problem = self._fate(asked, nth)
        except Rejected as rejected:
            self._answer(request, logged, reply, None, rejected.problem)
            return
        if wait is None:
            return  # never answered: the caller leaves
        said = said if problem is None else problem
        asyncio.get_running_loop().call_later(wait, self._answer, request, logged, reply, asked, said)

    def _fate(self, asked: Asked, nth: int) -> tuple[float | None, Problem | None]:
        """After how many seconds the call is answered (None: never), and with which problem, if any."""
        behaviour = self._behaviour
        ordeal = directives.ordeal(asked.directives, asked.role)
        problem = ordeal.strikes(nth)
        chosen = None
        if problem is None and not ordeal.hang:
            chosen = behaviour.failure(draw(behaviour.seed, asked.digest, nth, "failure"))
        if ordeal.hang or chosen in ("timeout", "stalled"):
            return None, None
        latency = ordeal.seconds(nth)
        if latency is None:
            latency = behaviour.latency.draw(draw(behaviour.seed, asked.digest, nth, "latency"))
        latency += self.slower_s
        match chosen:
            case "rate_limited":
                return 0.0, rate_limited("too many requests", behaviour.retry_after_s)
            case "overloaded":
                return 0.0, OVERLOADED
            case "server_error" | "cut" | "malformed" | "truncated" | "unfinished":
                return latency, SERVER_ERROR
            case _:
                return latency, problem

    def _answer(
        self,
        request: ModelRequest,
        logged: _Logged,
        reply: "asyncio.Future[ModelReply]",
        asked: Asked | None,
        said: Reply | Problem | None,
    ) -> None:
        if reply.done():
            return  # the caller left
        if isinstance(said, Reply) and asked is not None:
            self._end(logged, "200")
            reply.set_result(self._reply(request, asked, said))
        elif isinstance(said, Problem):
            self._end(logged, str(said.status))
            reply.set_exception(self._error(said))

    def _end(self, logged: _Logged, status: str) -> None:
        if logged.ended is None:
            logged.ended, logged.status = self._now_ms(), status
            self.running -= 1

    def _error(self, problem: Problem) -> ModelError:
        return self._errors.refused(problem.status, {}, problem.body())

    @staticmethod
    def _reply(request: ModelRequest, asked: Asked, said: Reply) -> ModelReply:
        message: dict[str, Json] = {"role": "assistant", "content": said.text}
        if said.calls:
            message["tool_calls"] = [
                {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}
                for call, name, arguments in said.calls
            ]
        return ModelReply(
            message=message,
            finish_reason=said.finish_reason,
            usage=Usage(calls=1, tokens_in=asked.tokens, tokens_out=said.tokens),
            model=MODEL,
            request_id=request.call_id,
            simulated=True,
        )
