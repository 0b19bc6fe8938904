"""The route table. A route is a row; whatever can be derived from the rows is derived.

A raw path is split before anything in it is decoded, so a name may hold any character. What a path means is remembered
by its bytes: finding a route again is one look into a dictionary.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from frazil import names
from frazil.access.policy import Resource
from frazil.errors import BadInput, NoSuchNamespace, NoSuchTable, NoSuchWarehouse, NotFound
from frazil.names import Namespace, TableName
from frazil.rest.answers import Answer
from frazil.rest.problems import MethodNotAllowed

REMEMBERED_MAX = 8192
REMEMBERED_BYTES_MAX = 512

Handler = Callable[..., Awaitable[Answer]]


class Route(NamedTuple):
    method: str
    path: str
    action: str
    mutation: bool
    #: Answered without a credential.
    open: bool
    handler: Handler
    #: The type its body is decoded to; None where it has none.
    body: Any

    @property
    def label(self) -> str:
        return f"{self.method} {self.path}"


def route(
    method: str, path: str, *, action: str, mutation: bool = False, open: bool = False
) -> Callable[[Handler], Handler]:
    """Mark a handler with its row. The body's type is that of the handler's parameter `body`."""

    def mark(handler: Handler) -> Handler:
        hints = typing.get_type_hints(handler) if "body" in inspect.signature(handler).parameters else {}
        row = Route(method, path, action, mutation, open, handler, hints.get("body"))
        handler.__dict__.setdefault("rows", []).append(row)
        return handler

    return mark


def rows(module: Any) -> list[Route]:
    """The rows of a module of routes, in the order they were written."""
    return [row for handler in vars(module).values() for row in getattr(handler, "rows", ())]


class Match:
    """A route and what the path said: everything about a request that its first line tells."""

    __slots__ = ("mount", "namespace", "query", "resource", "route", "table")

    def __init__(
        self,
        route: Route,
        mount: str,
        resource: Resource,
        namespace: Namespace,
        table: TableName | None,
        query: dict[str, str],
    ) -> None:
        self.route = route
        self.mount = mount
        self.resource = resource
        self.namespace = namespace
        self.table = table
        self.query = query


class _Node:
    __slots__ = ("literal", "param", "routes")

    def __init__(self) -> None:
        self.literal: dict[str, _Node] = {}
        self.param: tuple[str, _Node] | None = None
        self.routes: dict[str, tuple[Route, str]] = {}


class Router:
    def __init__(self, catalog: str, separator: str) -> None:
        self._catalog = catalog
        self._separator = separator
        self._root = _Node()
        self._remembered: dict[tuple[str, bytes], Match] = {}

    def mount(self, at: str, routes: Sequence[Route], *, prefix: bool = True) -> None:
        """Serve rows under a path; without the prefix their `{prefix}` is left out of it."""
        for row in routes:
            path = at + (row.path if prefix else row.path.replace("/{prefix}", ""))
            node = self._root
            for segment in path.split("/")[1:]:
                if segment.startswith("{"):
                    node.param = node.param or (segment[1:-1], _Node())
                    assert node.param[0] == segment[1:-1], f"two names for one place: {path}"
                    node = node.param[1]
                else:
                    node = node.literal.setdefault(segment, _Node())
            assert row.method not in node.routes, f"two routes for {row.method} {path}"
            node.routes[row.method] = (row, at)

    def find(self, method: str, target: bytes) -> Match:
        found = self._remembered.get((method, target))
        if found is None:
            found = self._find(method, target)
            if len(target) > REMEMBERED_BYTES_MAX:
                return found
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[method, target] = found
        return found

    def _find(self, method: str, target: bytes) -> Match:
        try:
            text = target.decode("ascii")
        except UnicodeDecodeError:
            raise BadInput("a path is ASCII: percent-encode what is not") from None
        path, _, query = text.partition("?")
        node, params = self._walk(path)
        entry = node.routes.get(method) or (node.routes.get("GET") if method == "HEAD" else None)
        if entry is None:
            allowed = sorted({*node.routes, *(["HEAD"] if "GET" in node.routes else [])})
            raise MethodNotAllowed(f"{method} is not offered at {path}, only {', '.join(allowed)}", allowed)
        row, mount = entry
        return self._meaning(row, mount, params, parsed_query(query))

    def _walk(self, path: str) -> tuple[_Node, dict[str, str]]:
        node: _Node | None = self._root if path.startswith("/") else None
        params: dict[str, str] = {}
        for segment in path.split("/")[1:]:
            if node is None:
                break
            if (child := node.literal.get(segment)) is not None:
                node = child
            elif node.param is not None:
                name, node = node.param
                params[name] = segment
            else:
                node = None
        if node is None or not node.routes:
            raise NotFound(f"there is nothing at {path}")
        return node, params

    def _meaning(self, row: Route, mount: str, params: dict[str, str], query: dict[str, str]) -> Match:
        for name in ("prefix", "catalog"):
            if name in params and (asked := names.decoded(params[name])) != self._catalog:
                raise NoSuchWarehouse(f"there is no catalog {asked!r} here, only {self._catalog!r}")
        namespace: Namespace = ()
        table: TableName | None = None
        if "namespace" in params:
            namespace = self.namespace(params["namespace"], "table" in params, params.get("table", ""))
        if "table" in params:
            if not params["table"]:
                raise NoSuchTable(f"Table does not exist: {'.'.join(namespace)}.")
            table = TableName(namespace, names.checked_name(names.decoded(params["table"]), "a table's name"))
        resource = Resource(self._catalog, namespace or None, table.name if table is not None else None)
        return Match(row, mount, resource, namespace, table, query)

    def namespace(self, raw: str, of_table: bool = False, table: str = "") -> Namespace:
        """The namespace in a raw path segment or query value. An empty one names nothing that could exist."""
        if raw:
            return names.checked_namespace(names.namespace_in_path(raw, self._separator))
        # Spark asks for `ns.snapshots` as a table `ns` in the empty namespace, and lives with this answer only.
        if of_table:
            raise NoSuchTable(f"Table does not exist: .{names.decoded(table)}")
        raise NoSuchNamespace("Namespace does not exist: (the empty one)")


def parsed_query(text: str) -> dict[str, str]:
    """Raw values by name, `+` being a space as in forms; what is repeated is ambiguous and refused."""
    found: dict[str, str] = {}
    for part in text.split("&") if text else ():
        name, _, value = part.partition("=")
        name = names.decoded(name)
        if name in found:
            raise BadInput(f"the query names {name} twice")
        found[name] = value.replace("+", "%20")
    return found
