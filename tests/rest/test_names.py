"""Names of every kind, in paths, bodies and queries."""

from urllib.parse import quote

import pytest

from tests.rest.live import SCHEMA

NAMES = [
    "with.dots",
    "with space",
    "with/slash",
    "100%",
    "%2F",
    "%25",
    "%1F",
    "back\\slash",
    "plus+plus",
    "question?mark&and=more#hash",
    "ünïcødé",
    "表",
    "🧊",
    "'quotes\"",
    "tables",
    "namespaces",
    "..",
    ".",
    "~-_",
    "A",
    "x" * 255,
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_a_namespace_and_a_table(client, name):
    raw = quote(name, safe="")
    assert client.post("/namespaces", {"namespace": [name]}).status == 200
    assert client.get(f"/namespaces/{raw}").json["namespace"] == [name]
    assert client.post(f"/namespaces/{raw}/tables", {"name": name, "schema": SCHEMA}).status == 200
    path = f"/namespaces/{raw}/tables/{raw}"
    assert client.head(path).status == 204
    assert client.get(f"/namespaces/{raw}/tables").json["identifiers"] == [{"namespace": [name], "name": name}]
    assert [name] in client.get("/namespaces").json["namespaces"]
    there = {"namespace": [name], "name": name}
    moved = {"namespace": [name], "name": "moved"}
    assert client.post("/tables/rename", {"source": there, "destination": moved}).status == 204
    assert client.delete(f"/namespaces/{raw}/tables/moved").status == 204
    assert client.delete(f"/namespaces/{raw}").status == 204


@pytest.mark.seed(88)
@pytest.mark.parametrize("separator", ["%1F", "%1f"])
def test_levels_are_split_before_they_are_decoded(client, separator):
    outer = client.a_namespace()
    inner = "a.b/c%1Fd"
    client.post("/namespaces", {"namespace": [outer, inner]})
    raw = f"{outer}{separator}{quote(inner, safe='')}"
    assert client.get(f"/namespaces/{raw}").json["namespace"] == [outer, inner]
    assert client.get(f"/namespaces?parent={outer}").json["namespaces"] == [[outer, inner]]
    assert client.get(f"/namespaces?parent={raw}").json["namespaces"] == []


def test_a_plus_in_a_path_is_a_plus_and_in_a_query_a_space(client):
    client.a_namespace("q+r")
    client.a_namespace("q r")
    client.a_namespace("q r", "child")
    assert client.get("/namespaces/q+r").json["namespace"] == ["q+r"]
    assert client.get("/namespaces?parent=q+r").json["namespaces"] == [["q r", "child"]]
    assert client.get("/namespaces?parent=q%2Br").json["namespaces"] == []


@pytest.mark.parametrize("raw", ["%00", "a%0Ab", "%FF", "x" * 256, "a%1F%1Fb", "%1F".join("abcdefghijklmnopq")])
def test_names_that_cannot_be_are_refused(client, raw):
    assert client.get(f"/namespaces/{raw}").error == (400, "BadRequestException")


@pytest.mark.parametrize("name", ["", "a\x00b", "x" * 256, 7, None])
def test_names_that_cannot_be_are_refused_in_bodies_too(client, name):
    namespace = client.a_namespace()
    made = client.post(f"/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA})
    assert made.error == (400, "BadRequestException")
    assert client.post("/namespaces", {"namespace": [namespace, name]}).error == (400, "BadRequestException")


def test_a_namespace_has_levels(client):
    for levels in (list[str](), "a", None):
        assert client.post("/namespaces", {"namespace": levels}).error == (400, "BadRequestException")
