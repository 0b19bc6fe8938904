"""What a client learns of a failure: the server's own error as the class it was raised as there, or one of these.

FrazilError
├── NotReached          no connection, so nothing was sent
├── ConnectionLost      the connection broke between the request and the end of its answer
├── NotFrazil           the answer makes no sense: something else listens there
└── CommitStateUnknown  a mutation was sent, no answer says what became of it, and it is not repeated any more
    └── WindowExpired   … because its key must not be used any longer
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from frazil import errors
from frazil.errors import CommitStateUnknown, FrazilError


class NotReached(FrazilError):
    kind = "busy"
    status = 503
    type = "NotReachedException"
    grpc = "UNAVAILABLE"


class ConnectionLost(FrazilError):
    kind = "unknown"
    status = 503
    type = "ConnectionLostException"
    grpc = "UNAVAILABLE"


class NotFrazil(FrazilError):
    kind = "bad_input"
    status = 421
    type = "UnexpectedAnswerException"
    grpc = "FAILED_PRECONDITION"


class WindowExpired(CommitStateUnknown):
    type = "IdempotencyWindowExpired"


def failure_of(status: int, body: bytes) -> FrazilError:
    """The error that an answer tells, as an instance of its class in `errors`, with what the server said on it."""
    told = _model(body)
    if told is None:
        return _untold(status)
    message, type_, subtype = told.get("message"), told.get("type"), told.get("subtype")
    failure = _class(status, type_, subtype)(message if isinstance(message, str) else f"the server answered {status}")
    failure.status = status  # type: ignore[misc]
    if isinstance(type_, str):
        failure.type = type_  # type: ignore[misc]
    failure.subtype = subtype if isinstance(subtype, str) else None  # type: ignore[misc]
    return failure


def is_told(body: bytes) -> bool:
    """Whether the answer is in Iceberg's error model, so that the server itself wrote it, not a proxy before it."""
    return _model(body) is not None


def with_more(failure: FrazilError, text: str) -> FrazilError:
    failure.message = f"{failure.message} ({text})"
    failure.args = (failure.message,)
    return failure


def _model(body: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(body)
    except ValueError:
        return None
    error = told.get("error") if isinstance(told, dict) else None
    return error if isinstance(error, dict) else None


def _class(status: int, type_: object, subtype: object) -> type[FrazilError]:
    """The class with this status, type and subtype, or as much of that as there is."""
    tree = list(_tree(FrazilError))
    for wanted in ((status, type_, subtype), (status, type_, None), (None, type_, None), (status, None, None)):
        for each in tree:
            has = (each.status, each.type, each.subtype)
            # A bare 500 is the server's fault; that the state of a commit is unknown has to be said.
            if all(want in (None, is_) for want, is_ in zip(wanted, has, strict=True)) and (
                wanted != (500, None, None) or each is errors.Internal
            ):
                return each
    return errors.BadInput if 400 <= status < 500 else errors.Internal


def _tree(kind: type[FrazilError]) -> Iterator[type[FrazilError]]:
    """Parents first, and only what `errors` draws: a server raises nothing else."""
    for each in kind.__subclasses__():
        if each.__module__ == errors.__name__:
            yield each
            yield from _tree(each)


def _untold(status: int) -> FrazilError:
    """An answer that no Frazil wrote: a proxy's, or another server's."""
    if 300 <= status < 400:
        return NotFrazil(f"the server answered {status}, which sends elsewhere: give the address that it sends to")
    failure = _class(status, None, None)(f"the server answered {status} and did not say why")
    failure.status = status  # type: ignore[misc]
    return failure
