"""Every scenario, explored as far as each push allows: one crash, one ambiguous write and one write in flight.

`make explore` goes on from there without bounds. Here the processes may interrupt one another a bounded number of
times where one kind of fault is met, and run in turn where all three are met together.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.explore import evidence, scenarios
from tests.explore.engine import Budget, Explorer, Result, Scenario

#: Enough for every scenario to be complete without faults or with one kind of them; all three together are cut off.
MOST_STATES = 120_000

BUDGETS = (Budget(0, 0, 0), Budget(1, 0, 0, 2), Budget(0, 1, 0, 1), Budget(0, 0, 1, 1), Budget(1, 1, 1, 0))


@pytest.mark.seed(1, 4, 5, 9, 16, 17, 33, 35, 37, 62, 65, 66, 67, 92, 98, 127, 128, 129, 251, 276, 277, 278)
@pytest.mark.parametrize("story", scenarios.NAMED, ids=lambda story: story.__name__)
def test_no_schedule_of_the_scenario_breaks_a_promise(story: Callable[[], Scenario]) -> None:
    scenario = story()
    results = [explored(scenario, budget) for budget in BUDGETS]
    for result in results:
        assert result.message is None, f"{result}\n{result.message}\n  " + "\n  ".join(result.trace)
    assert sum(result.states for result in results) >= 1_000, "too small a scenario to say anything"
    evidence.note("explore", scenario.name, results)


def explored(scenario: Scenario, budget: Budget) -> Result:
    result = Explorer(scenarios.with_budget(scenario, budget)).run(most_states=MOST_STATES)
    print(f"{budget}: {result}")
    return result
