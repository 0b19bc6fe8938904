"""What the catalog refuses whatever the metadata would allow: 400, before anything is written (§3.9)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frazil import limits
from frazil.catalog.context import Context
from frazil.errors import BadInput
from frazil.iceberg import updates as iceberg_updates
from frazil.iceberg.metadata import TableMetadata
from frazil.names import RESERVED, Location, Namespace

_RESERVED_PREFIXES = ("frazil.", "arco.")

#: Table properties that say where an engine writes; judged like the table's own location.
LOCATION_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)


def check_commit(requirements: Sequence[dict[str, Any]], updates: Sequence[dict[str, Any]]) -> None:
    if len(updates) > limits.updates_max:
        raise BadInput(f"a commit has at most {limits.updates_max} updates, not {len(updates)}")
    if (rejected := iceberg_updates.unknown(requirements, updates)) is not None:
        raise rejected.error
    creating = any(requirement.get("type") == "assert-create" for requirement in requirements)
    for update in updates:
        match update.get("action"):
            case "set-location" if not creating:
                raise BadInput("set-location is refused: the catalog owns the storage of its tables")
            case "set-properties":
                check_properties(update.get("updates") or {})
            case "remove-properties":
                check_not_reserved(_names_in(update.get("removals")))
            case "add-snapshot":
                snapshot = update.get("snapshot")
                summary = snapshot.get("summary") if isinstance(snapshot, Mapping) else None
                check_not_reserved(_names_in(summary), "the snapshot summary")


def _names_in(value: object) -> Iterable[object]:
    """The names in a list or an object; of the wrong shape it holds none, and whoever applies it says so."""
    return value if isinstance(value, list | Mapping) else ()


def check_not_reserved(names: Iterable[object], where: str = "the property") -> None:
    for name in names:
        if isinstance(name, str) and name.lower().startswith(_RESERVED_PREFIXES):
            raise BadInput(f"{where} {name!r} is refused: names that begin with frazil. or arco. are the catalog's own")


def check_properties(properties: object) -> dict[str, str]:
    if not isinstance(properties, Mapping):
        raise BadInput(f"properties must be an object of strings, not {type(properties).__name__}")
    if len(properties) > limits.properties_max:
        raise BadInput(f"at most {limits.properties_max} properties are kept, not {len(properties)}")
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise BadInput(f"the property {name!r} must be a string, not {value!r}")
        if len(name) + len(value) > limits.property_bytes_max:
            raise BadInput(f"the property {name[:80]!r} is over {limits.property_bytes_max} bytes")
    check_not_reserved(properties)
    return dict(properties)


def check_namespace_free(namespace: Namespace) -> None:
    if namespace and namespace[0] == RESERVED:
        raise BadInput(f"the namespace {RESERVED!r} is reserved for the catalog's own tables")


def check_location(context: Context, text: str, table_uuid: str, what: str = "the location") -> None:
    """Absolute, under the root or an allowed location, and not in the catalog's own or another table's place."""
    location = Location(text)
    if not context.files.allowed(location):
        raise BadInput(
            f"{what} {text} lies neither under the catalog's root {context.root} nor under an allowed location"
        )
    if context.root.contains(location):
        inside = context.root.relative(location).split("/")
        if inside[0] in ("", "_catalog") or (inside[0] == "tables" and inside[1:2] != [table_uuid]):
            raise BadInput(f"{what} {text} is the catalog's own or another table's")


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_uuid(table_uuid: str) -> None:
    """Keys in the store are made of it, and one table must not have two spellings."""
    if not _UUID.fullmatch(table_uuid):
        raise BadInput(
            f"the table's uuid must be a UUID in its canonical form, in small letters, not {table_uuid[:80]!r}"
        )


def check_locations(context: Context, metadata: TableMetadata) -> None:
    """Every effective location, whatever changed: an engine writes to all of them."""
    for name in LOCATION_PROPERTIES:
        if (text := metadata.properties.get(name)) is not None:
            check_location(context, text, metadata.uuid, f"the property {name}")
