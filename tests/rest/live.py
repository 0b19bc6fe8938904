"""A server in a thread of the test's own process, so that limits can be patched, and a small client for it."""

import asyncio
import gzip
import http.client
import json
import socket
import tempfile
import threading
import time
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvloop

from frazil import config, effects, serve
from frazil.access.authn import Nobody, Tokens
from frazil.rest.app import App
from frazil.rest.server import Server
from frazil.telemetry import Metrics

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "data", "type": "string", "required": False},
    ],
}

_ids = effects.RandomIds(effects.SystemClock())


def a_key():
    """A fresh idempotency key."""
    return _ids.uuid7()


class Reply(NamedTuple):
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        body = gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body
        return json.loads(body)

    @property
    def error(self):
        """(status, type) of an error in Iceberg's model."""
        told = self.json["error"]
        assert told["code"] == self.status
        assert told["message"]
        return self.status, told["type"]


class Client:
    """One connection a request, raw paths, nothing done unasked."""

    def __init__(self, port, base="/iceberg/v1/lake", **headers):
        self.port = port
        self.base = base
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def ask(self, method, path, body=None, *, base=None, **headers):
        fields = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None and "content-type" not in fields:
            fields["content-type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            host = fields.pop("host", f"127.0.0.1:{self.port}")
            target = (self.base if base is None else base) + path
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", host)
            for name, value in fields.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def head(self, path, **headers):
        return self.ask("HEAD", path, **headers)

    def post(self, path, body, **headers):
        return self.ask("POST", path, body, **headers)

    def delete(self, path, **headers):
        return self.ask("DELETE", path, **headers)

    # -- one line for what a test needs to be there --------------------------------------------------------------------

    def a_namespace(self, *levels):
        levels = levels or (f"ns{time.time_ns()}",)
        reply = self.post("/namespaces", {"namespace": list(levels)})
        assert reply.status == 200, reply.body
        return levels[0]

    def a_table(self, namespace=None, name="t", **more):
        """The path of a new table, in a new namespace unless one is given."""
        namespace = namespace or self.a_namespace()
        reply = self.post(f"/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA, **more})
        assert reply.status == 200, reply.body
        return f"/namespaces/{namespace}/tables/{name}"

    def commit(self, path, *updates, requirements=(), **headers):
        return self.post(path, {"requirements": list(requirements), "updates": list(updates)}, **headers)


def setting(**properties):
    """An update that sets table properties."""
    return {"action": "set-properties", "updates": properties}


def a_snapshot(id, sequence=1, parent=None, **summary):
    added = {
        "snapshot-id": id,
        "sequence-number": sequence,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "manifest-list": f"file:///nowhere/{id}.avro",
        "summary": {"operation": "append", "added-data-files": "1", "added-records": "3", **summary},
        "schema-id": 0,
    }
    return {"action": "add-snapshot", "snapshot": added | ({"parent-snapshot-id": parent} if parent else {})}


def a_ref(id, name="main", type="branch"):
    return {"action": "set-snapshot-ref", "ref-name": name, "type": type, "snapshot-id": id}


# -- raw sockets -------------------------------------------------------------------------------------------------------


def talk(port, *pieces, pause_s=0.0, timeout_s=10.0):
    """Send bytes as they are, piece by piece; everything the server says until it closes or falls silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause_s)
        except OSError:
            pass  # the server had enough
        return heard(connection)


def heard(connection):
    said = b""
    try:
        while piece := connection.recv(65536):
            said += piece
    except OSError:
        pass
    return said


def status_of(said):
    assert said.startswith(b"HTTP/1.1 "), said
    return int(said[9:12])


# -- the server --------------------------------------------------------------------------------------------------------


class Live:
    """The running server: its port, its application, its catalog's context."""

    def __init__(self, port, app, loop, server):
        self.port = port
        self.app = app
        self.loop = loop
        self.server = server

    def client(self, base="/iceberg/v1/lake", **headers):
        return Client(self.port, base, **headers)

    def do(self, step):
        """Run a coroutine where the server runs."""
        return asyncio.run_coroutine_threadsafe(step, self.loop).result(20)


@contextmanager
def serving(root, **flags):
    started, ended = threading.Event(), threading.Event()
    box: dict[str, Any] = {}
    settings = config.load(None, {}, {"root": str(root / "lakehouse"), "listen": "127.0.0.1:0", "sync": False, **flags})

    def failed_later(error):
        box.setdefault("failed later", error)

    async def run():
        box["stop"] = asyncio.Event()
        box["loop"] = asyncio.get_running_loop()
        own = effects.system(failed_later)
        metrics = Metrics(tempfile.mkdtemp(dir=root), 0)
        context = await serve.open_catalog(settings, own, metrics)
        authentication = Tokens(settings.token_file) if settings.token_file else Nobody()
        site = serve._site(settings, context, metrics)
        app = App(site, authentication, metrics, tick=time.perf_counter, instance="test", in_flight=settings.in_flight)
        server = Server(app, own.clock)
        listening = socket.create_server(("127.0.0.1", 0))
        box["live"] = Live(listening.getsockname()[1], app, box["loop"], server)
        await server.start(listening)
        started.set()
        await box["stop"].wait()
        await server.stop()
        listening.close()
        assert isinstance(own.tasks, effects.EventLoopTasks)
        await own.tasks.drain()
        await context.store.close()
        metrics.close()

    def work():
        try:
            loop = uvloop.new_event_loop()
            loop.run_until_complete(run())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
        except BaseException as error:
            box["error"] = error
        finally:
            ended.set()
            started.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(20)
    if "error" in box:
        thread.join()
        raise box["error"]
    try:
        yield box["live"]
    finally:
        if not ended.is_set():
            box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(90)
    assert not thread.is_alive()
    if "error" in box:
        raise box["error"]
    assert "failed later" not in box, box["failed later"]
