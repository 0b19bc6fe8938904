"""Addresses, tokens, errors and documents between the client and a server."""

import pytest

from frazil import errors
from frazil.client.address import parse_address
from frazil.client.catalog import RemoteCatalog
from frazil.client.client import Client, World
from frazil.client.failures import NotFrazil, NotReached, failure_of
from frazil.client.lifetime import parse_lifetime
from frazil.errors import BadInput, FrazilError, NoSuchTable
from frazil.names import TableName
from tests.client.conftest import Most, Numbered
from tests.client.scripted import answer, error
from tests.servers import free_port


@pytest.mark.parametrize(
    "text, told",
    [
        ("http://127.0.0.1:8181", "http://127.0.0.1:8181"),
        ("http://127.0.0.1:8181/", "http://127.0.0.1:8181"),
        ("http://127.0.0.1:8181/iceberg", "http://127.0.0.1:8181"),
        ("https://lake.example.com", "https://lake.example.com:443"),
        ("https://example.com/data/iceberg/", "https://example.com:443/data"),
        ("http://[::1]:8181", "http://[::1]:8181"),
    ],
)
def test_an_address_is_read_as_people_write_it(text, told):
    assert str(parse_address(text)) == told


@pytest.mark.parametrize("text", ["", "localhost:8181", "ftp://x", "http://", "http://h:99999", "http://h/?a=b"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(BadInput):
        parse_address(text)


def test_an_address_with_a_password_is_refused_without_showing_it():
    with pytest.raises(BadInput) as raised:
        parse_address("http://ada:s3cret@host:8181")
    assert "s3cret" not in str(raised.value)


@pytest.mark.seed(267)
@pytest.mark.parametrize(
    "text, ms",
    [
        ("PT30M", 1_800_000),
        ("PT1H", 3_600_000),
        ("PT24H", 86_400_000),
        ("P1D", 86_400_000),
        ("P1DT1H1M1.5S", 90_061_500),
        ("P2W", 1_209_600_000),
        ("pt5s", 5_000),
        ("PT0.25S", 250),
    ],
)
def test_a_lifetime_is_an_iso_8601_duration(text, ms):
    assert parse_lifetime(text) == ms


@pytest.mark.parametrize("text", [None, 30, "", "P", "PT", "P1DT", "PT-5M", "-PT5M", "P1Y", "P1M", "30mPT30M", "PT0S"])
def test_what_is_no_lifetime_counts_as_none(text):
    assert parse_lifetime(text) is None


def concrete(kind=FrazilError):
    for each in kind.__subclasses__():
        if each.__module__ == errors.__name__:
            yield each
            yield from concrete(each)


@pytest.mark.parametrize("raised", list(concrete()), ids=lambda kind: kind.__name__)
def test_every_error_of_the_tree_comes_back_as_its_class(raised):
    model = {"message": "m", "type": raised.type, "code": raised.status}
    if raised.subtype:
        model["subtype"] = raised.subtype
    back = failure_of(raised.status, _encoded({"error": model}))
    # `Corrupt` is on the wire what its parent is.
    assert type(back) is (errors.Internal if raised is errors.Corrupt else raised)
    assert (back.status, back.type, back.message, back.kind) == (raised.status, raised.type, "m", raised.kind)


def test_an_error_of_a_type_nobody_knows_keeps_what_the_server_said():
    back = failure_of(418, _encoded({"error": {"message": "short and stout", "type": "TeapotException", "code": 418}}))
    assert isinstance(back, BadInput)
    assert (back.status, back.type, back.message) == (418, "TeapotException", "short and stout")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": "text"}', b"\xff\xfe"])
def test_an_answer_without_an_error_model_is_still_an_error(body):
    assert failure_of(502, body).status == 502


def _encoded(document):
    import json

    return json.dumps(document).encode()


# -- over the wire -------------------------------------------------------------------------------------------------


def test_the_token_is_sent_and_never_shown(base, scripted, time):
    scripted.then(answer(200, {}))
    client = Client(parse_address(base), World(time, Numbered(), Most(), time.pause), token="s3cret")
    client.get("/x")
    assert scripted.seen[0].headers["authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(client)


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ünï"])
def test_what_cannot_be_a_token_is_refused_without_showing_it(time, token):
    with pytest.raises(BadInput) as raised:
        Client(parse_address("http://h"), World(time, Numbered(), Most(), time.pause), token=token)
    assert not token or token not in str(raised.value)


def test_a_server_that_never_answered_is_not_waited_for(time):
    client = Client(parse_address(f"http://127.0.0.1:{free_port()}"), World(time, Numbered(), Most(), time.pause))
    with pytest.raises(NotReached, match=r"no server answers at .*: connection refused"):
        client.change("POST", "/x")
    assert time.slept == []


def test_an_error_is_raised_as_the_class_it_was_raised_as_there(client, scripted):
    scripted.then(error(404, "NoSuchTableException", "Table does not exist: a.b"))
    with pytest.raises(NoSuchTable, match=r"^Table does not exist: a\.b$"):
        client.get("/x")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_token_does_not_follow_a_redirect(client, scripted, status):
    scripted.then(answer(status, "", Location="http://127.0.0.1:1/"))
    with pytest.raises(NotFrazil, match="sends elsewhere"):
        client.get("/x")


def test_something_else_on_the_port_is_named(client, scripted):
    scripted.config = {"hello": "world"}
    with pytest.raises(NotFrazil, match="not as an Iceberg catalog"):
        client.change("POST", "/x")


def test_an_answer_that_is_no_json_is_named(client, scripted):
    scripted.then(answer(200, "<html>"))
    with pytest.raises(NotFrazil, match="not JSON"):
        client.get("/x")


def test_names_travel_as_one_segment_each(client, scripted):
    scripted.then(answer(200, {}))
    RemoteCatalog(client).load_table(TableName(("a.b", "c/d"), "e %2F+é"))
    assert scripted.seen[0].target == "/iceberg/v1/lake/namespaces/a.b%1Fc%2Fd/tables/e%20%252F%2B%C3%A9"


def test_a_list_is_read_page_by_page(client, scripted):
    scripted.then(
        answer(200, {"namespaces": [["a"], ["b"]], "next-page-token": "x=/+"}), answer(200, {"namespaces": [["c"]]})
    )
    assert RemoteCatalog(client).namespaces(("p", "q")) == [("a",), ("b",), ("c",)]
    assert [seen.target.split("?")[1] for seen in scripted.seen] == [
        "parent=p%1Fq&pageToken=",
        "parent=p%1Fq&pageToken=x%3D%2F%2B",
    ]


@pytest.mark.seed(91)
@pytest.mark.parametrize(
    "act",
    [
        lambda lake: lake.create_namespace(("a",), {}),
        lambda lake: lake.drop_namespace(("a",)),
        lambda lake: lake.update_namespace(("a",), {"k": "v"}, ["x"]),
        lambda lake: lake.drop_table(TableName(("a",), "t"), purge=True),
        lambda lake: lake.rename_table(TableName(("a",), "t"), TableName(("a",), "u")),
        lambda lake: lake.register_table(TableName(("a",), "t"), "file:/x"),
        lambda lake: lake.commit(TableName(("a",), "t"), [{"action": "set-properties", "updates": {"k": "v"}}]),
        lambda lake: lake.tag_table(TableName(("a",), "t"), {"k": "v"}, ["x"]),
    ],
)
def test_every_mutation_carries_a_key(client, scripted, act):
    scripted.then(answer(200, {"tags": {}}), answer(200, {"tags": {}}))
    act(RemoteCatalog(client))
    assert all(seen.key for seen in scripted.seen if seen.method != "GET")
    assert any(seen.key for seen in scripted.seen)
