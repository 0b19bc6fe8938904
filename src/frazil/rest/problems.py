"""Errors as answers, in Iceberg's model. The only place that turns one into the other."""

from __future__ import annotations

import logging

import msgspec

from frazil.errors import CommitStateUnknown, FrazilError, Internal, Unavailable
from frazil.rest.answers import Answer, answer

log = logging.getLogger(__name__)

_encoder = msgspec.json.Encoder()


class MethodNotAllowed(FrazilError):
    """The path is known, the method is not one of its."""

    kind = "bad_input"
    status = 405
    type = "UnsupportedOperationException"
    grpc = "UNIMPLEMENTED"

    def __init__(self, message: str, allowed: list[str]) -> None:
        super().__init__(message)
        self.allowed = allowed


class HandlerTimeout(CommitStateUnknown):
    """The change is still being worked on; it may yet be applied."""

    status = 504
    grpc = "DEADLINE_EXCEEDED"


def rendered(error: FrazilError) -> Answer:
    said: dict[str, str | int] = {"message": error.message, "type": error.type, "code": error.status}
    if error.subtype is not None:
        said["subtype"] = error.subtype
    lines: list[bytes] = []
    if error.retry_after_s is not None:
        lines.append(b"retry-after: %d" % error.retry_after_s)
    if error.status == 401:
        lines.append(b"www-authenticate: Bearer")
    if isinstance(error, MethodNotAllowed):
        lines.append(b"allow: " + ", ".join(error.allowed).encode())
    return answer(error.status, _encoder.encode({"error": said}), *lines)


def unexpected(error: BaseException, route: str, request_id: bytes) -> Answer:
    """A fault of ours: told whole to the log, to the caller only that it was."""
    id = request_id.decode()
    log.error("a request failed unexpectedly", exc_info=error, extra={"request": id, "route": route})
    return rendered(Internal(f"the server failed on this request; its log has the reason under request id {id}"))


def overdue(mutation: bool, deadline_s: float) -> Answer:
    """The handler has had its time. What it was changing may still come about."""
    if mutation:
        return rendered(HandlerTimeout(f"no outcome after {deadline_s:g} s; whether it is applied is not known yet"))
    return rendered(Unavailable(f"no answer after {deadline_s:g} s"))
