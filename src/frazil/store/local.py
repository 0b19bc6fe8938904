"""A local directory as an object store: right across processes and kill -9, on the disk before success.

One file per object, under its key. Plain objects (metadata files, data) hold exactly their bytes; records (documents of
the catalog, written often) are files of two slots, rewritten in place (`slots.py`). What is promised:

- An object is visible only when complete. A condition is judged and the write made under a lock of all processes.
- No write is reported before a barrier that covers it (`barrier.py`), nor a refusal before what refused it is durable.
- A version is a number that grows with every write of a key; plain objects carry it as their time of modification.
- A slot is overwritten only when the newer one is known to be on the disk: a power loss can spoil one slot, never both.
- A read may show what is not on the disk yet. What is then written is not reported before that is durable, too.

Files are read and written in the event loop, which is cheaper (20 µs) than handing them to a thread (12 to 72 µs
for the hop alone); only barriers, listings and contended locks are waited for. Never on a network file system.
"""

# Paths are strings: making a pathlib.Path costs as much as reading the file.
# ruff: noqa: PTH100, PTH102, PTH108, PTH116, PTH118, PTH120

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from typing import TypeVar

from frazil.effects import SystemClock
from frazil.errors import BadInput
from frazil.store import barrier, slots
from frazil.store.barrier import Barrier
from frazil.store.base import Applied, Found, Listed, RawPut, Refused, StoreUnavailable, Unchanged, Unclear
from frazil.store.drafts import HIDDEN, Draft, Drafts
from frazil.store.keys import is_record
from frazil.store.locks import WAIT_MS, Locks

T = TypeVar("T")

KNOWN_VERSIONS = 32_768


class _Not(Enum):
    """Why a slot was not written."""

    CURRENT = auto()
    DURABLE = auto()
    FITTING = auto()


