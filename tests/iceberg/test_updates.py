"""A commit as a whole: what it keeps, what it refuses, what it makes of clocks and logs; and making a table."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from frazil.errors import BadInput
from frazil.iceberg import updates
from frazil.iceberg.metadata import TableMetadata
from frazil.iceberg.updates import Rejected
from tests.iceberg.builders import (
    NOW_MS,
    SCHEMA,
    a_snapshot,
    a_table,
    add,
    an_append,
    changed,
    commit,
    created,
    document,
    exact,
    made,
    refused,
    set_properties,
    set_ref,
    stored,
)

MINUTE_MS = 60_000
EVERY = ("v1_old", "v1", "v2", "v3")
ADDED = {"first-row-id": 150, "added-rows": 5}


def an_append_to(table: TableMetadata, id: int = 4711, **given: Any) -> list[dict[str, Any]]:
    version = table.format_version
    number = table.last_sequence_number + 1 if version >= 2 else ...
    rows = {"first-row-id": table.next_row_id, "added-rows": 5} if version >= 3 else {}
    snapshot = a_snapshot(id, format_version=1, **{"sequence-number": number, "parent-snapshot-id": ...} | rows | given)
    return [add(snapshot), set_ref("main", id)]


# -- nothing is lost --------------------------------------------------------------------------------------------------


@pytest.mark.seed(25, 401)
@pytest.mark.parametrize("name", EVERY)
def test_an_append_keeps_every_field_nobody_knows(name):
    before = TableMetadata.parse(stored(name))
    snapshot, ref = an_append_to(before)
    after = document(changed(before, snapshot, ref))
    was = exact(stored(name))
    expected = {
        "last-updated-ms": NOW_MS + 4711,
        "current-snapshot-id": 4711,
        "snapshots": [*was["snapshots"], snapshot["snapshot"]],
        "snapshot-log": [*was.get("snapshot-log", []), {"snapshot-id": 4711, "timestamp-ms": NOW_MS + 4711}],
        "metadata-log": [
            *was.get("metadata-log", []),
            {"metadata-file": "s3://bucket/table/metadata/previous.json", "timestamp-ms": was["last-updated-ms"]},
        ],
    }
    main = was.get("refs", {}).get("main", {"type": "branch"})
    expected["refs"] = {**was.get("refs", {}), "main": {**main, "snapshot-id": 4711}}
    if name != "v1_old" and name != "v1":
        expected["last-sequence-number"] = was["last-sequence-number"] + 1
    if name == "v3":
        expected["next-row-id"] = 155
    implied = {} if name != "v1_old" else {key: after[key] for key in after.keys() - was.keys()}
    assert after == implied | was | expected


@pytest.mark.seed(25, 403)
def test_every_kind_of_update_leaves_alone_what_it_does_not_name():
    was = exact(stored("v2"))
    table = TableMetadata.parse(stored("v2"))
    old = 3051729675574597004
    after = document(
        changed(
            table,
            {"action": "add-schema", "schema": {**SCHEMA, "x-new": 1}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"fields": [{"name": "id_b", "transform": "bucket[4]", "source-id": 1}]}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "set-properties", "updates": {"a": "b"}},
            {
                "action": "add-encryption-key",
                "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AA==", "x": 1},
            },
            set_ref("new", old, "tag", **{"x-more": 2**80}),
            {"action": "remove-snapshot-ref", "ref-name": "audit"},
            {
                "action": "set-partition-statistics",
                "partition-statistics": {
                    "snapshot-id": old,
                    "statistics-path": "p",
                    "file-size-in-bytes": 1,
                    "x": 2**65,
                },
            },
        )
    )
    for key in (
        "x-top",
        'x-"odd" key',
        "sort-orders",
        "snapshots",
        "snapshot-log",
        "statistics",
        "location",
        "table-uuid",
    ):
        assert after[key] == was[key], key
    assert after["schemas"][:2] == was["schemas"]
    assert after["schemas"][2] == {**SCHEMA, "x-new": 1, "schema-id": 2}
    assert after["partition-specs"][0] == was["partition-specs"][0]
    assert after["metadata-log"][0] == was["metadata-log"][0]
    assert after["refs"]["main"] == was["refs"]["main"]
    assert after["refs"]["v1.0"] == was["refs"]["v1.0"]
    assert after["refs"]["new"] == {"snapshot-id": old, "type": "tag", "x-more": 2**80}
    assert after["partition-statistics"][0] == was["partition-statistics"][0]
    assert after["partition-statistics"][1]["x"] == 2**65
    assert after["encryption-keys"] == [{"key-id": "k", "encrypted-key-metadata": "AA==", "x": 1}]


def test_numbers_keep_their_digits_through_a_commit():
    after = changed(TableMetadata.parse(stored("v2")), *an_append_to(TableMetadata.parse(stored("v2")))).encode()
    for digits in (
        b"1e-400",
        b"0.1000000000000000055511151231257827",
        b"2.50",
        b"18446744073709551617",
        b"9007199254740993",
    ):
        assert digits in after
    assert exact(after)["x-top"]["small"] == Decimal("1e-400")


def test_a_snapshot_with_numbers_of_any_size_is_stored_as_it_came():
    table = changed(a_table(), add(a_snapshot(1, **{"x-big": 2**200, "x-small": -(2**90)})))
    assert document(table)["snapshots"][0]["x-big"] == 2**200


# -- nothing happens for nothing --------------------------------------------------------------------------------------

SAME: list[list[dict[str, Any]]] = [
    [],
    [set_properties()],
    [set_properties(a="b")],
    [{"action": "remove-properties", "removals": ["never", "there"]}],
    [set_properties(c="d"), {"action": "remove-properties", "removals": ["c"]}],
    [{"action": "upgrade-format-version", "format-version": 2}],
    [{"action": "assign-uuid", "uuid": "0197A1B2-0000-7000-8000-000000000001"}],
    [{"action": "set-location", "location": "s3://bucket/table"}],
    [set_ref("main", 2)],
    [set_ref("main", 1), set_ref("main", 2)],
    [{"action": "remove-snapshots", "snapshot-ids": [77]}],
    [{"action": "remove-snapshot-ref", "ref-name": "nowhere"}],
    [{"action": "remove-statistics", "snapshot-id": 1}, {"action": "remove-partition-statistics", "snapshot-id": 1}],
    [{"action": "remove-schemas", "schema-ids": [9]}, {"action": "remove-partition-specs", "spec-ids": [9]}],
    [{"action": "remove-encryption-key", "key-id": "none"}],
    [{"action": "add-schema", "schema": SCHEMA}, {"action": "set-current-schema", "schema-id": -1}],
    [{"action": "add-spec", "spec": {"fields": []}}, {"action": "set-default-spec", "spec-id": -1}],
    [{"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}}],
    [{"action": "set-default-sort-order", "sort-order-id": 0}],
]


def test_properties_and_refs_that_were_taken_away_and_given_back_are_no_change():
    table = changed(a_table(2), set_properties(a="1", b="2"), set_ref("x", 1, **{"max-ref-age-ms": 5}), set_ref("y", 1))
    back: list[dict[str, Any]] = [
        {"action": "remove-properties", "removals": ["a"]},
        {"action": "remove-snapshot-ref", "ref-name": "x"},
    ]
    again: list[dict[str, Any]] = [set_properties(a="1"), set_ref("x", 1, **{"max-ref-age-ms": 5})]
    assert commit(table, *back, *again) is table
    assert commit(table, *back) is not table


@pytest.mark.parametrize("changes", SAME)
def test_a_commit_that_changes_nothing_gives_the_very_table(changes):
    table = changed(a_table(2), set_properties(a="b"))
    assert commit(table, *changes) is table
    again = TableMetadata.parse(table.encode())
    assert commit(again, *changes) is again


@pytest.mark.parametrize("name", EVERY)
def test_a_commit_without_updates_gives_the_very_table_of_any_version(name):
    table = TableMetadata.parse(stored(name))
    assert commit(table) is table


def test_the_table_a_commit_was_made_from_is_left_as_it_was():
    table = a_table(3)
    before = table.encode()
    for number in range(4, 300):
        changed(
            table,
            *an_append(number),
            set_properties(a=str(number)),
            {"action": "remove-snapshots", "snapshot-ids": [1]},
        )
    assert table.encode() == before


# -- time and logs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skew_ms", [-10 * MINUTE_MS, -MINUTE_MS, -1, 0, 1, MINUTE_MS, 10 * MINUTE_MS])
def test_time_never_goes_back_for_a_reader_whatever_the_writers_clocks_say(skew_ms):
    table, latest = a_table(1), 0
    for number in range(2, 8):
        off = skew_ms if number % 2 else -skew_ms
        here = NOW_MS + number * 1000
        snapshot = a_snapshot(number, **{"timestamp-ms": here + off})
        table = changed(table, add(snapshot), set_ref("main", number), now_ms=here)
        table = changed(table, set_ref("main", number - 1), now_ms=here - off)
        table = changed(table, set_ref("main", number), now_ms=here + off)
        assert table.last_updated_ms >= latest
        latest = table.last_updated_ms
        for log in (table.snapshot_log, table.metadata_log):
            times = [entry["timestamp-ms"] for entry in log]
            assert all(later >= earlier - MINUTE_MS for earlier, later in pairwise(times))
            assert table.last_updated_ms >= times[-1] - MINUTE_MS
        assert table.last_updated_ms >= snapshot["timestamp-ms"]


def test_a_snapshot_keeps_its_own_time_where_the_log_corrects_it():
    table = changed(a_table(1), add(a_snapshot(2, **{"timestamp-ms": NOW_MS - 600_000})), set_ref("main", 2))
    assert (table.snapshot(2) or {})["timestamp-ms"] == NOW_MS - 600_000
    assert table.snapshot_log[-1] == {"snapshot-id": 2, "timestamp-ms": NOW_MS + 1}


@pytest.mark.parametrize("most, kept", [("3", 3), ("1", 1), ("0", 1), ("nonsense", 7), ("9" * 5000, 7), (None, 7)])
def test_the_metadata_log_is_as_long_as_the_table_wants(most, kept):
    table = a_table(properties={} if most is None else {"write.metadata.previous-versions-max": most})
    for number in range(1, 8):
        table = changed(table, set_properties(n=str(number)), previous=f"s3://m/{number}.json", now_ms=NOW_MS + number)
    assert [entry["metadata-file"] for entry in table.metadata_log] == [f"s3://m/{n}.json" for n in range(8 - kept, 8)]
    assert table.metadata_log[-1]["timestamp-ms"] == NOW_MS + 6


def test_a_hundred_previous_versions_are_kept_unless_said_otherwise():
    table = a_table()
    for number in range(130):
        table = changed(table, set_properties(n=str(number)), previous=f"s3://m/{number}.json")
    assert len(table.metadata_log) == 100
    assert table.metadata_log[0]["metadata-file"] == "s3://m/30.json"
    shorter = changed(
        table, set_properties(**{"write.metadata.previous-versions-max": "2"}), previous="s3://m/last.json"
    )
    assert [entry["metadata-file"] for entry in shorter.metadata_log] == ["s3://m/129.json", "s3://m/last.json"]


def test_a_version_that_no_file_came_before_logs_none():
    assert changed(a_table(), set_properties(a="b"), previous=None).metadata_log == []


# -- what no table has ------------------------------------------------------------------------------------------------


@pytest.mark.seed(143, 155)
def test_everything_unknown_in_a_commit_is_listed_at_once():
    requirements: list[Any] = [{"type": "assert-view-uuid"}, {"type": "assert-create"}, {"type": "assert-luck"}, {}]
    actions: list[Any] = [
        {"action": "add-view-version"},
        set_properties(a="b"),
        {"action": "explode"},
        {"action": 7},
        "x",
    ]
    for outcome in (
        updates.unknown(requirements, actions),
        updates.apply(a_table(), requirements, actions, now_ms=0, previous_location=None),
        updates.apply(None, requirements, actions, now_ms=0, previous_location=None),
    ):
        error = refused(outcome)
        assert type(error) is BadInput
        for name in (
            "assert-view-uuid",
            "assert-luck",
            "(type is missing)",
            "add-view-version",
            "explode",
            "(action is missing)",
        ):
            assert name in error.message
        assert "set-properties" not in error.message


def test_what_is_known_is_not_unknown():
    assert updates.unknown([{"type": "assert-create"}], [set_properties()]) is None
    assert updates.unknown([], []) is None


@pytest.mark.seed(25)
def test_every_update_of_the_specification_for_tables_is_known():
    assert set(updates.ACTIONS) == {
        *("assign-uuid", "upgrade-format-version", "add-schema", "set-current-schema", "add-spec", "set-default-spec"),
        *("add-sort-order", "set-default-sort-order", "add-snapshot", "set-snapshot-ref", "remove-snapshots"),
        *("remove-snapshot-ref", "set-location", "set-properties", "remove-properties", "set-statistics"),
        *("remove-statistics", "set-partition-statistics", "remove-partition-statistics", "remove-partition-specs"),
        *("remove-schemas", "add-encryption-key", "remove-encryption-key"),
        "add-partition-spec",  # as older clients call add-spec
    }


@pytest.mark.parametrize("action", updates.ACTIONS)
@pytest.mark.parametrize("name", EVERY)
def test_an_update_of_any_shape_is_applied_or_refused_but_never_breaks(action, name):
    table = TableMetadata.parse(stored(name))
    keys = (
        "uuid format-version schema schema-id spec spec-id sort-order sort-order-id snapshot ref-name snapshot-id type"
    )
    keys += " snapshot-ids location updates removals statistics partition-statistics spec-ids schema-ids"
    keys += " encryption-key key-id"
    values: list[Any] = [None, True, 7, -1, 2**70, 1.5, "x", "", [], ["x"], [7], [None], {}, {"a": 7}, {"fields": []}]
    values += [
        {"fields": [{}]},
        {"snapshot-id": 7, "timestamp-ms": 7},
        {"key-id": "k"},
        {"type": "struct", "fields": [[]]},
    ]
    for value in values:
        outcome = commit(table, {"action": action, **dict.fromkeys(keys.split(), value)})
        if isinstance(outcome, Rejected):
            assert outcome.error.message
            assert outcome.error.__traceback__ is None
        else:
            TableMetadata.parse(outcome.encode())


def test_the_first_update_that_is_wrong_refuses_the_whole_commit():
    table = a_table(1)
    error = refused(commit(table, set_properties(a="b"), set_ref("main", 99), {"action": "set-location"}))
    assert error.message == "Cannot set main to unknown snapshot: 99"
    assert table.properties == {}


def test_something_nested_without_end_is_refused():
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert type(refused(commit(a_table(), add(a_snapshot(1, **{"x-deep": deep}))))) is BadInput
    while deep:  # Unwound by hand: freeing it in one go would be as deep.
        deep = deep.pop()


# -- properties, location, uuid, keys ---------------------------------------------------------------------------------


@pytest.mark.seed(403)
def test_properties_are_set_and_removed():
    table = changed(a_table(properties={"a": "1", "b": "2"}), set_properties(b="3", c="4"))
    table = changed(table, {"action": "remove-properties", "removals": ["a", "unheard"]})
    assert table.properties == {"b": "3", "c": "4"}


@pytest.mark.parametrize("value", [1, None, True, {}, ["a"]])
def test_a_property_is_a_string(value):
    assert (
        "updates.a must be a string"
        in refused(commit(a_table(), {"action": "set-properties", "updates": {"a": value}})).message
    )
    assert "properties.a must be a string" in refused(created(properties={"a": value})).message


def test_a_table_has_its_uuid_for_good():
    error = refused(commit(a_table(), {"action": "assign-uuid", "uuid": "0197a1b2-0000-7000-8000-00000000ffff"}))
    assert "for good" in error.message
    old = json.loads(stored("v1_old"))
    del old["table-uuid"]
    table = TableMetadata.parse(json.dumps(old).encode())
    assert table.uuid == ""
    assert changed(table, {"action": "assign-uuid", "uuid": "u"}).uuid == "u"


def test_a_location_is_set():
    assert changed(a_table(), {"action": "set-location", "location": "s3://elsewhere"}).location == "s3://elsewhere"
    assert type(refused(commit(a_table(), {"action": "set-location", "location": ""}))) is BadInput


@pytest.mark.seed(25)
def test_encryption_keys_come_once_and_go():
    table = TableMetadata.parse(stored("v3"))
    key = {"key-id": "k2", "encrypted-key-metadata": "AA=="}
    more = changed(table, {"action": "add-encryption-key", "encryption-key": key})
    assert [key["key-id"] for key in document(more)["encryption-keys"]] == ["k1", "k2"]
    again = commit(more, {"action": "add-encryption-key", "encryption-key": {**key, "encrypted-key-metadata": "other"}})
    assert again is more
    less = changed(more, {"action": "remove-encryption-key", "key-id": "k1"})
    assert document(less)["encryption-keys"] == [key]
    assert (
        "encrypted-key-metadata"
        in refused(commit(table, {"action": "add-encryption-key", "encryption-key": {"key-id": "k3"}})).message
    )


# -- making a table ---------------------------------------------------------------------------------------------------


@pytest.mark.seed(394)
def test_a_new_table_is_what_was_asked_for():
    doc = document(created(properties={"owner": "me", "format-version": "2", "uuid": "x"}))
    assert doc == {
        "format-version": 2,
        "table-uuid": "0197a1b2-0000-7000-8000-000000000001",
        "location": "s3://bucket/table",
        "last-sequence-number": 0,
        "last-updated-ms": NOW_MS,
        "last-column-id": 3,
        "current-schema-id": 0,
        "schemas": [{**SCHEMA, "schema-id": 0}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "me"},
        "current-snapshot-id": -1,
        "refs": {},
        "statistics": [],
        "partition-statistics": [],
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
    }
    assert next(iter(doc)) == "format-version"


@pytest.mark.parametrize(
    "asked, named, version", [(None, None, 2), (None, "1", 1), (None, "3", 3), (3, None, 3), (1, "3", 1), (2, "2", 2)]
)
def test_the_format_version_is_the_arguments_or_the_propertys_or_2(asked, named, version):
    table = made(created(format_version=asked, properties={} if named is None else {"format-version": named}))
    assert table.format_version == version
    assert "format-version" not in table.properties
    assert (version >= 3) == ("next-row-id" in document(table))
    assert (version == 1) == ("schema" in document(table)) == ("partition-spec" in document(table))


@pytest.mark.parametrize(
    "given", [{"format_version": 4}, {"format_version": 0}, {"properties": {"format-version": "two"}}]
)
def test_a_format_version_nobody_has_is_refused(given):
    assert "Unsupported format version" in refused(created(**given)).message


STAGED: list[dict[str, Any]] = [
    {"action": "assign-uuid", "uuid": "u-1"},
    {"action": "upgrade-format-version", "format-version": 3},
    {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}, "last-column-id": 3},
    {"action": "set-current-schema", "schema-id": -1},
    {
        "action": "add-spec",
        "spec": {"spec-id": 0, "fields": [{"name": "d", "transform": "day", "source-id": 3, "field-id": 1000}]},
    },
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "set-location", "location": "s3://bucket/staged"},
    set_properties(owner="me"),
]


@pytest.mark.seed(25, 403)
def test_a_staged_creates_commit_makes_the_table():
    append = [add(a_snapshot(1, format_version=3)), set_ref("main", 1)]
    table = changed(None, *STAGED, *append, requirements=[{"type": "assert-create"}], previous=None)
    assert (table.uuid, table.location, table.format_version) == ("u-1", "s3://bucket/staged", 3)
    assert (table.current_snapshot_id, table.next_row_id, table.last_partition_id) == (1, 10, 1000)
    assert table.metadata_log == []
    assert TableMetadata.parse(table.encode()).current_snapshot_id == 1


def test_a_staged_create_may_leave_spec_and_order_out():
    table = changed(None, *STAGED[:4], *STAGED[8:], previous=None)
    assert table.partition_specs == [{"spec-id": 0, "fields": []}]
    assert table.sort_orders == [{"order-id": 0, "fields": []}]
    assert TableMetadata.parse(table.encode()).last_partition_id == 999


@pytest.mark.parametrize("without, message", [(0, "table-uuid"), (3, "without a schema"), (8, "location")])
def test_a_create_without_what_makes_a_table_is_refused(without, message):
    changes = [update for at, update in enumerate(STAGED) if at != without and not (without == 3 and 4 <= at <= 7)]
    error = refused(commit(None, *changes, previous=None))
    assert type(error) is BadInput
    assert message in error.message


def test_a_create_of_nothing_is_refused():
    assert type(refused(commit(None))) is BadInput
