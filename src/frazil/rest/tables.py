"""Tables as answers, made once for each version of a table and each way of showing it.

A metadata file never changes, so neither does what is made of it. The metadata's own slices go into the answer as they
are; nothing is encoded again, and a table that is compressed is not compressed a second time.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping

import orjson

from frazil import limits
from frazil.catalog.reading import Page
from frazil.iceberg.metadata import TableMetadata
from frazil.rest.answers import GZIP_BYTES_MIN, Answer, answer, gzipped

#: Larger bodies are compressed in a thread, and sent without being joined.
LARGE_BYTES = 128 * 1024

_VARY = b"vary: accept-encoding"

#: Answers to listings kept at once.
_LISTINGS_MAX = 64


class Shown:
    """One version of a table in one representation."""

    __slots__ = ("_packing", "_unchanged", "etag", "packed", "plain", "size")

    def __init__(self, parts: list[bytes], etag: bytes) -> None:
        self.etag = etag
        self.size = sum(map(len, parts))
        body = parts if self.size > LARGE_BYTES else [b"".join(parts)]
        self.plain = answer(200, body, b"etag: " + etag, _VARY, settled=True)
        self._unchanged: Answer | None = None
        self.packed: Answer | None = None
        self._packing: asyncio.Future[bytes] | None = None

    @property
    def unchanged(self) -> Answer:
        if self._unchanged is None:
            self._unchanged = answer(304, b"", b"etag: " + self.etag, _VARY, settled=True)
        return self._unchanged

    def pack(self) -> Answer:
        self.packed = self._answer(gzipped(self.plain.body))
        return self.packed

    async def pack_aside(self) -> Answer:
        """In a thread, once for all who wait."""
        if self._packing is None:
            self._packing = asyncio.get_running_loop().run_in_executor(None, gzipped, self.plain.body)
        self.packed = self.packed or self._answer(await asyncio.shield(self._packing))
        return self.packed

    def _answer(self, body: bytes) -> Answer:
        return answer(200, body, b"etag: " + self.etag, b"content-encoding: gzip", _VARY, settled=True)


class Listings:
    """Listings as answers, by the page they show: the same page is the same object for as long as nothing changes."""

    def __init__(self) -> None:
        self._answers: OrderedDict[int, tuple[Page, Answer]] = OrderedDict()

    def get(self, page: Page, make: Callable[[], Answer]) -> Answer:
        known = self._answers.get(id(page))
        if known is None or known[0] is not page:
            # The page is kept with its answer, so its id is nobody else's meanwhile.
            known = self._answers[id(page)] = (page, make())
            if len(self._answers) > _LISTINGS_MAX:
                self._answers.popitem(last=False)
        return known[1]


class Rendered:
    """The answers of this process, the least recently used ones forgotten."""

    def __init__(self, config: Mapping[str, str], most_bytes: int = limits.metadata_cache_bytes) -> None:
        self.listings = Listings()
        self._config = orjson.dumps(dict(config))
        self._generation = hashlib.sha256(self._config).digest()
        self._most_bytes = most_bytes
        self._bytes = 0
        self._shown: OrderedDict[tuple[str, bool], Shown] = OrderedDict()

    def get(self, location: str, metadata: TableMetadata, *, refs_only: bool) -> Shown:
        key = (location, refs_only)
        shown = self._shown.get(key)
        if shown is not None:
            self._shown.move_to_end(key)
            return shown
        parts = self.parts(location, metadata.refs_only_parts() if refs_only else metadata.parts())
        shown = self._shown[key] = Shown(parts, self._etag(location, refs_only))
        self._bytes += shown.size
        while self._bytes > self._most_bytes and len(self._shown) > 1:
            self._bytes -= self._shown.popitem(last=False)[1].size
        return shown

    def parts(self, location: str | None, metadata: list[bytes]) -> list[bytes]:
        """A LoadTableResult. A staged table has no location."""
        start = b"{" if location is None else b'{"metadata-location":' + orjson.dumps(location) + b","
        return [start + b'"metadata":', *metadata, b',"config":' + self._config + b"}"]

    def _etag(self, location: str, refs_only: bool) -> bytes:
        """Weak, because gzip is another sequence of bytes of the same content. Delegation changes nothing yet."""
        text = f"{location}\n{'refs' if refs_only else 'all'}\n".encode() + self._generation
        return b'W/"' + hashlib.sha256(text).hexdigest()[:32].encode() + b'"'


def matches(condition: bytes, etag: bytes) -> bool:
    """If-None-Match, compared weakly."""
    if condition == etag:
        return True
    bare = etag.removeprefix(b"W/")
    return any(
        item.strip() in (b"*", etag) or item.strip().removeprefix(b"W/") == bare for item in condition.split(b",")
    )


async def shown_to(shown: Shown, *, gzip: bool, fresh: bool = False) -> Answer:
    """Plain or compressed. What a commit just made is not compressed when it is large: one reader, who hardly looks."""
    if not gzip or shown.size < GZIP_BYTES_MIN:
        return shown.plain
    if shown.packed is not None:
        return shown.packed
    if shown.size <= LARGE_BYTES:
        return shown.pack()
    return shown.plain if fresh else await shown.pack_aside()
