"""What the numbers and names on records can be, by the field's name: it means the same on every record.

Our own parts write nothing else, so whatever is outside was written by somebody else or by a fault,
and is a dead letter before it does harm: a job that may run nothing at once would never be answered, a
wait of 10^300 seconds is no number of milliseconds, and integers beyond 64 bits cannot be written again.
Rows and answers hold sums of what events brought, and their numbers are read without these bounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from streams.core.values import ACCOUNT

Limit: TypeAlias = Mapping[str, Any]
"""Arguments of pydantic's schemas of scalars: ``ge``, ``gt``, ``le``, ``pattern``, ``max_length``."""

NAME: Final = r"[A-Za-z0-9._~-]{1,128}"
"""What ids and tenants are made of: safe in URLs, file names and record keys."""

_YEAR_S: Final = 31_536_000
_MANY: Final = 10**15
"""A sum of a thousand of them still fits 64 bits."""

_COUNT: Final = {"ge": 0, "le": _MANY}
_SHARE: Final = {"ge": 0, "le": 1}
_SECONDS: Final = {"gt": 0, "le": _YEAR_S}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits by ``field``, or by ``Record.field`` where one record differs."""

    limits: Mapping[str, Limit]

    def of(self, cls: type, field: str) -> Limit:
        """The limit of a field; empty without any."""
        return self.limits.get(f"{cls.__name__}.{field}") or self.limits.get(field) or _NONE


_NONE: Final[Limit] = MappingProxyType({})
UNBOUNDED: Final = Bounds(_NONE)

_FOR_ACCOUNTS: Final = ("PlaceAsked", "MoneyAsked", "PlaceReturned")

RECORDS: Final = Bounds(
    {
        "job": {"pattern": f"^{NAME}/{NAME}$"},
        "child": {"pattern": f"^{NAME}/{NAME}$"},
        "PlaceAsked.parent": {"pattern": f"^{NAME}/{NAME}$"},
        "Goal.parent": {"pattern": f"^{NAME}/{NAME}$"},
        **{f"{kind}.job": {"pattern": f"^{NAME}/{ACCOUNT}$"} for kind in _FOR_ACCOUNTS},
        **{f"{kind}.of": {"pattern": f"^{NAME}/{NAME}$"} for kind in _FOR_ACCOUNTS},
        "task": {"pattern": r"^[A-Za-z0-9._~-]{1,64}$"},
        "SubTask.id": {"pattern": r"^[A-Za-z0-9._~-]{1,64}$"},
        "tenant": {"pattern": f"^{NAME}$"},
        "attempt": {"ge": 1, "le": 1_000_000},
        "n": {"ge": 1, "le": 1_000_000},
        "tried": {"ge": 1, "le": 1_000_000},
        "revision": {"ge": 1, "le": 1_000_000},
        "ordinal": {"ge": 0, "le": 10_000},
        "lanes": {"ge": 1, "le": 1_000_000},
        "priority": {"ge": 0, "le": 9},
        # Places and sizes.
        "Reference.topic": {"pattern": "^(transcripts|job-events)$"},
        "partition": {"ge": 0, "le": 2**31 - 1},
        "offset": {"ge": -1, "le": 2**63 - 1},
        "offsets": {"ge": 0, "le": 2**63 - 1},
        "size": _COUNT,
        "index": _COUNT,
        "count": _COUNT,
        "seen": _COUNT,
        "items": _COUNT,
        "input": _COUNT,
        # Time.
        "timeout_s": _SECONDS,
        "start_timeout_s": _SECONDS,
        "deadline_s": _SECONDS,
        # Lanes choose eight seconds at most, and what was handed over ends with its attempt.
        "retry_in": {"ge": 0, "le": 3_600},
        "within_s": {"ge": 0, "le": 86_400},
        "wait_s": {"ge": 0},
        "ran_ms": _COUNT,
        "latency_ms": {"ge": 0},
        # What is spent, and what may be.
        "calls": _COUNT,
        "tokens": _COUNT,
        "tokens_in": _COUNT,
        "tokens_cached": _COUNT,
        "tokens_out": _COUNT,
        "estimated": _COUNT,
        "Usage.tool_calls": _COUNT,
        "usd": {"ge": 0, "le": _MANY},
        "max_tokens": _COUNT,
        "max_subtasks": {"ge": 1, "le": 100},
        "concurrency": {"ge": 1, "le": 10_000},
        "max_attempts": {"ge": 1, "le": 1_000},
        "min_success_ratio": _SHARE,
        "fail_fast_ratio": _SHARE,
        # What a job's rules decide by.
        "near": _SHARE,
        "share": _SHARE,
        "floor_s": _SECONDS,
        "tool_s": _SECONDS,
        "after_ms": _COUNT,
        "quorum": {"ge": 1, "le": 100},
        "candidates": {"ge": 1, "le": 100},
        "keep": {"ge": 1, "le": 100},
        "chunk_bytes": {"ge": 1, "le": _MANY},
        "max_replans": {"ge": 0, "le": 10},
        "weight": {"ge": 0, "le": 1_000},
        "TenantRules.weight": {"ge": 1, "le": 1_000},
        "RunSubTask.weight": {"ge": 1, "le": 1_000},
        "MakePlan.weight": {"ge": 1, "le": 1_000},
        "MakeAnswer.weight": {"ge": 1, "le": 1_000},
        "Judge.weight": {"ge": 1, "le": 1_000},
        "jobs": {"ge": 1, "le": _MANY},
        "depth": {"ge": 0, "le": 100},
        "growth": {"ge": 0, "le": 100},
        "fallback": _COUNT,
        "base": _COUNT,
        "version": _COUNT,
        "number": _COUNT,
        "part": {"ge": 1, "le": 1_000_000},
        "parts": {"ge": 1, "le": 1_000_000},
        "journal": {"ge": 0, "le": 2**63 - 1},
        "since": _COUNT,
        "topic": {"max_length": 249},
        # A job's answer tells the reasons of all of its sub-tasks: a hundred of them fit a record.
        "SubTaskFailed.reason": {"max_length": 4_000},
        "SubTaskFailed.kind": {"max_length": 200},
        "JobBroken.reason": {"max_length": 100_000},
        "GoalRejected.reason": {"max_length": 100_000},
    }
)
"""Of events, commands and transcripts."""

NAMES: Final = Bounds({name: RECORDS.limits[name] for name in ("job", "tenant", "Reference.topic")})
"""Of answers, whose numbers are sums."""
