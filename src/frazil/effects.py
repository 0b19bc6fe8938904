"""The only sources of time, identity, chance and concurrency.

The core awaits only these and a `Store`. That makes one mechanism of production, exhaustive exploration, seeded
simulation and crash injection: each supplies its own `Effects`, the code in between is the same.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Time may choose who waits; it never decides what is true."""

    def now_ms(self) -> int:
        """Wall-clock time, for what is stored and shown."""
        ...

    def mark(self) -> int:
        """A moment of this process, to be given to `passed`."""
        ...

    async def passed(self, mark: int, wait_ms: int) -> bool:
        """Whether `wait_ms` have gone by since `mark`; in exploration both answers are tried."""
        ...

    async def sleep(self, wait_ms: int) -> None: ...


class Ids(Protocol):
    def uuid7(self) -> str:
        """A time-ordered UUID, canonical: idempotency keys and operation ids."""
        ...

    def uuid4(self) -> str:
        """A random UUID: identities of tables and catalogs."""
        ...

    def ulid(self) -> str:
        """A ULID: event ids."""
        ...

    def stamp(self) -> str:
        """Marks one write so that its writer knows it again."""
        ...


class Chance(Protocol):
    def jitter_ms(self, most_ms: int) -> int:
        """Somewhere from 0 to `most_ms`."""
        ...


class Promise(Protocol[T]):
    """A value that one coroutine waits for and another one gives."""

    def give(self, value: T) -> None: ...

    def fail(self, error: BaseException) -> None: ...

    async def wait(self) -> T: ...


class Tasks(Protocol):
    async def together(self, *steps: Coroutine[Any, Any, Any]) -> tuple[Any, ...]:
        """Run steps side by side. All of them end before this returns; then the first failure, in order, is raised."""
        ...

    def later(self, step: Coroutine[Any, Any, object]) -> None:
        """Run after the answer; lost in a crash, so only for what somebody else can complete."""
        ...

    def promise(self) -> Promise[Any]: ...


class Effects:
    """Everything impure that the core may use."""

    __slots__ = ("chance", "clock", "ids", "tasks")

    def __init__(self, clock: Clock, ids: Ids, chance: Chance, tasks: Tasks) -> None:
        self.clock = clock
        self.ids = ids
        self.chance = chance
        self.tasks = tasks


# -- the real ones -------------------------------------------------------------------------------------------------


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mark(self) -> int:
        return time.monotonic_ns() // 1_000_000

    async def passed(self, mark: int, wait_ms: int) -> bool:
        return self.mark() - mark >= wait_ms

    async def sleep(self, wait_ms: int) -> None:
        await asyncio.sleep(wait_ms / 1000)


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class RandomIds:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_ms = 0
        self._count = 0
        self._space = os.urandom(6).hex()

    def uuid7(self) -> str:
        # Within a millisecond the twelve bits after the time count up: ids made by one process are in order.
        now_ms = max(self._clock.now_ms(), self._last_ms)
        self._count = self._count + 1 if now_ms == self._last_ms else int.from_bytes(os.urandom(1), "big")
        if self._count > 0xFFF:
            now_ms, self._count = now_ms + 1, 0
        self._last_ms = now_ms
        tail = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        text = f"{now_ms:012x}7{self._count:03x}{tail:016x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def uuid4(self) -> str:
        return str(uuid.uuid4())

    def ulid(self) -> str:
        number = self._clock.now_ms() << 80 | int.from_bytes(os.urandom(10), "big")
        return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))

    def stamp(self) -> str:
        self._count += 1
        return f"{self._space}-{os.urandom(6).hex()}"


class SystemChance:
    def jitter_ms(self, most_ms: int) -> int:
        return random.randint(0, most_ms)


class FuturePromise:
    def __init__(self) -> None:
        self._future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def give(self, value: Any) -> None:
        if not self._future.done():
            self._future.set_result(value)

    def fail(self, error: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(error)
            self._future.exception()  # retrieved: a promise nobody waits for is no warning

    async def wait(self) -> Any:
        return await asyncio.shield(self._future)


class EventLoopTasks:
    """Tasks on the running event loop. `on_error` hears of what failed after the answer."""

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self._running: set[asyncio.Task[object]] = set()

    async def together(self, *steps: Coroutine[Any, Any, Any]) -> tuple[Any, ...]:
        # A step over a local store often ends without waiting: run each to its first wait before paying for a task.
        results: list[Any] = [None] * len(steps)
        failures: list[tuple[int, BaseException]] = []
        waiting: list[tuple[int, asyncio.Task[Any]]] = []
        for at, step in enumerate(steps):
            try:
                first = step.send(None)
            except StopIteration as end:
                results[at] = end.value
            except Exception as error:
                failures.append((at, error))
            else:
                waiting.append((at, asyncio.ensure_future(resumed(step, first))))
        for at, task in waiting:
            try:
                results[at] = await asyncio.shield(task)
            except Exception as error:
                failures.append((at, error))
        if failures:
            raise min(failures, key=lambda failure: failure[0])[1]
        return tuple(results)

    def later(self, step: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(step)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def promise(self) -> FuturePromise:
        return FuturePromise()

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)

    async def drain(self) -> None:
        """Wait for everything put off with `later`: the last thing a server does before it ends."""
        while self._running:
            await asyncio.wait(set(self._running))


class _Started:
    """A coroutine that has run to its first wait, as an awaitable."""

    __slots__ = ("_first", "_step")

    def __init__(self, step: Coroutine[Any, Any, Any], first: Any) -> None:
        self._step = step
        self._first = first

    def __await__(self) -> Any:
        waited = self._first
        while True:
            thrown: BaseException | None = None
            got = None
            try:
                got = yield waited
            except BaseException as error:  # what the event loop throws in, a cancellation say, is the step's to handle
                thrown = error
            try:
                waited = self._step.throw(thrown) if thrown is not None else self._step.send(got)
            except StopIteration as end:
                return end.value


async def resumed(step: Coroutine[Any, Any, T], first: Any) -> T:
    return await _Started(step, first)  # type: ignore[no-any-return]


def system(on_error: Callable[[BaseException], None]) -> Effects:
    """The effects of a server."""
    clock = SystemClock()
    return Effects(clock, RandomIds(clock), SystemChance(), EventLoopTasks(on_error))


__all__ = ["Awaitable", "Chance", "Clock", "Effects", "Ids", "Promise", "Tasks", "system"]
