"""Records of each kind, every field said: the golden files hold them as version 1 wrote them.

A field that came later is said in a further record, since a golden file is never written again.
"""

from typing import Any

from agents.ports import ModelReply, ToolCall
from streams.core.commands import Answer, MakeAnswer, MakePlan, RunSubTask, TaskReport, TaskResult
from streams.core.events import (
    AttemptOverdue,
    DeadlinePassed,
    GoalRejected,
    JobBroken,
    JobReopened,
    JobSubmitted,
    Kept,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
    Tried,
)
from streams.core.goal import Budget, Goal, Header, JoinRule, Limits, Source
from streams.core.plan import SubTask
from streams.core.values import Grant, Inline, Reference, Usage
from streams.transcript import (
    Asked,
    AttemptEnded,
    HandedOver,
    ModelCalled,
    ModelFailed,
    ToolCalled,
    ToolStarted,
    ValueChunk,
)
from streams.wire.marks import Dropped, Redriven

JOB = "acme/audit-7"
SOURCE = Source(topic="goals", partition=3, offset=41)
HEADERS = (
    Header(name="traceparent", value="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    Header(name="raw", value="//4A", base64=True),
    Header(name="empty", value=None),
)
USAGE = Usage(
    calls=2, tokens_in=1200, tokens_cached=800, tokens_out=310, usd=0.0042, estimated=1, tool_calls=3
)
CHECK = Reference(topic="transcripts", partition=5, offsets=(17, 18), size=600_000, digest="ab" * 32)
GRANT = Grant(calls=15, tokens=60_000)
ATTEMPT: dict[str, Any] = {"job": JOB, "task": "read-3", "attempt": 2}
CALL = ToolCall(id="call_1", name="package_metadata", arguments='{"name": "orjson"}')
SUCCEEDED = SubTaskSucceeded(**ATTEMPT, result=Inline(value={"licence": "MIT"}), size=17, usage=USAGE)

SAMPLES: dict[str, list[Any]] = {
    "job-events": [
        JobSubmitted(
            job=JOB,
            goal=Goal(
                text=Inline(value="Audit the licences of these packages"),
                input=CHECK,
                items=64,
                tenant="acme",
                priority=7,
                tools=("package_metadata", "read_file"),
                model="kimi-k2.6",
                deadline_s=600.0,
                budget=Budget(tokens=2_000_000, calls=500, usd=1.5),
                limits=Limits(max_subtasks=80, concurrency=16, timeout_s=60.0, max_attempts=2),
                join=JoinRule(min_success_ratio=0.8, fail_fast_ratio=0.5),
                digest="cd" * 32,
            ),
            source=SOURCE,
            lanes=8,
            headers=HEADERS,
        ),
        JobSubmitted(
            job=JOB,
            goal=Goal(text=Inline(value="Sum up"), digest="cd" * 32),
            source=SOURCE,
            plan=(
                SubTask(id="list", goal="", tool="list_files", args={"path": "."}, input="all"),
                SubTask(id="sum", goal="Sum up", kind="summarize", dep=("list",), model="kimi-k2.6"),
            ),
        ),
        GoalRejected(job=JOB, reason="`goal` is missing", source=SOURCE, headers=HEADERS),
        SubTaskStarted(**ATTEMPT, run="w1-5f3a"),
        Planned(
            job=JOB,
            task="plan",
            attempt=1,
            plan=(
                SubTask(id="read-3", goal="Read it", kind="extract", model="kimi-k2.6", input=(2, 2)),
                SubTask(id="list", goal="", tool="list_files", args={"path": "."}, input="all"),
                SubTask(id="sum", goal="Sum up", kind="summarize", dep=("read-3", "list")),
            ),
            usage=USAGE,
        ),
        SUCCEEDED,
        SubTaskFailed(
            **ATTEMPT, kind="rate_limited", reason="try again", final=True, retry_in=1.5, usage=USAGE
        ),
        AttemptOverdue(**ATTEMPT, retry_in=2.5),
        RetryDue(**ATTEMPT),
        DeadlinePassed(job=JOB),
        JobBroken(job=JOB, reason="the event at 3@977 could not be folded"),
        JobBroken(job=JOB, reason="the event at 3@977 could not be folded", revision=2),
        JobReopened(
            job=JOB,
            revision=2,
            submitted=JobSubmitted(
                job=JOB,
                goal=Goal(text=Inline(value="Sum up"), digest="cd" * 32),
                source=SOURCE,
                headers=HEADERS,
                at=1_790_000_000_000,
                offset=976,
            ),
            plan=(
                SubTask(id="list", goal="", tool="list_files", args={"path": "."}, input="all"),
                SubTask(id="read-3", goal="Read it", dep=("list",)),
                SubTask(id="sum", goal="Sum up", kind="summarize", dep=("read-3",)),
            ),
            kept=(Kept(task="list", attempt=1, result=CHECK, size=600_000, offset=981),),
            tried=(Tried(task="read-3", attempt=3), Tried(task="answer", attempt=1)),
            redriven=("read-3",),
            spent=USAGE,
            by="ada@example",
        ),
    ],
    "subtasks": [
        MakePlan(
            job=JOB,
            task="plan",
            attempt=1,
            ordinal=0,
            timeout_s=120.0,
            text=Inline(value="Audit the licences of these packages"),
            input=CHECK,
            items=64,
            tools=("package_metadata",),
            model="kimi-k2.6",
            max_subtasks=80,
        ),
        RunSubTask(
            **ATTEMPT,
            ordinal=4,
            timeout_s=60.0,
            goal="Read the package's licence",
            kind="extract",
            tool="package_metadata",
            args={"name": "orjson"},
            model="kimi-k2.6",
            tools=("package_metadata", "read_file"),
            input=Inline(value=["orjson"]),
            items=(2, 2),
            dep=(TaskResult(task="list", goal="List", outcome="succeeded", result=CHECK),),
        ),
        RunSubTask(
            **ATTEMPT, ordinal=1, timeout_s=60.0, goal="Read it", kind="extract", priority=9, alone=True
        ),
        MakeAnswer(
            job=JOB,
            task="answer",
            attempt=1,
            ordinal=5,
            timeout_s=120.0,
            text=Inline(value="Audit the licences of these packages"),
            model="kimi-k2.6",
            results=(
                TaskResult(task="read-3", goal="Read", outcome="succeeded", result=Inline(value="MIT")),
                TaskResult(task="read-4", goal="Read", outcome="failed", reason="timeout: 60 s"),
            ),
        ),
        MakePlan(
            job=JOB,
            task="plan",
            attempt=1,
            ordinal=0,
            timeout_s=120.0,
            text=Inline(value="Sum up"),
            grant=Grant(calls=250, tokens=1_000_000, usd=0.75),
        ),
        RunSubTask(**ATTEMPT, ordinal=1, timeout_s=60.0, goal="Read it", kind="extract", grant=GRANT),
        MakeAnswer(
            job=JOB,
            task="answer",
            attempt=1,
            ordinal=5,
            timeout_s=120.0,
            text=Inline(value="Sum up"),
            grant=Grant(usd=0.25),
        ),
    ],
    "transcripts": [
        ModelCalled(
            **ATTEMPT,
            run="w1-5f3a",
            n=2,
            request=Asked(
                seen=2,
                messages=Inline(value=[{"role": "tool", "tool_call_id": "call_1", "content": "MIT"}]),
                tools=("package_metadata",),
                max_tokens=800,
                json_object=True,
                model="kimi-k2.6",
            ),
            request_hash="ef" * 32,
            reply=ModelReply(
                message={"role": "assistant", "content": "MIT", "reasoning_content": " "},
                finish_reason="stop",
                usage=USAGE,
                model="kimi-k2.6",
                request_id="req-9",
                latency_ms=412.5,
                simulated=True,
            ),
        ),
        ModelFailed(
            **ATTEMPT,
            run="w1-5f3a",
            n=2,
            tried=1,
            kind="rate_limited",
            reason="try again after 1 seconds",
            wait_s=1.0,
            decision="retry",
        ),
        ModelFailed(
            **ATTEMPT,
            run="w1-5f3a",
            n=2,
            tried=2,
            kind="timeout",
            reason="no reply within 30.0 s",
            decision="elsewhere",
            endpoint="moonshot",
            model="kimi",
            request=Asked(seen=2, messages=Inline(value=[]), max_tokens=800),
            request_hash="ef" * 32,
            usage=Usage(calls=1, tokens_in=400, tokens_out=800, usd=0.002, estimated=1),
        ),
        ToolStarted(**ATTEMPT, run="w1-5f3a", call=CALL),
        ToolCalled(
            **ATTEMPT,
            run="w1-5f3a",
            call=CALL,
            output=Inline(value={"License": "MIT"}),
            error="tool_error",
            latency_ms=3.5,
        ),
        ToolCalled(
            **ATTEMPT,
            run="w1-5f3a",
            call=CALL,
            output=Inline(value={"License": "MIT"}),
            latency_ms=0.25,
            shared=True,
        ),
        HandedOver(**ATTEMPT, run="w1-5f3a", model_calls=(3,), tool_calls=("call_2",), within_s=58.0),
        AttemptEnded(**ATTEMPT, run="w1-5f3a", event=SUCCEEDED),
        ValueChunk(run="w1-5f3a", digest="ab" * 32, index=1, count=2, data='"orjson"]'),
    ],
    "answers": [
        Answer(
            job=JOB,
            id="audit-7",
            tenant="acme",
            outcome="partial",
            rule="all_done",
            reason="1 of 2 sub-tasks failed: read-4",
            answer=Inline(value={"MIT": ["orjson"]}),
            subtasks=(
                TaskReport(task="read-3", outcome="succeeded", attempts=2),
                TaskReport(task="read-4", outcome="failed", attempts=3, reason="timeout: 60 s"),
            ),
            usage=USAGE,
            submitted_at=1_790_000_000_000,
            answered_at=1_790_000_012_345,
            revision=2,
            source=SOURCE,
        ),
    ],
    "dead-letters": [
        Redriven(letter=17, by="ada@example", topic="subtasks", partition=3, to=41, job=JOB, revision=2),
        Dropped(letter=17, by="ada@example", reason="a test of ours"),
    ],
}
