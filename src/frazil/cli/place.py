"""A catalog's root as an operator's command meets it, with no server in between."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from frazil.names import Location
from frazil.store import keys
from frazil.store.base import Backend
from frazil.store.open import open_backend

if TYPE_CHECKING:
    from frazil.catalog.context import Identity
    from frazil.config import Config


def backend(config: Config) -> Backend:
    s3 = config.s3
    secrets = {name: getattr(s3, name) for name in ("access_key_id", "secret_access_key", "session_token")}
    options = {name: secret.reveal() for name, secret in secrets.items() if secret is not None}
    if s3.endpoint is not None:
        options["endpoint"] = s3.endpoint
    if s3.region is not None:
        options["region"] = s3.region
    if s3.path_style is not None:
        options["path_style"] = "true" if s3.path_style else "false"
    return open_backend(config.root, sync=config.sync, options=options)


def directory(root: str) -> Path | None:
    """The local directory that a root is; None for a bucket."""
    scheme, colon, _ = root.partition(":")
    if not colon or "/" in scheme:
        return Path(root).absolute()
    return Path(unquote(urlsplit(root).path)) if scheme == "file" else None


def has_catalog(directory: Path) -> bool:
    return (directory / keys.CATALOG).exists()


def identity(config: Config) -> Identity | None:
    """`catalog.json`, None where there is none."""
    from frazil.catalog import formats, opening
    from frazil.catalog.context import Identity

    async def read() -> bytes | None:
        opened = backend(config)
        try:
            found = await opened.get(keys.CATALOG)
        finally:
            await opened.close()
        return None if found is None else found.body

    body = asyncio.run(read())
    return None if body is None else formats.decode(body, Identity, opening.VERSION, keys.CATALOG)


def is_made_at(found: Identity, config: Config) -> bool:
    """Whether a server would serve it from here: tables' locations are absolute."""
    from frazil.serve import root_uri

    return Location(found.root) == Location(root_uri(config.root))
