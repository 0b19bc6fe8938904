"""Tables over the wire."""

import json

import pytest

from tests.rest.live import SCHEMA, a_ref, a_snapshot, setting


@pytest.mark.seed(132, 394, 397)
def test_a_new_table_answers_its_location_and_its_whole_metadata(client, live):
    namespace = client.a_namespace()
    body = {
        "name": "t",
        "schema": {**SCHEMA, "identifier-field-ids": [1]},
        "partition-spec": {"spec-id": 0, "fields": [{"name": "p", "source-id": 1, "transform": "bucket[4]"}]},
        "write-order": {
            "order-id": 1,
            "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
        },
        "properties": {"owner": "data-team"},
    }
    made = client.post(f"/namespaces/{namespace}/tables", body).json
    metadata = made["metadata"]
    assert made["metadata-location"].startswith(live.app.site.root + "/tables/" + metadata["table-uuid"])
    assert made["config"] == {}
    assert metadata["format-version"] == 2
    assert metadata["schemas"][0]["identifier-field-ids"] == [1]
    assert metadata["partition-specs"][0]["fields"][0]["transform"] == "bucket[4]"
    assert metadata["sort-orders"][0]["fields"][0]["direction"] == "asc"
    assert metadata["properties"] == {"owner": "data-team"}
    assert client.get(f"/namespaces/{namespace}/tables/t").json == made


def test_a_table_that_exists_is_a_conflict(client):
    namespace = client.a_namespace()
    client.a_table(namespace)
    again = client.post(f"/namespaces/{namespace}/tables", {"name": "t", "schema": SCHEMA})
    assert again.error == (409, "AlreadyExistsException")


def test_a_table_in_a_missing_namespace_cannot_be_made_nor_listed(client):
    made = client.post("/namespaces/nowhere/tables", {"name": "t", "schema": SCHEMA})
    assert made.error == (404, "NoSuchNamespaceException")
    assert client.get("/namespaces/nowhere/tables").error == (404, "NoSuchNamespaceException")


@pytest.mark.seed(38, 144, 405)
@pytest.mark.parametrize("namespace", ["there", "nowhere", "a%1Fb"])
def test_a_missing_table_is_no_such_table_whatever_its_namespace(client, namespace):
    if namespace == "there":
        namespace = client.a_namespace()
    path = f"/namespaces/{namespace}/tables/missing"
    for reply in (
        client.get(path),
        client.delete(path),
        client.commit(path, setting(a="1")),
        client.get(f"{path}/credentials"),
    ):
        assert reply.error == (404, "NoSuchTableException")
    assert (client.head(path).status, client.head(path).body) == (404, b"")


def test_sparks_empty_namespace_is_no_such_table(client):
    for reply in (client.get("/namespaces//tables/ns"), client.delete("/namespaces//tables/ns")):
        assert reply.error == (404, "NoSuchTableException")


@pytest.mark.seed(400)
def test_head_tells_whether_a_table_exists_and_has_no_body(client):
    reply = client.head(client.a_table())
    assert (reply.status, reply.body) == (204, b"")


@pytest.mark.seed(393)
def test_listing_names_the_tables_of_a_namespace(client):
    namespace = client.a_namespace()
    assert client.get(f"/namespaces/{namespace}/tables").json == {"identifiers": []}
    client.a_table(namespace, "b")
    client.a_table(namespace, "a")
    listed = client.get(f"/namespaces/{namespace}/tables").json["identifiers"]
    assert listed == [{"namespace": [namespace], "name": "a"}, {"namespace": [namespace], "name": "b"}]


