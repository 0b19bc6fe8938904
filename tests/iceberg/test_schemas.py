"""Which schemas a table may have, and the ids a new table's columns get."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import BadInput
from frazil.iceberg import schemas
from tests.iceberg.builders import SCHEMA, a_table, created, document, refused


def field(id: int, name: str, type: Any = "long", required: Any = False, **more: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "type": type, "required": required, **more}


def struct(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), **more}


def listing(id: int, element: Any, required: bool = False) -> dict[str, Any]:
    return {"type": "list", "element-id": id, "element": element, "element-required": required}


def mapping(key_id: int, key: Any, value_id: int, value: Any) -> dict[str, Any]:
    return {"type": "map", "key-id": key_id, "key": key, "value-id": value_id, "value": value, "value-required": False}


def problem(schema: dict[str, Any], format_version: int = 2) -> str:
    with pytest.raises(BadInput) as refusal:
        schemas.check(schema, format_version)
    return refusal.value.message


def test_columns_of_every_depth_have_their_full_names():
    found = schemas.columns(
        struct(
            field(1, "a"),
            field(2, "s", struct(field(3, "b", listing(4, struct(field(5, "c")))))),
            field(6, "m", mapping(7, "string", 8, "decimal(9,2)")),
        )
    )
    assert {id: (column.name, column.kind) for id, column in found.items()} == {
        1: ("a", "long"),
        2: ("s", "struct"),
        3: ("s.b", "list"),
        4: ("s.b.element", "struct"),
        5: ("s.b.element.c", "long"),
        6: ("m", "map"),
        7: ("m.key", "string"),
        8: ("m.value", "decimal"),
    }
    assert [column.name for column in schemas.ancestors(found[5], found)] == ["s.b.element", "s.b", "s"]


EVERYWHERE = "boolean int long float double date time timestamp timestamptz string uuid binary fixed[16] decimal(38,10)"
SINCE_V3 = (
    "timestamp_ns timestamptz_ns unknown variant geometry geography geometry(OGC:CRS84) geography(srid:4326) "
    "geography(OGC:CRS84,karney)"
)


@pytest.mark.parametrize("type", [*EVERYWHERE.split(), "decimal(9, 2)", "fixed[ 4 ]"])
def test_a_type_of_the_first_versions_is_taken_by_all(type):
    for version in (1, 2, 3):
        assert schemas.check(struct(field(1, "a", type)), version)


@pytest.mark.parametrize("type", SINCE_V3.split())
def test_a_type_of_version_3_is_refused_before(type):
    assert schemas.check(struct(field(1, "a", type)), 3)
    for version in (1, 2):
        said = problem(struct(field(9, "s", struct(field(1, "a", type)))), version)
        assert said.startswith(f"Invalid schema for v{version}: Invalid type for s.a: ")
        assert said.endswith("is not supported until v3")


UNKNOWN: list[Any] = [
    "blob",
    "INT",
    "fixed",
    "fixed[]",
    "decimal(9)",
    "decimal(39,2)",
    "decimal(9999999999,2)",
    "",
    None,
    7,
]
UNKNOWN += [[], {}, {"type": "set"}, "geometry()", "geography(a,b)", {"type": 1}]


@pytest.mark.parametrize("type", UNKNOWN)
def test_an_unknown_type_is_refused_with_its_path(type):
    for version in (2, 3):
        assert "Invalid type for outer.inner" in problem(
            struct(field(1, "outer", struct(field(2, "inner", type)))), version
        )
        assert "l.element" in problem(struct(field(1, "l", listing(2, type))), version)


@pytest.mark.parametrize("key", ["initial-default", "write-default"])
def test_defaults_come_with_version_3(key):
    schema = struct(field(1, "a", **{key: 0}))
    assert schemas.check(schema, 3)
    assert "non-null default is not supported until v3" in problem(schema, 2)
    assert schemas.check(struct(field(1, "a", **{key: None})), 2)
    assert "must be null for a list" in problem(struct(field(1, "a", listing(2, "int"), **{key: [1]})), 3)


def test_a_column_of_unknown_type_is_optional():
    assert "required field with unknown type: a" in problem(struct(field(1, "a", "unknown", True)), 3)


@pytest.mark.parametrize(
    "schema, message",
    [
        (struct(field(1, "a"), field(1, "b")), "multiple fields for id 1: a and b"),
        (struct(field(1, "a"), field(2, "a")), "multiple fields for name a: 1 and 2"),
        (struct(field(1, "a", listing(1, "int"))), "multiple fields for id 1"),
        (struct(field(1, "a.b"), field(2, "a", struct(field(3, "b")))), "multiple fields for name a.b"),
        ({"type": "list"}, "not a struct type"),
        ({"type": "struct"}, "fields must be a list"),
        (struct({"name": "a", "type": "int", "required": True}), "id must be an integer, is missing"),
        (struct({"id": True, "name": "a", "type": "int", "required": True}), "id must be an integer"),
        (struct({"id": 2**31, "name": "a", "type": "int", "required": True}), "out of range"),
        (struct({"id": 1, "name": 7, "type": "int", "required": True}), "name must be a string"),
        (struct({"id": 1, "name": "a", "type": "int"}), "required must be true or false"),
        (struct(field(1, "a", doc=7)), "doc must be a string"),
        (struct(field(1, "a", {"type": "list", "element": "int", "element-required": True})), "element-id must be"),
        (struct(field(1, "a", {"type": "map", "key-id": 2, "key": "int"})), "value-id must be"),
    ],
)
def test_what_is_no_schema_is_refused(schema, message):
    assert message in problem(schema)


def test_types_nest_so_deep_and_no_deeper():
    type: Any = "int"
    for id in range(1000, 1000 + schemas.DEPTH_MAX - 1):
        type = listing(id, type)
    assert schemas.check(struct(field(1, "a", type)), 2)
    for id in range(5000, 5600):
        type = listing(id, type)
    assert "nested deeper" in problem(struct(field(1, "a", type)))


@pytest.mark.parametrize(
    "identifier, message",
    [
        (99, "field does not exist"),
        (1, "not a required field"),
        (2, "must not be float or double"),
        (3, "not a primitive type"),
        (5, "must not be nested in list l"),
        (8, "must not be nested in an optional field o"),
    ],
)
def test_an_identifier_field_is_required_primitive_exact_and_in_no_collection(identifier, message):
    schema = struct(
        field(1, "a"),
        field(2, "d", "double", True),
        field(3, "l", listing(4, struct(field(5, "x", "int", True)), True), True),
        field(7, "o", struct(field(8, "y", "int", True))),
        field(9, "s", struct(field(10, "z", "int", True)), True),
        **{"identifier-field-ids": [10, identifier]},
    )
    said = problem(schema)
    assert "as an identifier field: " in said
    assert message in said
    assert schemas.check({**schema, "identifier-field-ids": [10]}, 2)


def test_schemas_are_the_same_but_for_what_says_the_same():
    one = struct(field(1, "a", "decimal(9, 2)", True), **{"schema-id": 3, "identifier-field-ids": [1]})
    other = struct(field(1, "a", "decimal(9,2)", True, doc=None), **{"identifier-field-ids": [1]})
    assert schemas.same(one, other)
    assert not schemas.same(one, {**other, "identifier-field-ids": []})
    assert not schemas.same(one, struct(field(1, "a", "decimal(9,2)", True, doc="d"), **{"identifier-field-ids": [1]}))
    assert not schemas.same(struct(field(1, "a", doc="fixed[ 1")), struct(field(1, "a", doc="fixed[1")))
    assert not schemas.same(struct(field(1, "a"), field(2, "b")), struct(field(2, "b"), field(1, "a")))


@pytest.mark.seed(394)
def test_a_new_tables_columns_are_numbered_from_one():
    table = created(
        schema=struct(
            field(30, "a", "long", True), field(40, "b", doc="kept"), **{"schema-id": 7, "identifier-field-ids": [30]}
        )
    )
    doc = document(table)
    assert doc["schemas"] == [
        struct(field(1, "a", "long", True), field(2, "b", doc="kept"), **{"schema-id": 0, "identifier-field-ids": [1]})
    ]
    assert (doc["last-column-id"], doc["current-schema-id"]) == (2, 0)


def test_fresh_ids_go_level_by_level_and_then_into_the_depth():
    nested = struct(
        field(10, "a", struct(field(20, "x"), field(30, "y", listing(40, struct(field(50, "deep")))))),
        field(60, "m", mapping(70, struct(field(80, "k")), 90, struct(field(100, "v")))),
        field(110, "z", **{"x-foreign": 1.5}),
    )
    fresh, became, last = schemas.fresh(nested)
    assert fresh == {
        **struct(
            field(1, "a", struct(field(4, "x"), field(5, "y", listing(6, struct(field(7, "deep")))))),
            field(2, "m", mapping(8, struct(field(10, "k")), 9, struct(field(11, "v")))),
            field(3, "z", **{"x-foreign": 1.5}),
        ),
        "schema-id": 0,
    }
    assert last == 11
    assert became == {10: 1, 60: 2, 110: 3, 20: 4, 30: 5, 40: 6, 50: 7, 70: 8, 90: 9, 80: 10, 100: 11}


def test_a_create_says_what_is_wrong_with_its_schema():
    assert "multiple fields for id 1" in refused(created(schema=struct(field(1, "a"), field(1, "b")))).message
    assert "not supported until v3" in refused(created(schema=struct(field(1, "a", "variant")))).message
    assert a_table(schema=struct(field(1, "a", "variant")), format_version=3).last_column_id == 1


def test_the_requests_own_schema_is_left_alone():
    before = repr(SCHEMA)
    a_table(schema=SCHEMA)
    assert repr(SCHEMA) == before
