"""Accounts and guests as rows of the table: a restore finds what was committed, or knows it as damaged."""

import pytest
from hypothesis import given, settings

from streams.core.accounts import keep
from streams.core.events import JobSubmitted, PlaceAsked
from streams.core.goal import Goal, Source, TenantRules
from streams.core.job import absorb
from streams.core.paying import asked_again
from streams.core.states import Account, Finished, Job, New, Open
from streams.core.values import Grant, Inline
from streams.damage import Damage, job_of, misplaced
from streams.from_rows import build
from streams.table import Table, difference
from streams.timers import Timers
from streams.wire.rows import Row
from tests.core.histories import Choices, choices
from tests.core.tenants import KEY, TENANT
from tests.core.test_accounts import tenancy
from tests.streams.test_table import commit


@settings(max_examples=40)
@given(choices(900))
def test_accounts_are_restored_from_their_rows(made: Choices) -> None:
    """After any commit, with as many rows as it has guests, each under a key that can be its own."""
    here = tenancy(made)
    table, rows = Table(), dict[str, Row]()
    for number, event in enumerate(here.logs.get(KEY, ())):
        table[KEY], _ = absorb(table[KEY], event)
        if number % 3 == 0:
            commit(table, rows)
            damage = Damage()
            assert build(rows, damage).get(KEY, New()) == table[KEY]
            assert not damage
            assert not any(misplaced(key, row) for key, row in rows.items())
            assert {job_of(key) for key in rows} <= {KEY}


def an_account() -> tuple[Account, dict[str, Row]]:
    """With two guests, and its rows."""
    job: Job = New()
    for of in ("acme/a", "acme/b"):
        job, _ = keep(job, PlaceAsked(job=KEY, of=of, jobs=1, at=1))
    assert isinstance(job, Account)
    return job, {key: row for key, row in difference(KEY, New(), job) if row is not None}


@pytest.mark.parametrize("gone", [KEY, f"{KEY}/b"])
def test_a_missing_row_is_damage_of_its_account(gone: str) -> None:
    """The account is folded again from its log, and is nobody's job."""
    account, rows = an_account()
    assert build(rows, Damage()) == {KEY: account}
    del rows[gone]
    damage = Damage()
    assert build(rows, damage) == {}
    assert damage.jobs == {KEY}


def test_rows_of_accounts_and_of_jobs_cannot_stand_for_one_another() -> None:
    """A guest of another tenant, a marker of an account, an account of a job: all are damage."""
    _, rows = an_account()
    account, guest = rows[KEY], rows[f"{KEY}/b"]
    marker = Finished(digest="", outcome="failed", offset=1, at=1)
    for key, row in (
        (KEY, marker),
        ("acme/a", account),
        (f"{KEY}/a", guest),
        ("other/@account/b", guest),
        ("acme/b/x", guest),
    ):
        assert misplaced(key, row)
    assert not misplaced(KEY, account)
    assert not misplaced(f"{KEY}/b", guest)


def test_a_job_that_waits_asks_again_and_an_account_is_looked_after() -> None:
    """Sooner at first, and later the longer it waits; no more once it has its place."""
    now = [0.0]
    timers = Timers(monotonic=lambda: now[0], chance=lambda: 0.0, grace_s=1.0)
    timers.seen(0)
    goal = Goal(text=Inline(value="x"), tenant=TENANT, rules=TenantRules(jobs=1, day=Grant(calls=9)))
    submitted = JobSubmitted(job="acme/b", goal=goal, source=Source(topic="goals", partition=0, offset=0))
    job, _ = absorb(New(), submitted)
    assert isinstance(job, Open)
    account, _ = an_account()
    timers.arm(New(), job)
    timers.arm(New(), account)
    told: list[tuple[float, str]] = []
    known: dict[str, Job] = {"acme/b": job, KEY: account}
    while now[0] < 100.0:
        now[0] += 1.0
        told += [(now[0], type(each).__name__) for each in timers.due(known.__getitem__)]
    asked = [at for at, kind in told if kind == "PlaceAsked"]
    assert asked == [4, 8, 16, 32, 64]
    assert [each for each in told if each[1] != "PlaceAsked"] == [(60, "PlaceGiven")]
    assert asked_again(job) == PlaceAsked(
        job=KEY, of="acme/b", jobs=1, day=Grant(calls=9), want=Grant(), since=0
    )
    known["acme/b"] = New()
    now[0] += 10_000.0
    assert [type(each).__name__ for each in timers.due(known.__getitem__)] == ["PlaceGiven"]
