"""GET /v1/config: what clients learn before anything else."""

from __future__ import annotations

from typing import Any

from frazil import limits
from frazil.errors import NoSuchWarehouse
from frazil.rest.answers import Answer, json_answer
from frazil.rest.call import Call
from frazil.rest.routing import route


@route("GET", "/v1/config", action="catalog.config")
async def get_config(call: Call) -> Answer:
    site = call.site
    asked = call.query("warehouse")
    if asked and asked != site.name:
        raise NoSuchWarehouse(f"there is no warehouse {asked!r} here, only {site.name!r}")
    defaults: dict[str, Any] = dict(site.file_io)
    overrides = {"namespace-separator": site.separator}
    if call.match.mount == "/lakehouse":
        defaults |= {"warehouse": site.root, "catalog-impl": "org.apache.iceberg.rest.RESTCatalog"}
    else:
        overrides["prefix"] = site.name
    return json_answer(
        {
            "defaults": defaults,
            "overrides": overrides,
            "idempotency-key-lifetime": f"PT{limits.key_lifetime_ms // 3_600_000}H",
            "endpoints": site.endpoints,
        }
    )
