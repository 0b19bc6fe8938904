"""Locks shared by all processes that have a local directory open.

Lock files are never unlinked: who holds the lock of a file without a name excludes nobody. Each thread opens its own,
because `flock` does not tell threads apart that share an open file. The system frees the locks of a killed process.

A lock file holds one number, its floor: the highest version that was deleted under it. Whatever is made anew gets a
higher one, so that no version of a key ever comes back.
"""

# Paths are strings all through the local store.
# ruff: noqa: PTH103, PTH118

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import zlib
from collections.abc import Iterator

from frazil.store.base import StoreUnavailable

STRIPES = 64
#: A lock is free in microseconds: nobody waits for anything while he holds one. Else its process is stopped.
WAIT_MS = 5_000


class Locks:
    """A fixed number of lock files, each for many keys."""

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, exist_ok=True)
        self._directory = directory
        self._of_thread = threading.local()
        self._opened: list[int] = []
        self._pid = os.getpid()

    def take(self, key: str, kind: int) -> int | None:
        """The descriptor that holds the lock; None if somebody else does."""
        fd = self._open(key)
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            return None

    @contextlib.contextmanager
    def shared(self, key: str) -> Iterator[None]:
        """Wait for the lock that keeps writers out; never in the event loop."""
        pause = threading.Event()
        for _ in range(WAIT_MS):  # not without end: who holds it may be stopped
            if (fd := self.take(key, fcntl.LOCK_SH)) is not None:
                break
            pause.wait(0.001)
        else:
            raise StoreUnavailable(f"another process holds the lock of {key}")
        try:
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def floor(self, key: str) -> int:
        text = os.pread(self._open(key), 20, 0)
        return int(text) if text else 0

    def raise_floor(self, key: str, n: int) -> None:
        """By the holder of the lock."""
        if n > self.floor(key):
            os.pwrite(self._open(key), b"%020d\n" % n, 0)

    def path(self, key: str) -> str:
        return os.path.join(self._directory, f"{_stripe(key):02}")

    def _open(self, key: str) -> int:
        assert self._pid == os.getpid(), "a store is opened in the process that uses it: a fork shares its locks"
        fds: list[int] | None = getattr(self._of_thread, "fds", None)
        if fds is None:
            fds = self._of_thread.fds = [-1] * STRIPES
        stripe = _stripe(key)
        if fds[stripe] < 0:
            fds[stripe] = os.open(self.path(key), os.O_RDWR | os.O_CREAT, 0o666)
            self._opened.append(fds[stripe])
        return fds[stripe]

    def close(self) -> None:
        for fd in self._opened:
            os.close(fd)
        self._opened.clear()


def _stripe(key: str) -> int:
    return zlib.crc32(key.encode()) % STRIPES
