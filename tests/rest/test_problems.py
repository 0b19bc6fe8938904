"""Every way a request can be wrong is answered in Iceberg's error model, and nothing of it is run."""

import gzip
import json
import logging

import pytest

from frazil import errors, limits
from frazil.rest import problems
from tests.rest.live import SCHEMA, setting

JSON = "application/json"


@pytest.mark.seed(406)
def test_an_error_has_a_message_a_type_and_its_code(client):
    reply = client.get("/namespaces/nowhere")
    assert reply.headers["content-type"] == JSON
    assert reply.json == {
        "error": {
            "message": "Namespace does not exist: nowhere",
            "type": "NoSuchNamespaceException",
            "code": 404,
        }
    }


@pytest.mark.parametrize("path", ["/", "/iceberg", "/iceberg/v1/lake", "/iceberg/v2/config", "/favicon.ico", "//"])
def test_an_unknown_path_is_not_found(client, path):
    assert client.get(path, base="").error == (404, "NotFoundException")


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("PATCH", "/iceberg/v1/config", "GET, HEAD"),
        ("PUT", "/iceberg/v1/lake/namespaces", "GET, HEAD, POST"),
        ("OPTIONS", "/iceberg/v1/lake/tables/rename", "POST"),
        ("POST", "/health", "GET, HEAD"),
        ("TRACE", "/health", "GET, HEAD"),
    ],
)
def test_a_method_that_is_not_offered_is_told_with_those_that_are(client, method, path, allowed):
    reply = client.ask(method, path, b"{}" if method in ("PUT", "POST", "PATCH") else None, base="")
    assert reply.error == (405, "UnsupportedOperationException")
    assert reply.headers["allow"] == allowed


def test_head_works_wherever_get_does(client):
    for path in ("/health", "/iceberg/v1/config", "/iceberg/v1/lake/namespaces"):
        reply = client.head(path, base="")
        assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"{'namespace': ['a']}",
        b'{"namespace": ["a"]} x',
        b'\xef\xbb\xbf{"namespace": ["a"]}',
        b'{"namespace": ["\xff"]}',
        b'{"namespace": [NaN]}',
        b'{"namespace": "a"}',
        b'{"namespace": [1]}',
        b'{"namespace": ["a"], "properties": {"n": 1}}',
        b'{"namespace": ["a"], "properties": []}',
        b'{"namespace": ["a", "\\ud800"]}',
        b'{"properties": {}}',
    ],
)
def test_a_body_that_does_not_fit_is_refused(client, body):
    assert client.post("/namespaces", body).error == (400, "BadRequestException")


@pytest.mark.parametrize(
    "body",
    [
        b'{"namespace":["twice"],"namespace":["other"]}',
        b'{"namespace":["twice"],"properties":{"a":"1","a":"1"}}',
        b'{"namespace" : ["twice"], "properties" : {"a":"1", "\\u0061":"2"}}',
    ],
)
def test_a_key_that_is_there_twice_is_refused(client, body):
    reply = client.post("/namespaces", body)
    assert reply.error == (400, "BadRequestException")
    assert "twice in one object" in reply.json["error"]["message"]
    assert client.get("/namespaces/twice").status == 404


def nested(depth):
    return b'{"requirements":[],"updates":[{"action":"add-schema","schema":' + b"[" * depth + b"]" * depth + b"}]}"


@pytest.mark.parametrize("depth", [limits.json_depth_max, 1000, 100_000])
def test_a_body_nested_too_deeply_is_refused(client, depth):
    assert client.post(client.a_table(), nested(depth)).error == (400, "BadRequestException")


def test_many_objects_side_by_side_are_not_deep(client):
    fields = [{"id": n, "name": f"c{n}", "type": "long", "required": False, "doc": "d" * n} for n in range(1, 200)]
    assert client.get(client.a_table(schema={"type": "struct", "fields": fields})).status == 200


def test_a_text_that_is_too_long_is_refused(client):
    text = "x" * (limits.json_string_bytes_max + 1)
    reply = client.commit(client.a_table(), {"action": "add-schema", "schema": {**SCHEMA, "doc": text}})
    assert reply.error == (400, "BadRequestException")
    assert "longer than" in reply.json["error"]["message"]


