"""Explore every scenario further: all faults, any interruption. Stops after a while, resumes where it stopped.

    python -m tests.explore [--seconds N] [--only WORD]

Exits 1 when a schedule breaks a promise, and prints the schedule.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path

from frazil import limits
from tests.explore import evidence, scenarios
from tests.explore.engine import Budget, Explorer

PROJECT = Path(__file__).parents[2]
SAVED = PROJECT / ".cache" / "explore"


def of_this_code() -> str:
    """What was explored holds for the code that was run: other code starts anew."""
    digest = hashlib.sha256()
    for folder in (PROJECT / "src" / "frazil", Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def main() -> int:
    parser = argparse.ArgumentParser(prog="explore", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="for all scenarios together (default: 600)")
    parser.add_argument("--only", default="", help="scenarios whose name has this word")
    arguments = parser.parse_args()
    SAVED.mkdir(parents=True, exist_ok=True)
    stories = [story for story in scenarios.NAMED if arguments.only in story.__name__]
    for name, value in scenarios.SMALL_SCOPE.items():
        setattr(limits, name, value)
    broken = 0
    code = of_this_code()
    for old in SAVED.glob("*.pickle"):
        if code not in old.name:
            old.unlink()
    for at, story in enumerate(stories):
        started = time.monotonic()
        saved = SAVED / f"{story.__name__}-{code}.pickle"
        explorer = Explorer.resumed(saved, scenarios.with_budget(story(), Budget()))
        before = len(explorer.memo)
        result = explorer.run(most_seconds=arguments.seconds / len(stories))
        explorer.save(saved)
        rate = (result.states - before) / max(time.monotonic() - started, 0.001)
        print(f"[{at + 1}/{len(stories)}] {result}, {rate:,.0f} states/s", flush=True)
        evidence.note("explore-long", result.scenario, [result])
        if result.message is not None:
            broken += 1
            print(f"  {result.message}\n    " + "\n    ".join(result.trace))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
