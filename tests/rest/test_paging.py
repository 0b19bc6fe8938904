"""Listings in pages."""

import itertools
from urllib.parse import quote

import pytest

from frazil import limits
from frazil.rest.call import page_token


def a_full_namespace(client, count):
    namespace = client.a_namespace()
    for number in range(count):
        client.a_namespace(namespace, f"n{number:03}")
    return namespace


def pages(client, path, size):
    token: str | None = ""
    found = []
    while token is not None:
        listed = client.get(f"{path}{'&' if '?' in path else '?'}pageToken={quote(token)}&pageSize={size}").json
        found.append(listed.get("namespaces") or [each["name"] for each in listed.get("identifiers", [])])
        token = listed.get("next-page-token")
    return found


def test_without_a_token_everything_comes_at_once(client, monkeypatch):
    monkeypatch.setattr(limits, "page_max", 2)
    namespace = a_full_namespace(client, 7)
    for query in ("", "&pageSize=3"):
        listed = client.get(f"/namespaces?parent={namespace}{query}").json
        assert len(listed["namespaces"]) == 7
        assert "next-page-token" not in listed


def test_an_empty_token_begins_pages_of_at_most_the_limit(client, monkeypatch):
    namespace = a_full_namespace(client, 5)
    monkeypatch.setattr(limits, "page_max", 2)
    listed = client.get(f"/namespaces?parent={namespace}&pageToken=").json
    assert len(listed["namespaces"]) == 2
    assert len(client.get(f"/namespaces?parent={namespace}&pageToken=&pageSize=100").json["namespaces"]) == 2


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7])
def test_pages_put_together_are_the_whole(client, size):
    namespace = a_full_namespace(client, 6)
    found = pages(client, f"/namespaces?parent={namespace}", size)
    assert [len(page) for page in found[:-1]] == [size] * (len(found) - 1)
    assert (
        list(itertools.chain.from_iterable(found)) == client.get(f"/namespaces?parent={namespace}").json["namespaces"]
    )


def test_tables_come_in_pages_too(client):
    namespace = client.a_namespace()
    for name in ("c", "a", "b"):
        client.a_table(namespace, name)
    assert pages(client, f"/namespaces/{namespace}/tables", 2) == [["a", "b"], ["c"]]


def test_a_token_survives_what_comes_and_goes_meanwhile(client):
    namespace = a_full_namespace(client, 4)
    first = client.get(f"/namespaces?parent={namespace}&pageToken=&pageSize=2").json
    client.delete(f"/namespaces/{namespace}%1Fn001")  # the last one shown
    client.delete(f"/namespaces/{namespace}%1Fn002")  # the next one
    client.a_namespace(namespace, "n000a")  # before what was shown
    client.a_namespace(namespace, "n002a")  # behind it
    rest = client.get(f"/namespaces?parent={namespace}&pageToken={first['next-page-token']}").json
    assert [levels[1] for levels in rest["namespaces"]] == ["n002a", "n003"]


@pytest.mark.parametrize("token", ["x", "%%%", "AAAA", page_token("")[:-1] + "_", "MQ", "ÿ"])
def test_a_token_of_somebody_else_is_refused(client, token):
    reply = client.get(f"/namespaces?pageToken={quote(token)}")
    assert reply.error == (400, "BadRequestException")


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5", "", "9999999999", "٣"])
def test_a_page_size_is_a_whole_number_from_one(client, size):
    reply = client.get(f"/namespaces?pageToken=&pageSize={quote(size)}")
    assert reply.error == (400, "BadRequestException")


def test_a_name_of_any_kind_can_end_a_page(client):
    namespace = client.a_namespace()
    names = ["ünïcødé", "a b", "表", "🧊", "a+b", "100%"]
    for name in names:
        client.a_namespace(namespace, name)
    assert len(pages(client, f"/namespaces?parent={namespace}", 1)) == len(names)
