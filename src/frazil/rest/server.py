"""One worker's listening side: accepts, keeps time for all connections, and stops without cutting anybody off."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from email.utils import formatdate

from uvicorn.config import Config

from frazil import limits
from frazil.effects import Clock
from frazil.rest.app import App
from frazil.rest.protocol import Protocol, State

log = logging.getLogger(__name__)

LOOK_S = 0.25
#: How long an idle connection stays when the server stops: a request may be on its way.
LINGER_S = 0.5


class Server:
    def __init__(self, app: App, clock: Clock) -> None:
        self.app = app
        self.state = State()
        self._clock = clock
        self._config = Config(app, loop="none", http=Protocol, ws="none", lifespan="off", log_config=None)
        self._config.load()
        self._listening: asyncio.Server | None = None
        self._socket: socket.socket | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def start(self, listening: socket.socket) -> None:
        self._tick()
        self._socket = listening.dup()  # to take what waits in it when the listener is closed
        self._socket.setblocking(False)
        self._listening = await asyncio.get_running_loop().create_server(self._connection, sock=listening, backlog=2048)
        self._ticking = asyncio.create_task(self._keep_time())

    def _connection(self) -> Protocol:
        return Protocol(self._config, self.state, {}, self.app)

    async def _keep_time(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                self._tick()
            except Exception:
                log.exception("keeping time failed")

    def _tick(self) -> None:
        self.state.dated = b"date: %s\r\nx-request-id: " % formatdate(self._clock.now_ms() / 1000, usegmt=True).encode()
        now = asyncio.get_running_loop().time()
        for connection in list(self.state.connections):
            connection.look(now)  # type: ignore[union-attr]
        self.app.authentication.refresh()
        self.app.metrics.write()

    async def stop(self) -> None:
        """Accept no more, finish what was begun, end."""
        assert self._listening is not None
        assert self._socket is not None
        assert self._ticking is not None
        loop = asyncio.get_running_loop()
        self.state.stopping = True
        self._listening.close()
        await self._take_waiting(self._socket)
        self._socket.close()
        now = loop.time()
        for connection in list(self.state.connections):
            connection.stop_soon(now, LINGER_S)  # type: ignore[union-attr]
        until = now + limits.header_read_s + limits.body_read_s + limits.handler_s
        while (self.state.connections or self.state.tasks) and loop.time() < until:
            await asyncio.sleep(0.02)
            now = loop.time()
            for connection in list(self.state.connections):
                connection.look(now)  # type: ignore[union-attr]
        self._ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._ticking
        if self.state.connections or self.state.tasks:
            log.error("requests did not end in time and are given up", extra={"count": len(self.state.tasks)})
        self.app.metrics.write()

    async def _take_waiting(self, listening: socket.socket) -> None:
        """Connections that the system accepted for us and that nobody has looked at yet."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                waiting, _ = listening.accept()
            except OSError:
                return
            waiting.setblocking(False)
            await loop.connect_accepted_socket(self._connection, waiting)
