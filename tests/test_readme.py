"""The README says what the program says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from frazil import config
from frazil.cli.snippets import SNIPPETS

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text()


@pytest.mark.seed(180)
def test_the_readmes_snippets_are_the_ones_that_the_tests_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks == [snippet.text("http://127.0.0.1:8181") for snippet in SNIPPETS]


def test_every_page_that_the_readme_points_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (PROJECT / target).exists(), target


def test_the_configuration_page_is_the_one_generated_from_the_settings() -> None:
    assert (PROJECT / "docs" / "configuration.md").read_text().endswith("\n\n" + config.reference())
