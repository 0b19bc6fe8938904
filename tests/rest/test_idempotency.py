"""The Idempotency-Key on every mutation there is."""

import time
from typing import NamedTuple

import pytest

from frazil.rest.app import matrix
from tests.rest.live import SCHEMA, a_key, setting


class Mutation(NamedTuple):
    """A mutation that can work, and the same one with another payload where it has one."""

    action: str
    method: str
    path: str
    body: dict | None
    other: dict | None
    base: str | None = None


def create_namespace(client):
    name = f"new{time.time_ns()}"
    return Mutation(
        "namespace.create",
        "POST",
        "/namespaces",
        {"namespace": [name]},
        {"namespace": [name], "properties": {"a": "1"}},
    )


def drop_namespace(client):
    return Mutation("namespace.drop", "DELETE", f"/namespaces/{client.a_namespace()}", None, None)


def update_namespace(client):
    path = f"/namespaces/{client.a_namespace()}/properties"
    return Mutation("namespace.update", "POST", path, {"updates": {"a": "1"}}, {"updates": {"a": "2"}})


def create_table(client):
    body = {"name": "t", "schema": SCHEMA}
    path = f"/namespaces/{client.a_namespace()}/tables"
    return Mutation("table.create", "POST", path, body, {**body, "properties": {"a": "1"}})


def register_table(client):
    namespace = client.a_namespace()
    location = client.get(client.a_table(namespace)).json["metadata-location"]
    client.delete(f"/namespaces/{namespace}/tables/t")
    body = {"name": "t", "metadata-location": location}
    return Mutation("table.register", "POST", f"/namespaces/{namespace}/register", body, {**body, "overwrite": False})


def commit_table(client):
    body = {"requirements": [], "updates": [setting(a="1")]}
    other = {"requirements": [], "updates": [setting(a="2")]}
    return Mutation("table.commit", "POST", client.a_table(), body, other)


def commit_staged_table(client):
    namespace = client.a_namespace()
    staged = client.post(f"/namespaces/{namespace}/tables", {"name": "s", "schema": SCHEMA, "stage-create": True}).json
    uuid, location = staged["metadata"]["table-uuid"], staged["metadata"]["location"]

    def body(**properties):
        updates = [
            {"action": "assign-uuid", "uuid": uuid},
            {"action": "add-schema", "schema": staged["metadata"]["schemas"][0], "last-column-id": 2},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": location},
            setting(**properties),
        ]
        return {"requirements": [{"type": "assert-create"}], "updates": updates}

    return Mutation("table.commit", "POST", f"/namespaces/{namespace}/tables/s", body(a="1"), body(a="2"))


def drop_table(client):
    return Mutation("table.drop", "DELETE", client.a_table(), None, None)


def purge_table(client):
    return Mutation("table.drop", "DELETE", f"{client.a_table()}?purgeRequested=true", None, None)


def rename_table(client):
    namespace = client.a_namespace()
    client.a_table(namespace)
    source = {"namespace": [namespace], "name": "t"}
    body = {"source": source, "destination": {"namespace": [namespace], "name": "u"}}
    other = {"source": source, "destination": {"namespace": [namespace], "name": "v"}}
    return Mutation("table.rename", "POST", "/tables/rename", body, other)


def set_tags(client):
    path = f"{client.a_table()}/tags"
    return Mutation("table.tag", "PUT", path, {"tags": {"a": "1"}}, {"tags": {"a": "2"}}, "/manage/v1/lake")


def administer_table(client):
    path = f"{client.a_table()}/commit"
    body = {"requirements": [], "updates": [setting(owner="a")]}
    other = {"requirements": [], "updates": [setting(owner="b")]}
    return Mutation("table.administer", "POST", path, body, other, "/manage/v1/lake")


MUTATIONS = [
    create_namespace,
    drop_namespace,
    update_namespace,
    create_table,
    register_table,
    commit_table,
    commit_staged_table,
    drop_table,
    purge_table,
    rename_table,
    set_tags,
    administer_table,
]
WITHOUT_PAYLOAD = (drop_namespace, drop_table, purge_table)
every_mutation = pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.__name__ for each in MUTATIONS])


def send(client, mutation, key, body=None):
    body = mutation.body if body is None else body
    return client.ask(mutation.method, mutation.path, body, base=mutation.base, idempotency_key=key)


def test_no_mutation_is_left_out(client):
    assert {made(client).action for made in MUTATIONS} == {row.action for row in matrix() if row.mutation}


@pytest.mark.seed(91, 140, 251, 254, 257, 259, 270, 271, 282, 283)
@every_mutation
def test_a_repeated_mutation_is_answered_as_at_first_and_done_once(client, mutation):
    wanted, key = mutation(client), a_key()
    first = send(client, wanted, key)
    assert first.status in (200, 204), first.body
    again = send(client, wanted, key)
    assert (again.status, again.body) == (first.status, first.body)


