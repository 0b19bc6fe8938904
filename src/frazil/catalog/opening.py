"""Opening a catalog at a root: made once, and never served from another root than the one it was made at."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.catalog import formats, registry
from frazil.catalog.context import Context, Identity
from frazil.catalog.files import Place
from frazil.effects import Effects
from frazil.errors import BadInput, Unavailable
from frazil.names import Location
from frazil.store import keys
from frazil.store.base import Applied, Overtaken, Store

VERSION = 1
SHARD_COUNT = 16


async def open_context(
    store: Store, effects: Effects, *, name: str, root: str, allowed: Sequence[Place] = (), writable: bool = True
) -> Context:
    """The catalog at `root`, made if it is not there and the store may be written. Two openers at once agree on one."""
    if not writable and await store.get(keys.HEAD) is None:
        raise BadInput(f"there is no catalog at {root}, and none can be made on a store that fails its conformance run")
    identity = await _identity(store, effects, name, root)
    if Location(identity.root) != Location(root):
        raise BadInput(
            f"this catalog was made at {identity.root} and is opened at {root}: its tables' locations are absolute. "
            "Serve it from where it was made"
        )
    await _there(store, keys.HEAD, registry.empty_head(effects.ids.stamp()))
    return Context(store, effects, identity, allowed=allowed)


async def _identity(store: Store, effects: Effects, name: str, root: str) -> Identity:
    fresh = Identity(VERSION, name, root, effects.ids.uuid4(), effects.ids.uuid4(), SHARD_COUNT)
    body = await _there(store, keys.CATALOG, formats.encode(fresh))
    return formats.decode(body, Identity, VERSION, keys.CATALOG)


async def _there(store: Store, key: str, body: bytes) -> bytes:
    """What is at a key, ours if nothing was."""
    if (found := await store.get(key)) is not None:
        return found.body
    match await store.put_new(key, body):
        case Applied():
            return body
        case Overtaken(now) if now is not None:
            return now.body
        case _:
            raise Unavailable(f"{key} could not be written")
