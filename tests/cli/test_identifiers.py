"""Names on the command line: what is printed is read back as the same name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.cli.identifiers import parse_namespace, parse_parts, parse_table, shown_parts, shown_table
from frazil.errors import BadInput
from frazil.names import TableName


@pytest.mark.parametrize(
    "text, parts",
    [
        ("sales.orders", ["sales", "orders"]),
        ('"a.b".c', ["a.b", "c"]),
        ('a."b.c"', ["a", "b.c"]),
        ('"say ""hi""".t', ['say "hi"', "t"]),
        ("with space.t", ["with space", "t"]),
        ("ünï.テーブル", ["ünï", "テーブル"]),
        ("a/b.c%1Fd", ["a/b", "c%1Fd"]),
    ],
)
def test_a_name_is_read_as_in_sql(text, parts):
    assert parse_parts(text) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", '"a', 'a"', 'a"b".c', '"a"b', '"a".', '""x'])
def test_what_is_no_name_is_refused(text):
    with pytest.raises(BadInput):
        parse_parts(text)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_what_is_shown_is_read_back(parts):
    assert parse_parts(shown_parts(*parts)) == parts


def test_plain_names_are_shown_without_quotes():
    assert shown_table(TableName(("sales", "eu-west"), "orders_2")) == "sales.eu-west.orders_2"
    assert shown_table(TableName(("a.b",), "my table")) == '"a.b"."my table"'


def test_a_table_without_a_namespace_is_refused_with_an_example():
    with pytest.raises(BadInput, match=r"sales\.orders"):
        parse_table("orders")


@pytest.mark.parametrize("text", ['""', "a\x1fb", "x" * 256, '"".t'])
def test_a_namespace_keeps_the_catalogs_own_rules(text):
    with pytest.raises(BadInput):
        parse_namespace(text)