class LocalBackend:
    """`sync=False` trades durability away: a power loss may then take back what was reported. `nameless` and
    `sync_all` choose a way of working that is otherwise found out."""

    def __init__(
        self, root: str, *, sync: bool = True, nameless: bool | None = None, sync_all: bool | None = None
    ) -> None:
        self._root = os.path.abspath(root)
        self._sync = sync
        self._clock = SystemClock()
        self._last_n = 0
        try:
            self._root_fd = _open_root(self._root)
            self._drafts = Drafts(self._root, self._root_fd, self._clock.now_ms(), nameless)
            self._locks = Locks(os.path.join(self._root, HIDDEN, "locks"))
            exact = self._drafts.keeps_nanoseconds()
        except OSError as error:
            raise BadInput(f"{root} cannot hold a catalog: {error.strerror}: {error.filename}") from error
        if not exact:
            raise BadInput(f"{root} cannot hold a catalog: its file system does not keep nanoseconds")
        whole = barrier.whole_file_system(self._root_fd) if sync_all is not False else None
        self._tracks_reads = whole is None
        self._barrier = Barrier(whole or barrier.each_file(self._root))
        self._durable: dict[str, int] = {}  # the last number known to be on the disk; forgetting one costs a barrier

    # -- reading ----------------------------------------------------------------------------------------------------

    async def get(self, key: str) -> Found | None:
        path = self._path(key)
        try:
            found = self._read(key, path)
            if found is slots.TORN:
                return await self._under_lock(key, fcntl.LOCK_SH, self._read_locked, key, path)
            return found
        except OSError as error:
            raise StoreUnavailable(str(error)) from error

    async def get_if_changed(self, key: str, version: str) -> Found | Unchanged | None:
        if self._is_still(key, version):
            return Unchanged()
        found = await self.get(key)
        return Unchanged() if found is not None and found.version == version else found

    def _is_still(self, key: str, version: str) -> bool:
        """A few microseconds: of a record the headers, of a plain object its time of modification. False: perhaps."""
        path = self._path(key)
        self._barrier.check()
        try:
            if not is_record(key):
                return str(os.stat(path).st_mtime_ns) == version
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            return False
        try:
            return slots.is_newest(fd, version)
        except ValueError:
            return False  # in the middle of a write
        finally:
            os.close(fd)

    def _read(self, key: str, path: str) -> Found | slots.Torn | None:
        self._barrier.check()
        try:
            # Without waiting: what stands there may be a pipe that nobody writes to, and that is no object.
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None  # no object can have that name
            raise
        try:
            if self._tracks_reads:
                self._barrier.saw(path)
            if is_record(key):
                record = slots.read(fd)
                return record if record is None or record is slots.TORN else Found(record[1], str(record[0]))
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode):
                return None
            return Found(_read_all(fd, state.st_size), str(state.st_mtime_ns))
        except IsADirectoryError:
            return None
        finally:
            os.close(fd)

    def _read_locked(self, key: str, path: str) -> Found | None:
        """A record, while nobody writes it."""
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            record = slots.read_locked(fd, key)
            return Found(record[1], str(record[0])) if record is not None else None
        finally:
            os.close(fd)

    # -- writing ----------------------------------------------------------------------------------------------------

    async def create(self, key: str, body: bytes) -> RawPut:
        path = self._path(key)
        try:
            # Asked first: a draft made in vain is a deleted file, and ext4 slows down for minutes after many of those.
            if os.access(path, os.F_OK) and await self.get(key) is not None:
                return await self._refused(key, path)
            n = await self._create(key, path, body)
            if n is None:
                return await self._refused(key, path)
            await self._make_durable(key, n, path)
        except (OSError, StoreUnavailable) as error:
            return Unclear(str(error))
        return Applied(str(n))

    async def _create(self, key: str, path: str, body: bytes) -> int | None:
        """The number of the new object; None if there is one."""
        record = is_record(key)
        while True:
            n = self._next(self._locks.floor(key))
            draft = self._drafts.make(path, slots.new(n, body) if record else body, None if record else n)
            try:
                if self._sync and not record and key.startswith("_catalog/"):
                    # A power loss may keep the name and lose the content. A record's checksum tells; a file under
                    # tables/ has a name of its own that nobody uses before this returns; these have neither.
                    await self._barrier.wait(draft.path)
                linked = await self._under_lock(key, fcntl.LOCK_EX, self._link, key, path, draft, n)
            finally:
                draft.close()
            if linked is not None:
                return n if linked else None

    def _link(self, key: str, path: str, draft: Draft, n: int) -> bool | None:
        """Whether the draft has the name now. None: `n` is too low by now, the key was deleted meanwhile."""
        if self._locks.floor(key) >= n:
            return None
        if is_record(key) and os.access(path, os.F_OK) and self._read_locked(key, path) is None:
            _unlink(path)  # a power loss took its content (see `slots.py`)
        try:
            draft.link(path)
        except FileExistsError:
            return False
        return True

    async def swap(self, key: str, body: bytes, version: str) -> RawPut:
        path = self._path(key)
        if not version.isdecimal():
            return Refused()  # no version of this store
        try:
            if is_record(key):
                return await self._swap_in_place(key, path, body, int(version))
            return await self._replace(key, path, body, int(version), self._next(int(version)))
        except (OSError, StoreUnavailable) as error:
            return Unclear(str(error))

    async def _swap_in_place(self, key: str, path: str, body: bytes, expected: int) -> RawPut:
        durable = not self._sync or self._durable.get(key) == expected
        while True:
            n = await self._under_lock(key, fcntl.LOCK_EX, self._write_slot, key, path, body, expected, durable)
            if isinstance(n, int):
                await self._make_durable(key, n, path)
                return Applied(str(n))
            if n is _Not.CURRENT:
                return await self._refused(key, path)
            if n is _Not.FITTING:
                n = self._next(expected)
                return await self._replace(key, path, slots.new(n, body), expected, n)
            # Written by another process, or by this one a moment ago: first the disk, then the other slot.
            await self._make_durable(key, expected, path)
            durable = True

    def _write_slot(self, key: str, path: str, body: bytes, expected: int, durable: bool) -> int | _Not:
        try:
            fd = os.open(path, os.O_RDWR)
        except (FileNotFoundError, NotADirectoryError):
            return _Not.CURRENT
        try:
            current = slots.current(fd, key, expected)
            if current is None or current.n != expected:
                return _Not.CURRENT
            if not durable:
                return _Not.DURABLE
            n = self._next(expected)
            write = slots.overwrite(current, os.fstat(fd).st_size, n, body)
            if write is None:
                return _Not.FITTING
            at, content = write
            if os.pwrite(fd, content, at) != len(content):
                raise OSError(0, "the disk took a part of the record")
            return n
        finally:
            os.close(fd)

    async def _replace(self, key: str, path: str, content: bytes, expected: int, n: int) -> RawPut:
        """By a new file: a plain object, or a record that outgrew its slots."""
        draft = self._drafts.make(path, content, None if is_record(key) else n, named=True)
        try:
            if self._sync:
                await self._barrier.wait(draft.path)  # complete on the disk before it has the name
            if not await self._under_lock(key, fcntl.LOCK_EX, self._rename_over, key, path, draft, expected):
                return await self._refused(key, path)
        finally:
            draft.close()
        await self._make_durable(key, n, path)
        return Applied(str(n))

    def _rename_over(self, key: str, path: str, draft: Draft, expected: int) -> bool:
        try:
            there = self._read_locked(key, path) if is_record(key) else None
            now = int(there.version) if there is not None else os.stat(path).st_mtime_ns
        except FileNotFoundError:
            return False
        if now != expected or (there is None and is_record(key)):
            return False
        draft.rename_over(path)
        return True

    async def delete(self, key: str) -> None:
        path = self._path(key)
        try:
            await self._under_lock(key, fcntl.LOCK_EX, self._unlink, key, path)
            if self._sync:
                await self._barrier.wait(path, self._locks.path(key))
        except OSError as error:
            raise StoreUnavailable(str(error)) from error
        self._durable.pop(key, None)

    def _unlink(self, key: str, path: str) -> None:
        """Under the lock: a writer in place must not be left writing into a file that lost its name."""
        try:
            fd = os.open(path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            last = max((slot.n for slot in slots.survivors(fd)), default=0)
            self._locks.raise_floor(key, last if is_record(key) else os.fstat(fd).st_mtime_ns)
        finally:
            os.close(fd)
        _unlink(path)

    async def _refused(self, key: str, path: str) -> Refused:
        # Whoever is refused builds on what is there, if only by finding it to be what he wanted to write.
        there = await self.get(key) if self._sync else None
        if there is not None and self._durable.get(key) != int(there.version):
            await self._make_durable(key, int(there.version), path)
        return Refused()

    async def _make_durable(self, key: str, n: int, path: str) -> None:
        if not self._sync:
            return
        await self._barrier.wait(path)
        self._durable.pop(key, None)
        self._durable[key] = n
        if len(self._durable) > KNOWN_VERSIONS:
            del self._durable[next(iter(self._durable))]

    def _next(self, n: int) -> int:
        """A number above `n`. That it starts from the time is for people, and for lock files that were lost."""
        self._last_n = max(self._clock.now_ms() * 1_000_000, self._last_n + 1, n + 1)
        return self._last_n

    # -- the rest ---------------------------------------------------------------------------------------------------

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[Listed]:
        try:
            return await asyncio.get_running_loop().run_in_executor(None, self._list, prefix, after, limit)
        except OSError as error:
            raise StoreUnavailable(str(error)) from error

    def _list(self, prefix: str, after: str, limit: int) -> Sequence[Listed]:
        page: list[Listed] = []
        for key in self._walk(prefix[: prefix.rfind("/") + 1], prefix, after):
            if len(page) >= limit:
                break
            path = self._path(key)
            found = self._version(key, path)
            if found is slots.TORN:
                with self._locks.shared(key):
                    there = self._read_locked(key, path)
                found = there.version if there is not None else None
            if found is not None:
                page.append(Listed(key, found))
        return page

    def _version(self, key: str, path: str) -> str | slots.Torn | None:
        if is_record(key):
            there = self._read(key, path)
            return there.version if isinstance(there, Found) else there
        try:
            return str(os.stat(path).st_mtime_ns)
        except FileNotFoundError:
            return None

    def _walk(self, directory: str, prefix: str, after: str) -> Iterator[str]:
        """Keys in order. `directory` is "" or ends with a slash, as do the names of directories when they are sorted:
        "a-b" comes before "a/b"."""
        try:
            with os.scandir(os.path.join(self._root, directory)) as entries:
                names = sorted(e.name + "/" if e.is_dir() else e.name for e in entries if not e.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            key = directory + name
            if not name.endswith("/"):
                if key.startswith(prefix) and key > after:
                    yield key
            elif (key.startswith(prefix) or prefix.startswith(key)) and (key > after or after.startswith(key)):
                yield from self._walk(key, prefix, after)

    async def close(self) -> None:
        self._barrier.close()
        self._locks.close()
        os.close(self._root_fd)

    def _path(self, key: str) -> str:
        assert _is_key(key), f"not a key: {key!r}"
        return f"{self._root}/{key}"

    async def _under_lock(self, key: str, kind: int, act: Callable[..., T], *args: object) -> T:
        loop = asyncio.get_running_loop()
        started, tries = loop.time(), 0
        while (fd := self._locks.take(key, kind)) is None:
            if loop.time() - started > WAIT_MS / 1000:
                raise StoreUnavailable(f"another process holds the lock of {key}")
            await asyncio.sleep(0 if tries < 3 else 0.001)
            tries += 1
        try:
            return act(*args)
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)


def _is_key(key: str) -> bool:
    """Nothing hidden (which covers ".." too) and no empty part: a path below the root, and only one path."""
    return key[:1] not in ("", "/", ".") and "/." not in key and "//" not in key and key[-1] != "/" and "\0" not in key


def _open_root(root: str) -> int:
    try:
        os.mkdir(root)
        above = os.open(os.path.dirname(root), os.O_RDONLY)
        try:
            os.fsync(above)
        finally:
            os.close(above)
    except FileExistsError:
        pass
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY)


def _read_all(fd: int, size: int) -> bytes:
    body = os.pread(fd, size, 0)
    while len(body) < size and (more := os.pread(fd, size - len(body), len(body))):
        body += more
    return body


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)
