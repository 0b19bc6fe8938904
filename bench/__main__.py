"""`make bench`: CPU per operation of our server beside Iceberg's reference server, one after the other in one run.

The server's CPU (its whole process tree) is the steadiest figure on a shared machine; rates and latencies are shown
beside it and are a floor when others are busy, which `others_cpus` tells.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from bench import cpu, evidence, growth, load, registry, report, servers
from bench.workloads import WORKLOADS, Site, Workload

LAUNCH: dict[str, Callable[[], contextlib.AbstractContextManager[servers.Server]]] = {
    "frazil": servers.frazil,
    "fixture": servers.fixture,
}


def main() -> int:
    options = _options()
    results: dict[str, Any] = {"machine": _machine(), "servers": {}}
    for name in options.servers:
        print(f"bench: {name}", file=sys.stderr, flush=True)
        results["servers"][name] = _server(name, options)
    if options.growth:
        results["growth"] = growth.measure()
    if "frazil" in options.servers and options.registry:
        results["registry"] = {str(tables): _registry(tables, options) for tables in (registry.SMALL, registry.LARGE)}
    report.save(results)
    lines = [*report.table(results).splitlines(), *(f"goal not reached: {line}" for line in report.missed(results))]
    print("\n".join(lines))
    if not options.only:
        evidence.leave("bench", "Speed, side by side in one run", "make bench", [_said(results["machine"]), *lines])
    return 0


def _server(name: str, options: argparse.Namespace) -> dict[str, Any]:
    starts, idle_mb = [], 0.0
    one = (lambda: servers.frazil(workers=1)) if name == "frazil" else LAUNCH[name]
    for _ in range(options.starts):
        with one() as server:
            starts.append(server.cold_start_s)
            idle_mb = cpu.memory_mb(server.pid)
    with LAUNCH[name]() as server:
        cells = {
            workload.name: measure(server, workload, options)
            for workload in WORKLOADS
            if not options.only or workload.name in options.only
        }
        loaded_mb = cpu.memory_mb(server.pid)
    return {
        "cold_start_s": statistics.median(starts),
        "idle_mb": idle_mb,
        "loaded_mb": loaded_mb,
        "workloads": cells,
    }


def _registry(tables: int, options: argparse.Namespace) -> dict[str, Any]:
    with servers.directory() as scratch:
        registry.fill(scratch / "root", tables)
        with servers.frazil(root=scratch / "root") as server:
            return {workload.name: measure(server, workload, options) for workload in registry.WORKLOADS}


def measure(server: servers.Server, workload: Workload, options: argparse.Namespace) -> dict[str, float]:
    """One workload on a running server."""
    site = Site(server)
    prepared = workload.prepare(site)
    edges: list[tuple[float, float, float]] = []

    def edge() -> None:
        edges.append((cpu.used_s(server.pid), cpu.machine_busy_s(), time.process_time()))

    done = load.run(
        server.port,
        prepared.operation,
        clients=workload.clients,
        warm_s=options.warm,
        measure_s=options.seconds,
        on_begin=edge,
        on_end=edge,
    )
    prepared.verify()
    used, machine, own = (after - before for before, after in zip(*edges, strict=True))
    cell = {
        "cpu_us": used / done.operations * 1e6 if done.operations else float("inf"),
        "rate": done.operations / done.seconds,
        "p50_ms": done.percentile_ms(50),
        "p99_ms": done.percentile_ms(99),
        "operations": done.operations,
        "clients": workload.clients,
        "generator_us": own / done.operations * 1e6 if done.operations else float("inf"),
        "others_cpus": max(0.0, machine - used - own) / done.seconds,
    }
    said = " ".join(f"{name}={value:.1f}" for name, value in cell.items())
    print(f"  {workload.name:12} {said}", file=sys.stderr, flush=True)
    return cell


def _machine() -> dict[str, Any]:
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def _said(machine: dict[str, Any]) -> str:
    return f"{machine['cpus']} CPUs, load {machine['load']:.1f} before the run, Python {machine['python']}"


def _options() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--servers", type=names, default=[*LAUNCH], help="default: %(default)s")
    parser.add_argument(
        "--only", type=names, default=[], help="workloads: " + ", ".join(each.name for each in WORKLOADS)
    )
    parser.add_argument("--seconds", type=float, default=5, help="measured time a workload; default: %(default)s")
    parser.add_argument("--warm", type=float, default=5, help="time before it is measured; default: %(default)s")
    parser.add_argument("--starts", type=int, default=3, help="cold starts; default: %(default)s")
    parser.add_argument("--no-growth", dest="growth", action="store_false", help="leave out the core's own figures")
    parser.add_argument("--no-registry", dest="registry", action="store_false", help="leave out the large catalogs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
