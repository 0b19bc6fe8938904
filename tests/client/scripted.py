"""An HTTP server that answers as a test tells it to, and remembers what it was sent."""

import contextlib
import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

CONFIG = "/iceberg/v1/config"


class Seen(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self):
        return self.headers.get("idempotency-key")


class Scripted:
    """Answers `/v1/config` by itself, everything else with the next step of the script."""

    def __init__(self, lifetime: str | None = "PT1H") -> None:
        self.config: dict[str, Any] = {"defaults": {}, "overrides": {"prefix": "lake"}}
        if lifetime is not None:
            self.config["idempotency-key-lifetime"] = lifetime
        self.script: list[Any] = []
        self.seen: list[Seen] = []
        self.configs = 0

    def then(self, *steps) -> None:
        self.script += steps

    @property
    def keys(self):
        return [seen.key for seen in self.seen]

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        if handler.path.split("?")[0] == CONFIG:
            self.configs += 1
            answer(200, self.config)(handler)
            return
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.seen.append(Seen(handler.command, handler.path, headers, body))
        (self.script.pop(0) if self.script else answer(500, "the script is over"))(handler)


def answer(status, body=None, **headers):
    """A whole answer; a string stands for a proxy's page."""

    def write(handler):
        encoded = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        if status != 204:
            handler.send_header("Content-Length", str(len(encoded)))
        handler.end_headers()
        handler.wfile.write(encoded)

    return write


def error(status, type_, message="said so", *, subtype=None, **headers):
    model = {"message": message, "type": type_, "code": status}
    if subtype is not None:
        model["subtype"] = subtype
    return answer(status, {"error": model}, **headers)


def raw(sent, *, reset=False):
    """Some bytes, then the connection ends: closed, or reset."""

    def write(handler):
        with contextlib.suppress(OSError):
            handler.connection.sendall(sent)
        if reset:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.close_connection = True

    return write


closed = raw(b"")
reset = raw(b"", reset=True)
cut_in_the_head = raw(b"HTTP/1.1 200 OK\r\nContent-Le")
cut_after_a_line = raw(b"HTTP/1.1 204 No Content\r\n")
cut_before_the_end = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0")
endless = raw(b"HTTP/1.1 200 OK\r\n\r\n{}")
cut_in_the_body = raw(b'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"half":')
cut_in_a_chunk = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{")
not_http = raw(b"SSH-2.0-OpenSSH_9.2\r\n")
BROKEN = {
    "closed": closed,
    "reset": reset,
    "in the head": cut_in_the_head,
    "in the head, after a line": cut_after_a_line,
    "in the head, before its end": cut_before_the_end,
    "in the body": cut_in_the_body,
    "in a chunk": cut_in_a_chunk,
    "without an end": endless,
    "not HTTP": not_http,
}


@contextlib.contextmanager
def serving(scripted: Scripted):
    """The base URI of a thread that serves the script."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def _any(self) -> None:
            scripted.handle(self)

        do_GET = do_POST = do_DELETE = do_PUT = _any  # noqa: N815

        def log_message(self, *args) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
