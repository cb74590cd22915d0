"""Laws of a tenant's account: over all partitions no more runs and no more is spent than the tenant may."""

from dataclasses import replace

from hypothesis import given, settings

from streams.core.goal import Budget, TenantRules
from streams.core.values import Grant
from tests.core.histories import Choices, a_goal, a_plan, choices
from tests.core.tenants import Tenancy, child_of


def some_rules(made: Choices) -> TenantRules:
    """With at least one limit."""
    day = Grant(
        calls=made.of((None, 20, 3, 200)),
        tokens=made.of((None, 40_000, 9_000, 1_000_000)),
        usd=made.of((None, 0.5, 0.000_000_064)),
    )
    if day == Grant():
        return TenantRules(jobs=1 + made.below(3))
    return TenantRules(jobs=made.of((None, 1, 2, 3)), day=day)


def tenancy(made: Choices) -> Tenancy:
    """Some jobs come in while others run."""
    here = Tenancy(choices=made, rules=some_rules(made))
    for number in range(2 + made.below(5)):
        goal = replace(a_goal(made), deadline_s=None, approve=(), gate=False)
        if made.below(3):
            goal = replace(goal, budget=Budget())
        if number and made.below(4) == 3:
            goal = child_of(goal, f"acme/g{made.below(number)}", "t0", f"call-{number}")
        here.submit(f"acme/g{number}", goal, a_plan(made, 5), brought=made.below(2) == 1)
        for _ in range(made.below(25)):
            here.step()
    for _ in range(made.below(60)):
        here.step()
    return here


@settings(max_examples=150)
@given(choices(1_500))
def test_a_tenant_never_spends_more_than_its_day_and_nobody_waits_for_ever(made: Choices) -> None:
    """Whatever is told twice, late or in another order; and at last every job is answered."""
    here = tenancy(made)
    here.run_out()
    assert {job for job, _ in here.answers} == set(here.jobs)
