"""Tags: what people say about a table, kept with its name in the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from frazil import limits
from frazil.catalog.context import Context
from frazil.catalog.entries import table_key
from frazil.catalog.idempotency import Request
from frazil.catalog.registry import Decision, Draft, Operation
from frazil.errors import BadInput, NoSuchTable
from frazil.names import TableName


def check_tags(tags: object) -> dict[str, str]:
    if not isinstance(tags, Mapping) or not all(isinstance(part, str) for item in tags.items() for part in item):
        raise BadInput("tags must be an object of strings")
    if len(tags) > limits.tags_max:
        raise BadInput(f"a table has at most {limits.tags_max} tags, not {len(tags)}")
    for name, value in tags.items():
        if not name or len(name.encode()) > limits.name_bytes_max or len(value.encode()) > limits.name_bytes_max:
            raise BadInput(f"the tag {name[:80]!r} is empty, or it or its value is over {limits.name_bytes_max} bytes")
    return dict(tags)


async def set_tags(context: Context, request: Request, name: TableName, tags: Mapping[str, str]) -> dict[str, str]:
    """Replace a table's tags."""
    kept = check_tags(tags)
    return await _tagged(context, request, name, lambda _: kept)


async def change_tags(
    context: Context, request: Request, name: TableName, removals: Sequence[str], updates: Mapping[str, str]
) -> dict[str, str]:
    """Set some tags and take some away; what others do at the same time stays."""
    check_tags(updates)

    def changed(standing: Mapping[str, str]) -> dict[str, str]:
        return check_tags({tag: value for tag, value in standing.items() if tag not in removals} | dict(updates))

    return await _tagged(context, request, name, changed)


async def _tagged(
    context: Context, request: Request, name: TableName, make: Callable[[Mapping[str, str]], dict[str, str]]
) -> dict[str, str]:
    async def decide(draft: Draft) -> Decision:
        entry = await draft.entry(table_key(name))
        if entry is None:
            raise NoSuchTable(f"Table does not exist: {name}")
        tags = make(entry.tags)
        return Decision(result={"tags": tags}, put={table_key(name): msgspec.structs.replace(entry, tags=tags)})

    settled = await context.registry.change(Operation(request, decide))
    return dict(settled.outcome.result["tags"])
