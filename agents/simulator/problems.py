"""Errors in OpenAI's shape, with the types that Moonshot's endpoints add to it."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Self

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a call has no reply.

    Attributes:
        status: The HTTP status.
        type: ``error.type`` of the body.
        code: ``error.code`` of the body, or None.
        param: The field of the request that is wrong, or None.
    """

    status: int
    message: str
    type: str
    code: str | None = None
    param: str | None = None

    def body(self) -> bytes:
        """The JSON body."""
        return orjson.dumps(
            {
                "error": {
                    "message": f"(simulated) {self.message}",
                    "type": self.type,
                    "param": self.param,
                    "code": self.code,
                }
            }
        )

    @classmethod
    def bad_request(cls, message: str, param: str | None = None) -> Self:
        """The request is not what the chat API takes."""
        return cls(status=400, message=message, type="invalid_request_error", param=param)

    @classmethod
    def of_status(cls, status: int) -> Self:
        """The usual error of a status, for failures that were asked for."""
        server = status >= HTTPStatus.INTERNAL_SERVER_ERROR
        kind, code = _USUAL.get(status, ("server_error" if server else "invalid_request_error", None))
        return cls(
            status=status, message=f"a failure with status {status}, as asked for", type=kind, code=code
        )


_USUAL: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    402: ("exceeded_current_quota_error", "insufficient_quota"),
    403: ("permission_denied_error", None),
    404: ("invalid_request_error", "model_not_found"),
    429: ("engine_overloaded_error", None),
}

CONTENT_FILTER = Problem(
    status=400,
    message="the request was rejected because it was considered high risk",
    type="content_filter",
    code="content_filter",
)

SPENT = Problem(
    status=403,
    message="your account has insufficient balance",
    type="exceeded_current_quota_error",
    code="insufficient_quota",
)

SERVER_ERROR = Problem(status=500, message="the server had an error", type="server_error")

OVERLOADED = Problem(
    status=429, message="the engine is overloaded, please try again later", type="engine_overloaded_error"
)


def rate_limited(reason: str, wait_s: float) -> Problem:
    """The account has to wait so many seconds."""
    return Problem(
        status=429,
        message=f"{reason}; please try again after {wait_s:g} seconds",
        type="rate_limit_reached_error",
        code="rate_limit_exceeded",
    )


class Rejected(Exception):
    """The call is answered with this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem
