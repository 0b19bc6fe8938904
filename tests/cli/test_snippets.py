"""What `frazil up` tells people to paste, pasted."""

import subprocess
import sys

import pytest

from frazil.cli.snippets import DUCKDB, PYICEBERG, SNIPPETS, welcome
from tests.conftest import running

URI = "http://127.0.0.1:8181"
BIRDS = ["wren", "robin", "finch", "heron"]


def pasted(snippet, uri, **named):
    """What it prints, run as it is in a Python of its own."""
    done = subprocess.run(
        [sys.executable, "-c", snippet.text(uri)], capture_output=True, text=True, check=False, timeout=280, **named
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_the_address_is_the_only_thing_filled_in():
    for snippet in SNIPPETS:
        assert f"{URI}/iceberg" in snippet.text(URI)
        assert snippet.text("{uri}") == snippet.template


def test_up_prints_every_snippet_at_the_left_edge():
    lines = welcome(URI).splitlines()
    for snippet in SNIPPETS:
        assert all(line in lines for line in snippet.text(URI).splitlines())


def test_a_server_with_tokens_says_where_they_go():
    assert "token=" not in welcome(URI)
    assert "token=" in welcome(URI, tokens=True)


def test_pyiceberg_and_duckdb_read_what_each_other_wrote(tmp_path):
    with running(tmp_path / "lake") as started:
        assert pasted(PYICEBERG, started.uri) == "[{'id': 1, 'name': 'wren'}, {'id': 2, 'name': 'robin'}]\n"
        said = pasted(DUCKDB, started.uri)
        assert [name for name in BIRDS if name in said] == ["wren", "robin", "heron"]
        assert "heron" in pasted(PYICEBERG, started.uri)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("first", SNIPPETS, ids=lambda snippet: snippet.engine)
def test_the_snippets_work_on_an_empty_catalog_whoever_is_first(tmp_path, first):
    with running(tmp_path / "lake") as started:
        order = [first, *(each for each in SNIPPETS if each is not first)]
        said = [pasted(snippet, started.uri) for snippet in order]
    # The last one sees what all of them wrote.
    assert [name for name in BIRDS if name in said[-1]] == BIRDS
