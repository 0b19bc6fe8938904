"""What was decided about a request, as data. Operations take a `Grant`; they never look for who is asking."""

from __future__ import annotations

import msgspec


class Grant(msgspec.Struct, frozen=True):
    tenant: str = "default"
    #: Who asks, as the credential says; None while authentication is off.
    principal: str | None = None
    #: The client's own description of itself (User-Agent): recorded, never trusted.
    client: str | None = None


#: The server itself, for what nobody asked for: sweeps and owed steps.
SERVER = Grant(principal="frazil")
