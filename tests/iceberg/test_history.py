"""Snapshots, branches, tags, and what a table remembers of them."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import BadInput, Conflict
from frazil.iceberg.metadata import TableMetadata
from tests.iceberg.builders import (
    NOW_MS,
    a_snapshot,
    a_table,
    add,
    an_append,
    changed,
    commit,
    document,
    refused,
    set_properties,
    set_ref,
    stored,
)


def remove(*ids: int) -> dict[str, Any]:
    return {"action": "remove-snapshots", "snapshot-ids": list(ids)}


def log(table: TableMetadata) -> list[int]:
    return [entry["snapshot-id"] for entry in table.snapshot_log]


# -- adding -----------------------------------------------------------------------------------------------------------


@pytest.mark.seed(122, 401)
def test_an_append_moves_main_and_the_sequence_number():
    table = changed(a_table(2), *an_append(3))
    assert (table.current_snapshot_id, table.last_sequence_number) == (3, 3)
    assert table.refs["main"] == {"snapshot-id": 3, "type": "branch"}
    assert table.snapshot(3) == a_snapshot(3)
    assert table.snapshot_log[-1] == {"snapshot-id": 3, "timestamp-ms": NOW_MS + 3}


def test_a_snapshot_without_a_ref_is_kept_and_main_stays():
    table = changed(a_table(2), add(a_snapshot(3)))
    assert (table.current_snapshot_id, table.last_sequence_number, table.snapshot_count) == (2, 3, 3)
    assert log(table) == [1, 2]


def test_a_snapshot_comes_once():
    assert refused(commit(a_table(2), add(a_snapshot(2, **{"sequence-number": 9})))).message == (
        "Snapshot already exists for id: 2"
    )
    assert (
        refused(commit(a_table(), add(a_snapshot(1)), add(a_snapshot(1)))).message
        == "Snapshot already exists for id: 1"
    )


@pytest.mark.seed(122)
def test_a_sequence_number_that_somebody_took_first_is_a_conflict_to_try_again():
    for number in (0, 1, 2):
        error = refused(commit(a_table(2), add(a_snapshot(3, **{"sequence-number": number}))))
        assert type(error) is Conflict
        assert error.message == f"Cannot add snapshot with sequence number {number} older than last sequence number 2"


def test_a_snapshot_without_a_parent_may_be_old_and_never_turns_the_sequence_back():
    table = changed(a_table(2), add(a_snapshot(9, **{"sequence-number": 1, "parent-snapshot-id": ...})))
    assert table.last_sequence_number == 2


def test_version_1_has_no_sequence_numbers():
    table = changed(a_table(format_version=1), *an_append(1, format_version=1), *an_append(2, format_version=1))
    assert table.last_sequence_number == 0
    assert "last-sequence-number" not in document(table)
    error = refused(commit(table, add(a_snapshot(3, **{"sequence-number": 3}))))
    assert "Sequence number must be 0 in v1" in error.message


def test_in_version_3_the_table_counts_the_rows():
    table = a_table(2, format_version=3)
    assert table.next_row_id == 20
    ahead = changed(table, add(a_snapshot(3, format_version=3, **{"first-row-id": 25, "added-rows": 5})))
    assert ahead.next_row_id == 25
    behind = refused(commit(table, add(a_snapshot(3, format_version=3, **{"first-row-id": 19}))))
    assert type(behind) is Conflict
    assert behind.message == "Cannot add a snapshot, first-row-id is behind table next-row-id: 19 < 20"


@pytest.mark.parametrize(
    "rows, message",
    [
        ({"first-row-id": ...}, "first-row-id is null"),
        ({"added-rows": ...}, "added-rows is required"),
        ({"first-row-id": -1}, "cannot be negative"),
        ({"added-rows": -1}, "cannot be negative"),
        ({"added-rows": 2**63 - 5}, "exhausts"),
    ],
)
def test_a_version_3_snapshot_says_which_rows_are_its(rows, message):
    error = refused(commit(a_table(2, format_version=3), add(a_snapshot(3, format_version=3, **rows))))
    assert type(error) is BadInput
    assert message in error.message


@pytest.mark.parametrize(
    "given, message",
    [
        ({"snapshot-id": ...}, "snapshot-id must be an integer, is missing"),
        ({"snapshot-id": "3"}, "snapshot-id must be an integer"),
        ({"snapshot-id": 2**63}, "out of range"),
        ({"snapshot-id": -1}, "-1 is no snapshot's id"),
        ({"timestamp-ms": ...}, "timestamp-ms must be an integer"),
        ({"timestamp-ms": -5}, "timestamp-ms -5"),
        ({"manifest-list": ...}, "manifest-list is missing"),
        ({"manifest-list": 7}, "manifest-list must be a string"),
        ({"manifest-list": ..., "manifests": ["a", 7]}, "each of manifests must be a string"),
        ({"summary": {"operation": 7}}, "summary.operation must be a string"),
        ({"summary": "append"}, "summary must be an object"),
        ({"schema-id": "0"}, "schema-id must be an integer"),
        ({"key-id": 7}, "key-id must be a string"),
        ({"sequence-number": True}, "sequence-number must be an integer"),
    ],
)
def test_a_snapshot_that_is_none_is_refused(given, message):
    error = refused(commit(a_table(2), add(a_snapshot(3, **given))))
    assert type(error) is BadInput
    assert message in error.message


# -- branches and tags ------------------------------------------------------------------------------------------------


@pytest.mark.seed(25, 401)
def test_a_branch_and_a_tag_with_retention():
    retention = {"min-snapshots-to-keep": 3, "max-snapshot-age-ms": 4, "max-ref-age-ms": 2**62}
    table = changed(a_table(2), set_ref("b", 1, **retention), set_ref("t", 2, "tag", **{"max-ref-age-ms": 7}))
    assert table.refs["b"] == {"snapshot-id": 1, "type": "branch", **retention}
    assert table.refs["t"] == {"snapshot-id": 2, "type": "tag", "max-ref-age-ms": 7}
    assert (table.current_snapshot_id, log(table)) == (2, [1, 2])


@pytest.mark.parametrize(
    "update, message",
    [
        (set_ref("b", 99), "Cannot set b to unknown snapshot: 99"),
        (set_ref("main", 1, "tag"), "Cannot set main to a tag"),
        (set_ref("b", 1, "twig"), "type must be branch or tag"),
        (set_ref("b", 1, **{"min-snapshots-to-keep": 0}), "min-snapshots-to-keep must be greater than 0"),
        (set_ref("b", 1, **{"max-snapshot-age-ms": -1}), "max-snapshot-age-ms must be greater than 0"),
        (set_ref("b", 1, **{"max-ref-age-ms": "1"}), "max-ref-age-ms must be an integer"),
        (set_ref("t", 1, "tag", **{"min-snapshots-to-keep": 1}), "tags do not support setting min-snapshots-to-keep"),
        (set_ref("t", 1, "tag", **{"max-snapshot-age-ms": 1}), "tags do not support setting max-snapshot-age-ms"),
        ({"action": "set-snapshot-ref", "ref-name": "b", "snapshot-id": 1}, "type must be a string, is missing"),
        ({"action": "set-snapshot-ref", "ref-name": "b", "type": "tag"}, "snapshot-id must be an integer"),
        ({"action": "set-snapshot-ref", "snapshot-id": 1, "type": "tag"}, "ref-name must be a string"),
    ],
)
def test_a_ref_that_cannot_be_is_refused(update, message):
    error = refused(commit(a_table(2), update))
    assert type(error) is BadInput
    assert message in error.message


def test_a_branch_keeps_the_retention_an_append_does_not_mention():
    table = changed(a_table(2), set_ref("main", 2, **{"min-snapshots-to-keep": 9, "max-ref-age-ms": 8}))
    assert log(table) == [1, 2]
    table = changed(table, add(a_snapshot(3)), set_ref("main", 3, **{"max-ref-age-ms": 7}))
    assert table.refs["main"] == {"snapshot-id": 3, "type": "branch", "min-snapshots-to-keep": 9, "max-ref-age-ms": 7}
    table = changed(table, set_ref("main", 3, **{"min-snapshots-to-keep": None}))
    assert table.refs["main"] == {"snapshot-id": 3, "type": "branch", "max-ref-age-ms": 7}


def test_a_tag_that_becomes_a_branch_starts_anew():
    table = changed(a_table(2), set_ref("x", 1, "tag", **{"max-ref-age-ms": 7}))
    assert changed(table, set_ref("x", 2)).refs["x"] == {"snapshot-id": 2, "type": "branch"}


@pytest.mark.seed(403)
def test_removing_main_leaves_a_table_without_a_current_snapshot():
    for version, written in ((1, -1), (2, -1), (3, None)):
        table = changed(a_table(2, format_version=version), {"action": "remove-snapshot-ref", "ref-name": "main"})
        assert table.current_snapshot_id is None
        assert document(table)["current-snapshot-id"] == written
        assert (table.refs, log(table)) == ({}, [1, 2])
        assert TableMetadata.parse(table.encode()).current_snapshot_id is None


# -- the log of main --------------------------------------------------------------------------------------------------


def test_going_back_is_logged_at_the_time_it_happened():
    table = changed(a_table(3), set_ref("main", 1), now_ms=NOW_MS + 5000)
    assert table.snapshot_log[-1] == {"snapshot-id": 1, "timestamp-ms": NOW_MS + 5000}
    assert log(table) == [1, 2, 3, 1]


def test_snapshots_that_one_commit_passes_through_are_not_logged():
    table = changed(a_table(1), *an_append(2), *an_append(3), *an_append(4))
    assert log(table) == [1, 4]
    assert table.snapshot_count == 4
    assert log(changed(a_table(2), *an_append(3), set_ref("main", 1))) == [1, 2, 1]


@pytest.mark.seed(403)
def test_removed_snapshots_take_the_history_before_a_gap_along():
    table = a_table(5)
    assert log(changed(table, remove(1, 2))) == [3, 4, 5]
    assert log(changed(table, remove(3))) == [4, 5]
    assert log(changed(table, remove(4, 77))) == [5]
    assert changed(table, remove(3)).snapshot_count == 4


def test_removed_snapshots_take_their_refs_and_statistics_along():
    table = TableMetadata.parse(stored("v2"))
    after = changed(table, remove(3055729675574597004))
    assert after.current_snapshot_id is None
    assert dict(after.refs) == {"v1.0": table.refs["v1.0"]}
    assert (document(after)["statistics"], document(after)["partition-statistics"]) == ([], [])
    assert log(after) == []
    assert TableMetadata.parse(after.encode()).snapshot_count == 1


def test_all_but_the_current_snapshot_expire():
    table = a_table(500)
    after = changed(table, remove(*range(1, 500)))
    assert [snapshot["snapshot-id"] for snapshot in document(after)["snapshots"]] == [500]
    assert log(after) == [500]
    assert after.last_sequence_number == 500
    assert table.snapshot_count == 500
    assert changed(after, *an_append(501)).snapshot_count == 2


def test_a_commit_may_add_and_expire_at_once():
    table = changed(a_table(3), *an_append(4), remove(1, 2))
    assert (log(table), table.snapshot_count) == ([3, 4], 2)


def test_a_snapshot_added_and_removed_in_one_commit_leaves_no_trace_but_its_number():
    table = changed(a_table(2), add(a_snapshot(3)), remove(3))
    assert (table.snapshot_count, table.last_sequence_number, log(table)) == (2, 3, [1, 2])


# -- statistics -------------------------------------------------------------------------------------------------------


def statistics(id: int, size: int, **more: Any) -> dict[str, Any]:
    file = {"snapshot-id": id, "statistics-path": "s3://s", "file-size-in-bytes": size, "file-footer-size-in-bytes": 1}
    return {"action": "set-statistics", "statistics": {**file, "blob-metadata": [], **more}}


def partition_statistics(id: int, size: int) -> dict[str, Any]:
    file = {"snapshot-id": id, "statistics-path": "s3://p", "file-size-in-bytes": size}
    return {"action": "set-partition-statistics", "partition-statistics": file}


@pytest.mark.seed(403)
def test_a_snapshot_has_one_statistics_file_of_each_kind():
    table = changed(a_table(2), statistics(1, 10), statistics(2, 20), statistics(1, 30), partition_statistics(1, 5))
    assert [(file["snapshot-id"], file["file-size-in-bytes"]) for file in document(table)["statistics"]] == [
        (1, 30),
        (2, 20),
    ]
    table = changed(table, {"action": "remove-statistics", "snapshot-id": 1}, partition_statistics(1, 6))
    assert [file["snapshot-id"] for file in document(table)["statistics"]] == [2]
    assert [file["file-size-in-bytes"] for file in document(table)["partition-statistics"]] == [6]
    table = changed(table, {"action": "remove-partition-statistics", "snapshot-id": 1})
    assert document(table)["partition-statistics"] == []


@pytest.mark.parametrize(
    "update, message",
    [
        (statistics(1, 1) | {"snapshot-id": 2}, "snapshot-id 2 is not that of the statistics"),
        (statistics(1, 1, **{"statistics-path": None}), "statistics-path must be a string"),
        (statistics(1, 1, **{"snapshot-id": "1"}), "snapshot-id must be an integer"),
        (statistics(1, 1, **{"blob-metadata": {}}), "blob-metadata must be a list"),
        (statistics(1, 1, **{"file-footer-size-in-bytes": None}), "file-footer-size-in-bytes must be an integer"),
        ({"action": "set-partition-statistics", "partition-statistics": {}}, "file-size-in-bytes must be an integer"),
    ],
)
def test_statistics_that_are_none_are_refused(update, message):
    assert message in refused(commit(a_table(1), update)).message


def test_the_deprecated_snapshot_id_beside_statistics_may_agree():
    table = changed(a_table(1), statistics(1, 1) | {"snapshot-id": 1}, set_properties(a="b"))
    assert len(document(table)["statistics"]) == 1
