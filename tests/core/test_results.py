"""Results as dependants and the synthesis get them: all of them, and never more than a record holds."""

from hypothesis import given
from hypothesis import strategies as st

from streams.core.events import JobSubmitted
from streams.core.goal import Goal, Source
from streams.core.plan import SubTask
from streams.core.results import ended, joined, on_the_log, partition_of, results_of
from streams.core.states import Failed, Node, Open, Ready, Skipped, SubTaskState, Succeeded
from streams.core.values import INLINE_SET_BYTES, Inline, Json, Reference
from tests.core.histories import JOB

CHECK = Reference(topic="transcripts", partition=3, offsets=(8,), size=90_000, digest="cd" * 32)


def job_with(states: dict[str, SubTaskState]) -> Open:
    """A job whose sub-tasks are in these states."""
    source = Source(topic="goals", partition=0, offset=0)
    return Open(
        submitted=JobSubmitted(job=JOB, goal=Goal(text=Inline(value="x")), source=source, lanes=8),
        nodes={
            name: Node(task=SubTask(id=name, goal=f"do {name}"), ordinal=place)
            for place, name in enumerate(states, 1)
        },
        states=states,
    )


def succeeded(size: int, offset: int = 5) -> Succeeded:
    """A result of so many bytes."""
    return Succeeded(attempt=1, result=Inline(value="r" * max(0, size - 2)), size=size, offset=offset)


@given(st.lists(st.integers(0, 200_000), max_size=12))
def test_a_set_of_results_always_fits_a_record(sizes: list[int]) -> None:
    """As few as must go by claim check, the largest first, and each where its event stands."""
    states: dict[str, SubTaskState] = {f"t{n}": succeeded(size, offset=n) for n, size in enumerate(sizes)}
    job = job_with(states)
    results = results_of(job, states)
    assert [r.task for r in results] == list(states)
    inline = [size for size, r in zip(sizes, results, strict=True) if isinstance(r.result, Inline)]
    checked = [size for size, r in zip(sizes, results, strict=True) if isinstance(r.result, Reference)]
    assert len(inline) + len(checked) == len(sizes)
    assert sum(inline) <= INLINE_SET_BYTES
    if checked:
        assert sum(inline) + min(checked) > INLINE_SET_BYTES
        assert min(checked) >= max(inline, default=0)
    for number, result in enumerate(results):
        if isinstance(result.result, Reference):
            assert result.result == Reference(
                topic="job-events",
                partition=partition_of(JOB, 8),
                offsets=(number,),
                size=sizes[number],
                digest="",
            )


def test_a_claim_check_stays_one_and_costs_no_room() -> None:
    """Its value is in the transcripts already."""
    stored = Succeeded(attempt=1, result=CHECK, size=CHECK.size, offset=9)
    results = results_of(job_with({"a": stored, "b": succeeded(INLINE_SET_BYTES)}), ("a", "b"))
    assert [type(r.result) for r in results] == [Reference, Inline]
    assert results[0].result is CHECK


def test_what_has_no_result_says_why() -> None:
    """So that a synthesis never reads as complete."""
    states: dict[str, SubTaskState] = {
        "a": Failed(attempt=3, kind="timeout", reason="no result within 5 s"),
        "b": Skipped(reason="skipped: a failed"),
        "c": Ready(),
    }
    told = [(r.outcome, r.result, r.reason, r.goal) for r in results_of(job_with(states), states)]
    assert told == [
        ("failed", None, "timeout: no result within 5 s", "do a"),
        ("skipped", None, "skipped: a failed", "do b"),
        ("unfinished", None, "the job ended before it", "do c"),
    ]
    assert ended(succeeded(2)) == ("succeeded", "")


def test_joined_results_name_their_sub_tasks() -> None:
    """Where no synthesis made one text of them; a claim check is told as one."""
    job = job_with(
        {
            "a": Succeeded(attempt=1, result=Inline(value=[1]), size=3, offset=1),
            "b": Failed(attempt=1, kind="x", reason="y"),
            "c": Succeeded(attempt=1, result=CHECK, size=CHECK.size, offset=2),
        }
    )
    check: Json = {
        "topic": "transcripts",
        "partition": 3,
        "offsets": [8],
        "size": 90_000,
        "digest": "cd" * 32,
    }
    assert joined(job, ("a", "c")) == Inline(value={"a": [1], "c": check})


def test_a_partition_is_the_crc_32_of_the_job() -> None:
    """Every program that writes to our topics must come to the same."""
    assert partition_of("123456789", 2**32) == 0xCBF43926  # the check value of CRC-32 (ISO-HDLC)
    assert on_the_log(job_with({}), succeeded(4)).partition == partition_of(JOB, 8)
