"""The load generator: one thread, one connection a client, a request only when the answer to the last one is complete.

A client is a generator: it yields a whole request as bytes and is sent the `Answer`. One run of the generator is one
operation, however many requests it makes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from typing import NamedTuple, cast

import httptools
import uvloop


class Answer(NamedTuple):
    status: int
    body: bytes


Operation = Generator[bytes, Answer, None]


class Load(NamedTuple):
    """What happened in the measured time."""

    operations: int
    seconds: float
    latencies_ms: list[float]

    def percentile_ms(self, percent: float) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0


class _Client(asyncio.Protocol):
    """One connection, and the generator that lives on it."""

    def __init__(self, run: _Run, operation: Callable[[], Operation]) -> None:
        self._run = run
        self._operation = operation
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._transport: asyncio.WriteTransport
        self._current: Operation
        self._begun = 0.0
        self._left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's are, without saying so

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        answer = Answer(self._parser.get_status_code(), b"".join(self._parts))
        self._parser = httptools.HttpResponseParser(self)
        self._parts = []
        try:
            self._transport.write(self._current.send(answer))
        except StopIteration:
            self._run.ended(self._begun)
            if self._run.wants_more():
                self.begin()
            else:
                self._run.leave(self)
        except Exception as error:  # any failure of a client is the end of the run
            self._run.fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._left:
            self._run.fail(ConnectionError(f"the server closed a connection: {exc}"))

    def close(self) -> None:
        self._left = True
        self._transport.abort()

    def begin(self) -> None:
        self._begun = time.perf_counter()
        self._current = self._operation()
        self._transport.write(next(self._current))


class _Run:
    """The clients of one load, and the account of what they did."""

    def __init__(self, limit: int | None) -> None:
        self.left = limit
        self.latencies: list[tuple[float, float]] = []  # (end, milliseconds)
        self.stopping = False
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.clients: set[_Client] = set()

    def wants_more(self) -> bool:
        if self.left is not None:
            if self.left <= 0:
                return False
            self.left -= 1
        return not self.stopping

    def ended(self, begun: float) -> None:
        now = time.perf_counter()
        self.latencies.append((now, (now - begun) * 1000))

    def leave(self, client: _Client) -> None:
        self.clients.discard(client)
        if not self.clients and not self.done.done():
            self.done.set_result(None)
        client.close()

    def fail(self, error: Exception) -> None:
        if not self.done.done() and self.clients:
            self.done.set_exception(error)


def run(
    port: int,
    operation: Callable[[int], Operation],
    *,
    clients: int,
    warm_s: float = 0,
    measure_s: float = 3600,
    limit: int | None = None,
    on_begin: Callable[[], None] = lambda: None,
    on_end: Callable[[], None] = lambda: None,
) -> Load:
    """Let `clients` repeat their operation. The callbacks are called at the edges of the measured time.

    After it every client ends the operation it is in, so that what was acknowledged is known; that is not counted.
    """
    work = _drive(port, operation, clients, warm_s, measure_s, limit, on_begin, on_end)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def _drive(
    port: int,
    operation: Callable[[int], Operation],
    clients: int,
    warm_s: float,
    measure_s: float,
    limit: int | None,
    on_begin: Callable[[], None],
    on_end: Callable[[], None],
) -> Load:
    loop = asyncio.get_running_loop()
    going = _Run(None if limit is None else limit - clients)
    for number in range(clients):
        client = _Client(going, lambda number=number: operation(number))  # type: ignore[misc]
        going.clients.add(client)
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)  # type: ignore[misc]
    everyone = list(going.clients)
    try:
        for client in everyone:
            client.begin()
        await _until(going, warm_s)
        on_begin()
        begin = time.perf_counter()
        await _until(going, measure_s)
        end = time.perf_counter()
        on_end()
        going.stopping = True
        await asyncio.wait_for(going.done, timeout=120)
    finally:
        for client in everyone:
            client.close()
        await asyncio.sleep(0.01)  # uvloop cannot be closed under open connections
    measured = [ms for at, ms in going.latencies if begin <= at <= end]
    return Load(len(measured), end - begin, measured)


async def _until(going: _Run, seconds: float) -> None:
    if seconds > 0:
        await asyncio.wait([going.done], timeout=seconds)
        if going.done.done():
            going.done.result()
