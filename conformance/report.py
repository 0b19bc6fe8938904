"""What the kit's JUnit report says, and whether that is what we expect."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

#: What fails, and must: the day one of these passes, this list and the README are wrong.
EXPECTED = {
    "testCompleteReplaceTransaction": "moves a table's location, which the catalog owns",
    "testCompleteCreateOrReplaceTransactionReplace": "moves a table's location, which the catalog owns",
    "testLoadTableWithMissingMetadataFile": "an immutable metadata file may be answered from the cache",
}


class Case(NamedTuple):
    name: str
    outcome: Literal["passed", "failed", "skipped"]
    reason: str


def read(folder: Path) -> list[Case]:
    return [_case(element) for file in sorted(folder.glob("TEST-*.xml")) for element in ET.parse(file).iter("testcase")]


def _case(element: ET.Element) -> Case:
    name = element.get("name", "")
    for tag in ("failure", "error"):
        if (found := element.find(tag)) is not None:
            return Case(name, "failed", _line(found.get("message") or found.text or ""))
    if (found := element.find("skipped")) is not None:
        return Case(name, "skipped", _line(found.get("message") or found.text or ""))
    return Case(name, "passed", "")


def _line(text: str) -> str:
    """The telling line of a message: JUnit opens a skip with a sentence that says nothing."""
    told = text.rpartition("assumption was not met due to:")[2]
    return next((line.strip() for line in told.splitlines() if line.strip()), "")


def method(name: str) -> str:
    """The Java method behind a case: `testX(boolean)[2]` is testX."""
    return name.split("(", maxsplit=1)[0]


def surprises(cases: Iterable[Case], expected: Iterable[str]) -> list[str]:
    """Everything that is not as expected, one line each. A kit that ran nothing is a surprise as well."""
    cases = list(cases)
    failed = {method(case.name) for case in cases if case.outcome == "failed"}
    return (
        [f"{name} failed" for name in sorted(failed - set(expected))]
        + [f"{name} was expected to fail and did not" for name in sorted(set(expected) - failed)]
        + ([] if any(case.outcome == "passed" for case in cases) else ["nothing passed"])
    )


def summary(cases: Iterable[Case], expected: Iterable[str]) -> str:
    """Each case by name, then the closing line."""
    cases = sorted(cases)
    lines = [f"passed   {case.name}" for case in cases if case.outcome == "passed"]
    lines += [f"skipped  {case.name}: {case.reason}" for case in cases if case.outcome == "skipped"]
    for case in cases:
        if case.outcome == "failed":
            note = f"expected: {EXPECTED[method(case.name)]}" if method(case.name) in expected else case.reason
            lines.append(f"FAILED   {case.name}: {note}")
    count = {outcome: sum(case.outcome == outcome for case in cases) for outcome in ("passed", "failed", "skipped")}
    return "\n".join([*lines, f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped"])
