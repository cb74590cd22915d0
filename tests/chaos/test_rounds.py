"""Rounds on a real Kafka, in short: what `anabranch chaos run` does for an hour. The brokers stay up."""

from dataclasses import replace
from pathlib import Path

import pytest

from streams.chaos.attacks import FAULTS, UnknownFault, known
from streams.chaos.ground import Ground
from streams.chaos.keeping import NoEvidence, keep, kept
from streams.chaos.plans import Plan, Strike, plan, seeds
from streams.chaos.rounds import play
from streams.chaos.verifier import verify
from tests.docs.pages import ROOT, names, table

PAGE = ROOT / "docs" / "rounds.md"
FEW_JOBS, FEW_SECONDS = 10, 4.0


def short(seed: int, *strikes: Strike) -> Plan:
    return Plan(seed=seed, strikes=strikes, jobs=FEW_JOBS, goals_s=FEW_SECONDS)


async def test_a_calm_round_and_its_evidence(kafka_servers: str, tmp_path: Path) -> None:
    """Nothing is found; what is kept of it says the same, and a row less in it is found."""
    played = await play(Ground(servers=kafka_servers, cluster=None, proxies=(), place=tmp_path), short(3))
    assert played.verdict.findings == ()
    assert played.verdict.figures.jobs > FEW_JOBS
    assert played.verdict.figures.repeated == 0
    assert played.crashes == ()
    assert played.recovery_s is None
    keep(played.evidence, tmp_path / "kept")
    again = kept(tmp_path / "kept")
    assert again == played.evidence
    assert verify(again) == []
    lost = {**again.records, "answers": again.records["answers"][1:]}
    assert {finding.kind for finding in verify(replace(again, records=lost))} >= {"lost"}


async def test_a_round_with_faults(kafka_servers: str, tmp_path: Path) -> None:
    """A worker killed, one asleep beyond its session, a stranger, poison: one answer to each goal."""
    faults = ("poison", "kill", "stranger", "asleep")
    strikes = [Strike(fault=name, at_s=1.0 + 0.7 * n, seed=n) for n, name in enumerate(faults)]
    ground = Ground(servers=kafka_servers, cluster=None, proxies=(), place=tmp_path)
    played = await play(ground, short(1, *strikes))
    assert played.verdict.findings == ()
    assert {note.split()[0] for note in played.notes} >= set(faults)
    assert {life.how for life in played.evidence.lives} >= {"killed", ""}
    assert any(life.pauses for life in played.evidence.lives)
    assert played.recovery_s is not None


def test_plans_follow_from_their_seeds() -> None:
    """A quarter is calm; the others have three to five faults; no seed is in two runs."""
    faults = known([], {"brokers", "three", "proxy"})
    assert len(faults) == len(FAULTS)
    plans = [plan(seed, faults) for seed in seeds(7, 100)]
    assert plans == [plan(seed, faults) for seed in seeds(7, 100)]
    assert sum(not each.strikes for each in plans) == 25
    assert {len(each.strikes) for each in plans} == {0, 3, 4, 5}
    assert {strike.fault for each in plans for strike in each.strikes} == FAULTS.keys()
    assert not set(seeds(7, 10_000)) & set(seeds(8, 10_000))


def test_faults_are_chosen_by_name() -> None:
    """One that is none, or that cannot be here, is told."""
    assert [each.name for each in known(["stop", "kill"], ())] == ["kill", "stop"]
    assert all(not each.needs for each in known([], ()))
    assert all(each.says.endswith(".") for each in FAULTS.values())
    with pytest.raises(UnknownFault, match="no fault 'kil'"):
        known(["kil"], ())
    with pytest.raises(UnknownFault, match="broker_lost needs three"):
        known(["broker_lost"], {"brokers"})


def test_a_directory_without_evidence_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoEvidence, match=r"evidence\.json"):
        kept(tmp_path)


def test_the_page_tells_the_faults() -> None:
    """As `anabranch chaos faults` does."""
    rows = table(PAGE, "fault")
    assert {names(row[0])[0]: (row[1], row[2]) for row in rows} == {
        name: (", ".join(sorted(each.needs)), each.says) for name, each in FAULTS.items()
    }
