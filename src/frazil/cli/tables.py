"""`frazil tables …`"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from frazil.cli import output, server
from frazil.cli.failures import OK, Misused
from frazil.cli.identifiers import shown_table
from frazil.cli.properties import updates_of, wanted
from frazil.cli.tabledoc import changes, columns, current_snapshot, partition, sort_order, versions
from frazil.names import TableName


def list_(arguments: argparse.Namespace) -> int:
    lake = server.catalog(arguments)
    inside = [arguments.namespace] if arguments.namespace else lake.walk()
    found = [table for namespace in inside for table in lake.tables(namespace)]
    if arguments.json:
        output.print_json({"tables": [_named(each) for each in found]})
    else:
        output.print_table(["table"], [[shown_table(each)] for each in found])
    return OK


def show(arguments: argparse.Namespace) -> int:
    lake = server.catalog(arguments)
    loaded = lake.load_table(arguments.name)
    tags = lake.tags(arguments.name)
    location, metadata = loaded["metadata-location"], loaded["metadata"]
    if arguments.json:
        known = {"metadata-location": location, "tags": tags, "metadata": metadata}
        output.print_json({**_named(arguments.name), **known})
        return OK
    properties: dict[str, str] = metadata.get("properties") or {}
    output.print_fields(
        {
            "name": shown_table(arguments.name),
            "owner": properties.get("owner"),
            "description": properties.get("comment"),
            "tags": ", ".join(_pairs(tags)) or None,
            "uuid": metadata["table-uuid"],
            "location": metadata["location"],
            "metadata": location,
            "format": f"v{metadata['format-version']}",
            "updated": output.moment(metadata["last-updated-ms"]),
            "snapshot": current_snapshot(metadata),
            "partitioned by": partition(metadata),
            "sorted by": sort_order(metadata),
        }
    )
    print()
    output.print_table(["id", "column", "type", "required", "comment"], columns(metadata))
    rest = {name: value for name, value in sorted(properties.items()) if name not in ("owner", "comment")}
    if rest:
        print()
        output.print_table(["property", "value"], list(rest.items()))
    return OK


def history(arguments: argparse.Namespace) -> int:
    loaded = server.catalog(arguments).load_table(arguments.name)
    snapshots, files = changes(loaded["metadata"]), versions(loaded)
    if arguments.json:
        output.print_json({**_named(arguments.name), "snapshots": snapshots, "metadata": files})
        return OK
    if snapshots:
        output.print_table(
            ["", "became current", "snapshot", "operation", "added rows", "deleted rows"],
            [
                [
                    _mark(each),
                    output.moment(each["timestamp-ms"]),
                    each["snapshot-id"],
                    each["operation"],
                    each["added-records"],
                    each["deleted-records"],
                ]
                for each in snapshots
            ],
        )
    else:
        print("no data was written yet")
    print()
    output.print_table(
        ["", "written", "metadata"],
        [[_mark(each), output.moment(each["timestamp-ms"]), each["metadata-file"]] for each in files],
    )
    return OK


def set_(arguments: argparse.Namespace) -> int:
    updates, removals = wanted(arguments)
    commit: list[dict[str, Any]] = []
    if updates:
        commit.append({"action": "set-properties", "updates": updates})
    if removals:
        commit.append({"action": "remove-properties", "removals": removals})
    committed = server.catalog(arguments).commit(arguments.name, commit)
    told = [f"{what} {', '.join(names)}" for what, names in (("set", updates), ("removed", removals)) if names]
    document = {"metadata-location": committed["metadata-location"], "updated": list(updates), "removed": removals}
    return _said(arguments, f"{shown_table(arguments.name)}: {'; '.join(told)}", {**_named(arguments.name), **document})


def tag(arguments: argparse.Namespace) -> int:
    updates, removals = updates_of(arguments), list(dict.fromkeys(arguments.remove))
    if both := sorted(set(updates) & set(removals)):
        raise Misused(f"set or removed? {', '.join(both)}")
    lake = server.catalog(arguments)
    tags = lake.tag_table(arguments.name, updates, removals) if updates or removals else lake.tags(arguments.name)
    if arguments.json:
        output.print_json({**_named(arguments.name), "tags": tags})
    else:
        output.print_table(["tag", "value"], sorted(tags.items()))
    return OK


def drop(arguments: argparse.Namespace) -> int:
    lake = server.catalog(arguments)
    tags = lake.tags(arguments.name)  # asked before: afterwards nothing knows the name any more
    location = lake.drop_table(arguments.name, purge=arguments.purge)
    name = shown_table(arguments.name)
    document = {"dropped": name, "purge": arguments.purge, "metadata-location": location, "tags": tags}
    if location is None:
        return _said(arguments, f"dropped {name}", document)
    if arguments.purge:
        return _said(arguments, f"dropped {name}, and its files may be deleted; its metadata was {location}", document)
    back = [["register", name, location], *([["tag", name, *_pairs(tags)]] if tags else [])]
    at = ["--uri", arguments.uri] if arguments.uri else []
    commands = "".join(f"\n  {shlex.join(['frazil', 'tables', *words, *at])}" for words in back)
    return _said(arguments, f"dropped {name}; its files are kept, and this brings it back:{commands}", document)


def rename(arguments: argparse.Namespace) -> int:
    server.catalog(arguments).rename_table(arguments.name, arguments.target)
    old, new = shown_table(arguments.name), shown_table(arguments.target)
    return _said(arguments, f"renamed {old} to {new}", {"renamed": old, **_named(arguments.target)})


def register(arguments: argparse.Namespace) -> int:
    loaded = server.catalog(arguments).register_table(arguments.name, arguments.location)
    uuid = loaded["metadata"]["table-uuid"]
    document = {**_named(arguments.name), "table-uuid": uuid, "metadata-location": loaded["metadata-location"]}
    return _said(arguments, f"registered {shown_table(arguments.name)} (table {uuid})", document)


def _named(name: TableName) -> dict[str, Any]:
    return {"name": shown_table(name), "namespace": list(name.namespace), "table": name.name}


def _mark(each: dict[str, Any]) -> str:
    return "*" if each["current"] else ""


def _pairs(tags: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(tags.items())]


def _said(arguments: argparse.Namespace, lines: str, document: object) -> int:
    if arguments.json:
        output.print_json(document)
    else:
        for line in lines.split("\n"):
            print(output.text(line))
    return OK
