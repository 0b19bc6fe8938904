"""Namespaces: entries of the registry like any other, each change one CAS (§2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frazil.catalog import guardrails
from frazil.catalog.context import Context
from frazil.catalog.entries import NAMESPACE, Entry, children, namespace_key
from frazil.catalog.idempotency import Request
from frazil.catalog.registry import Decision, Draft, Operation, View, namespace_entry
from frazil.errors import AlreadyExists, NamespaceNotEmpty, NoSuchNamespace, Unprocessable
from frazil.names import Namespace


def shown(namespace: Namespace) -> str:
    return ".".join(namespace)


def missing(namespace: Namespace) -> NoSuchNamespace:
    return NoSuchNamespace(f"Namespace does not exist: {shown(namespace)}")


async def existing(view: View | Draft, namespace: Namespace) -> Entry:
    entry = await namespace_entry(view, namespace)
    if entry is None:
        raise missing(namespace)
    return entry


async def create(
    context: Context, request: Request, namespace: Namespace, properties: Mapping[str, str]
) -> dict[str, str]:
    """The properties as kept."""
    kept = guardrails.check_properties(properties)
    uuid = context.effects.ids.uuid7()

    async def decide(draft: Draft) -> Decision:
        if len(namespace) > 1:
            await existing(draft, namespace[:-1])
        if await namespace_entry(draft, namespace) is not None:
            raise AlreadyExists(f"Namespace already exists: {shown(namespace)}")
        return Decision(
            result={"properties": kept}, put={namespace_key(namespace): Entry(NAMESPACE, uuid, properties=kept)}
        )

    settled = await context.registry.change(Operation(request, decide))
    return dict(settled.outcome.result["properties"])


async def drop(context: Context, request: Request, namespace: Namespace) -> None:
    async def decide(draft: Draft) -> Decision:
        entry = await existing(draft, namespace)
        if await draft.has_children(children(namespace)):
            raise NamespaceNotEmpty(f"Namespace is not empty: {shown(namespace)}")
        return Decision(removed={namespace_key(namespace): entry.uuid})

    await context.registry.change(Operation(request, decide))


async def update_properties(
    context: Context, request: Request, namespace: Namespace, removals: Sequence[str], updates: Mapping[str, str]
) -> dict[str, Any]:
    """Which properties were updated, removed, or asked to be removed and not there."""
    if both := sorted(set(removals) & set(updates)):
        raise Unprocessable(f"a property cannot be both updated and removed: {', '.join(both)}")
    guardrails.check_not_reserved(removals)
    guardrails.check_properties(updates)

    async def decide(draft: Draft) -> Decision:
        entry = await existing(draft, namespace)
        removed = [name for name in dict.fromkeys(removals) if name in entry.properties]
        left = {name: value for name, value in entry.properties.items() if name not in removed} | dict(updates)
        guardrails.check_properties(left)
        result = {
            "updated": sorted(updates),
            "removed": removed,
            "missing": [name for name in dict.fromkeys(removals) if name not in entry.properties],
        }
        changed = msgspec.structs.replace(entry, properties=left)
        return Decision(result=result, put={namespace_key(namespace): changed})

    settled = await context.registry.change(Operation(request, decide))
    return settled.outcome.result
