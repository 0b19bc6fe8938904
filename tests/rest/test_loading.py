"""What a load answers: ETags, 304, refs only, gzip."""

import gzip
from typing import Any

import pytest

from frazil.rest import tables
from tests.rest.live import SCHEMA, a_ref, a_snapshot, setting


@pytest.mark.seed(153, 154)
def test_an_unchanged_table_is_not_sent_again(client):
    path = client.a_table()
    etag = client.get(path).headers["etag"]
    again = client.get(path, if_none_match=etag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    client.commit(path, setting(a="1"))
    changed = client.get(path, if_none_match=etag)
    assert changed.status == 200
    assert changed.headers["etag"] != etag


@pytest.mark.parametrize("condition", ["*", '"x", {etag}', "{bare}", '"x" , {bare}'])
def test_a_condition_may_be_a_list_or_anything_and_is_compared_weakly(client, condition):
    path = client.a_table()
    etag = client.get(path).headers["etag"]
    condition = condition.format(etag=etag, bare=etag.removeprefix("W/"))
    assert client.get(path, if_none_match=condition).status == 304
    assert client.get(path, if_none_match='"x"').status == 200


def test_whoever_creates_commits_or_registers_gets_the_etag_of_a_load(client):
    namespace = client.a_namespace()
    made = client.post(f"/namespaces/{namespace}/tables", {"name": "t", "schema": SCHEMA})
    path = f"/namespaces/{namespace}/tables/t"
    assert client.get(path, if_none_match=made.headers["etag"]).status == 304
    done = client.commit(path, setting(a="1"))
    assert client.get(path, if_none_match=done.headers["etag"]).status == 304
    client.delete(path)
    body = {"name": "u", "metadata-location": done.json["metadata-location"]}
    back = client.post(f"/namespaces/{namespace}/register", body)
    assert client.get(f"/namespaces/{namespace}/tables/u", if_none_match=back.headers["etag"]).status == 304


def test_a_dropped_table_is_gone_even_for_who_knows_its_etag(client):
    path = client.a_table()
    etag = client.get(path).headers["etag"]
    client.delete(path)
    assert client.get(path, if_none_match=etag).error == (404, "NoSuchTableException")
    assert client.get(path, if_none_match="*").status == 404


def test_refs_only_shows_the_snapshots_that_are_named_and_has_an_etag_of_its_own(client):
    path = client.a_table()
    client.commit(path, a_snapshot(1), a_ref(1))
    client.commit(path, a_snapshot(2, 2, 1), a_ref(2))
    whole, named = client.get(f"{path}?snapshots=all"), client.get(f"{path}?snapshots=refs")
    assert [each["snapshot-id"] for each in whole.json["metadata"]["snapshots"]] == [1, 2]
    assert [each["snapshot-id"] for each in named.json["metadata"]["snapshots"]] == [2]
    assert whole.headers["etag"] == client.get(path).headers["etag"] != named.headers["etag"]
    assert client.get(f"{path}?snapshots=refs", if_none_match=whole.headers["etag"]).status == 200
    assert client.get(f"{path}?snapshots=refs", if_none_match=named.headers["etag"]).status == 304
    assert client.get(f"{path}?snapshots=some").error == (400, "BadRequestException")


def a_wide_table(client):
    fields = [{"id": n, "name": f"column_{n}", "type": "string", "required": False} for n in range(1, 60)]
    return client.a_table(schema={"type": "struct", "fields": fields})


def test_gzip_is_sent_to_who_asks_and_to_nobody_else(client):
    path = a_wide_table(client)
    plain, packed = client.get(path), client.get(path, accept_encoding="gzip, deflate")
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 3
    for reply in (plain, packed):
        assert reply.headers["vary"] == "accept-encoding"
    assert "content-encoding" not in client.get(path, accept_encoding="gzip;q=0, *").headers
    assert "content-encoding" not in client.get(path, accept_encoding="identity").headers
    assert client.get(path, accept_encoding="br, *;q=0.5").headers["content-encoding"] == "gzip"


def test_a_long_listing_is_compressed_a_short_answer_is_not(client):
    namespace = client.a_namespace()
    for number in range(12):
        client.a_namespace(namespace, f"a-namespace-with-a-rather-long-name-{number:04}-{'x' * 60}")
    packed = client.get(f"/namespaces?parent={namespace}", accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json == client.get(f"/namespaces?parent={namespace}").json
    assert "content-encoding" not in client.get("/namespaces/nowhere", accept_encoding="gzip").headers


def test_a_table_is_compressed_once_for_all_its_readers(client, monkeypatch):
    path = a_wide_table(client)
    packings = []

    def packed(parts):
        packings.append(parts)
        return gzip.compress(b"".join(parts))

    monkeypatch.setattr(tables, "gzipped", packed)
    bodies = {client.get(path, accept_encoding="gzip").body for _ in range(3)}
    assert len(packings) == len(bodies) == 1


def test_a_large_table_is_sent_whole_plain_and_compressed(client):
    path = client.a_table(properties={f"note-{n}": "x" * 1000 for n in range(300)})
    plain, packed = client.get(path), client.get(path, accept_encoding="gzip")
    assert len(plain.body) > tables.LARGE_BYTES
    assert gzip.decompress(packed.body) == plain.body
    fresh = client.commit(path, setting(a="1"), accept_encoding="gzip")
    assert fresh.json["metadata"]["properties"]["a"] == "1"
    assert fresh.json == client.get(path).json


class Thousand:
    """Metadata of a thousand bytes."""

    def parts(self):
        return [b'"' + b"x" * 998 + b'"']


METADATA: Any = Thousand()


def test_the_least_recently_used_answers_are_forgotten():
    kept = tables.Rendered({}, most_bytes=5000)
    for number in range(10):
        kept.get(f"location {number}", METADATA, refs_only=False)
    assert kept._bytes <= 5000
    assert [location for location, _ in kept._shown] == [f"location {n}" for n in range(6, 10)]


def test_what_clients_are_told_about_files_is_part_of_the_etag():
    one = tables.Rendered({}).get("l", METADATA, refs_only=False)
    other = tables.Rendered({"s3.endpoint": "http://x"}).get("l", METADATA, refs_only=False)
    assert one.etag != other.etag
    assert b'"config":{"s3.endpoint":"http://x"}' in other.plain.body[0]
