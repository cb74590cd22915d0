"""Goals for rounds: repeatable, of every kind, and answered by the system as they are without it."""

from collections import Counter
from dataclasses import replace

from streams.chaos.evidence import Expected
from streams.chaos.goals import Submission, submissions, with_answers
from streams.chaos.simulation.series import silence
from streams.chaos.verifier import judge
from streams.core.values import JobId
from streams.log import Record
from streams.memory_log.virtual_time import run
from streams.topics import GOALS
from streams.wire.goals import BadGoal, read_goal
from tests.chaos.one_worker import URL, answered


def test_a_seed_gives_the_same_records() -> None:
    """And another one others."""
    assert submissions(1, 40, lanes=4) == submissions(1, 40, lanes=4)
    assert submissions(1, 40, lanes=4) != submissions(2, 40, lanes=4)


def test_there_is_everything_among_many() -> None:
    """What is sent twice, shares an id, comes in an envelope, without a name, or as poison."""
    many = submissions(1, 400, lanes=4)
    places = {each.partition for each in many}
    assert places == {0, 1, 2, 3}
    twice = Counter((each.job, each.value) for each in many if each.job)
    values = [each.value or b"" for each in many]
    assert max(twice.values()) == 2
    assert len({value for value in values if b'"id":"clash' in value}) >= 4
    assert any(b"[[plan 100]]" in value for value in values)
    assert any(b"[[join 99 noop]]" in value for value in values)
    assert any(each.derived for each in many)
    assert any(name == "ce_id" for each in many for name, _ in each.headers)
    assert any(value.startswith(b'{"specversion":"1.0"') for value in values)
    poison = [each for each in many if each.job is None and not each.derived]
    assert {None, b""} < {each.value for each in poison}
    assert all(isinstance(read_goal(record(each, n), lanes=4), BadGoal) for n, each in enumerate(poison))


def record(each: Submission, offset: int) -> Record:
    """As it stands on its topic."""
    return Record(GOALS, each.partition, offset, 0, each.key, each.value, each.headers)


def test_each_record_names_its_job() -> None:
    """As intake reads it; one without a name has it from its place."""
    for offset, each in enumerate(submissions(3, 200, lanes=2)):
        read = read_goal(record(each, offset), lanes=2)
        assert read.job == each.job_at(each.partition, offset)


def test_the_system_answers_them_as_a_run_without_it() -> None:
    """Whatever stands on the topic; and the verifier agrees that nothing is missing or wrong."""
    sent = with_answers(submissions(5, 30, lanes=2), base_url=URL)
    with silence():
        evidence = run(answered(sent))
    assert len(evidence.expected) > 20
    assert {each.outcome for each in evidence.expected.values()} >= {"succeeded", "failed", "rejected"}
    verdict = judge(evidence)
    assert verdict.findings == ()
    assert verdict.figures.goals == len(sent)
    assert verdict.figures.jobs > len(evidence.expected)
    first = next(iter(evidence.expected))
    other: dict[JobId, Expected] = {**evidence.expected, first: Expected(outcome="partial", answer=None)}
    assert [each.kind for each in judge(replace(evidence, expected=other)).findings] == ["wrong"]