def test_an_oversized_body_is_refused_before_it_is_read(client):
    body = b'{"namespace":["big"],"properties":{"a":"' + b"x" * limits.body_bytes_max + b'"}}'
    assert client.post("/namespaces", body).error == (413, "BadRequestException")


def test_gzipped_bodies_are_taken(client):
    namespace = client.a_namespace()
    body = gzip.compress(json.dumps({"name": "t", "schema": SCHEMA}).encode())
    assert client.post(f"/namespaces/{namespace}/tables", body, content_encoding="gzip").status == 200


def test_a_gzip_bomb_is_refused(client):
    body = gzip.compress(b'{"namespace":["bomb"],"properties":{"a":"' + b"x" * 8_000_000 + b'"}}')
    assert len(body) < 20_000
    reply = client.post("/namespaces", body, content_encoding="gzip")
    assert reply.error == (413, "BadRequestException")
    assert "inflates" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    "body, encoding",
    [
        (b"not gzip", "gzip"),
        (gzip.compress(b"{}", mtime=0)[:-4], "gzip"),
        (gzip.compress(b"{}", mtime=0) + b"tail", "gzip"),
        (b"{}", "br"),
        (b"{}", "gzip, gzip"),
    ],
    ids=["not gzip", "cut", "more behind", "unknown", "twice"],
)
def test_bodies_that_cannot_be_unpacked_are_refused(client, body, encoding):
    assert client.post("/namespaces", body, content_encoding=encoding).error == (400, "BadRequestException")


def test_a_query_that_contradicts_itself_is_refused(client):
    assert client.get("/namespaces?parent=a&parent=b").error == (400, "BadRequestException")


def test_limits_of_a_commit_are_said(client):
    many = [setting(a="1")] * (limits.updates_max + 1)
    assert client.commit(client.a_table(), *many).error == (400, "BadRequestException")


# -- faults of the server ----------------------------------------------------------------------------------------------


def breaking(monkeypatch, live, error, operation="load_table"):
    async def broken(*_, **__):
        raise error

    monkeypatch.setattr(live.app.site.catalog, operation, broken)


def test_a_fault_of_the_server_tells_nothing_of_its_inside_but_the_log_does(client, live, monkeypatch, caplog):
    path = client.a_table()
    breaking(monkeypatch, live, ZeroDivisionError("a secret of the inside"))
    with caplog.at_level(logging.ERROR):
        reply = client.get(path, x_request_id="the-one")
    assert reply.error == (500, "InternalServerError")
    assert b"secret" not in reply.body
    assert b"the-one" in reply.body
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.request == "the-one"
    assert "a secret of the inside" in logging.Formatter().formatException(record.exc_info)


@pytest.mark.seed(145, 262)
@pytest.mark.parametrize(
    "error, told",
    [
        (errors.Unavailable("later"), (503, "ServiceUnavailableException", "1", None)),
        (errors.TooBusy("later"), (429, "TooManyRequestsException", "1", None)),
        (errors.CommitStateUnknown("who knows"), (500, "CommitStateUnknownException", None, None)),
        (errors.ReplayFailed("gone"), (500, "InternalServerError", None, "idempotency_replay_failed")),
        (errors.Corrupt("broken"), (500, "InternalServerError", None, None)),
        (errors.Conflict("old"), (409, "CommitFailedException", None, None)),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_each_kind_of_refusal_is_told_as_what_it_is(client, live, monkeypatch, error, told):
    path = client.a_table()
    breaking(monkeypatch, live, error, "commit_table")
    reply = client.commit(path, setting(a="1"))
    said = reply.json["error"]
    assert (reply.status, said["type"], reply.headers.get("retry-after"), said.get("subtype")) == told


def every_error(kind=errors.FrazilError):
    for child in kind.__subclasses__():
        yield child
        yield from every_error(child)


def test_every_error_renders_as_the_tree_says():
    for kind in every_error():
        if kind is problems.MethodNotAllowed or not kind.__module__.startswith(("frazil.errors", "frazil.rest")):
            continue
        answer = problems.rendered(kind("why"))
        said = json.loads(b"".join(answer.body))["error"]
        assert (answer.status, said["code"], said["type"], said["message"]) == (
            kind.status,
            kind.status,
            kind.type,
            "why",
        )
        assert (b"retry-after" in answer.head) == (kind.retry_after_s is not None)
        assert (b"www-authenticate" in answer.head) == (kind.status == 401)
