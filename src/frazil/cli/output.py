"""What commands print: aligned tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any


def print_json(document: Any) -> None:
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for line in table_lines(head, rows):
        print(line)


def print_fields(fields: Mapping[str, object]) -> None:
    """Names and values below each other; a field without a value is left out."""
    shown = {name: text(value) for name, value in fields.items() if value is not None}
    width = max((_width(name) for name in shown), default=0)
    for name, value in shown.items():
        print(f"{_padded(name, width)}  {value}".rstrip())


def table_lines(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Columns as wide as their widest cell; a column of nothing but numbers leans to the right."""
    cells = [[text(cell) for cell in row] for row in rows]
    widths = [max(_width(name), *(_width(row[at]) for row in cells), 0) for at, name in enumerate(head)]
    right = [bool(rows) and all(isinstance(row[at], int) or row[at] is None for row in rows) for at in range(len(head))]
    return [
        "  ".join(_padded(cell, widths[at], right[at]) for at, cell in enumerate(row)).rstrip()
        for row in [[name.upper() for name in head], *cells]
    ]


def text(value: object) -> str:
    """One cell: on one line, and without the control characters that a terminal would act on."""
    if value is None:
        return ""
    plain = str(value)
    if plain.isprintable():
        return plain
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in plain)


def moment(at_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"  # beyond the calendar: somebody's clock


def _padded(cell: str, width: int, right: bool = False) -> str:
    gap = " " * (width - _width(cell))
    return gap + cell if right else cell + gap


def _width(cell: str) -> int:
    if cell.isascii():
        return len(cell)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in cell
    )