def test_a_staged_table_is_not_there_until_its_commit(client):
    namespace = client.a_namespace()
    path = f"/namespaces/{namespace}/tables/s"
    body = {"name": "s", "schema": SCHEMA, "stage-create": True}
    staged = client.post(f"/namespaces/{namespace}/tables", body).json
    assert "metadata-location" not in staged
    assert client.head(path).status == 404
    metadata = staged["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    made = client.commit(path, *updates, requirements=[{"type": "assert-create"}])
    assert made.status == 200, made.body
    assert made.json["metadata"]["table-uuid"] == metadata["table-uuid"]
    assert client.get(path).json == made.json
    late = client.commit(path, *updates, requirements=[{"type": "assert-create"}])
    assert late.error == (409, "CommitFailedException")


def test_a_dropped_table_comes_back_by_registering_its_metadata(client):
    namespace = client.a_namespace()
    path = client.a_table(namespace)
    before = client.get(path).json
    assert client.delete(path).status == 204
    body = {"name": "back", "metadata-location": before["metadata-location"]}
    assert client.post(f"/namespaces/{namespace}/register", body).json == before
    assert client.get(f"/namespaces/{namespace}/tables/back").json == before


def test_register_refuses_to_overwrite_and_what_is_not_there(client):
    namespace = client.a_namespace()
    place = client.get(client.a_table(namespace)).json["metadata-location"]
    over = client.post(
        f"/namespaces/{namespace}/register", {"name": "t", "metadata-location": place, "overwrite": True}
    )
    assert over.error == (400, "BadRequestException")
    assert "drop the table first" in over.json["error"]["message"]
    for location in ("file:///etc/passwd", place + "x"):
        body = {"name": "u", "metadata-location": location}
        assert client.post(f"/namespaces/{namespace}/register", body).error == (400, "BadRequestException")
    body = {"name": "u", "metadata-location": place}
    assert client.post("/namespaces/nowhere/register", body).error == (404, "NoSuchNamespaceException")


@pytest.mark.seed(401)
def test_an_append_is_committed_on_the_snapshot_it_was_made_for(client):
    path = client.a_table()
    free = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
    first = client.commit(path, a_snapshot(7), a_ref(7), requirements=[free])
    assert first.json["metadata"]["current-snapshot-id"] == 7
    assert first.json["metadata"]["snapshots"][0]["summary"]["added-records"] == "3"
    assert client.commit(path, a_snapshot(8, 2, 7), a_ref(8), requirements=[free]).error == (
        409,
        "CommitFailedException",
    )
    on_seven = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}
    assert client.commit(path, a_snapshot(8, 2, 7), a_ref(8), requirements=[on_seven]).status == 200


@pytest.mark.seed(138, 265)
@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-table-uuid", "uuid": "00000000-0000-4000-8000-000000000000"},
        {"type": "assert-current-schema-id", "current-schema-id": 9},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 9},
        {"type": "assert-default-spec-id", "default-spec-id": 9},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 9},
    ],
)
def test_a_requirement_that_does_not_hold_is_a_failed_commit(client, requirement):
    reply = client.commit(client.a_table(), setting(a="1"), requirements=[requirement])
    assert reply.error == (409, "CommitFailedException")


@pytest.mark.seed(22, 402)
def test_a_tables_location_cannot_be_set(client):
    reply = client.commit(client.a_table(), {"action": "set-location", "location": "file:///elsewhere"})
    assert reply.error == (400, "BadRequestException")


@pytest.mark.seed(23, 24)
@pytest.mark.parametrize("name", ["frazil.x", "Frazil.X", "arco.x", "ARCO.x"])
def test_the_catalogs_own_table_properties_are_refused(client, name):
    path = client.a_table()
    for update in (setting(**{name: "1"}), {"action": "remove-properties", "removals": [name]}):
        assert client.commit(path, update).error == (400, "BadRequestException")


@pytest.mark.seed(143, 155)
def test_unknown_updates_and_requirements_are_all_named(client):
    reply = client.post(
        client.a_table(),
        {"updates": [{"action": "fly"}, {"action": "swim"}], "requirements": [{"type": "assert-weather"}]},
    )
    assert reply.error == (400, "BadRequestException")
    assert all(word in reply.json["error"]["message"] for word in ("fly", "swim", "assert-weather"))


def test_the_identifier_in_a_commit_must_be_the_paths(client):
    namespace = client.a_namespace()
    path = client.a_table(namespace)
    body = {"requirements": [], "updates": [setting(a="1")]}
    same = {**body, "identifier": {"namespace": [namespace], "name": "t"}}
    other = {**body, "identifier": {"namespace": [namespace], "name": "u"}}
    assert client.post(path, same).status == 200
    assert client.post(path, other).error == (400, "BadRequestException")


