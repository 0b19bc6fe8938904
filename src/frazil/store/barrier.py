"""Durability that concurrent writers share: one thread makes the disk agree with what processes see.

A barrier covers every write that had ended when the barrier began. `syncfs` covers the whole file system, so also what
*other* processes wrote and this one read before its barrier: what is built on it is never more durable than it. Where
there is no `syncfs` (macOS), each file written or read is synced, and the directories above it.
"""

# Paths are strings all through the local store.
# ruff: noqa: PTH120

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable

from frazil.store.base import StoreUnavailable

_Waiter = tuple["asyncio.Future[None]", tuple[str, ...]]


class Barrier:
    """`await wait(…)` returns when a barrier that began after the call is complete."""

    def __init__(self, sync: Callable[[Iterable[str]], None]) -> None:
        self._sync = sync
        self._queue: queue.SimpleQueue[_Waiter | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._read: set[str] = set()
        self._reading = threading.Lock()
        self.completed = 0
        self.failure: str | None = None

    async def wait(self, *paths: str) -> None:
        """`paths` are what the caller wrote."""
        assert self._pid == os.getpid(), "a store is opened in the process that uses it: threads do not survive a fork"
        self.check()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="frazil-barrier", daemon=True)
            self._thread.start()
        done = asyncio.get_running_loop().create_future()
        self._queue.put((done, paths))
        await done
        self.check()

    def saw(self, path: str) -> None:
        """A file that somebody else may have written was read, and may be built on."""
        with self._reading:
            self._read.add(path)

    def check(self) -> None:
        # After a failed sync the kernel takes the pages for clean: a second try would succeed and prove nothing. What
        # this process reads is then perhaps not on the disk either, so it stops answering.
        if self.failure is not None:
            raise StoreUnavailable(f"the disk did not take a write, the server must be restarted: {self.failure}")

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            while not self._queue.empty():  # all those who ended their write before this barrier
                batch.append(self._queue.get())
            waiters = [waiter for waiter in batch if waiter is not None]
            if waiters:
                self._complete(waiters)
            if len(waiters) < len(batch):
                return

    def _complete(self, waiters: list[_Waiter]) -> None:
        with self._reading:
            paths, self._read = self._read, set()
        paths.update(path for _, written in waiters for path in written)
        try:
            self._sync(paths)
            self.completed += 1
        except Exception as error:
            self.failure = str(error)
        for loop in {done.get_loop() for done, _ in waiters}:
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits there any more
                loop.call_soon_threadsafe(_release, [done for done, _ in waiters if done.get_loop() is loop])

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None


def _release(waiting: list[asyncio.Future[None]]) -> None:
    for done in waiting:
        if not done.done():
            done.set_result(None)


def whole_file_system(root_fd: int) -> Callable[[Iterable[str]], None] | None:
    """A barrier for everything on the file system of `root_fd`; None where the system has no such call."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs") or (libc.syncfs(-1) != 0 and ctypes.get_errno() != errno.EBADF):
        return None  # not in this system, or not in this sandbox

    def sync(paths: Iterable[str]) -> None:
        if libc.syncfs(root_fd) != 0:  # ctypes gives up the GIL meanwhile
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))

    return sync


def each_file(root: str) -> Callable[[Iterable[str]], None]:
    """A barrier for the files named and the directories above them, up to the root."""

    def sync(paths: Iterable[str]) -> None:
        directories = set()
        for path in paths:
            _sync_one(path)
            above = os.path.dirname(path)
            while above.startswith(root) and above not in directories:
                directories.add(above)
                above = os.path.dirname(above)
        for directory in sorted(directories, key=len, reverse=True):
            _sync_one(directory)

    return sync


def _sync_one(path: str) -> None:
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # deleted, or renamed, meanwhile: the directory is synced
    try:
        if sys.platform == "darwin":
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync alone leaves it in the drive's cache there
        else:
            os.fsync(fd)
    finally:
        os.close(fd)
