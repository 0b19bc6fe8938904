"""Write docs/evidence.md: the figures of the last runs, and for each requirement the tests that show it.

A run that has figures leaves `.cache/evidence/NAME.json`: {"title", "command", "at", "lines"}. Requirements are
the rows of docs/requirements.md; a test shows the rows in its mark `@pytest.mark.seed(...)`.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parent.parent

HOW_DECIDED = {
    "": "",
    "P": "decided differently: the product's reasons",
    "R": "decided differently: the protocols' reasons",
    "–": "does not apply",
}


class Row(NamedTuple):
    number: int
    text: str
    decision: str


def rows(page: str) -> list[Row]:
    """The requirements of docs/requirements.md."""
    found = re.findall(r"^\| (\d+) \| (.*) \| ?(\S*) \|$", page, re.MULTILINE)
    return [Row(int(number), text.strip(), decision) for number, text, decision in found]


def shown(folder: Path) -> dict[int, list[str]]:
    """Row number → the tests that carry it."""
    by_row = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        for number, name in marks(path.read_text()):
            by_row[number].append(f"{path.relative_to(folder.parent)}::{name}")
    return dict(by_row)


def marks(source: str) -> Iterator[tuple[int, str]]:
    """(row, test) for every seed mark in a test module, on a test, on one of its parameters or on the whole module."""
    tree = ast.parse(source)
    everywhere = [
        number
        for node in tree.body
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "pytestmark" for target in node.targets)
        for number in _seeds(node.value)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            own = [number for decorator in node.decorator_list for number in _seeds(decorator)]
            for number in sorted({*everywhere, *own}):
                yield number, node.name


def _seeds(node: ast.AST) -> Iterator[int]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.seed":
            yield from (int(argument.value) for argument in call.args if isinstance(argument, ast.Constant))  # type: ignore[arg-type]


def page(requirements: list[Row], tests: dict[int, list[str]], runs: Sequence[Mapping[str, object]]) -> str:
    lines = ["# Evidence", "", "Written by `make evidence`; nothing here is written by hand.", ""]
    for run in runs:
        said = run["lines"]
        assert isinstance(said, list)
        lines += [f"## {run['title']}", "", f"`{run['command']}`, {run['at']}:", "", "```", *map(str, said), "```", ""]
    done = [row for row in requirements if row.number in tests]
    lines += ["## Requirements", "", f"{len(done)} of {len(requirements)} rows are shown by tests.", ""]
    lines += ["| # | requirement | decision | shown by |", "|---|---|---|---|"]
    for row in requirements:
        names = "<br>".join(f"`{name}`" for name in tests.get(row.number, []))
        lines.append(f"| {row.number} | {row.text} | {HOW_DECIDED[row.decision]} | {names} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    requirements = rows((PROJECT / "docs" / "requirements.md").read_text())
    tests = shown(PROJECT / "tests")
    strange = sorted(set(tests) - {row.number for row in requirements})
    if strange:
        print(f"evidence: tests name rows that do not exist: {strange}", file=sys.stderr)
        return 1
    runs = [json.loads(path.read_text()) for path in sorted((PROJECT / ".cache" / "evidence").glob("*.json"))]
    (PROJECT / "docs" / "evidence.md").write_text(page(requirements, tests, runs))
    print(f"evidence: {len(tests)} of {len(requirements)} rows, {len(runs)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
