"""The processes of a server with several workers: started, started again when they die, stopped.

Each worker has a listening socket of its own on the shared port. It is kept open here too, so that what waits in a dead
worker's socket is served by its successor. A worker has two pipes: by one it says that it is ready, or why it cannot
be; the end of the other tells it that this process is gone, even by kill -9.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from frazil import limits
from frazil.config import Address
from frazil.errors import BadInput, FrazilError

log = logging.getLogger(__name__)

BACKOFF_FIRST_S, BACKOFF_MOST_S, BACKOFF_FORGET_S = 0.1, 5.0, 30.0

#: Runs worker number N on its socket, with the reading end of the pipe that says that the parent lives; tells when it
#: is ready; returns the exit code.
Work = Callable[[int, socket.socket, int, Callable[[], None]], int]


# -- listening ---------------------------------------------------------------------------------------------------------


def listen(address: Address, count: int) -> list[socket.socket]:
    """A socket for each worker, all on one port; the system spreads connections over them."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        # Clients told "127.0.0.1" by every snippet shall find what was started on "localhost".
        family, _, _, _, place = min(found, key=lambda each: each[0] != socket.AF_INET)
        shared = count > 1
        if shared and address.port != 0:
            _bound(family, place, shared=False).close()  # a shared port would be shared with a stranger, silently
        first = _bound(family, place, shared=shared)
        place = (place[0], first.getsockname()[1], *place[2:])
        return [first, *(_bound(family, place, shared=True) for _ in range(count - 1))]
    except OSError as error:
        raise BadInput(f"cannot listen on {address}: {error.strerror or error}") from None


def _bound(family: int, place: Any, *, shared: bool) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(place)
        listening.listen(2048)
    except OSError:
        listening.close()
        raise
    return listening


# -- several workers ---------------------------------------------------------------------------------------------------


#: A worker that has not ended by then is stuck, not busy: every request it accepted has had its time.
STOP_S = limits.handler_s + limits.body_read_s


class _Child:
    """A worker process, what it said so far, and when it may be started again."""

    def __init__(self, pid: int, number: int, says: int, started: float) -> None:
        self.pid = pid
        self.number = number
        self.says = says
        self.started = started
        self.said = b""


class Supervisor:
    def __init__(self, sockets: list[socket.socket], work: Work, now: Callable[[], float]) -> None:
        self.work = work
        self.now = now
        self.sockets = sockets
        self.children: dict[int, _Child] = {}
        self.backoff: dict[int, float] = {}
        self.due: dict[int, float] = {}
        self.told = 0
        self.announced = False
        self.lifeline, self.held = os.pipe()

    def run(self, ready: Callable[[], None]) -> int:
        wake, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, self._tell)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        gc.collect()
        gc.freeze()
        self._start(0)  # it makes the catalog; the others find it
        while True:
            self._listen_to(wake)
            if self.told:
                return self._stop(wake)
            if (refused := self._bury()) is not None:
                sys.stderr.write(f"frazil: {refused}\n")
                self._stop(wake)
                return 2
            standing = sum(child.said.startswith(b"ready") for child in self.children.values())
            if standing and len(self.children) + len(self.due) < len(self.sockets):
                for number in range(1, len(self.sockets)):
                    self._start(number)
            if standing == len(self.sockets) and not self.announced:
                self.announced = True
                ready()

    def _tell(self, *_: object) -> None:
        self.told += 1

    def _listen_to(self, wake: int, most_s: float | None = 1.0) -> None:
        speaking = {child.says: child for child in self.children.values() if child.says >= 0}
        readable, _, _ = select.select([wake, *speaking], [], [], most_s)
        for fd in readable:
            said = os.read(fd, 4096)
            if fd == wake:
                continue
            speaking[fd].said += said
            if not said:
                os.close(fd)
                speaking[fd].says = -1

    def _start(self, number: int) -> None:
        says, tell = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(says)
            os.close(self.held)
            for child in self.children.values():
                if child.says >= 0:
                    os.close(child.says)
            for other, listening in enumerate(self.sockets):
                if other != number:
                    listening.close()
            self._be_worker(number, tell, parent)
        os.close(tell)
        self.children[pid] = _Child(pid, number, says, self.now())

    def _be_worker(self, number: int, tell: int, parent: int) -> NoReturn:
        """In the new process. Never returns into the code of the one it was forked from."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for each in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(each, signal.SIG_DFL)
            _end_with_parent(parent)
            code = self.work(number, self.sockets[number], self.lifeline, lambda: _say(tell, "ready"))
        except FrazilError as error:
            _say(tell, f"refused {error.message}")
            code = 2
        except BaseException:
            log.exception("a worker failed")
        finally:
            logging.shutdown()
            os._exit(code)

    def _bury(self) -> str | None:
        """Workers that ended by themselves are started again, a little later each time. Why one could not at first."""
        now = self.now()
        while (child := self._reaped()) is not None:
            said = child.said.decode(errors="replace")
            if not self.announced and said != "ready":
                return said.removeprefix("refused ") or "a worker could not start; the log has the reason"
            pause = self.backoff.get(child.number, BACKOFF_FIRST_S)
            if now - child.started > BACKOFF_FORGET_S:
                pause = BACKOFF_FIRST_S
            self.backoff[child.number] = min(2 * pause, BACKOFF_MOST_S)
            self.due[child.number] = now + pause
            log.error("a worker ended", extra={"worker": child.number, "pid": child.pid, "again_in_s": pause})
        for number, at in list(self.due.items()):
            if at <= now:
                del self.due[number]
                self._start(number)
        return None

    def _reaped(self) -> _Child | None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            if (child := self.children.pop(pid, None)) is not None:
                if child.says >= 0:
                    with contextlib.suppress(OSError):
                        child.said += os.read(child.says, 65536) if select.select([child.says], [], [], 0)[0] else b""
                    os.close(child.says)
                return child

    def _stop(self, wake: int) -> int:
        """No more connections, then the workers' own graceful end. Told twice, or stuck too long, they are killed."""
        for listening in self.sockets:
            listening.close()
        self._signal(signal.SIGTERM)
        cut = False
        until = self.now() + STOP_S
        while self.children:
            self._listen_to(wake)
            if (self.told > 1 or self.now() > until) and not cut:
                cut = True
                self._signal(signal.SIGKILL)
            while self._reaped() is not None:
                pass
        return 1 if cut else 0

    def _signal(self, number: int) -> None:
        for pid in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _say(fd: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(fd, text.encode())


def _end_with_parent(parent: int) -> None:
    """Linux sends SIGTERM when the parent dies, even where an event loop is too busy to see its pipe end."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)
