"""One request, one whole answer, over a connection of its own.

A kept connection may have been closed by the server while it lay idle; a mutation sent into it would have an outcome
that nobody knows. Opening one costs a round trip, which the few requests of a client can afford.

The standard library takes a head that breaks off for a whole one, a 204 without its end for a success. Here an answer
counts once its head has ended and its body is as long as the head says.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any, NamedTuple

from frazil.client.address import Address
from frazil.client.failures import ConnectionLost, NotReached

CONNECT_S = 10.0


class Answer(NamedTuple):
    status: int
    #: By name in small letters.
    headers: Mapping[str, str]
    body: bytes


def exchange(
    address: Address, method: str, target: str, headers: Mapping[str, str], body: bytes | None, wait_s: float
) -> Answer:
    """`NotReached` where nothing can have been sent, `ConnectionLost` where something may have been."""
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=min(CONNECT_S, wait_s))
    connection.response_class = _WholeResponse
    try:
        try:
            connection.connect()
        except OSError as error:
            raise NotReached(f"no server answers at {address}: {_reason(error)}") from error
        connection.sock.settimeout(wait_s)
        try:
            connection.request(method, address.path + target, body, {**headers, "Connection": "close"})
            response = connection.getresponse()
            whole = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionLost(f"the connection to {address} broke: {_reason(error)}") from error
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, whole)
    finally:
        connection.close()


class _WholeResponse(http.client.HTTPResponse):
    def begin(self) -> None:
        lines = _Lines(self.fp)
        self.fp = lines  # type: ignore[assignment]
        super().begin()
        if lines.last not in (b"\r\n", b"\n"):
            raise http.client.IncompleteRead(b"")
        if self.length is None and not self.chunked and self.status not in (204, 304):
            raise EndlessAnswer


class _Lines:
    """A connection's bytes; remembers the last line that was read as one."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.last = b""

    def readline(self, most: int = -1) -> bytes:
        self.last = self._file.readline(most)
        return self.last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class EndlessAnswer(http.client.HTTPException):
    """Neither a length nor chunks: where it breaks off looks like its end."""


def _reason(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "no answer in time"
        case http.client.RemoteDisconnected():
            return "closed without an answer"
        case http.client.IncompleteRead():
            return "closed in the middle of the answer"
        case EndlessAnswer():
            return "the answer does not say how long it is"
        case http.client.HTTPException():
            return f"what came back is not HTTP ({type(error).__name__})"
        case OSError(strerror=str(text)):
            return text[:1].lower() + text[1:]
        case _:
            return str(error) or type(error).__name__
