"""Rules about the source that no linter here knows: where time, chance, identity and the environment may come from."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "frazil"

#: Everything that makes two runs of the same code differ. The core gets it from `effects.py`, to be replayed.
IMPURE = {
    "time",
    "random",
    "secrets",
    "uuid",
    "os.environ",
    "os.getenv",
    "os.urandom",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.date.today",
}

#: Who may all the same, and why.
ALLOWED = {
    "effects.py": "wraps them",
    "config.py": "reads FRAZIL_… from the environment",
    "serve.py": "the composition root",
    "cli/": "a program of its own, around the core",
    "pipeline/spark.py": "prepares the environment that Spark's JVM inherits",
}


def impure_uses(source: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every use of something impure, by whatever name it was imported."""
    tree = ast.parse(source)
    meaning: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                meaning[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                meaning[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if impure(f"{node.module}.{alias.name}"):
                    yield node.lineno, f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = dotted(node, meaning)
            if name and impure(name):
                yield node.lineno, name


def dotted(node: ast.expr, meaning: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return meaning.get(node.id)
    if isinstance(node, ast.Attribute) and (before := dotted(node.value, meaning)):
        return f"{before}.{node.attr}"
    return None


def impure(name: str) -> bool:
    return name in IMPURE or name.split(".", maxsplit=1)[0] in IMPURE


def test_time_chance_identity_and_environment_come_from_effects():
    found = [
        f"{path.relative_to(SOURCE)}:{line} uses {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.relative_to(SOURCE).as_posix().startswith(tuple(ALLOWED))
        for line, name in impure_uses(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "import time; time.time()",
        "import time as t; t.sleep(1)",
        "from time import monotonic",
        "import os; os.environ['X']",
        "from os import environ",
        "import os as o; o.getenv('X')",
        "import random; random.random()",
        "from uuid import uuid4",
        "import datetime; datetime.datetime.now()",
        "from datetime import datetime as dt; dt.now(None)",
    ],
)
def test_the_rule_sees_every_spelling(line):
    assert list(impure_uses(line))


@pytest.mark.parametrize(
    "line",
    [
        "import os; os.path.join('a', 'b')",
        "from datetime import UTC, datetime; datetime.fromtimestamp(0, UTC)",
        "clock.time()",
        "self.random.choice(items)",
        "timer.time()",
    ],
)
def test_the_rule_leaves_the_rest_alone(line):
    assert not list(impure_uses(line))


def test_every_module_is_short():
    long = [f"{path.relative_to(SOURCE)}" for path in SOURCE.rglob("*.py") if len(path.read_text().splitlines()) > 500]
    assert not long
