"""What the operations of one catalog share in a process."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from frazil.catalog.files import Files, Place
from frazil.catalog.pointers import Pointers
from frazil.catalog.receipts import Settlements
from frazil.catalog.registry import Registry
from frazil.catalog.turns import Turns
from frazil.effects import Effects
from frazil.names import Location
from frazil.store import keys
from frazil.store.base import Store


class Identity(msgspec.Struct, frozen=True):
    """`catalog.json`: made once with the catalog, never changed."""

    version: int
    name: str
    root: str
    catalog_uuid: str
    log_uuid: str
    shard_count: int


class Context:
    def __init__(
        self,
        store: Store,
        effects: Effects,
        identity: Identity,
        *,
        allowed: Sequence[Place] = (),
    ) -> None:
        self.store = store
        self.effects = effects
        self.identity = identity
        self.root = Location(identity.root)
        self.files = Files([Place(self.root, store), *allowed])
        self.registry = Registry(store, effects)
        self.pointers = Pointers(store)
        self.turns = Turns(effects)
        self.settlements = Settlements(store, effects)

    def default_location(self, table_uuid: str) -> str:
        return f"{self.root.text.rstrip('/')}/{keys.table(table_uuid)}"
