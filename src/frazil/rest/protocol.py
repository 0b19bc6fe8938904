"""One connection: bytes to whole requests, answers to bytes, with bounds on size and time.

Promises: a request runs only when its head and body have arrived whole; answers leave in the order of the requests; a
connection that said something malformed runs nothing after it. Clever for its speed, in one place: a request that can
be answered without waiting (a warm table over a local store) is, inside the very call that delivered its last byte,
with one write; others go on as tasks. There is no timer per request: a connection says until when it may stay as it
is, and the server looks at all of them a few times a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from frazil import limits
from frazil.effects import resumed
from frazil.errors import BadInput, FrazilError, HeadersTooLarge, RequestTimeout, TooLarge
from frazil.rest import problems
from frazil.rest.answers import Answer
from frazil.rest.app import App, Request

log = logging.getLogger(__name__)

IDLE, HEAD, BODY = "idle", "head", "body"

#: After an answer that ends the connection: how long the client may go on sending without losing the answer.
LINGER_S = 2.0

#: Fields of which two would contradict each other.
_ONCE = (b"host", b"authorization", b"idempotency-key", b"content-type", b"content-encoding")

_END = b"\r\n\r\n"
_END_AND_CLOSE = b"\r\nconnection: close\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Arrived(Request):
    """A request on a connection."""

    __slots__ = ("answered", "keep_alive", "overdue_at")

    def __init__(self, method: str, target: bytes, fields: dict[bytes, bytes], body: bytes, keep_alive: bool) -> None:
        super().__init__(method, target, fields, body)
        self.keep_alive = keep_alive
        self.answered = False
        self.overdue_at = 0.0


class Protocol(HttpToolsProtocol):
    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], app: App) -> None:
        super().__init__(config, server_state, app_state, asyncio.get_running_loop())
        self.respond = app.respond
        self.stage = IDLE
        self.deadline = 0.0
        self.fields: dict[bytes, bytes] = {}
        self.field_bytes = self.field_count = 0
        self.head_bytes = 0
        self.chunks: list[bytes] = []
        self.body_bytes = 0
        #: Bytes of a body that the parser does not hand on.
        self.owed = 0
        self.method = ""
        self.keep_alive = True
        self.refusal: FrazilError | None = None
        self.running: Arrived | None = None
        self.waiting: deque[Arrived] = deque()
        #: No more requests are taken from this connection.
        self.ending = False

    # -- bytes in -----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.connections.add(self)
        self.transport = transport
        self.flow = FlowControl(transport)
        self.deadline = self.loop.time() + limits.header_read_s

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)
        self.ending = True
        self.waiting.clear()
        self.parser = None  # type: ignore[assignment]

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more. It may still be reading what it asked for."""
        self.ending = True
        return self.running is not None or bool(self.waiting)

    def data_received(self, data: bytes) -> None:
        if self.ending:
            return
        within_head = self.stage is HEAD
        size = len(data)
        while data and not self.ending:
            if self.owed:
                data = self._take_body(data)
                continue
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                # Java's client offers TLS or HTTP/2 by `Upgrade`; the request is answered as if it did not.
                data = data[upgrade.args[0] :]
            except httptools.HttpParserError:
                self._refuse(self.refusal or BadInput("the request is malformed HTTP"))
                return
        if within_head and self.stage is HEAD:
            self.head_bytes += size
            if self.head_bytes > limits.header_bytes_max:
                self._refuse(_head_too_large())

    def _take_body(self, data: bytes) -> bytes:
        """The parser leaves out the body of a request that offers an upgrade. What is left of `data` behind it."""
        piece, rest = data[: self.owed], data[self.owed :]
        self.owed -= len(piece)
        self.chunks.append(piece)
        if not self.owed:
            self._whole()
        return rest

    def on_message_begin(self) -> None:
        self.stage = HEAD
        self.deadline = self.loop.time() + limits.header_read_s
        self.url = b""
        self.fields = {}
        self.field_bytes = self.field_count = self.head_bytes = self.body_bytes = 0
        self.chunks = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.field_bytes += len(name) + len(value) + 4
        self.field_count += 1
        if self.field_count > limits.header_count_max or self.field_bytes > limits.header_bytes_max:
            self._stop(_head_too_large())
        name = name.lower()
        before = self.fields.get(name)
        if before is not None and name in _ONCE:
            self._stop(BadInput(f"the request has {name.decode()} twice"))
        self.fields[name] = value if before is None else before + b", " + value

    def on_headers_complete(self) -> None:
        if len(self.url) + self.field_bytes > limits.header_bytes_max:
            self._stop(_head_too_large())
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._stop(BadInput(f"HTTP/{version} is not spoken here, HTTP/1.1 is"))
        if version == "1.1" and b"host" not in self.fields:
            self._stop(BadInput("the request has no Host"))
        self.method = self.parser.get_method().decode("ascii")
        self.keep_alive = self.parser.should_keep_alive()
        self.stage = BODY
        length = self.fields.get(b"content-length", b"0")
        if len(length) > 15 or int(length) > limits.body_bytes_max:
            self._stop(TooLarge(f"the body is {length[:20].decode()} bytes; at most {limits.body_bytes_max} are taken"))
        if self.parser.should_upgrade():
            if b"transfer-encoding" in self.fields:
                self._stop(BadInput("a chunked body cannot come with an offer to upgrade"))
            self.owed = int(length)
        if length != b"0" or b"transfer-encoding" in self.fields:
            self.deadline = self.loop.time() + limits.body_read_s
            if self.fields.get(b"expect", b"").lower() == b"100-continue" and self.running is None:
                self.transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        self.body_bytes += len(body)
        if self.body_bytes > limits.body_bytes_max:
            self._stop(TooLarge(f"the body is over {limits.body_bytes_max} bytes"))
        self.chunks.append(body)

    def on_message_complete(self) -> None:
        if not self.owed:
            self._whole()

    def _whole(self) -> None:
        """Head and body are here."""
        self.stage = IDLE
        request = Arrived(self.method, self.url, self.fields, b"".join(self.chunks), self.keep_alive)
        self.chunks = []
        if self.running is None and not self.waiting and not self.flow.write_paused:
            self._run(request)
        else:
            self.waiting.append(request)
            self.flow.pause_reading()
            self.deadline = self.loop.time() + limits.idle_connection_s

    def _stop(self, error: FrazilError) -> None:
        """From inside the parser: nothing more of this connection is read."""
        self.refusal = error
        raise error

    # -- requests to answers ------------------------------------------------------------------------------------------

    def _run(self, request: Arrived) -> None:
        step = self.respond(request)
        try:
            first = step.send(None)
        except StopIteration as done:
            self._answer(request, done.value)
        else:
            self.running = request
            request.overdue_at = self.loop.time() + limits.handler_s
            task = self.loop.create_task(self._go_on(request, step, first))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _go_on(self, request: Arrived, step: Coroutine[Any, Any, Answer], first: Any) -> None:
        answer = await resumed(step, first)
        self.running = None
        if not request.answered:
            self._answer(request, answer)
        self._next()

    def _next(self) -> None:
        while self.waiting and self.running is None and not self.flow.write_paused:
            self._run(self.waiting.popleft())
        if self.running is None and not self.waiting:
            if self.refusal is not None:
                self._refuse(self.refusal)
            elif self.ending:
                self.transport.close()
            elif not self.flow.write_paused:
                self.flow.resume_reading()

    # -- answers out --------------------------------------------------------------------------------------------------

    def _answer(self, request: Arrived, answer: Answer) -> None:
        request.answered = True
        state = cast("State", self.server_state)
        if self.transport.is_closing():
            return
        last = not request.keep_alive or state.stopping or self._done()
        head = (answer.head, state.dated, request.id, _END_AND_CLOSE if last else _END)
        body = () if request.method == "HEAD" else answer.body
        if answer.size <= 65536 or not body:
            self.transport.write(b"".join((*head, *body)))
        else:
            self.transport.writelines((b"".join(head), *body))
        if last:
            self.ending = True
            self.waiting.clear()
            self.transport.close()
        else:
            self.deadline = self.loop.time() + limits.idle_connection_s

    def _done(self) -> bool:
        """Whether the answer being written is the last thing to say."""
        return self.ending and not self.waiting and self.refusal is None

    def _refuse(self, error: FrazilError) -> None:
        """The last word on this connection, in its turn."""
        self.ending, self.refusal = True, error
        self.chunks = []
        if self.running is not None or self.waiting or self.transport.is_closing():
            return
        self.refusal = None
        answer = problems.rendered(error)
        state = cast("State", self.server_state)
        self.transport.write(b"".join((answer.head, state.dated, b"-", _END_AND_CLOSE, *answer.body)))
        # Closing with unread input would reset the connection and take the answer back.
        self.stage, self.deadline = IDLE, self.loop.time() + LINGER_S
        if self.transport.can_write_eof():
            self.transport.write_eof()

    # -- time ---------------------------------------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """Called a few times a second."""
        request = self.running
        if request is not None:
            if now > request.overdue_at and not request.answered:
                request.keep_alive = False
                mutation = request.method not in ("GET", "HEAD")
                self._answer(request, problems.overdue(mutation, limits.handler_s))
            return
        if now <= self.deadline or (self.waiting and not self.flow.write_paused):
            return
        if self.stage is BODY and not self.ending:
            self._refuse(
                RequestTimeout(f"the body did not arrive whole within {limits.body_read_s} s; nothing was run")
            )
        elif self.stage is HEAD and not self.ending:
            self._refuse(RequestTimeout(f"the head did not arrive whole within {limits.header_read_s} s"))
        else:
            # Whoever has not read its last answer by now is not going to.
            self.transport.abort() if self.transport.get_write_buffer_size() else self.transport.close()

    def stop_soon(self, now: float, linger_s: float) -> None:
        """The server stops. A request on its way is still answered: an idle client may have sent one just now."""
        if self.running is None and not self.waiting and self.stage is IDLE:
            self.deadline = min(self.deadline, now + linger_s)

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self.flow.pause_reading()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._next()


def _head_too_large() -> HeadersTooLarge:
    return HeadersTooLarge(
        f"the head of a request holds at most {limits.header_bytes_max} bytes and {limits.header_count_max} fields"
    )


class State(ServerState):
    """What the connections of one worker share."""

    def __init__(self) -> None:
        super().__init__()
        self.stopping = False
        #: The rest of every head, up to the request id.
        self.dated = b""
