"""Names that users give: namespaces, tables, locations. Parsed once at the edge, canonical inside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

import msgspec

from frazil import limits
from frazil.errors import BadInput

#: The levels of a namespace, outermost first; never empty where it names one.
Namespace = tuple[str, ...]

#: Between the levels in a URL unless configured otherwise; accepted always.
UNIT_SEPARATOR = "\x1f"

#: A namespace of ours at the top level: history and lineage as tables.
RESERVED = "system"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class TableName(msgspec.Struct, frozen=True):
    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


def unambiguous(namespace: Namespace, name: str | None = None) -> str:
    """A namespace or table as one string that nothing else reads like: what an idempotency key is bound to."""
    levels = "/".join(quote(level, safe="") for level in namespace)
    return levels if name is None else f"{levels}:{quote(name, safe='')}"


def checked_name(text: object, what: str) -> str:
    """One level or one table name; every character but control characters is allowed."""
    if not isinstance(text, str) or not text:
        raise BadInput(f"{what} must be a non-empty string, not {text!r}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadInput(f"{what} is not valid Unicode: {text!r}") from None
    if size > limits.name_bytes_max:
        raise BadInput(f"{what} is {size} bytes long; at most {limits.name_bytes_max} are allowed")
    if _CONTROL.search(text):
        raise BadInput(f"{what} holds a control character: {text!r}")
    return text


def checked_namespace(levels: object) -> Namespace:
    if not isinstance(levels, list | tuple) or not levels:
        raise BadInput(f"a namespace must be a non-empty list of names, not {levels!r}")
    if len(levels) > limits.namespace_levels_max:
        raise BadInput(f"a namespace has at most {limits.namespace_levels_max} levels, not {len(levels)}")
    return tuple(checked_name(level, "a namespace level") for level in levels)


def namespace_in_path(raw: str, separator: str) -> list[str]:
    """The levels in one raw (still percent-encoded) path segment or query value.

    Split before decoding: a level may itself hold an encoded separator's decoded form (a dot, say).
    `separator` is as advertised, percent-encoded.
    """
    parts = re.split(f"(?:{re.escape(separator)}|%1F)", raw, flags=re.IGNORECASE)
    return [level for part in parts for level in decoded(part).split(UNIT_SEPARATOR)]


def decoded(raw: str) -> str:
    """Percent-decoding of one path segment. A bare plus stays a plus; bytes that are no UTF-8 are refused."""
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        raise BadInput(f"the path segment {raw!r} is not UTF-8") from None


class Location:
    """An absolute URI, compared by whole path segments; the text is kept as it was given."""

    __slots__ = ("_parts", "text")

    def __init__(self, text: str) -> None:
        scheme, colon, rest = text.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) or not rest.startswith("/"):
            raise BadInput(f"a location must be an absolute URI, not {text!r}")
        if _CONTROL.search(text) or "?" in text or "#" in text:
            raise BadInput(f"a location has no query, fragment or control character: {text!r}")
        authority, path = "", rest
        if rest.startswith("//"):
            authority, slash, path = rest[2:].partition("/")
            path = slash + path
        if "//" in path:
            raise BadInput(f"a location must not hold an empty path segment: {text!r}")
        if len(text) > limits.location_chars_max or any(
            len(segment.encode()) > limits.name_bytes_max for segment in path.split("/")
        ):
            raise BadInput(
                f"a location has at most {limits.location_chars_max} characters, and {limits.name_bytes_max} bytes "
                f"between two slashes: {text[:120]!r}…"
            )
        segments = [segment for segment in path.split("/") if segment]
        if any(unquote(segment) in (".", "..") for segment in segments):
            raise BadInput(f"a location must not step through '.' or '..': {text!r}")
        self.text = text
        self._parts = (scheme.lower(), authority, *segments)

    def contains(self, other: Location) -> bool:
        return other._parts[: len(self._parts)] == self._parts

    def relative(self, other: Location) -> str:
        """The path from here to something inside."""
        assert self.contains(other)
        return "/".join(other._parts[len(self._parts) :])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and other._parts == self._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __str__(self) -> str:
        return self.text


def within(location: Location, places: Sequence[Location]) -> bool:
    return any(place.contains(location) for place in places)
