"""From the URI of a root to its backend."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from frazil.errors import BadInput
from frazil.store.base import Backend

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def open_backend(root: str, *, sync: bool = True, options: Mapping[str, str] = NO_OPTIONS) -> Backend:
    """A directory (a path, or file:/…) or a bucket (s3://…). `sync` is for directories, `options` for buckets."""
    scheme, colon, _ = root.partition(":")
    if root and (not colon or "/" in scheme):
        return _open_local(root, sync)
    if scheme == "file":
        place = urlsplit(root)
        if place.netloc not in ("", "localhost") or not place.path.startswith("/"):
            raise BadInput(f"{root} is not a root Frazil knows: file:/absolute/path is")
        return _open_local(unquote(place.path), sync)
    if scheme == "s3":
        from frazil.store.cloud import open_s3

        return open_s3(root, options)
    raise BadInput(f"{root!r} is not a root Frazil knows: a directory, file:/… or s3://bucket/prefix")


def _open_local(path: str, sync: bool) -> Backend:
    from frazil.store.local import LocalBackend

    return LocalBackend(path, sync=sync)
