"""What Iceberg's API has no place for: a table's entry with its tags, and changes with the source AdminApi."""

from __future__ import annotations

from frazil.catalog.entries import ICEBERG
from frazil.rest.answers import Answer, json_answer
from frazil.rest.call import Call
from frazil.rest.routes import tables
from frazil.rest.routing import route
from frazil.rest.wire import ChangeTags, CommitTable, SetTags

TABLE = "/v1/{catalog}/namespaces/{namespace}/tables/{table}"


@route("GET", TABLE, action="table.describe")
async def describe_table(call: Call) -> Answer:
    entry = await call.catalog.table_entry(call.grant, call.table)
    shown = {
        "namespace": list(call.namespace),
        "name": call.table.name,
        "uuid": entry.uuid,
        "format": entry.format,
        "location": entry.location,
        "tags": entry.tags,
        "owner": entry.properties.get("owner"),
        "comment": entry.properties.get("comment"),
        "metadata-location": None,
    }
    if entry.format == ICEBERG:
        loaded = await call.catalog.load_table(call.grant, call.table)
        properties = loaded.metadata.properties
        shown |= {
            "uuid": loaded.entry.uuid,
            "location": loaded.metadata.location,
            "tags": loaded.entry.tags,
            "owner": properties.get("owner"),
            "comment": properties.get("comment"),
            "metadata-location": loaded.location,
        }
    return json_answer(shown)


@route("PUT", f"{TABLE}/tags", action="table.tag", mutation=True)
async def set_tags(call: Call, body: SetTags) -> Answer:
    kept = await call.catalog.set_tags(call.grant, call.table, body.tags, call.mutation(admin=True))
    return json_answer({"tags": kept})


@route("POST", f"{TABLE}/tags", action="table.tag", mutation=True)
async def change_tags(call: Call, body: ChangeTags) -> Answer:
    kept = await call.catalog.change_tags(
        call.grant, call.table, body.removals, body.updates, call.mutation(admin=True)
    )
    return json_answer({"tags": kept})


@route("DELETE", TABLE, action="table.drop", mutation=True)
async def drop_table(call: Call) -> Answer:
    """As in Iceberg's API; the answer says where the last metadata is, which is what brings the table back."""
    purge = call.flag("purgeRequested")
    last = await call.catalog.drop_table(call.grant, call.table, purge, call.mutation(admin=True))
    return json_answer({"metadata-location": last})


@route("POST", f"{TABLE}/commit", action="table.administer", mutation=True)
async def administer_table(call: Call, body: CommitTable) -> Answer:
    return await tables.committed(call, body, admin=True)
