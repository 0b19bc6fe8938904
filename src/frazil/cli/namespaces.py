"""`frazil namespaces …`"""

from __future__ import annotations

import argparse

from frazil.cli import output, server
from frazil.cli.failures import OK
from frazil.cli.identifiers import shown_parts
from frazil.cli.properties import DESCRIPTION, OWNER, updates_of, wanted


def list_(arguments: argparse.Namespace) -> int:
    lake = server.catalog(arguments)
    found = list(lake.walk(arguments.namespace)) if arguments.recursive else lake.namespaces(arguments.namespace)
    if arguments.json:
        output.print_json({"namespaces": [{"name": shown_parts(*each), "levels": list(each)} for each in found]})
    else:
        output.print_table(["namespace"], [[shown_parts(*each)] for each in found])
    return OK


def show(arguments: argparse.Namespace) -> int:
    loaded = server.catalog(arguments).namespace(arguments.name)
    properties: dict[str, str] = loaded.get("properties") or {}
    if arguments.json:
        output.print_json({"name": shown_parts(*arguments.name), **loaded})
        return OK
    fields = {"name": shown_parts(*arguments.name), "owner": properties.get(OWNER)}
    output.print_fields({**fields, "description": properties.get(DESCRIPTION)})
    rest = {name: value for name, value in sorted(properties.items()) if name not in (OWNER, DESCRIPTION)}
    if rest:
        print()
        output.print_table(["property", "value"], list(rest.items()))
    return OK


def create(arguments: argparse.Namespace) -> int:
    made = server.catalog(arguments).create_namespace(arguments.name, updates_of(arguments))
    _said(arguments, f"created {shown_parts(*arguments.name)}", made)
    return OK


def drop(arguments: argparse.Namespace) -> int:
    server.catalog(arguments).drop_namespace(arguments.name)
    _said(arguments, f"dropped {shown_parts(*arguments.name)}", {"dropped": shown_parts(*arguments.name)})
    return OK


def set_(arguments: argparse.Namespace) -> int:
    updates, removals = wanted(arguments)
    changed = server.catalog(arguments).update_namespace(arguments.name, updates, removals)
    told = [f"{what} {', '.join(changed[field])}" for field, what in _CHANGES if changed.get(field)]
    _said(arguments, f"{shown_parts(*arguments.name)}: {'; '.join(told)}", changed)
    return OK


_CHANGES = (("updated", "set"), ("removed", "removed"), ("missing", "was not there:"))


def _said(arguments: argparse.Namespace, line: str, document: object) -> None:
    if arguments.json:
        output.print_json(document)
    else:
        print(output.text(line))
