"""Tables and documents as they are printed."""

import json

import pytest

from frazil.cli.output import print_fields, print_json, table_lines, text


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_lean_right():
    assert table_lines(["name", "rows"], [["a", 5], ["longer", 1234], ["x", None]]) == [
        "NAME    ROWS",
        "a          5",
        "longer  1234",
        "x",
    ]


def test_a_table_without_rows_is_its_head():
    assert table_lines(["name", "value"], []) == ["NAME  VALUE"]


def test_wide_and_combining_characters_are_counted_as_they_are_seen():
    assert table_lines(["a", "b"], [["表", "x"], ["e\u0301", "x"]]) == ["A   B", "表  x", "e\u0301   x"]


@pytest.mark.parametrize(
    "value, shown",
    [
        ("plain ünï", "plain ünï"),
        ("two\nlines", "two\\nlines"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\u202ereversed", "\\u202ereversed"),
        (None, ""),
    ],
)
def test_a_cell_stays_on_its_line_and_commands_no_terminal(value, shown):
    assert text(value) == shown


def test_fields_without_a_value_are_left_out(capsys):
    print_fields({"name": "a", "owner": None, "description": "text"})
    assert capsys.readouterr().out == "name         a\ndescription  text\n"


def test_json_is_one_document_in_readable_letters(capsys):
    print_json({"name": "é"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"name": "é"}
    assert "é" in out
