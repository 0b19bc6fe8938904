"""What a handler gets: the site it serves, what the request's first line said, who asks, and the body as it came."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping

import msgspec

from frazil import limits, names
from frazil.catalog.catalog import Catalog, Mutation
from frazil.errors import BadInput
from frazil.grants import Grant
from frazil.names import Namespace, TableName
from frazil.rest.routing import Match
from frazil.rest.tables import Rendered


class Site(msgspec.Struct, frozen=True):
    """What the routes serve, the same for every request."""

    catalog: Catalog
    name: str
    root: str
    #: Between the levels of a namespace, as advertised: percent-encoded.
    separator: str
    #: What clients need to reach the tables' files, by the names of their settings.
    file_io: Mapping[str, str]
    version: str
    rendered: Rendered
    #: The advertised endpoints.
    endpoints: list[str]
    metrics: Callable[[], bytes]
    #: Why nothing can be written to the store; None where it keeps its contract.
    unfit: str | None = None


class Call:
    __slots__ = ("body", "fields", "grant", "gzip", "match", "site")

    def __init__(
        self, site: Site, match: Match, fields: Mapping[bytes, bytes], grant: Grant, body: bytes, gzip: bool
    ) -> None:
        self.site = site
        self.match = match
        self.fields = fields
        self.grant = grant
        self.body = body
        #: Whether the client takes gzip.
        self.gzip = gzip

    @property
    def catalog(self) -> Catalog:
        return self.site.catalog

    @property
    def namespace(self) -> Namespace:
        return self.match.namespace

    @property
    def table(self) -> TableName:
        assert self.match.table is not None, "the route has a table in its path"
        return self.match.table

    @property
    def key(self) -> str | None:
        key = self.fields.get(b"idempotency-key")
        return key.decode("latin-1") if key is not None else None

    def mutation(self, *, admin: bool = False) -> Mutation:
        return Mutation(self.body, self.key, admin)

    def query(self, name: str) -> str | None:
        value = self.match.query.get(name)
        return names.decoded(value) if value is not None else None

    def flag(self, name: str) -> bool:
        match (self.query(name) or "false").lower():
            case "true":
                return True
            case "false":
                return False
            case other:
                raise BadInput(f"{name} must be true or false, not {other!r}")

    def page(self) -> tuple[str, int | None]:
        """Where the page begins and how much it holds at most; None: everything at once."""
        token, size = self.query("pageToken"), self.query("pageSize")
        most = limits.page_max
        if size is not None:
            if not size.isascii() or not size.isdecimal() or len(size) > 9 or int(size) == 0:
                raise BadInput(f"pageSize must be a whole number from 1, not {size!r}")
            most = min(int(size), limits.page_max)
        return ("", None) if token is None else (_last_name(token), most)


def page_token(last: str) -> str:
    """Continues behind a name, whatever comes and goes meanwhile."""
    return base64.urlsafe_b64encode(b"1" + last.encode()).decode().rstrip("=")


def _last_name(token: str) -> str:
    if not token:
        return ""
    try:
        plain = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        plain = ""
    if len(plain) < 2 or plain[0] != "1":
        raise BadInput(f"the pageToken {token[:80]!r} is none of this server's")
    return plain[1:]