@pytest.mark.seed(140, 252, 253)
@pytest.mark.parametrize("mutation", [each for each in MUTATIONS if each not in WITHOUT_PAYLOAD])
def test_a_key_belongs_to_its_payload(client, mutation):
    wanted, key = mutation(client), a_key()
    send(client, wanted, key)
    assert send(client, wanted, key, wanted.other).error == (409, "CommitFailedException")


@pytest.mark.seed(249, 253)
@pytest.mark.parametrize("mutation", [drop_namespace, drop_table, rename_table, create_table, set_tags])
def test_a_key_belongs_to_its_operation_and_resource(client, mutation):
    wanted, key = mutation(client), a_key()
    send(client, create_namespace(client), key)
    assert send(client, wanted, key).error == (409, "CommitFailedException")


@pytest.mark.seed(51, 141, 258)
@every_mutation
@pytest.mark.parametrize(
    "key",
    ["", "x", "6f2c8a9e-3b1d-4c5e-9f7a-2d8b4e6c1a3f", "01945b3e7c1a7def8a2b3c4d5e6f7a8b", "{01945b3e-7c1a-7def-8a2b}"],
    ids=["empty", "word", "version 4", "no dashes", "braces"],
)
def test_a_key_that_is_no_uuid7_is_refused_before_any_effect(client, mutation, key):
    wanted = mutation(client)
    assert send(client, wanted, key).error == (400, "BadRequestException")
    assert send(client, wanted, a_key()).status in (200, 204)


@every_mutation
def test_a_key_from_the_future_is_refused(client, mutation):
    at_ms = time.time_ns() // 1_000_000 + 3_600_000
    key = f"{at_ms:012x}"
    reply = send(client, mutation(client), f"{key[:8]}-{key[8:]}-7000-8000-000000000000")
    assert reply.error == (400, "BadRequestException")
    assert "ahead" in reply.json["error"]["message"]


@pytest.mark.seed(51, 261)
@every_mutation
def test_a_key_in_capitals_is_the_same_key_and_so_is_its_headers_name(client, mutation):
    wanted, key = mutation(client), a_key()
    first = send(client, wanted, key)
    again = client.ask(wanted.method, wanted.path, wanted.body, base=wanted.base, **{"IDEMPOTENCY-KEY": key.upper()})
    assert (again.status, again.body) == (first.status, first.body)


def test_a_key_too_old_to_be_judged_is_not_run(client):
    at_ms = time.time_ns() // 1_000_000 - 40 * 3_600_000
    key = f"{at_ms:012x}"
    path = client.a_table()
    reply = client.commit(path, setting(a="1"), idempotency_key=f"{key[:8]}-{key[8:]}-7000-8000-000000000000")
    assert reply.error == (500, "CommitStateUnknownException")
    assert client.get(path).json["metadata"]["properties"] == {}


@pytest.mark.seed(248)
@every_mutation
def test_a_mutation_needs_no_key(client, mutation):
    assert send(client, mutation(client), None).status in (200, 204)


@pytest.mark.seed(259, 265)
def test_a_refusal_is_kept_too(client):
    namespace, key = client.a_namespace(), a_key()
    path = client.a_table(namespace)
    stale = {
        "requirements": [{"type": "assert-current-schema-id", "current-schema-id": 1}],
        "updates": [setting(a="1")],
    }
    first = client.post(path, stale, idempotency_key=key)
    assert first.error == (409, "CommitFailedException")
    client.commit(
        path,
        {"action": "add-schema", "schema": {**SCHEMA, "fields": SCHEMA["fields"][:1]}, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
    )
    assert client.get(path).json["metadata"]["current-schema-id"] == 1  # now it would hold
    assert client.post(path, stale, idempotency_key=key).body == first.body


def test_the_order_and_space_of_a_payload_do_not_matter(client):
    path, key = client.a_table(), a_key()
    first = client.post(path, b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"1"}}]}')
    first = client.post(
        path, b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"2"}}]}', idempotency_key=key
    )
    again = client.post(
        path,
        b'{ "updates" : [ {"updates": {"a": "2"}, "action": "set-properties"} ], "requirements": [] }',
        idempotency_key=key,
    )
    assert (again.status, again.body) == (first.status, first.body)


def test_two_keys_in_one_request_are_refused(live):
    from tests.rest.live import status_of, talk

    head = b"DELETE /iceberg/v1/lake/namespaces/x HTTP/1.1\r\nHost: localhost\r\n"
    keys = b"".join(b"Idempotency-Key: %s\r\n" % a_key().encode() for _ in range(2))
    assert status_of(talk(live.port, head + keys + b"\r\n")) == 400
