"""Who is asking. A token file names principals; without one nobody is asked, and only loopback is served.

One `principal token` a line; `#` begins a comment. The file must be its owner's alone (mode 0600). It is read again
when it changes; a change that cannot be read leaves the tokens as they were: a slip of an editor locks nobody out.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from itertools import takewhile
from pathlib import Path

from frazil.access.policy import Principal
from frazil.errors import BadInput, Unauthenticated

TOKEN_BYTES_MIN = 16

log = logging.getLogger(__name__)


class Nobody:
    """Authentication is off: everybody who gets here is the same, nameless."""

    required = False

    def identify(self, authorization: bytes | None, client: str | None) -> Principal:
        return Principal(client=client)

    def refresh(self) -> None:
        pass


class Tokens:
    """Bearer tokens from a file, kept and compared as SHA-256: how long a look-up takes tells nothing about a token."""

    required = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = _stamp(path)
        self._principals = read_tokens(path)
        self._complained = self._seen

    def identify(self, authorization: bytes | None, client: str | None) -> Principal:
        if authorization is None:
            raise Unauthenticated("a token is needed: send Authorization: Bearer TOKEN")
        scheme, _, token = authorization.partition(b" ")
        name = self._principals.get(hashlib.sha256(token.strip()).digest())
        if name is None or scheme.lower() != b"bearer":
            raise Unauthenticated("the token is not known here")
        return Principal(name=name, client=client)

    def refresh(self) -> None:
        """Read the file again if it changed."""
        now = _stamp(self._path)
        if now == self._seen:
            return
        try:
            self._principals = read_tokens(self._path)
            self._seen = now
            log.info("the token file was read again", extra={"principals": len(set(self._principals.values()))})
        except BadInput as error:
            if now != self._complained:
                log.error("the token file changed and is not used: %s", error.message)  # noqa: TRY400
            self._complained = now


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode


def read_tokens(path: str) -> dict[bytes, str]:
    """The principals by the SHA-256 of their token."""
    try:
        with Path(path).open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise BadInput(f"the token file {path} can be read by others (mode {mode:04o}): chmod 600 {path}")
            lines = file.read().decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the token file {path} cannot be read: {error}") from None
    found: dict[bytes, str] = {}
    for number, line in enumerate(lines, 1):
        # A comment begins with the sign after white space: inside a token it is a character like any other.
        words = list(takewhile(lambda word: not word.startswith("#"), line.split()))
        if not words:
            continue
        if len(words) != 2:
            raise BadInput(f"the token file {path}, line {number}: one `principal token` a line")
        principal, token = words
        if len(token.encode()) < TOKEN_BYTES_MIN:
            raise BadInput(f"the token file {path}, line {number}: a token has at least {TOKEN_BYTES_MIN} characters")
        digest = hashlib.sha256(token.encode()).digest()
        if found.setdefault(digest, principal) != principal:
            raise BadInput(f"the token file {path}, line {number}: this token is another principal's too")
    if not found:
        raise BadInput(f"the token file {path} holds no token")
    return found


Authentication = Nobody | Tokens
