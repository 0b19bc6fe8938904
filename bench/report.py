"""The figures as a table to read and as JSON, from which docs/evidence.md is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench import growth, registry
from bench.jars import PROJECT
from bench.workloads import WORKLOADS, Workload

RESULTS = PROJECT / "bench" / "results.json"

COLD_START_S = 0.5
IDLE_MB = 80


class Bound(NamedTuple):
    """A figure of our own that must stay under its bound."""

    what: str
    found: float
    most: float
    unit: str

    def __str__(self) -> str:
        return f"{self.what}: {self.found:.2f}{self.unit} (at most {self.most:g})"


def save(results: dict[str, Any], to: Path = RESULTS) -> None:
    to.write_text(json.dumps(results, indent=1) + "\n")


def table(results: dict[str, Any]) -> str:
    """One line a workload: ours, the reference server's, how many times better, and the goal; then the bounds."""
    columns = "µs     op/s      p50   p99 ms"
    lines = [f"{'':12}{'frazil ' + columns:>40}{'fixture ' + columns:>40}{'ratio':>8}{'goal':>6}"]
    for workload in WORKLOADS:
        ours, theirs = _cell(results, "frazil", workload), _cell(results, "fixture", workload)
        if ours or theirs:
            reached = f"{ratio(workload, ours, theirs):.1f}" if ours and theirs else ""
            goal = f"{workload.goal:g}" if workload.goal else ""
            lines.append(f"{workload.name:12}{_figures(ours):>40}{_figures(theirs):>40}{reached:>8}{goal:>6}")
    for name, side in results["servers"].items():
        start, idle, loaded = side["cold_start_s"], side["idle_mb"], side["loaded_mb"]
        lines.append(f"{name}: cold start {start:.2f} s, idle {idle:.0f} MB, after load {loaded:.0f} MB")
    for size, cost in results.get("growth", {}).items():
        before, written = cost["before_us"], cost["bytes_us"]
        lines.append(
            f"append at {size} snapshots: {before:.1f} µs before bytes are written, {written:.0f} µs writing them"
        )
    for tables, cells in results.get("registry", {}).items():
        lines += [f"registry of {tables} tables, {name}: {_figures(cell).strip()}" for name, cell in cells.items()]
    lines += [str(bound) for bound in bounds(results)]
    return "\n".join(lines)


def missed(results: dict[str, Any]) -> list[str]:
    """The goals and bounds that this run did not reach."""
    out = []
    for workload in WORKLOADS:
        ours, theirs = _cell(results, "frazil", workload), _cell(results, "fixture", workload)
        if workload.goal and ours and theirs and (reached := ratio(workload, ours, theirs)) < workload.goal:
            out.append(f"{workload.name}: {reached:.1f} of {workload.goal:g} times")
    return out + [str(bound) for bound in bounds(results) if bound.found > bound.most]


def ratio(workload: Workload, ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """How many times better ours is."""
    if workload.by == "rate":
        return float(ours["rate"] / theirs["rate"])
    return float(theirs["cpu_us"] / ours["cpu_us"])


def bounds(results: dict[str, Any]) -> Iterator[Bound]:
    if "frazil" in results["servers"]:
        ours = results["servers"]["frazil"]
        yield Bound("cold start of one server process", ours["cold_start_s"], COLD_START_S, " s")
        yield Bound("idle memory of one server process", ours["idle_mb"], IDLE_MB, " MB")
    if "growth" in results:
        small, large = (results["growth"][str(size)]["before_us"] for size in (growth.SIZES[0], growth.SIZES[-1]))
        what = f"an append at {growth.SIZES[-1]} snapshots beside one at {growth.SIZES[0]}, before bytes are written"
        yield Bound(what, large / small, growth.FLAT, " times")
    if "registry" in results:
        few, many = (results["registry"][str(tables)] for tables in (registry.SMALL, registry.LARGE))
        for name in few:
            what = f"{name} with {registry.LARGE} tables beside {registry.SMALL}"
            yield Bound(what, many[name]["cpu_us"] / few[name]["cpu_us"], registry.FLAT, " times")


def _cell(results: dict[str, Any], server: str, workload: Workload) -> dict[str, Any] | None:
    side = results["servers"].get(server)
    return side["workloads"].get(workload.name) if side else None


def _figures(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "-"
    return f"{cell['cpu_us']:.0f} {cell['rate']:8.0f} {cell['p50_ms']:8.1f} {cell['p99_ms']:8.1f}"
