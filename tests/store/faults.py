"""What object stores do to a writer, on purpose: the same faults in front of any backend, and of a real S3 server.

A fault meets one conditional write. `Script` hands them out in order; a write without one goes through untouched.
"""

import asyncio
import contextlib
import hashlib
import itertools
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Self

from frazil.store.base import Applied, Refused, StoreUnavailable, Unclear
from frazil.store.memory import MemoryBackend


@dataclass(frozen=True)
class Fault:
    """`applies`: the write takes effect, "later" after the answer. `answer`: a status, or "closed", or "hangs"."""

    name: str
    applies: bool | str
    answer: int | str

    def __str__(self) -> str:
        return self.name


CONFLICT = Fault("409, nothing applied", False, 409)
REFUSED_AFTER_APPLYING = Fault("412, although applied", True, 412)
CONFLICT_AFTER_APPLYING = Fault("409, although applied", True, 409)
BUSY = Fault("503, nothing applied", False, 503)
TOO_MANY = Fault("429, nothing applied", False, 429)
ERROR_AFTER_APPLYING = Fault("500, although applied", True, 500)
LOST_ANSWER = Fault("closed, although applied", True, "closed")
LOST_REQUEST = Fault("closed, nothing applied", False, "closed")
DELAYED = Fault("500, applied later", "later", 500)
DELAYED_LOST = Fault("closed, applied later", "later", "closed")
HANGS = Fault("no answer, nothing applied", False, "hangs")
HANGS_AFTER_APPLYING = Fault("no answer, although applied", True, "hangs")

EVERY = (
    CONFLICT,
    REFUSED_AFTER_APPLYING,
    CONFLICT_AFTER_APPLYING,
    BUSY,
    TOO_MANY,
    ERROR_AFTER_APPLYING,
    LOST_ANSWER,
    LOST_REQUEST,
    DELAYED,
    DELAYED_LOST,
    HANGS,
    HANGS_AFTER_APPLYING,
)


class FaultyBackend(MemoryBackend):
    """The memory backend behind faults. Remembers every body that took effect, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: deque[Fault] = deque()
        self.blind_reads = 0
        self.history: list[bytes] = []
        self.sent: list[bytes] = []
        self.in_flight: list = []

    async def get(self, key):
        if self.blind_reads:
            self.blind_reads -= 1
            raise StoreUnavailable("503 Slow Down")
        return await super().get(key)

    async def create(self, key, body):
        return await self._through(body, lambda: MemoryBackend.create(self, key, body))

    async def swap(self, key, body, version):
        return await self._through(body, lambda: MemoryBackend.swap(self, key, body, version))

    async def _through(self, body, write):
        self.sent.append(body)
        fault = self.faults.popleft() if self.faults else None
        if fault is None:
            return await self._noted(body, write)
        if fault.applies == "later":
            self.in_flight.append(lambda: self._noted(body, write))
        elif fault.applies:
            await self._noted(body, write)
        return Refused() if fault.answer in (409, 412) else Unclear(str(fault.answer))

    async def _noted(self, body, write):
        answer = await write()
        if isinstance(answer, Applied):
            self.history.append(body)
        return answer

    async def land(self) -> None:
        """Everything that is still on its way arrives."""
        while self.in_flight:
            await self.in_flight.pop(0)()


class FaultProxy:
    """An HTTP server between a client and a real S3 server, which it makes worse as scripted."""

    def __init__(self, upstream_port: int, later_ms: int = 60) -> None:
        self._upstream_port = upstream_port
        self._later_ms = later_ms
        self._script: dict[tuple[str, str], deque[Fault]] = defaultdict(deque)
        self._tasks: set[asyncio.Task] = set()
        self.seen: list[tuple[str, str, str]] = []  # method, path, hash of the body

    def next(self, method: str, suffix: str, *faults: Fault) -> None:
        """What meets the next requests of this method on a key with this ending."""
        self._script[method, suffix].extend(faults)

    def bodies(self, method: str, suffix: str) -> list[str]:
        return [body for seen, path, body in self.seen if seen == method and path.endswith(suffix)]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def landed(self) -> None:
        """Wait until every delayed request has arrived."""
        await asyncio.gather(*(task for task in self._tasks if task.get_name() == "delayed"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while request := await _message(reader):
                if not await self._answer(request, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        method, path, _ = request.split(b"\r\n", 1)[0].decode().split(" ", 2)
        path = path.partition("?")[0]
        body = hashlib.sha256(request.partition(b"\r\n\r\n")[2]).hexdigest()
        self.seen.append((method, path, body))
        waiting = (queue for (m, suffix), queue in self._script.items() if m == method and path.endswith(suffix))
        queue = next((queue for queue in waiting if queue), None)
        fault = queue.popleft() if queue else None
        if fault is None:
            writer.write(await self._forward(request))
        else:
            if fault.applies == "later":
                task = asyncio.create_task(self._forward_later(request), name="delayed")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            elif fault.applies:
                await self._forward(request)
            if fault.answer == "hangs":
                await asyncio.sleep(30)
            if not isinstance(fault.answer, int):
                return False
            writer.write(b"HTTP/1.1 %d Fault\r\nContent-Length: 0\r\n\r\n" % fault.answer)
        await writer.drain()
        return True

    async def _forward_later(self, request: bytes) -> None:
        await asyncio.sleep(self._later_ms / 1000)
        await self._forward(request)

    async def _forward(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._upstream_port)
        try:
            writer.write(request)
            no_body = request.startswith(b"HEAD ")
            return await _message(reader, no_body=no_body)
        finally:
            writer.close()
            await writer.wait_closed()


async def _message(reader: asyncio.StreamReader, *, no_body: bool = False) -> bytes:
    """One HTTP message, or b"" at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    fields = {name.strip().lower(): value.strip() for name, _, value in lines}
    status = head.split(b" ", 2)[1]
    if no_body or status in (b"204", b"304"):
        return head
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        body = b""
        for _ in itertools.count():
            size = await reader.readuntil(b"\r\n")
            chunk = await reader.readexactly(int(size, 16) + 2)
            body += size + chunk
            if int(size, 16) == 0:
                return head + body
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))
