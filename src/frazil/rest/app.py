"""One request, from its first line to its answer: limits → route → identity → policy → body → operation → answer.

`App` is an ASGI application. The server's own protocol (`protocol.py`) calls `respond` directly and so spares the
messages in between; what a request means is here either way. Nothing runs before head and body are whole.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from frazil import limits
from frazil.access import loopback, policy
from frazil.access.authn import Authentication
from frazil.errors import BadInput, Forbidden, FrazilError, TooBusy, TooLarge, Unsupported
from frazil.rest import answers, problems, wire
from frazil.rest.answers import Answer
from frazil.rest.call import Call, Site
from frazil.rest.routes import config, health, manage, namespaces, tables
from frazil.rest.routing import Match, Route, Router, rows
from frazil.telemetry import Metrics

log = logging.getLogger(__name__)

CATALOG_ROUTES = [row for module in (config, namespaces, tables) for row in rows(module)]
MANAGE_ROUTES = rows(manage)
SERVER_ROUTES = rows(health)

#: Larger bodies are compressed in a thread.
_ASIDE_BYTES = 256 * 1024
_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
_WITH_BODY = ("POST", "PUT", "PATCH")


class Request:
    """A whole request. Field names are in small letters; what came twice is joined by a comma."""

    __slots__ = ("body", "fields", "id", "method", "target")

    def __init__(self, method: str, target: bytes, fields: Mapping[bytes, bytes], body: bytes) -> None:
        self.method = method
        #: Path and query, as they came.
        self.target = target
        self.fields = fields
        self.body = body
        self.id = b""


class App:
    def __init__(
        self,
        site: Site,
        authentication: Authentication,
        metrics: Metrics,
        *,
        tick: Callable[[], float],
        instance: str,
        in_flight: int,
    ) -> None:
        """`tick` measures how long answers take; `instance` begins the ids of requests that bring none."""
        self.site = site
        self.router = router(site.name, site.separator)
        self.authentication = authentication
        self.metrics = metrics
        self._tick = tick
        self._in_flight_max = in_flight
        self._encodings = answers.Encodings()
        self._instance = instance
        self._count = 0

    async def respond(self, request: Request) -> Answer:
        """The answer, always: whatever goes wrong becomes one."""
        started = self._tick()
        request.id = self._id(request.fields.get(b"x-request-id"))
        label = "none"
        try:
            if self.metrics.in_flight >= self._in_flight_max:
                raise TooBusy(f"{self._in_flight_max} requests are being worked on; nothing was applied")
            self.metrics.in_flight += 1
            try:
                match = self._match(request)
                label = match.route.label
                found = await self._handle(request, match)
            finally:
                self.metrics.in_flight -= 1
        except FrazilError as error:
            found = problems.rendered(error)
            self._tell(request, label, found.status, error)
        except Exception as error:
            found = problems.unexpected(error, label, request.id)
        else:
            if match.route.mutation:
                self._tell(request, label, found.status, None)
        self.metrics.request(label, found.status, self._tick() - started)
        return found

    def _id(self, given: bytes | None) -> bytes:
        if given is not None and _SANE_ID.fullmatch(given):
            return given
        self._count += 1
        return f"{self._instance}-{self._count:x}".encode()

    def _match(self, request: Request) -> Match:
        try:
            return self.router.find(request.method, request.target)
        except FrazilError:
            self._admit(request)  # strangers learn nothing about what is here
            raise

    def _admit(self, request: Request) -> policy.Principal:
        fields = request.fields
        if not self.authentication.required:
            loopback.check(fields)
        client = fields.get(b"user-agent")
        return self.authentication.identify(
            fields.get(b"authorization"), client[:256].decode("latin-1") if client is not None else None
        )

    async def _handle(self, request: Request, match: Match) -> Answer:
        route, fields = match.route, request.fields
        stranger = route.open and self.authentication.required
        principal = policy.Principal() if stranger else self._admit(request)
        grant = policy.decide(principal, route.action, match.resource)
        if isinstance(grant, Forbidden):
            raise grant
        if route.mutation and self.site.unfit is not None:
            raise Unsupported(self.site.unfit)
        body = request.body
        if body or request.method in _WITH_BODY:
            if not wire.is_json(fields.get(b"content-type", b"")):
                raise BadInput("a body must be JSON and say so: Content-Type: application/json")
            body = wire.inflated(body, fields.get(b"content-encoding", b""))
        gzip = self._encodings.gzip(fields.get(b"accept-encoding"))
        if route.body is None:
            found = await route.handler(Call(self.site, match, fields, grant, b"", gzip))
        else:
            call = Call(self.site, match, fields, grant, body, gzip)
            found = await route.handler(call, wire.decode(body, route.body))
        if gzip and not found.settled and found.size >= answers.GZIP_BYTES_MIN:
            found = await _compressed(found)
        return found

    def _tell(self, request: Request, label: str, status: int, error: FrazilError | None) -> None:
        """Changes and faults are logged. Reads are counted: a line would cost as much as the answer."""
        level = logging.WARNING if status >= 500 else logging.INFO
        if not log.isEnabledFor(level) or (error is not None and status < 500 and not label.startswith(_CHANGES)):
            return
        said: dict[str, Any] = {"request": request.id.decode(), "route": label, "status": status}
        if error is not None:
            said |= {"type": error.type, "reason": error.message}
        log.log(level, "%s %s", request.method, request.target.partition(b"?")[0].decode("latin-1"), extra=said)

    # -- ASGI ---------------------------------------------------------------------------------------------------------

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        assert scope["type"] == "http", "websockets and lifespan have no application here"
        fields: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            fields[name] = fields[name] + b", " + value if name in fields else value
        query = scope.get("query_string", b"")
        request = Request(scope["method"], scope["raw_path"] + (b"?" + query if query else b""), fields, b"")
        chunks: list[bytes] = []
        whole = False
        while not whole and sum(map(len, chunks)) <= limits.body_bytes_max:
            message = await receive()
            if message["type"] == "http.disconnect":
                return  # what did not arrive whole is not run
            chunks.append(message.get("body", b""))
            whole = not message.get("more_body", False)
        request.body = b"".join(chunks)
        if len(request.body) > limits.body_bytes_max:
            found = problems.rendered(TooLarge(f"the body is over {limits.body_bytes_max} bytes"))
        else:
            found = await self.respond(request)
        lines = [tuple(line.split(b": ", 1)) for line in found.head.split(b"\r\n")[1:-1]]
        lines.append((b"x-request-id", request.id))
        await send({"type": "http.response.start", "status": found.status, "headers": lines})
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else b"".join(found.body)})


_CHANGES = ("POST", "PUT", "DELETE")


async def _compressed(plain: Answer) -> Answer:
    if plain.size <= _ASIDE_BYTES:
        return answers.compressed(plain)
    return await asyncio.get_running_loop().run_in_executor(None, answers.compressed, plain)


def router(catalog: str, separator: str) -> Router:
    """One table of catalog routes, mounted twice, beside the server's own."""
    found = Router(catalog, separator)
    found.mount("/iceberg", CATALOG_ROUTES)
    found.mount("/lakehouse", CATALOG_ROUTES, prefix=False)
    found.mount("/manage", MANAGE_ROUTES)
    found.mount("", SERVER_ROUTES)
    return found


def endpoints(*, writing: bool = True) -> list[str]:
    """What /v1/config advertises: exactly the rows; without `writing`, those that change nothing."""
    return [row.label for row in CATALOG_ROUTES if writing or not row.mutation]


def matrix() -> list[Route]:
    """Every row of every mount, for the authorisation matrix."""
    return [*CATALOG_ROUTES, *MANAGE_ROUTES, *SERVER_ROUTES]
