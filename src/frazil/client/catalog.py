"""A catalog behind a server: its operations as functions, its answers as the documents they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from frazil.client.client import Client
from frazil.client.failures import NotFrazil
from frazil.names import UNIT_SEPARATOR, Namespace, TableName


class RemoteCatalog:
    """The server's default catalog. Every call is at least one request; every mutation has a key of its own."""

    def __init__(self, client: Client) -> None:
        self.client = client
        prefix = client.config()["overrides"].get("prefix")
        if not isinstance(prefix, str):
            raise NotFrazil(f"{client.address} does not say which catalog it serves")
        self.name = prefix
        self._iceberg = f"/iceberg/v1/{_segment(prefix)}"
        self._manage = f"/manage/v1/{_segment(prefix)}"

    # -- namespaces -----------------------------------------------------------------------------------------------

    def namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        query = {"parent": UNIT_SEPARATOR.join(parent)} if parent else {}
        return [tuple(levels) for levels in self._pages(f"{self._iceberg}/namespaces", query, "namespaces")]

    def walk(self, parent: Namespace = ()) -> Iterator[Namespace]:
        """Every namespace below `parent`, outer ones first."""
        for namespace in self.namespaces(parent):
            yield namespace
            yield from self.walk(namespace)

    def namespace(self, namespace: Namespace) -> dict[str, Any]:
        return _object(self.client.get(_in(self._iceberg, namespace)))

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> dict[str, Any]:
        body = {"namespace": list(namespace), "properties": dict(properties)}
        return _object(self.client.change("POST", f"{self._iceberg}/namespaces", body))

    def drop_namespace(self, namespace: Namespace) -> None:
        self.client.change("DELETE", _in(self._iceberg, namespace))

    def update_namespace(
        self, namespace: Namespace, updates: Mapping[str, str], removals: Sequence[str]
    ) -> dict[str, Any]:
        body = {"removals": list(removals), "updates": dict(updates)}
        return _object(self.client.change("POST", f"{_in(self._iceberg, namespace)}/properties", body))

    # -- tables ---------------------------------------------------------------------------------------------------

    def tables(self, namespace: Namespace) -> list[TableName]:
        found = self._pages(f"{_in(self._iceberg, namespace)}/tables", {}, "identifiers")
        return [TableName(tuple(each["namespace"]), each["name"]) for each in found]

    def load_table(self, name: TableName) -> dict[str, Any]:
        return _object(self.client.get(_table(self._iceberg, name)))

    def drop_table(self, name: TableName, *, purge: bool) -> str | None:
        """Where an Iceberg table's last metadata is."""
        query = {"purgeRequested": "true" if purge else "false"}
        answer = _object(self.client.change("DELETE", _table(self._manage, name), query=query))
        return answer.get("metadata-location")

    def rename_table(self, source: TableName, target: TableName) -> None:
        body = {"source": _identifier(source), "destination": _identifier(target)}
        self.client.change("POST", f"{self._iceberg}/tables/rename", body)

    def register_table(self, name: TableName, metadata_location: str) -> dict[str, Any]:
        body = {"name": name.name, "metadata-location": metadata_location}
        return _object(self.client.change("POST", f"{_in(self._iceberg, name.namespace)}/register", body))

    # -- what only the management API does ------------------------------------------------------------------------

    def commit(self, name: TableName, updates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A commit by a person: its receipt says so."""
        body = {"requirements": [], "updates": [dict(update) for update in updates]}
        return _object(self.client.change("POST", f"{_table(self._manage, name)}/commit", body))

    def describe_table(self, name: TableName) -> dict[str, Any]:
        """The catalog's entry of a table: identity, format, tags, where its metadata is."""
        return _object(self.client.get(_table(self._manage, name)))

    def tags(self, name: TableName) -> dict[str, str]:
        return dict(self.describe_table(name)["tags"])

    def tag_table(self, name: TableName, updates: Mapping[str, str], removals: Sequence[str]) -> dict[str, str]:
        """All tags afterwards."""
        body = {"removals": list(removals), "updates": dict(updates)}
        return dict(_object(self.client.change("POST", f"{_table(self._manage, name)}/tags", body))["tags"])

    def _pages(self, path: str, query: Mapping[str, str], field: str) -> Iterator[Any]:
        token: str | None = ""
        while token is not None:
            page = _object(self.client.get(path, {**query, "pageToken": token}))
            yield from page[field]
            token = page.get("next-page-token")


def _object(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise NotFrazil("the server answered without the document that belongs here")
    return answer


def _identifier(name: TableName) -> dict[str, Any]:
    return {"namespace": list(name.namespace), "name": name.name}


def _in(mount: str, namespace: Namespace) -> str:
    # The unit separator is understood whatever else a server advertises, and no name holds it.
    return f"{mount}/namespaces/{_segment(UNIT_SEPARATOR.join(namespace))}"


def _table(mount: str, name: TableName) -> str:
    return f"{_in(mount, name.namespace)}/tables/{_segment(name.name)}"


def _segment(text: str) -> str:
    return quote(text, safe="")
