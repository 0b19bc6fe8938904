"""What a commit may demand, held and failed."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import BadInput, Conflict
from frazil.iceberg import requirements
from frazil.iceberg.metadata import TableMetadata
from tests.iceberg.builders import a_table, changed, commit, refused, set_properties, set_ref, stored

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
MAIN = 3055729675574597004

CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"type": "assert-table-uuid", "uuid": UUID}, {"uuid": "other"}, "UUID does not match: expected other, found 9c12"),
    ({"type": "assert-table-uuid", "uuid": UUID.upper()}, {"uuid": ""}, "UUID does not match"),
    (
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": MAIN},
        {"snapshot-id": 1},
        f"branch main has changed: expected id 1, found {MAIN}",
    ),
    (
        {"type": "assert-ref-snapshot-id", "ref": "v1.0", "snapshot-id": 3051729675574597004},
        {"snapshot-id": 2},
        "tag v1.0 has changed: expected id 2, found 3051729675574597004",
    ),
    (
        {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": None},
        {"ref": "main"},
        "branch main was created concurrently",
    ),
    (
        {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": None},
        {"snapshot-id": 5},
        "branch or tag new is missing, expected 5",
    ),
    (
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 9},
        {"last-assigned-field-id": 8},
        "last assigned field id changed: expected id 8, found 9",
    ),
    (
        {"type": "assert-current-schema-id", "current-schema-id": 1},
        {"current-schema-id": 0},
        "current schema changed: expected id 0, found 1",
    ),
    (
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
        {"last-assigned-partition-id": 1001},
        "last assigned partition id changed: expected id 1001, found 1000",
    ),
    (
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"default-spec-id": 1},
        "default partition spec changed: expected id 1, found 0",
    ),
    (
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 3},
        {"default-sort-order-id": 0},
        "default sort order changed: expected id 0, found 3",
    ),
]


@pytest.mark.seed(121, 138, 401)
@pytest.mark.parametrize("holds, otherwise, message", CASES)
def test_a_requirement_lets_the_commit_through_or_is_a_conflict_that_says_what_and_where(holds, otherwise, message):
    table = TableMetadata.parse(stored("v2"))
    assert changed(table, set_properties(a="b"), requirements=[holds]).properties["a"] == "b"
    error = refused(commit(table, set_properties(a="b"), requirements=[holds, holds | otherwise]))
    assert type(error) is Conflict
    assert error.message.startswith("Requirement failed: ")
    assert message in error.message


def test_every_requirement_of_the_specification_is_known():
    assert set(requirements.CHECKS) == {case["type"] for case, _, _ in CASES} | {"assert-create"}


@pytest.mark.seed(138)
def test_a_create_of_a_table_that_exists_is_a_conflict():
    error = refused(commit(a_table(), requirements=[{"type": "assert-create"}]))
    assert type(error) is Conflict
    assert error.message == "Requirement failed: table already exists"


def test_a_create_may_demand_nothing_of_the_table_it_makes():
    error = refused(commit(None, requirements=[{"type": "assert-create"}, {"type": "assert-table-uuid", "uuid": "a"}]))
    assert type(error) is BadInput
    assert "Invalid create requirements: assert-table-uuid" in error.message


def test_requirements_look_at_the_table_before_the_commits_own_updates():
    table = a_table(2)
    moved = changed(
        table, set_ref("main", 1), requirements=[{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2}]
    )
    assert moved.current_snapshot_id == 1


def test_an_old_table_without_refs_has_a_main_to_demand():
    table = TableMetadata.parse(stored("v1_old"))
    demand = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1925}
    assert changed(table, set_properties(a="b"), requirements=[demand]).properties["a"] == "b"
    assert type(refused(commit(table, requirements=[demand | {"snapshot-id": 1}]))) is Conflict


@pytest.mark.parametrize("holds, otherwise, message", CASES)
def test_a_requirement_without_its_fields_is_bad_input(holds, otherwise, message):
    for key in holds.keys() - {"type", "snapshot-id"}:
        wrong: list[Any] = [None, [], {}, True, 1.5]
        for value in wrong:
            error = refused(commit(TableMetadata.parse(stored("v2")), requirements=[holds | {key: value}]))
            assert type(error) is BadInput
            assert key in error.message
