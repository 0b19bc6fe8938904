"""Idempotency keys and what is bound to them: a key's form and age, the canonical hash of a request (§3.7, §3.8)."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec
import orjson
import rfc8785

from frazil import limits
from frazil.catalog.formats import iso
from frazil.errors import BadInput, CommitStateUnknown, Conflict
from frazil.grants import Grant
from frazil.store import keys

_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

REUSED = "Idempotency-Key reused with different request payload"


class Request(msgspec.Struct, frozen=True):
    """What a key is bound to on acceptance."""

    #: The idempotency key in small letters, or a server-made UUIDv7 where the client sent none.
    id: str
    #: Whether the client sent it: only then can anybody repeat the request.
    keyed: bool
    operation: str
    resource: str
    hash: str
    principal: str | None

    @property
    def key_hash(self) -> str:
        return keys.key_hash(self.id)


def parse_key(text: str, now_ms: int) -> str:
    """The canonical key; 400 for a wrong form or one from the future, 500 for one too old to be judged."""
    key = text.lower()
    if len(text) != 36 or not _UUID7.fullmatch(key):
        raise BadInput(f"Idempotency-Key must be a UUIDv7 in its 36-character form, not {text!r}")
    made_ms = keys.uuid7_ms(key)
    if made_ms > now_ms + limits.key_ahead_ms:
        raise BadInput(
            f"Idempotency-Key {key} was made at {iso(made_ms)} by its own clock, more than five minutes ahead of "
            f"this server's {iso(now_ms)}: set the clocks right"
        )
    if made_ms < now_ms - retention_ms():
        # Its first try may have committed, and the record of that may be gone: neither run it nor say that it failed.
        raise CommitStateUnknown(
            f"Idempotency-Key {key} was made at {iso(made_ms)}, longer ago than keys are kept; it is not run again, "
            "and whether it was is no longer known"
        )
    return key


def retention_ms() -> int:
    return limits.key_lifetime_ms + limits.key_grace_ms


def check_same(request: Request, operation: str, resource: str, hash_: str, principal: str | None) -> None:
    """The recorded request behind a key must be this one."""
    if (operation, resource, hash_, principal) != (
        request.operation,
        request.resource,
        request.hash,
        request.principal,
    ):
        raise Conflict(REUSED)


def bind(
    grant: Grant, operation: str, resource: str, body: bytes, key: str | None, fresh_id: str, now_ms: int
) -> Request:
    return Request(
        id=parse_key(key, now_ms) if key is not None else fresh_id,
        keyed=key is not None,
        operation=operation,
        resource=resource,
        hash=request_hash(body),
        principal=grant.principal,
    )


# -- the canonical hash --------------------------------------------------------------------------------------------

# Where a value may begin: a number that orjson would write otherwise. Inside a string it only costs the slow way.
_OTHERWISE = re.compile(rb"[:\[,]\s*(?:-?[0-9]+[.eE]|[0-9]{20}|-[0-9]{19})")


def request_hash(body: bytes) -> str:
    """SHA-256 of the RFC 8785 form of the body; integers beyond 2^53 enter as exact decimals. Every field counts."""
    return hashlib.sha256(canonical(body)).hexdigest()


def canonical(body: bytes) -> bytes:
    # Clever: for ASCII text without floats or huge integers, sorting with orjson *is* RFC 8785 (key order, escapes and
    # integers agree), at a few µs for a commit. `canonical_plainly` is the twin that the tests hold against it.
    if not body:
        return b""
    if body.isascii() and b"\\u" not in body and body[:1] in b"{[" and not _OTHERWISE.search(body):
        try:
            return orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            pass
    return canonical_plainly(body)


def canonical_plainly(body: bytes) -> bytes:
    try:
        marked = rfc8785.dumps(_exact(msgspec.json.decode(body)))
        return _DECIMALS.sub(rb"\1", marked).replace(2 * _MARK, _MARK)
    except (msgspec.MsgspecError, rfc8785.CanonicalizationError, RecursionError, ValueError) as error:
        raise BadInput(f"the request body has no canonical JSON form: {error}") from None


_EXACT_MAX = 2**53 - 1
_MARK = "\ue000".encode()
_DECIMALS = re.compile(b'"' + _MARK + b"(-?[0-9]+)" + _MARK + b'"')


def _exact(value: Any) -> Any:
    """RFC 8785 writes numbers as doubles; an integer that no double holds goes through as a string between two marks.

    A mark of the client's own is doubled on the way, so that no string of its reads as a number.
    """
    match value:
        case bool():
            return value
        case int() if abs(value) > _EXACT_MAX:
            return f"\ue000{value}\ue000"
        case str():
            return value.replace("\ue000", "\ue000\ue000")
        case dict():
            return {_exact(key): _exact(item) for key, item in value.items()}
        case list():
            return [_exact(item) for item in value]
        case _:
            return value
