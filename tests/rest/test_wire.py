"""Strict JSON: the fast way and the slow one agree, and nothing is lost between bytes and requests."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import BadInput
from frazil.rest import wire

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.booleans(), st.booleans())
def test_what_is_there_once_is_taken_however_it_is_written(value, ascii, spaced):
    separators = (", ", ": ") if spaced else (",", ":")
    body = json.dumps(value, ensure_ascii=ascii, separators=separators).encode(errors="surrogatepass")
    wire.check_strict(body, json.loads(body))


@given(st.text(min_size=1, max_size=4).filter(str.isprintable), VALUES, VALUES, st.integers(0, 3))
def test_what_is_there_twice_is_refused_wherever_it_is(key, one, other, depth):
    encoded = json.dumps(key)
    body = f"{{{encoded}:{json.dumps(one)},{encoded}:{json.dumps(other)}}}"
    for _ in range(depth):
        body = f'{{"in":[{body}]}}'
    raw = body.encode()
    with pytest.raises(BadInput, match="twice"):
        wire.check_strict(raw, json.loads(raw))


def test_integers_keep_every_digit():
    body = b'{"requirements":[],"updates":[{"action":"x","snapshot-id":9223372036854775807}]}'
    assert wire.decode(body, wire.CommitTable).updates[0]["snapshot-id"] == 9223372036854775807


@pytest.mark.parametrize("kind", [b"application/json", b"Application/JSON; charset=utf-8", b"application/json;x=y"])
def test_json_says_so(kind):
    assert wire.is_json(kind)


@pytest.mark.parametrize("kind", [b"", b"text/plain", b"application/jsonp", b"text/plain; application/json"])
def test_anything_else_is_not_json(kind):
    assert not wire.is_json(kind)
