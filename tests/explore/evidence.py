"""The figures of explorations, for docs/evidence.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.explore.engine import Result

FOLDER = Path(__file__).parents[2] / ".cache" / "evidence"

_TITLES = {
    "explore": ("Exploration, each push", "make test"),
    "explore-long": ("Exploration, without bounds", "make explore"),
}


def note(kind: str, scenario: str, results: Sequence[Result]) -> None:
    """Keep one scenario's figures; the page shows all of them with their sums."""
    parts = FOLDER / kind
    parts.mkdir(parents=True, exist_ok=True)
    figures = {
        "scenario": scenario,
        "states": sum(result.states for result in results),
        "schedules": sum(result.schedules for result in results),
        "violations": sum(result.violations for result in results),
        "complete": sum(result.complete for result in results),
        "runs": len(results),
        "seconds": round(sum(result.seconds for result in results), 1),
    }
    name = "".join(letter if letter.isalnum() else "-" for letter in scenario)
    (parts / f"{name}.json").write_text(json.dumps(figures))
    _sum_up(kind)


def _sum_up(kind: str) -> None:
    rows = [json.loads(path.read_text()) for path in sorted((FOLDER / kind).glob("*.json"))]
    title, command = _TITLES[kind]
    lines = [
        f"{row['scenario']}: {row['states']:,} states, {row['schedules']:,} schedules, "
        f"{row['violations']:,} violations, {row['complete']} of {row['runs']} runs complete"
        for row in rows
    ]
    states = sum(row["states"] for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    lines.append(f"together {states:,} states, {sum(row['violations'] for row in rows):,} violations, {seconds:.0f} s")
    at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    document = {"title": title, "command": command, "at": at, "lines": lines}
    partial = FOLDER / f".{kind}.partial"
    partial.write_text(json.dumps(document))
    partial.replace(FOLDER / f"{kind}.json")
