"""For whoever watches the server."""

from __future__ import annotations

from frazil.rest.answers import TEXT, Answer, answer, json_answer
from frazil.rest.call import Call
from frazil.rest.routing import route

EXPOSITION = b"text/plain; version=0.0.4; charset=utf-8"


@route("GET", "/health", action="server.health", open=True)
async def health(call: Call) -> Answer:
    """The process answers. Says nothing about the object store."""
    return json_answer({"status": "ok", "version": call.site.version})


@route("GET", "/lakehouse/health", action="server.health", open=True)
async def lakehouse_health(call: Call) -> Answer:
    return answer(200, b"OK", kind=TEXT)


@route("GET", "/ready", action="server.ready", open=True)
async def ready(call: Call) -> Answer:
    """The catalog's head can be read, so requests can be worked on."""
    await call.catalog.context.registry.view()
    return json_answer({"status": "ready"})


@route("GET", "/metrics", action="server.metrics")
async def metrics(call: Call) -> Answer:
    return answer(200, call.site.metrics(), kind=EXPOSITION)
