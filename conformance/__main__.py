"""Iceberg's REST compatibility kit against a live server: `make conformance`.

By default ours, started over a fresh directory; `--uri` names one that runs already. Exit code 0: exactly the expected
tests fail.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

from bench import evidence, servers
from bench.jars import PROJECT, class_path, java_home
from conformance import report

KIT = "org.apache.iceberg.rest.RESTCompatibilityKit"
SUITES = {"tables": "CatalogTests", "views": "ViewCatalogTests"}
REPORTS = PROJECT / ".cache" / "conformance"


def main() -> int:
    options = _options()
    expected = set() if options.expect_none else set(report.EXPECTED)
    with contextlib.ExitStack() as stack:
        uri = options.uri
        if uri is None:
            # The kit asks for locations of its own, under /tmp.
            server = servers.frazil(workers=1, environ={"FRAZIL_ALLOWED_LOCATIONS": "file:/tmp"})
            uri = stack.enter_context(server).uri
        run(uri, options.warehouse, options.suite)
    cases = report.read(REPORTS)
    wrong = report.surprises(cases, expected)
    for line in wrong:
        print(f"conformance: {line}")
    lines = report.summary(cases, expected).splitlines()
    print("\n".join(lines))
    if options.uri is None:
        telling = [line for line in lines if not line.startswith("passed")]
        evidence.leave(
            "conformance", "Iceberg's REST compatibility kit 1.11.0, table suite", "make conformance", telling
        )
    return 1 if wrong else 0


def run(uri: str, warehouse: str | None, suite: str) -> None:
    """One JVM, one class. The kit's own exit code says less than its report does."""
    shutil.rmtree(REPORTS, ignore_errors=True)
    home = java_home()
    switches = {
        "uri": uri,
        "rck.local": "false",  # or it starts a server of its own
        "rck.requires-namespace-create": "true",
        "org.slf4j.simpleLogger.defaultLogLevel": "warn",
    }
    if warehouse is not None:
        switches["warehouse"] = warehouse
    properties = [f"-D{name}={value}" for name, value in switches.items()]
    launcher = ["-cp", class_path(home), "org.junit.platform.console.ConsoleLauncher", "execute"]
    what = ["--select-class", KIT + SUITES[suite], "--reports-dir", str(REPORTS), "--disable-banner", "--details=none"]
    command = [str(home / "bin" / "java"), *properties, *launcher, *what]
    REPORTS.mkdir(parents=True)
    with Path(REPORTS, "log").open("wb") as log:
        subprocess.run(command, stdout=log, stderr=log, check=False)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("--uri", help="a server that runs already, instead of ours")
    parser.add_argument("--warehouse", default="lake", help="sent to /v1/config; default: %(default)s")
    parser.add_argument("--suite", choices=SUITES, default="tables")
    parser.add_argument("--expect-none", action="store_true", help="expect no failure (the reference server)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