@pytest.mark.seed(404)
@pytest.mark.parametrize("query", ["", "?purgeRequested=false", "?purgeRequested=true", "?purgeRequested=TRUE"])
def test_a_table_is_dropped_with_or_without_a_purge_asked_for(client, query):
    path = client.a_table()
    reply = client.delete(path + query)
    assert (reply.status, reply.body) == (204, b"")
    assert client.get(path).error == (404, "NoSuchTableException")


def test_purge_requested_is_true_or_false(client):
    path = client.a_table()
    assert client.delete(f"{path}?purgeRequested=maybe").error == (400, "BadRequestException")
    assert client.get(path).status == 200


def test_a_table_is_renamed_across_namespaces(client):
    source, target = client.a_namespace(), client.a_namespace()
    before = client.get(client.a_table(source)).json
    names = {"source": {"namespace": [source], "name": "t"}, "destination": {"namespace": [target], "name": "u"}}
    reply = client.post("/tables/rename", names)
    assert (reply.status, reply.body) == (204, b"")
    assert client.get(f"/namespaces/{target}/tables/u").json == before
    assert client.get(f"/namespaces/{source}/tables/t").status == 404
    assert client.post("/tables/rename", names).error == (404, "NoSuchTableException")


def test_a_rename_onto_a_table_or_into_nowhere_is_refused(client):
    namespace = client.a_namespace()
    client.a_table(namespace)
    client.a_table(namespace, "u")

    def rename(to):
        source = {"namespace": [namespace], "name": "t"}
        return client.post("/tables/rename", {"source": source, "destination": to})

    assert rename({"namespace": [namespace], "name": "u"}).error == (409, "AlreadyExistsException")
    assert rename({"namespace": ["nowhere"], "name": "u"}).error == (404, "NoSuchNamespaceException")


@pytest.mark.seed(156, 157)
def test_no_credentials_are_vended_and_asking_for_them_is_no_error(client):
    path = client.a_table()
    assert client.get(f"{path}/credentials").json == {"storage-credentials": []}
    for wish in ("vended-credentials", "remote-signing", "vended-credentials,remote-signing"):
        loaded = client.get(path, x_iceberg_access_delegation=wish)
        assert loaded.status == 200
        assert "storage-credentials" not in loaded.json


SCAN = {
    "report-type": "scan-report",
    "table-name": "t",
    "snapshot-id": 1,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {},
}
COMMIT = {
    "report-type": "commit-report",
    "table-name": "t",
    "snapshot-id": 1,
    "sequence-number": 1,
    "operation": "append",
    "metrics": {},
    "metadata": {"engine": "spark"},
}


@pytest.mark.parametrize("report", [SCAN, COMMIT], ids=["scan", "commit"])
def test_a_metrics_report_is_taken(client, report):
    reply = client.post(f"{client.a_table()}/metrics", report)
    assert (reply.status, reply.body) == (204, b"")
    missing = f"/namespaces/{client.a_namespace()}/tables/missing/metrics"
    assert client.post(missing, report).error == (404, "NoSuchTableException")


@pytest.mark.parametrize(
    "report", [{}, {"report-type": "weather"}, {**SCAN, "snapshot-id": "1"}, {**COMMIT, "metrics": []}]
)
def test_a_malformed_metrics_report_is_refused(client, report):
    assert client.post(f"{client.a_table()}/metrics", report).error == (400, "BadRequestException")


def test_table_metadata_survives_the_wire_with_fields_nobody_knows(client):
    path = client.a_table()
    update = {"action": "add-schema", "schema": {**SCHEMA, "x-note": {"deep": [1.5, None]}}, "last-column-id": 2}
    body = json.dumps({"requirements": [], "updates": [update, {"action": "set-current-schema", "schema-id": -1}]})
    schemas = client.post(path, body.encode()).json["metadata"]["schemas"]
    assert any(schema.get("x-note") == {"deep": [1.5, None]} for schema in schemas)
