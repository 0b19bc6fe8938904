"""Without authentication no web page reaches the server, whatever its browser can be made to send."""

import pytest

from frazil.access import loopback
from frazil.access.authn import Tokens
from frazil.errors import Forbidden
from frazil.rest.app import matrix
from tests.access.calls import answered


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8181", "localhost", "LOCALHOST:8181", "[::1]", "[::1]:8181", "127.8.9.10:1"]
)
def test_programs_of_this_machine_are_answered(host):
    loopback.check({b"host": host.encode()})


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8181",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1:8181",
        "0.0.0.0:8181",
        "localhost:8181@evil.example",
        "localhost, evil.example",
        " localhost",
        "[::2]",
    ],
)
def test_a_name_that_was_pointed_here_is_refused(host):
    with pytest.raises(Forbidden, match="Host"):
        loopback.check({b"host": host.encode()})


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://evil.example:8181",
        "file://",
        "http://127.0.0.1:8181@evil.example",
        "",
    ],
)
def test_a_page_of_elsewhere_is_refused(origin):
    with pytest.raises(Forbidden, match="Origin"):
        loopback.check({b"host": b"localhost", b"origin": origin.encode(), b"sec-fetch-site": b"none"})


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "what-comes-next"])
def test_a_browser_that_says_another_site_asks_is_refused(site):
    with pytest.raises(Forbidden):
        loopback.check({b"host": b"localhost", b"sec-fetch-site": site.encode()})


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1:8181", "https://[::1]:1"])
def test_a_page_of_this_machine_may_ask(origin):
    loopback.check({b"host": b"localhost:8181", b"origin": origin.encode(), b"sec-fetch-site": b"same-site"})


def test_somebody_who_types_the_address_may_read():
    loopback.check({b"host": b"localhost:8181", b"sec-fetch-site": b"none"})


ATTACKS = {
    "rebound name": {b"host": b"evil.example"},
    "page": {b"origin": b"https://evil.example"},
    "image": {b"sec-fetch-site": b"cross-site"},
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("row", matrix(), ids=lambda row: row.label)
def test_no_route_is_reached_by_a_web_page(row, attack):
    assert answered(row, ATTACKS[attack]) == (403, False)


@pytest.mark.parametrize(
    "kind", [None, b"", b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data"]
)
@pytest.mark.parametrize("row", [row for row in matrix() if row.method in ("POST", "PUT")], ids=lambda row: row.label)
def test_no_form_is_taken_for_json(row, kind):
    fields = {b"content-type": kind} if kind is not None else {b"content-type": b"none"}
    assert answered(row, fields) == (400, False)


@pytest.mark.parametrize("row", [row for row in matrix() if not row.open], ids=lambda row: row.label)
def test_with_tokens_no_route_is_reached_without_one(row, tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"ada {'a' * 32}\n")
    path.chmod(0o600)
    authentication = Tokens(str(path))
    for fields in ({}, {b"authorization": b"Bearer wrong"}, {b"host": b"lake.example"}):
        assert answered(row, fields, authentication) == (401, False)
