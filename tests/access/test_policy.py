"""Every route asks the policy, by its action's name."""

import pytest

from frazil.access.policy import Principal, Resource, decide
from frazil.errors import Forbidden
from frazil.grants import Grant
from frazil.rest.app import matrix


def test_whoever_is_known_may_do_everything():
    principal = Principal("default", "ada", "spark")
    for row in matrix():
        assert decide(principal, row.action, Resource("lake")) == Grant("default", "ada", "spark")


def test_every_route_has_an_action_of_its_own():
    rows = matrix()
    assert all(row.action.count(".") == 1 for row in rows)
    assert len({(row.method, row.path) for row in rows}) == len(rows)


def test_only_what_tells_nothing_is_open():
    assert {row.path for row in matrix() if row.open} == {"/health", "/lakehouse/health", "/ready"}


def test_every_change_is_marked_as_one():
    unmarked = {row.action for row in matrix() if row.method not in ("GET", "HEAD") and not row.mutation}
    assert unmarked == {"table.report"}


@pytest.mark.parametrize("row", matrix(), ids=lambda row: row.label)
def test_what_the_policy_forbids_is_not_done(row):
    """Through the application, with a policy that forbids this one action."""
    from unittest.mock import patch

    from tests.access.calls import answered

    asked = []

    def forbidding(principal, action, resource):
        asked.append((action, resource))
        return Forbidden("not you")

    with patch("frazil.access.policy.decide", forbidding):
        status, touched = answered(row)
    assert (status, touched) == (403, False)
    assert [action for action, _ in asked] == [row.action]
