"""A request for each row of the route table, put to an application whose catalog notes being touched."""

import asyncio
import time
from typing import Any, cast

from frazil.access.authn import Nobody
from frazil.rest.app import App, Request
from frazil.rest.call import Site
from frazil.rest.tables import Rendered
from frazil.telemetry import Metrics


class Untouchable:
    def __init__(self):
        self.touched = False

    def __getattr__(self, name):
        self.touched = True
        raise AssertionError(name)


def answered(row, fields=(), authentication=None):
    """(status, whether the catalog was touched)."""
    catalog = Untouchable()
    site = Site(cast("Any", catalog), "lake", "file:///root", "%1F", {}, "1", Rendered({}), [], lambda: b"")
    app = App(
        site, authentication or Nobody(), Metrics("/nowhere", 0), tick=time.perf_counter, instance="test", in_flight=10
    )
    path = row.path.replace("{prefix}", "lake").replace("{catalog}", "lake")
    path = path.replace("{namespace}", "a").replace("{table}", "t")
    mount = "" if row.action.startswith("server.") else "/manage" if "{catalog}" in row.path else "/iceberg"
    with_body = row.method in ("POST", "PUT")
    given = {b"host": b"127.0.0.1", **({b"content-type": b"application/json"} if with_body else {}), **dict(fields)}
    request = Request(row.method, (mount + path).encode(), given, b"{}" if with_body else b"")
    answer = asyncio.run(app.respond(request))
    return answer.status, catalog.touched
