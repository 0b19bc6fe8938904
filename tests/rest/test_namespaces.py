"""Namespaces over the wire."""

import pytest

from tests.rest.live import a_key


@pytest.mark.seed(388)
def test_a_new_namespace_echoes_its_properties(client):
    reply = client.post("/namespaces", {"namespace": ["echo"], "properties": {"owner": "data-team"}})
    assert reply.status == 200
    assert reply.json == {"namespace": ["echo"], "properties": {"owner": "data-team"}}


@pytest.mark.seed(388, 405, 406)
def test_a_namespace_that_exists_is_a_conflict(client):
    name = client.a_namespace()
    assert client.post("/namespaces", {"namespace": [name]}).error == (409, "AlreadyExistsException")


def test_a_parent_must_exist(client):
    assert client.post("/namespaces", {"namespace": ["no", "child"]}).error == (404, "NoSuchNamespaceException")


def test_system_is_reserved(client):
    assert client.post("/namespaces", {"namespace": ["system"]}).error == (400, "BadRequestException")


@pytest.mark.seed(389, 405)
def test_a_namespace_is_loaded_by_its_levels(client):
    name = client.a_namespace()
    client.post("/namespaces", {"namespace": [name, "users"], "properties": {"a": "1"}})
    reply = client.get(f"/namespaces/{name}%1Fusers")
    assert reply.json == {"namespace": [name, "users"], "properties": {"a": "1"}}
    assert client.get("/namespaces/nowhere").error == (404, "NoSuchNamespaceException")


@pytest.mark.seed(390)
def test_head_tells_whether_a_namespace_exists_and_has_no_body(client):
    name = client.a_namespace()
    there, missing = client.head(f"/namespaces/{name}"), client.head("/namespaces/nowhere")
    assert (there.status, there.body) == (204, b"")
    assert (missing.status, missing.body) == (404, b"")


@pytest.mark.seed(387)
def test_listing_shows_the_top_level_or_the_children_of_a_parent(client):
    name = client.a_namespace()
    client.a_namespace(name, "b")
    client.a_namespace(name, "a")
    top = client.get("/namespaces").json["namespaces"]
    assert [name] in top
    assert all(len(levels) == 1 for levels in top)
    assert client.get(f"/namespaces?parent={name}").json == {"namespaces": [[name, "a"], [name, "b"]]}
    assert client.get(f"/namespaces?parent={name}%1Fa").json == {"namespaces": []}
    assert client.get("/namespaces?parent=nowhere").error == (404, "NoSuchNamespaceException")


@pytest.mark.seed(21, 391)
def test_properties_are_updated_and_removed_and_what_was_missing_is_told(client):
    name = client.a_namespace()
    client.post(f"/namespaces/{name}/properties", {"updates": {"owner": "a", "old": "x"}})
    changed = client.post(
        f"/namespaces/{name}/properties", {"removals": ["old", "never"], "updates": {"owner": "b", "comment": "c"}}
    )
    assert changed.json == {"updated": ["comment", "owner"], "removed": ["old"], "missing": ["never"]}
    assert client.get(f"/namespaces/{name}").json["properties"] == {"owner": "b", "comment": "c"}


def test_a_property_cannot_be_updated_and_removed_at_once(client):
    name = client.a_namespace()
    reply = client.post(f"/namespaces/{name}/properties", {"removals": ["a"], "updates": {"a": "1"}})
    assert reply.error == (422, "UnprocessableEntityException")


@pytest.mark.parametrize(
    "change", [{"updates": {"Frazil.x": "1"}}, {"updates": {"ARCO.x": "1"}}, {"removals": ["arco.x"]}]
)
def test_the_catalogs_own_properties_are_refused(client, change):
    name = client.a_namespace()
    assert client.post(f"/namespaces/{name}/properties", change).error == (400, "BadRequestException")


@pytest.mark.seed(392, 405)
def test_an_empty_namespace_is_dropped_a_full_one_is_not(client):
    name = client.a_namespace()
    client.a_namespace(name, "child")
    assert client.delete(f"/namespaces/{name}").error == (409, "NamespaceNotEmptyException")
    gone = client.delete(f"/namespaces/{name}%1Fchild")
    assert (gone.status, gone.body) == (204, b"")
    client.a_table(name)
    assert client.delete(f"/namespaces/{name}").error == (409, "NamespaceNotEmptyException")
    client.delete(f"/namespaces/{name}/tables/t")
    assert client.delete(f"/namespaces/{name}").status == 204
    assert client.delete(f"/namespaces/{name}").error == (404, "NoSuchNamespaceException")


def test_an_empty_namespace_segment_names_no_namespace(client):
    assert client.get("/namespaces/").error == (404, "NoSuchNamespaceException")
    assert client.get("/namespaces//tables").error == (404, "NoSuchNamespaceException")


@pytest.mark.seed(257, 271, 283)
def test_a_repeated_creation_and_drop_give_their_first_answer(client):
    key, body = a_key(), {"namespace": ["repeated"], "properties": {"a": "1"}}
    first = client.post("/namespaces", body, idempotency_key=key)
    assert client.post("/namespaces", body, idempotency_key=key).body == first.body
    key = a_key()
    assert [client.delete("/namespaces/repeated", idempotency_key=key).status for _ in range(2)] == [204, 204]
