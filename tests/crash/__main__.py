"""Kill servers under load, judge every acknowledged commit: `python -m tests.crash [--seconds N]`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.run import run

EVIDENCE = Path(__file__).parents[2] / ".cache" / "evidence"


def main() -> int:
    parser = argparse.ArgumentParser(prog="crash", description=(__doc__ or "").strip())
    parser.add_argument("--seconds", type=float, default=120)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="frazil-crash-") as folder:
        result = run(Path(folder), seconds)
    for line in result.lines():
        print(line)
    for problem in [*result.verdict.problems, *(f"{name} cannot be loaded" for name in result.unreadable)]:
        print(f"  {problem}")
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    page = {"title": "kill -9 under load", "command": "make crash", "at": at, "lines": result.lines()}
    (EVIDENCE / "crash.json").write_text(json.dumps(page))
    return 1 if result.verdict.problems or result.unreadable else 0


if __name__ == "__main__":
    sys.exit(main())
