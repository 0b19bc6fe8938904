"""The operations of one catalog, thin: bind the request to its key, check what needs no state, hand on.

Every mutation takes the request's body as it came, for its canonical hash, and the client's idempotency key if it sent
one. The grant says who asks; what they may do was decided before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frazil.catalog import commits, creations, governance, guardrails, lifecycle, namespaces, reading
from frazil.catalog.commits import Committed
from frazil.catalog.context import Context
from frazil.catalog.creations import Definition
from frazil.catalog.entries import Entry
from frazil.catalog.idempotency import Request, bind
from frazil.catalog.reading import Loaded, Page
from frazil.catalog.receipts import AdminApi, IcebergRest, Source
from frazil.errors import BadInput
from frazil.grants import Grant
from frazil.iceberg.metadata import TableMetadata
from frazil.names import Namespace, TableName, unambiguous


class Mutation(msgspec.Struct, frozen=True):
    """How a mutation came: its body as sent, its idempotency key, and whether the management API sent it."""

    body: bytes = b""
    key: str | None = None
    admin: bool = False


class Catalog:
    def __init__(self, context: Context) -> None:
        self.context = context

    def _bind(self, grant: Grant, operation: str, resource: Namespace | TableName | str, by: Mutation) -> Request:
        effects = self.context.effects
        match resource:
            case TableName(namespace, name):
                resource = unambiguous(namespace, name)
            case tuple():
                resource = unambiguous(resource)
        return bind(grant, operation, resource, by.body, by.key, effects.ids.uuid7(), effects.clock.now_ms())

    def _source(self, grant: Grant, by: Mutation) -> Source:
        if by.admin:
            return AdminApi(grant.principal or "anonymous")
        return IcebergRest(client_info=grant.client, principal=grant.principal)

    # -- namespaces -----------------------------------------------------------------------------------------------

    async def create_namespace(
        self, grant: Grant, namespace: Namespace, properties: Mapping[str, str], by: Mutation
    ) -> dict[str, str]:
        guardrails.check_namespace_free(namespace)
        request = self._bind(grant, "namespace.create", namespace, by)
        return await namespaces.create(self.context, request, namespace, properties)

    async def drop_namespace(self, grant: Grant, namespace: Namespace, by: Mutation) -> None:
        request = self._bind(grant, "namespace.drop", namespace, by)
        await namespaces.drop(self.context, request, namespace)

    async def update_namespace(
        self, grant: Grant, namespace: Namespace, removals: Sequence[str], updates: Mapping[str, str], by: Mutation
    ) -> dict[str, Any]:
        request = self._bind(grant, "namespace.properties", namespace, by)
        return await namespaces.update_properties(self.context, request, namespace, removals, updates)

    async def load_namespace(self, grant: Grant, namespace: Namespace) -> Entry:
        return await namespaces.existing(await self.context.registry.view(), namespace)

    async def list_namespaces(self, grant: Grant, parent: Namespace, after: str, most: int | None) -> Page:
        return await reading.list_namespaces(self.context, parent, after, most)

    # -- tables ---------------------------------------------------------------------------------------------------

    async def list_tables(self, grant: Grant, namespace: Namespace, after: str, most: int | None) -> Page:
        return await reading.list_tables(self.context, namespace, after, most)

    async def load_table(self, grant: Grant, name: TableName) -> Loaded:
        return await reading.load(self.context, name)

    async def table_entry(self, grant: Grant, name: TableName) -> Entry:
        return await reading.entry(self.context, name)

    async def create_table(self, grant: Grant, name: TableName, definition: Definition, by: Mutation) -> Committed:
        guardrails.check_namespace_free(name.namespace)
        return await creations.create(self.context, self._wanted(grant, "table.create", name, by), definition)

    async def stage_table(self, grant: Grant, name: TableName, definition: Definition) -> TableMetadata:
        guardrails.check_namespace_free(name.namespace)
        return await creations.stage(self.context, name, definition)

    async def register_table(
        self, grant: Grant, name: TableName, metadata_location: str, overwrite: bool, by: Mutation
    ) -> Committed:
        guardrails.check_namespace_free(name.namespace)
        if overwrite:
            raise BadInput("register with overwrite is not offered yet: drop the table first, then register")
        wanted = self._wanted(grant, "table.register", name, by)
        return await creations.register(self.context, wanted, metadata_location)

    async def commit_table(
        self,
        grant: Grant,
        name: TableName,
        requirements: Sequence[dict[str, Any]],
        updates: Sequence[dict[str, Any]],
        by: Mutation,
    ) -> Committed:
        guardrails.check_commit(requirements, updates)
        if is_creation(requirements):
            guardrails.check_namespace_free(name.namespace)
            wanted = self._wanted(grant, "table.commit", name, by, staged=True)
            return await creations.commit_staged(self.context, wanted, requirements, updates)
        request = self._bind(grant, "table.commit", name, by)
        wanted_commit = commits.Wanted(request, name, requirements, updates, self._source(grant, by))
        return await commits.commit(self.context, wanted_commit)

    async def drop_table(self, grant: Grant, name: TableName, purge: bool, by: Mutation) -> str | None:
        """Where an Iceberg table's last metadata is."""
        request = self._bind(grant, "table.purge" if purge else "table.drop", name, by)
        return await lifecycle.drop(self.context, request, name, purge=purge)

    async def rename_table(self, grant: Grant, source: TableName, target: TableName, by: Mutation) -> None:
        guardrails.check_namespace_free(target.namespace)
        both = f"{unambiguous(source.namespace, source.name)} {unambiguous(target.namespace, target.name)}"
        request = self._bind(grant, "table.rename", both, by)
        await lifecycle.rename(self.context, request, source, target)

    async def set_tags(self, grant: Grant, name: TableName, tags: Mapping[str, str], by: Mutation) -> dict[str, str]:
        request = self._bind(grant, "table.tags", name, by)
        return await governance.set_tags(self.context, request, name, tags)

    def _wanted(
        self, grant: Grant, operation: str, name: TableName, by: Mutation, *, staged: bool = False
    ) -> creations.Wanted:
        return creations.Wanted(self._bind(grant, operation, name, by), name, self._source(grant, by), staged)

    async def change_tags(
        self, grant: Grant, name: TableName, removals: Sequence[str], updates: Mapping[str, str], by: Mutation
    ) -> dict[str, str]:
        request = self._bind(grant, "table.tags", name, by)
        return await governance.change_tags(self.context, request, name, removals, updates)

    # -- upkeep ---------------------------------------------------------------------------------------------------

    async def sweep(self) -> int:
        return await lifecycle.sweep(self.context)


def is_creation(requirements: Sequence[dict[str, Any]]) -> bool:
    """A commit that makes the table belongs to the registry, key and all (H13)."""
    return any(requirement.get("type") == "assert-create" for requirement in requirements)
