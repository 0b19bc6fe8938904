"""Namespaces."""

from __future__ import annotations

from typing import Any

from frazil import names
from frazil.rest.answers import NO_CONTENT, Answer, json_answer
from frazil.rest.call import Call, page_token
from frazil.rest.routing import route
from frazil.rest.wire import CreateNamespace, UpdateNamespace


@route("GET", "/v1/{prefix}/namespaces", action="namespace.list")
async def list_namespaces(call: Call) -> Answer:
    raw = call.match.query.get("parent")
    parent = names.checked_namespace(names.namespace_in_path(raw, call.site.separator)) if raw else ()
    after, most = call.page()
    page = await call.catalog.list_namespaces(call.grant, parent, after, most)
    found: dict[str, Any] = {"namespaces": [[*parent, name] for name in page.names]}
    if page.more is not None:
        found["next-page-token"] = page_token(page.more)
    return json_answer(found)


@route("POST", "/v1/{prefix}/namespaces", action="namespace.create", mutation=True)
async def create_namespace(call: Call, body: CreateNamespace) -> Answer:
    namespace = names.checked_namespace(body.namespace)
    kept = await call.catalog.create_namespace(call.grant, namespace, body.properties or {}, call.mutation())
    return json_answer({"namespace": list(namespace), "properties": kept})


@route("GET", "/v1/{prefix}/namespaces/{namespace}", action="namespace.load")
async def load_namespace(call: Call) -> Answer:
    entry = await call.catalog.load_namespace(call.grant, call.namespace)
    return json_answer({"namespace": list(call.namespace), "properties": entry.properties})


@route("HEAD", "/v1/{prefix}/namespaces/{namespace}", action="namespace.exists")
async def namespace_exists(call: Call) -> Answer:
    await call.catalog.load_namespace(call.grant, call.namespace)
    return NO_CONTENT


@route("DELETE", "/v1/{prefix}/namespaces/{namespace}", action="namespace.drop", mutation=True)
async def drop_namespace(call: Call) -> Answer:
    await call.catalog.drop_namespace(call.grant, call.namespace, call.mutation())
    return NO_CONTENT


@route("POST", "/v1/{prefix}/namespaces/{namespace}/properties", action="namespace.update", mutation=True)
async def update_namespace(call: Call, body: UpdateNamespace) -> Answer:
    changed = await call.catalog.update_namespace(
        call.grant, call.namespace, body.removals or [], body.updates or {}, call.mutation()
    )
    return json_answer(changed)
