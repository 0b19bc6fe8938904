"""The evidence page names, for each requirement, the tests that carry its number."""

from scripts import evidence

TESTS = """
import pytest
pytestmark = pytest.mark.seed(1)

@pytest.mark.seed(7, 9)
async def test_a(): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.seed(8)), 2])
def test_b(x): ...

def helper(): ...
"""

PAGE = """
| # | requirement | decision |
|---|---|---|
| | *§0* | |
| 1 | first |  |
| 2 | with `a | b` inside | P |
| 3 | third | – |
"""


def test_marks_are_found_on_modules_tests_and_parameters():
    assert list(evidence.marks(TESTS)) == [(1, "test_a"), (7, "test_a"), (9, "test_a"), (1, "test_b"), (8, "test_b")]


def test_rows_are_read_with_their_decision():
    assert evidence.rows(PAGE) == [(1, "first", ""), (2, "with `a | b` inside", "P"), (3, "third", "–")]


def test_the_page_counts_what_is_shown_and_names_the_tests():
    run = {"title": "Speed", "command": "make bench", "at": "today", "lines": ["fast"]}
    page = evidence.page(evidence.rows(PAGE), {2: ["tests/x.py::test_a"]}, [run])
    assert "1 of 3 rows" in page
    assert "| 2 | with `a | b` inside | decided differently: the product's reasons | `tests/x.py::test_a` |" in page
    assert "## Speed\n\n`make bench`, today:\n\n```\nfast\n```" in page
