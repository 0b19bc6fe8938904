"""Names on the command line, as in SQL: `sales.orders`, `"with.dot".orders`, `"a ""quoted"" part".orders`."""

from __future__ import annotations

import re

from frazil.errors import BadInput
from frazil.names import Namespace, TableName, checked_name, checked_namespace

_PART = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')
_PLAIN = re.compile(r"[^\s.\"'`\\$&|;<>()*?#!]+")


def parse_parts(text: str) -> list[str]:
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(text, at)
        if match is None:
            raise BadInput(f"{text!r} is not a dotted name: a part is empty, or a quote is open")
        parts.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        at = match.end()
        if at == len(text):
            return parts
        if text[at] != ".":
            raise BadInput(f"{text!r} is not a dotted name: behind a quoted part comes a dot")
        at += 1


def parse_namespace(text: str) -> Namespace:
    return checked_namespace(parse_parts(text))


def parse_table(text: str) -> TableName:
    *namespace, name = parse_parts(text)
    if not namespace:
        raise BadInput(f"a table is named with its namespace, as in sales.{shown_parts(name)}")
    return TableName(checked_namespace(namespace), checked_name(name, "a table name"))


def shown_parts(*parts: str) -> str:
    """What `parse_parts` reads back; quoted where something in it would be read as more than a letter."""
    return ".".join(part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"' for part in parts)


def shown_table(name: TableName) -> str:
    return shown_parts(*name.namespace, name.name)
