"""Who may do what: a pure decision. Today whoever is known may do everything; each route asks here all the same."""

from __future__ import annotations

import msgspec

from frazil.errors import Forbidden
from frazil.grants import Grant
from frazil.names import Namespace


class Principal(msgspec.Struct, frozen=True):
    """Who asks, as the credential says. `name` is None while authentication is off."""

    tenant: str = "default"
    name: str | None = None
    #: What the client says of itself. Recorded, never trusted.
    client: str | None = None


class Resource(msgspec.Struct, frozen=True):
    """What is asked about: the server, a catalog in it, a namespace, a table."""

    catalog: str | None = None
    namespace: Namespace | None = None
    table: str | None = None


def decide(principal: Principal, action: str, resource: Resource) -> Grant | Forbidden:
    """What `principal` may do, as the grant that an operation takes; or why not."""
    return Grant(principal.tenant, principal.name, principal.client)
