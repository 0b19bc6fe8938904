"""Answers as bytes: a head that lacks only what differs by request (date, request id), and a body in segments."""

from __future__ import annotations

import http
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"

#: Below this a compressed body is no smaller on the wire.
GZIP_BYTES_MIN = 1024

_STATUS = {status: f"HTTP/1.1 {status} {status.phrase}\r\n".encode() for status in http.HTTPStatus}
_BODILESS = (204, 304)

_encoder = msgspec.json.Encoder()


class Answer:
    """`head` is the status line and header lines, each ended; the blank line is not part of it.

    What is `settled` was made with the client's Accept-Encoding in mind already.
    """

    __slots__ = ("body", "head", "lines", "settled", "size", "status")

    def __init__(self, status: int, body: Sequence[bytes], lines: Sequence[bytes], *, settled: bool = False) -> None:
        self.status = status
        self.body = body
        self.lines = lines
        self.settled = settled
        self.size = sum(map(len, body))
        parts = [_STATUS[http.HTTPStatus(status)]]
        for line in lines:
            parts += (line, b"\r\n")
        if status not in _BODILESS:
            parts.append(b"content-length: %d\r\n" % self.size)
        self.head = b"".join(parts)


def answer(
    status: int, body: bytes | Sequence[bytes] = b"", *lines: bytes, kind: bytes = JSON, settled: bool = False
) -> Answer:
    if status in _BODILESS:
        return Answer(status, (), lines, settled=settled)
    parts = (body,) if isinstance(body, bytes) else body
    return Answer(status, parts, (b"content-type: " + kind, *lines), settled=settled)


def json_answer(value: Any, *lines: bytes, status: int = 200) -> Answer:
    return answer(status, _encoder.encode(value), *lines)


NO_CONTENT = answer(204)


# -- gzip ------------------------------------------------------------------------------------------------------------


class Encodings:
    """What a client's Accept-Encoding allows, remembered by its text: there are few of those."""

    def __init__(self) -> None:
        self._known: dict[bytes, bool] = {}

    def gzip(self, accepted: bytes | None) -> bool:
        if accepted is None:
            return False
        known = self._known.get(accepted)
        if known is None:
            if len(self._known) > 256:
                self._known.clear()
            known = self._known[accepted] = _takes_gzip(accepted)
        return known


def _takes_gzip(accepted: bytes) -> bool:
    weights: dict[bytes, float] = {}
    for item in accepted.lower().split(b","):
        name, *settings = [part.strip() for part in item.split(b";")]
        weight = 1.0
        for setting in settings:
            if setting.startswith(b"q="):
                try:
                    weight = float(setting[2:])
                except ValueError:
                    weight = 0.0
        weights[name] = weight
    return weights.get(b"gzip", weights.get(b"x-gzip", weights.get(b"*", 0.0))) > 0


def gzipped(parts: Sequence[bytes]) -> bytes:
    """Level 1: the first reader of each new version waits for it."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join([*map(packer.compress, parts), packer.flush()])


def compressed(plain: Answer) -> Answer:
    lines = (*plain.lines, b"content-encoding: gzip", b"vary: accept-encoding")
    return Answer(plain.status, (gzipped(plain.body),), lines, settled=True)
