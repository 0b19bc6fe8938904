"""What the management API adds."""

import pytest

from tests.rest.live import setting

MANAGE = "/manage/v1/lake"


@pytest.mark.seed(20, 21)
def test_a_tables_entry_has_its_identity_its_tags_owner_and_comment(client):
    namespace = client.a_namespace()
    path = client.a_table(namespace, properties={"owner": "data-team", "comment": "what it is"})
    loaded = client.get(path).json
    assert client.get(path, base=MANAGE).json == {
        "namespace": [namespace],
        "name": "t",
        "uuid": loaded["metadata"]["table-uuid"],
        "format": "ICEBERG",
        "location": loaded["metadata"]["location"],
        "tags": {},
        "owner": "data-team",
        "comment": "what it is",
        "metadata-location": loaded["metadata-location"],
    }


@pytest.mark.seed(20, 21)
def test_tags_are_replaced_whole(client):
    path = client.a_table()
    assert client.ask("PUT", f"{path}/tags", {"tags": {"tier": "gold", "pii": ""}}, base=MANAGE).json == {
        "tags": {"tier": "gold", "pii": ""}
    }
    client.ask("PUT", f"{path}/tags", {"tags": {"tier": "silver"}}, base=MANAGE)
    assert client.get(path, base=MANAGE).json["tags"] == {"tier": "silver"}


def test_tags_move_with_a_renamed_table_and_leave_its_etag_alone(client):
    namespace = client.a_namespace()
    path = client.a_table(namespace)
    etag = client.get(path).headers["etag"]
    client.ask("PUT", f"{path}/tags", {"tags": {"a": "1"}}, base=MANAGE)
    assert client.get(path, if_none_match=etag).status == 304
    names = {"source": {"namespace": [namespace], "name": "t"}, "destination": {"namespace": [namespace], "name": "u"}}
    client.post("/tables/rename", names)
    assert client.get(f"/namespaces/{namespace}/tables/u", base=MANAGE).json["tags"] == {"a": "1"}


@pytest.mark.parametrize("body", [{}, {"tags": []}, {"tags": {"a": 1}}, {"tags": {"": "x"}}])
def test_malformed_tags_are_refused(client, body):
    assert client.ask("PUT", f"{client.a_table()}/tags", body, base=MANAGE).error == (400, "BadRequestException")


def test_a_missing_table_has_no_entry_and_no_tags(client):
    path = f"/namespaces/{client.a_namespace()}/tables/missing"
    assert client.get(path, base=MANAGE).error == (404, "NoSuchTableException")
    assert client.ask("PUT", f"{path}/tags", {"tags": {}}, base=MANAGE).error == (404, "NoSuchTableException")


@pytest.mark.seed(21)
def test_a_commit_by_management_is_a_commit_of_the_admin(client, live):
    path = client.a_table()
    done = client.commit(f"{path}/commit", setting(owner="new"), base=MANAGE)
    assert done.json == client.get(path).json
    assert done.json["metadata"]["properties"] == {"owner": "new"}
    uuid = done.json["metadata"]["table-uuid"]

    async def producer():
        return (await live.app.site.catalog.context.pointers.read(uuid)).producer

    assert type(live.do(producer()).source).__name__ == "AdminApi"
    client.commit(path, setting(owner="by a client"), user_agent="tests/1")
    source = live.do(producer()).source
    assert (type(source).__name__, source.client_info) == ("IcebergRest", "tests/1")


def test_another_catalog_is_not_here(client):
    assert client.get("/namespaces/a/tables/t", base="/manage/v1/else").error == (404, "NoSuchWarehouseException")
