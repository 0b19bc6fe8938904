"""Leaving a run's figures where `make evidence` finds them."""

from __future__ import annotations

import json
import time

from bench.jars import PROJECT


def leave(name: str, title: str, command: str, lines: list[str]) -> None:
    folder = PROJECT / ".cache" / "evidence"
    folder.mkdir(parents=True, exist_ok=True)
    said = {"title": title, "command": command, "at": time.strftime("%Y-%m-%d", time.gmtime()), "lines": lines}
    (folder / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")
