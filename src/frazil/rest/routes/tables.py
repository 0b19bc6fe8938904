"""Tables."""

from __future__ import annotations

from typing import Any

from frazil import names
from frazil.catalog import idempotency
from frazil.catalog.commits import Committed
from frazil.catalog.creations import Definition
from frazil.catalog.reading import Page
from frazil.errors import BadInput
from frazil.names import TableName
from frazil.rest import tables
from frazil.rest.answers import NO_CONTENT, Answer, answer, json_answer
from frazil.rest.call import Call, page_token
from frazil.rest.routing import route
from frazil.rest.wire import CommitTable, CreateTable, Named, RegisterTable, RenameTable, Report


@route("GET", "/v1/{prefix}/namespaces/{namespace}/tables", action="table.list")
async def list_tables(call: Call) -> Answer:
    after, most = call.page()
    page = await call.catalog.list_tables(call.grant, call.namespace, after, most)
    return call.site.rendered.listings.get(page, lambda: _listed(list(call.namespace), page))


def _listed(levels: list[str], page: Page) -> Answer:
    found: dict[str, Any] = {"identifiers": [{"namespace": levels, "name": name} for name in page.names]}
    if page.more is not None:
        found["next-page-token"] = page_token(page.more)
    return json_answer(found)


@route("POST", "/v1/{prefix}/namespaces/{namespace}/tables", action="table.create", mutation=True)
async def create_table(call: Call, body: CreateTable) -> Answer:
    name = TableName(call.namespace, names.checked_name(body.name, "a table's name"))
    wanted = Definition(body.schema, body.partition_spec, body.write_order, body.location, body.properties or {})
    if not body.stage_create:
        return await loaded(call, await call.catalog.create_table(call.grant, name, wanted, call.mutation()))
    if call.key is not None:  # nothing is stored, so there is nothing to bind it to; its form is judged all the same
        idempotency.parse_key(call.key, call.catalog.context.effects.clock.now_ms())
    staged = await call.catalog.stage_table(call.grant, name, wanted)
    return answer(200, call.site.rendered.parts(None, staged.parts()))


@route("POST", "/v1/{prefix}/namespaces/{namespace}/register", action="table.register", mutation=True)
async def register_table(call: Call, body: RegisterTable) -> Answer:
    name = TableName(call.namespace, names.checked_name(body.name, "a table's name"))
    made = await call.catalog.register_table(call.grant, name, body.metadata_location, body.overwrite, call.mutation())
    return await loaded(call, made)


@route("GET", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", action="table.load")
async def load_table(call: Call) -> Answer:
    which = call.match.query.get("snapshots", "all")
    if which not in ("all", "refs"):
        raise BadInput(f"snapshots must be all or refs, not {which!r}")
    found = await call.catalog.load_table(call.grant, call.table)
    shown = call.site.rendered.get(found.location, found.metadata, refs_only=which == "refs")
    condition = call.fields.get(b"if-none-match")
    if condition is not None and tables.matches(condition, shown.etag):
        return shown.unchanged
    return await tables.shown_to(shown, gzip=call.gzip)


@route("HEAD", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", action="table.exists")
async def table_exists(call: Call) -> Answer:
    await call.catalog.load_table(call.grant, call.table)
    return NO_CONTENT


@route("POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", action="table.commit", mutation=True)
async def commit_table(call: Call, body: CommitTable) -> Answer:
    return await committed(call, body, admin=False)


@route("DELETE", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", action="table.drop", mutation=True)
async def drop_table(call: Call) -> Answer:
    await call.catalog.drop_table(call.grant, call.table, call.flag("purgeRequested"), call.mutation())
    return NO_CONTENT


@route("POST", "/v1/{prefix}/tables/rename", action="table.rename", mutation=True)
async def rename_table(call: Call, body: RenameTable) -> Answer:
    source, target = _named(body.source), _named(body.destination)
    await call.catalog.rename_table(call.grant, source, target, call.mutation())
    return NO_CONTENT


@route("POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics", action="table.report")
async def report_metrics(call: Call, body: Report) -> Answer:
    await call.catalog.table_entry(call.grant, call.table)
    return NO_CONTENT


@route("GET", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials", action="table.credentials")
async def table_credentials(call: Call) -> Answer:
    await call.catalog.load_table(call.grant, call.table)
    return json_answer({"storage-credentials": []})


# -- what several of them do -------------------------------------------------------------------------------------------


async def committed(call: Call, body: CommitTable, *, admin: bool) -> Answer:
    if body.identifier is not None and _named(body.identifier) != call.table:
        raise BadInput(f"the body is about {_named(body.identifier)}, the path about {call.table}")
    done = await call.catalog.commit_table(
        call.grant, call.table, body.requirements, body.updates, call.mutation(admin=admin)
    )
    return await loaded(call, done)


async def loaded(call: Call, made: Committed) -> Answer:
    """A table as a load would show it now: same body, same ETag."""
    shown = call.site.rendered.get(made.location, made.metadata, refs_only=False)
    return await tables.shown_to(shown, gzip=call.gzip, fresh=True)


def _named(table: Named) -> TableName:
    return TableName(names.checked_namespace(table.namespace), names.checked_name(table.name, "a table's name"))
