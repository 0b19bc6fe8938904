"""The command line: what is understood, what is refused, and that every command exists."""

import argparse
import importlib

import pytest

from frazil.cli.arguments import build, parse
from frazil.cli.failures import USAGE
from frazil.names import TableName


def leaves(parser, path=()):
    """(words, parser) of every command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from leaves(inner, (*path, word))
            return
    yield path, parser


COMMANDS = dict(leaves(build()))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_a_function_behind_it_and_the_exit_codes_in_its_help(words):
    module, function = COMMANDS[words].get_default("run")
    assert callable(getattr(importlib.import_module(f"frazil.cli.{module}"), function))
    assert "exit codes" in COMMANDS[words].format_help()


def test_every_command_that_prints_data_has_json():
    without = {words for words, parser in COMMANDS.items() if "--json" not in parser.format_help()}
    assert without == {("up",), ("serve",)}


@pytest.mark.parametrize(
    "line",
    [
        ["tables", "set", "a.t", "k=v", "--owner", "ada"],
        ["tables", "set", "a.t", "--owner", "ada", "k=v"],
        ["tables", "set", "--owner", "ada", "a.t", "k=v"],
    ],
)
def test_pairs_may_stand_on_either_side_of_an_option(line):
    arguments = parse(line)
    assert arguments.name == TableName(("a",), "t")
    assert arguments.pairs == [("k", "v")]
    assert arguments.owner == "ada"


def test_a_value_may_hold_equals_signs_and_be_empty():
    assert parse(["tables", "set", "a.t", "k=a=b", "l="]).pairs == [("k", "a=b"), ("l", "")]


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["nothing"],
        ["tables"],
        ["tables", "show"],
        ["tables", "show", "orders"],
        ["tables", "show", "a..b"],
        ["tables", "show", "a.b", "c.d"],
        ["tables", "set", "a.t", "novalue"],
        ["tables", "set", "a.t", "--owner", "x", "novalue"],
        ["tables", "set", "a.t", "=v"],
        ["store", "check", "x", "--rounds", "0"],
        ["serve", "--unknown"],
        ["serve", "--work", "2"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(line, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(line)
    assert ended.value.code == USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("frazil")
