"""Every way Frazil says no, in one tree. A class fixes what the caller must do; the message says what and where.

FrazilError                     kind        HTTP  Iceberg type                        gRPC
├── BadInput                    bad_input    400  BadRequestException                 INVALID_ARGUMENT
├── Unauthenticated             identity     401  NotAuthorizedException              UNAUTHENTICATED
├── Forbidden                   forbidden    403  ForbiddenException                  PERMISSION_DENIED
├── NotFound                    not_found    404  NotFoundException                   NOT_FOUND
│   ├── NoSuchNamespace                           NoSuchNamespaceException
│   ├── NoSuchTable                               NoSuchTableException
│   └── NoSuchWarehouse                           NoSuchWarehouseException
├── Unsupported                 bad_input    406  UnsupportedOperationException       UNIMPLEMENTED
├── RequestTimeout              bad_input    408  RequestTimeoutException             DEADLINE_EXCEEDED
├── Conflict                    conflict     409  CommitFailedException               ABORTED
│   ├── AlreadyExists                             AlreadyExistsException              ALREADY_EXISTS
│   └── NamespaceNotEmpty                         NamespaceNotEmptyException          FAILED_PRECONDITION
├── TooLarge                    bad_input    413  BadRequestException                 RESOURCE_EXHAUSTED
├── Unprocessable               bad_input    422  UnprocessableEntityException        INVALID_ARGUMENT
├── HeadersTooLarge             bad_input    431  BadRequestException                 RESOURCE_EXHAUSTED
├── TooBusy                     busy         429  TooManyRequestsException            RESOURCE_EXHAUSTED
├── Unavailable                 busy         503  ServiceUnavailableException         UNAVAILABLE
├── CommitStateUnknown          unknown      500  CommitStateUnknownException         UNKNOWN
└── Internal                    internal     500  InternalServerError                 INTERNAL
    ├── ReplayFailed                              … subtype idempotency_replay_failed
    └── Corrupt                                   a stored object that cannot be read

`Conflict` and its children are *known not applied*: Iceberg clients delete their files on a 409. `Unavailable` and
`TooBusy` are known not applied and worth repeating; `CommitStateUnknown` is the only honest answer to a write whose
outcome nobody knows.
"""

from __future__ import annotations

from typing import ClassVar


class FrazilError(Exception):
    """The root; never raised itself."""

    kind: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    type: ClassVar[str] = "InternalServerError"
    grpc: ClassVar[str] = "INTERNAL"
    subtype: ClassVar[str | None] = None
    #: Seconds after which repeating the very same request makes sense; None says nothing about repeating.
    retry_after_s: int | None = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadInput(FrazilError):
    """The request can never work as it is."""

    kind = "bad_input"
    status = 400
    type = "BadRequestException"
    grpc = "INVALID_ARGUMENT"


class Unauthenticated(FrazilError):
    """No valid credential came with the request."""

    kind = "identity"
    status = 401
    type = "NotAuthorizedException"
    grpc = "UNAUTHENTICATED"


class Forbidden(FrazilError):
    """The caller is known and may not do this."""

    kind = "forbidden"
    status = 403
    type = "ForbiddenException"
    grpc = "PERMISSION_DENIED"


class NotFound(FrazilError):
    """What the request names is not there."""

    kind = "not_found"
    status = 404
    type = "NotFoundException"
    grpc = "NOT_FOUND"


class NoSuchNamespace(NotFound):
    type = "NoSuchNamespaceException"


class NoSuchTable(NotFound):
    type = "NoSuchTableException"


class NoSuchWarehouse(NotFound):
    type = "NoSuchWarehouseException"


class Unsupported(FrazilError):
    """The server does not do this, for anybody."""

    kind = "bad_input"
    status = 406
    type = "UnsupportedOperationException"
    grpc = "UNIMPLEMENTED"


class RequestTimeout(FrazilError):
    """The request did not arrive whole in time; nothing of it was run."""

    kind = "bad_input"
    status = 408
    type = "RequestTimeoutException"
    grpc = "DEADLINE_EXCEEDED"


class Conflict(FrazilError):
    """Known not applied; the caller's picture of the table is old."""

    kind = "conflict"
    status = 409
    type = "CommitFailedException"
    grpc = "ABORTED"


class AlreadyExists(Conflict):
    type = "AlreadyExistsException"
    grpc = "ALREADY_EXISTS"


class NamespaceNotEmpty(Conflict):
    type = "NamespaceNotEmptyException"
    grpc = "FAILED_PRECONDITION"


class TooLarge(FrazilError):
    """The body, or what it inflates to, is over its bound."""

    kind = "bad_input"
    status = 413
    type = "BadRequestException"
    grpc = "RESOURCE_EXHAUSTED"


class Unprocessable(FrazilError):
    """Well-formed, and contradicts itself."""

    kind = "bad_input"
    status = 422
    type = "UnprocessableEntityException"
    grpc = "INVALID_ARGUMENT"


class HeadersTooLarge(FrazilError):
    """The head of the request is over its bound."""

    kind = "bad_input"
    status = 431
    type = "BadRequestException"
    grpc = "RESOURCE_EXHAUSTED"


class TooBusy(FrazilError):
    """Refused before any effect because too much is in flight."""

    kind = "busy"
    status = 429
    type = "TooManyRequestsException"
    grpc = "RESOURCE_EXHAUSTED"
    retry_after_s = 1


class Unavailable(FrazilError):
    """Known not applied, and the same request may well succeed in a moment."""

    kind = "busy"
    status = 503
    type = "ServiceUnavailableException"
    grpc = "UNAVAILABLE"
    retry_after_s = 1


class CommitStateUnknown(FrazilError):
    """A write was sent and nobody knows whether it landed. Repeating with the same key finds out."""

    kind = "unknown"
    status = 500
    type = "CommitStateUnknownException"
    grpc = "UNKNOWN"


class Internal(FrazilError):
    """The server is at fault."""


class ReplayFailed(Internal):
    """The first answer is known to exist and can no longer be produced; the request is never run again."""

    subtype = "idempotency_replay_failed"


class Corrupt(Internal):
    """A stored object cannot be read: broken, or written by a newer version."""
