"""Where a server is, as people write it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from frazil.errors import BadInput

#: Engines are given the address with this; people paste it here as well.
_MOUNT = "/iceberg"


class Address(NamedTuple):
    scheme: str
    host: str
    port: int
    #: In front of every path, for a server behind a proxy; empty or `/…` without an end slash.
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def parse_address(text: str) -> Address:
    """`http://host:port`, `https://host`, `http://host:port/iceberg`."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadInput(f"the server's address cannot be read: {error}") from None
    if parts.username is not None or parts.password is not None:
        # Not repeated: it holds a password.
        raise BadInput("the server's address holds a user or password: a token is given apart from it")
    if parts.scheme not in ("http", "https") or not host:
        raise BadInput(f"the server's address must look like http://host:port, not {text!r}")
    if parts.query or parts.fragment:
        raise BadInput(f"the server's address has no query or fragment: {text!r}")
    path = parts.path.rstrip("/").removesuffix(_MOUNT)
    return Address(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), path)
