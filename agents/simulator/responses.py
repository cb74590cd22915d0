"""HTTP responses of the simulated endpoint, each labelled as simulated."""

import orjson
from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter

from agents.simulator.problems import Problem

LABEL_HEADER = "x-anabranch-simulated"


class Cut(web.StreamResponse):
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


class Stream(web.StreamResponse):
    """A stream of events. ``cut``: its connection ended before it did."""

    cut = False


def in_bytes(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A response with this body of JSON."""
    labelled = {LABEL_HEADER: "1", hdrs.CONTENT_TYPE: "application/json"}
    return web.Response(body=body, status=status, headers={**labelled, **headers} if headers else labelled)


def in_json(value: object) -> web.Response:
    """A response with this value."""
    return in_bytes(orjson.dumps(value))


def refusal(problem: Problem) -> web.Response:
    """A response that says why there is no reply."""
    return in_bytes(problem.body(), status=problem.status)
