"""Metadata files: written once under their attempt's own name, kept decoded by location."""

from __future__ import annotations

import gzip
from collections import OrderedDict
from collections.abc import Sequence

from frazil import limits
from frazil.errors import BadInput, Corrupt, Internal, NotFound, Unavailable
from frazil.iceberg.metadata import TableMetadata
from frazil.names import Location
from frazil.store.base import Applied, Overtaken, Store, Undecided


class Place:
    """A location prefix and the store that holds what lies under it."""

    __slots__ = ("location", "store")

    def __init__(self, location: Location, store: Store) -> None:
        self.location = location
        self.store = store


class Files:
    """Reads and writes metadata files anywhere the catalog may: under its root and the allowed locations."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._cache: OrderedDict[str, tuple[TableMetadata, int]] = OrderedDict()
        self._cached_bytes = 0

    def allowed(self, location: Location) -> bool:
        return self._place(location) is not None

    def _place(self, location: Location) -> tuple[Store, str] | None:
        for place in self._places:
            if place.location.contains(location):
                key = place.location.relative(location)
                # Hidden names are the local directory's own: drafts and locks.
                return None if any(segment.startswith(".") for segment in key.split("/")) else (place.store, key)
        return None

    def _find(self, text: str) -> tuple[Store, str]:
        found = self._place(Location(text))
        if found is not None:
            return found
        raise BadInput(f"{text} lies neither under the catalog's root nor under an allowed location")

    def cached(self, location: str) -> TableMetadata | None:
        if (known := self._cache.get(location)) is not None:
            self._cache.move_to_end(location)
            return known[0]
        return None

    async def read(self, location: str) -> TableMetadata:
        """The metadata at a location; `NotFound` where there is no such file."""
        if (known := self.cached(location)) is not None:
            return known
        store, key = self._find(location)
        found = await store.get(key)
        if found is None:
            raise NotFound(f"there is no metadata file at {location}")
        if len(found.body) > limits.metadata_bytes_max:
            raise BadInput(f"{location} is {len(found.body)} bytes; at most {limits.metadata_bytes_max} are read")
        metadata = TableMetadata.parse(found.body)
        self.keep(location, metadata, len(found.body))
        return metadata

    async def current(self, location: str, name: object) -> TableMetadata:
        """The metadata that a pointer names. That it cannot be read is no fault of who asks."""
        try:
            return await self.read(location)
        except (NotFound, BadInput) as error:
            raise Corrupt(f"the metadata of {name} cannot be read: {error.message}") from None

    async def write(self, location: str, metadata: TableMetadata) -> None:
        """Put a file under a name that only this attempt has. Raises when it is not known to be there."""
        store, key = self._find(location)
        body = metadata.encode()
        size = len(body)
        if metadata.compressed:
            body = gzip.compress(body, compresslevel=6, mtime=0)
        match await store.put_new(key, body):
            case Applied():
                self.keep(location, metadata, size)
            case Undecided(reason):
                raise Unavailable(f"the metadata file could not be confirmed ({reason}); nothing was applied")
            case Overtaken():
                raise Internal(f"another writer used the attempt's own file name {location}; nothing was applied")

    def keep(self, location: str, metadata: TableMetadata, size: int) -> None:
        if location in self._cache:
            return
        self._cache[location] = (metadata, size)
        self._cached_bytes += size
        while self._cached_bytes > limits.metadata_cache_bytes and len(self._cache) > 1:
            _, (_, gone) = self._cache.popitem(last=False)
            self._cached_bytes -= gone


def file_name(number: int, key_hash: str, attempt: str, compressed: bool) -> str:
    """Z1: the attempt is part of the name, so two attempts never meet in one file."""
    return f"{number:05}-{key_hash}-{attempt}{'.gz' if compressed else ''}.metadata.json"
