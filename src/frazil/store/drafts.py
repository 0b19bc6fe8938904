"""Files that are complete before they have a name: how a local directory shows an object whole or not at all.

A draft is a file without a name (O_TMPFILE) that is linked when it is complete, or, where the system has no such thing
(macOS, some file systems), one under a hidden name, linked likewise. Linking fails if the name exists. Drafts that a
killed process leaves behind are swept when the directory is opened.
"""

# Paths are strings all through the local store.
# ruff: noqa: PTH103, PTH104, PTH108, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HIDDEN = ".frazil"
_SWEEP_AFTER_MS = 60_000
_PROBE_MTIME_NS = 1_700_000_000_123_456_789
_counter = itertools.count()


class Draft:
    """A complete file that nobody sees. Close it in any case."""

    __slots__ = ("_hidden", "_root_fd", "fd", "path")

    def __init__(self, fd: int, hidden: str | None, root_fd: int) -> None:
        self.fd = fd
        self.path = hidden or f"/proc/self/fd/{fd}"
        self._hidden = hidden is not None
        self._root_fd = root_fd

    def link(self, target: str) -> None:
        """Give it its name; FileExistsError if that is taken."""
        # With a directory descriptor (which an absolute path ignores) Python calls linkat, which can follow /proc.
        _in_its_directory(target, lambda: os.link(self.path, target, src_dir_fd=self._root_fd, follow_symlinks=True))

    def rename_over(self, target: str) -> None:
        assert self._hidden, "a file without a name cannot replace one"
        os.rename(self.path, target)

    def close(self) -> None:
        os.close(self.fd)
        if self._hidden:
            with contextlib.suppress(FileNotFoundError):  # renamed over its target
                os.unlink(self.path)


class Drafts:
    """Where drafts are made. `nameless` chooses the way; None tries what the file system can do."""

    def __init__(self, root: str, root_fd: int, now_ms: int, nameless: bool | None = None) -> None:
        self._root_fd = root_fd
        self._hidden = os.path.join(root, HIDDEN, "drafts")
        os.makedirs(self._hidden, exist_ok=True)
        self._sweep(now_ms)
        self.nameless = self._can_be_nameless() if nameless is None else nameless

    def make(self, target: str, content: bytes, mtime_ns: int | None, named: bool = False) -> Draft:
        """A draft of `target`; `named` if it is to replace a file."""
        draft = self._named() if named or not self.nameless else self._nameless(target)
        try:
            _write_all(draft.fd, content)
            if mtime_ns is not None:
                os.utime(draft.fd, ns=(mtime_ns, mtime_ns))
        except BaseException:
            draft.close()
            raise
        return draft

    def _nameless(self, target: str) -> Draft:
        # In the directory of its target, so that the file system places the file near the others there.
        directory = os.path.dirname(target)
        fd = _in_its_directory(target, lambda: os.open(directory, os.O_TMPFILE | os.O_WRONLY, 0o666))
        return Draft(fd, None, self._root_fd)

    def _named(self) -> Draft:
        while True:
            path = os.path.join(self._hidden, f"{os.getpid()}-{next(_counter)}")
            # The name may be left over from a killed process of the same number.
            with contextlib.suppress(FileExistsError):
                return Draft(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), path, self._root_fd)

    def keeps_nanoseconds(self) -> bool:
        """Whether a time of modification comes back as it was set: it is the version of plain objects."""
        draft = self.make(os.path.join(self._hidden, "probe"), b"", _PROBE_MTIME_NS, named=True)
        try:
            return os.stat(draft.path).st_mtime_ns == _PROBE_MTIME_NS
        finally:
            draft.close()

    def _can_be_nameless(self) -> bool:
        if not hasattr(os, "O_TMPFILE"):
            return False
        probe = os.path.join(self._hidden, f"probe-{os.getpid()}")
        try:
            draft = self._nameless(probe)
        except OSError:
            return False
        try:
            draft.link(probe)
            os.unlink(probe)
            return True
        except OSError:
            return False
        finally:
            draft.close()

    def _sweep(self, now_ms: int) -> None:
        with os.scandir(self._hidden) as entries:
            for entry in entries:
                try:
                    if now_ms - entry.stat(follow_symlinks=False).st_ctime_ns // 1_000_000 > _SWEEP_AFTER_MS:
                        os.unlink(entry.path)
                except FileNotFoundError:
                    pass  # somebody else swept it, or its owner is done


def _in_its_directory(target: str, act: Callable[[], T]) -> T:
    """Do what needs the directory of `target`, which is made if it is not there."""
    try:
        return act()
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        return act()


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
