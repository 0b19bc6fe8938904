"""Requests to a Frazil server, repeated where that is safe.

A mutation carries an Idempotency-Key, one for the operation however often it is sent, and is sent again after a broken
connection, 429, 500, 502, 503 and 504. Promised: never without the server's `idempotency-key-lifetime`, never once that
is over, never another body under the same key, and no longer than the caller's patience. Then the failure says whether
the mutation may have been applied. Reads need no key.

Time, chance and identity come from outside.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from frazil.client import retries
from frazil.client.address import Address
from frazil.client.failures import NotFrazil, WindowExpired, failure_of, is_told, with_more
from frazil.client.lifetime import parse_lifetime
from frazil.client.wire import Answer, exchange
from frazil.effects import Chance, Clock, Ids
from frazil.errors import BadInput, CommitStateUnknown, FrazilError

#: Longer than a server works on one request: its answer is worth more than another attempt.
PATIENCE_S = 60.0

#: A try in the last moments of somebody's patience still gets this long.
_TRY_MS_MIN = 1_000

_VISIBLE = re.compile(r"[\x21-\x7e]+")


class World(NamedTuple):
    """What a client needs from outside: production has the real things, a test its own."""

    clock: Clock
    ids: Ids
    chance: Chance
    sleep: Callable[[float], None]


class Again(NamedTuple):
    """Told before a request is sent once more."""

    failure: FrazilError
    wait_ms: int


class Client:
    def __init__(
        self,
        address: Address,
        world: World,
        *,
        token: str | None = None,
        agent: str = "frazil",
        patience_s: float = PATIENCE_S,
        on_again: Callable[[Again], None] | None = None,
    ) -> None:
        if token is not None and not _VISIBLE.fullmatch(token):
            raise BadInput("the token is empty or holds characters that no token has; it is not shown here")
        self.address = address
        self._world = world
        self._headers = {"Accept": "application/json", "User-Agent": agent}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._patience_ms = round(patience_s * 1000)
        self._on_again = on_again
        self._reached = False
        self._config: dict[str, Any] | None = None

    def config(self) -> dict[str, Any]:
        """What the server says about itself, asked once."""
        if self._config is None:
            config = self.get("/iceberg/v1/config")
            if not isinstance(config, dict) or not isinstance(config.get("overrides"), dict):
                raise NotFrazil(f"{self.address} answers, but not as an Iceberg catalog does")
            self._config = config
        return self._config

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        return _document(self._send(_Request("GET", _target(path, query), None, None)), self.address)

    def change(self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None) -> Any:
        """One mutation, one key. What the server answered, None where it has nothing to say."""
        lifetime_ms = parse_lifetime(self.config().get("idempotency-key-lifetime"))
        key = None if lifetime_ms is None else _Key(self._world.ids.uuid7(), lifetime_ms)
        encoded = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        return _document(self._send(_Request(method, _target(path, query), encoded, key)), self.address)

    def _send(self, request: _Request) -> Answer:
        since = _Since(self._world.clock)
        unclear = False
        for tries in itertools.count(1):
            tried = self._try(request, max(_TRY_MS_MIN, self._patience_ms - since.ms()))
            if isinstance(tried, Answer):
                return tried
            unclear = unclear or (request.mutation and retries.may_be_applied(tried.failure, told=tried.told))
            if not retries.is_passing(tried.failure, mutation=request.mutation, reached=self._reached):
                decided = not unclear or retries.is_outcome(tried.failure, told=tried.told)
                raise tried.failure if decided else _unknown(tried.failure, "it is not repeated")
            wait_ms = retries.wait_ms(tries, tried.retry_after_ms, self._world.chance)
            if (end := self._end(request, since.ms(), wait_ms, tries)) is not None:
                raise end.raised(tried.failure, unclear)
            if self._on_again is not None:
                self._on_again(Again(tried.failure, wait_ms))
            self._world.sleep(wait_ms / 1000)
            # The machine may have slept longer than it was asked to.
            if (end := self._end(request, since.ms(), 0, tries)) is not None:
                raise end.raised(tried.failure, unclear)
        raise AssertionError

    def _try(self, request: _Request, wait_ms: int) -> Answer | _Failed:
        headers = request.headers(self._headers)
        try:
            answer = exchange(self.address, request.method, request.target, headers, request.body, wait_ms / 1000)
        except FrazilError as failure:
            return _Failed(failure, False, None)
        self._reached = True
        if 200 <= answer.status < 300:
            return answer
        retry_after_ms = retries.parse_retry_after(answer.headers.get("retry-after"), self._world.clock.now_ms())
        return _Failed(failure_of(answer.status, answer.body), is_told(answer.body), retry_after_ms)

    def _end(self, request: _Request, passed_ms: int, wait_ms: int, tries: int) -> _End | None:
        """Why there is no other attempt after that wait, or None."""
        if request.mutation and request.key is None:
            return _End("this server advertises no idempotency keys, so it is not repeated")
        if request.key is not None and passed_ms + wait_ms >= request.key.lifetime_ms:
            lifetime = _spoken(request.key.lifetime_ms)
            return _End(f"its idempotency key is good for {lifetime}, so it is not repeated any more", expired=True)
        if passed_ms + wait_ms > self._patience_ms:
            times = f"tried {tries} times" if tries > 1 else "tried once"
            waits = f", and the next try would be in {_spoken(wait_ms)}" if wait_ms > retries.MOST_MS else ""
            return _End(f"given up after {_spoken(passed_ms)}, {times}{waits}")
        return None


class _Key(NamedTuple):
    text: str
    lifetime_ms: int


class _Request(NamedTuple):
    method: str
    target: str
    body: bytes | None
    key: _Key | None

    @property
    def mutation(self) -> bool:
        return self.method not in ("GET", "HEAD")

    def headers(self, always: Mapping[str, str]) -> dict[str, str]:
        headers = dict(always)
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.key is not None:
            headers["Idempotency-Key"] = self.key.text
        return headers


class _Failed(NamedTuple):
    """One try. `told`: a Frazil said so, not a proxy in front of it."""

    failure: FrazilError
    told: bool
    retry_after_ms: int | None


class _Since:
    """Time since a request was first sent, by the clock that says more: one stands still while a machine sleeps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mark, self._at_ms = clock.mark(), clock.now_ms()

    def ms(self) -> int:
        return max(self._clock.mark() - self._mark, self._clock.now_ms() - self._at_ms)


class _End(NamedTuple):
    why: str
    expired: bool = False

    def raised(self, failure: FrazilError, unclear: bool) -> FrazilError:
        if not unclear:
            return with_more(failure, self.why)
        return _unknown(failure, self.why, WindowExpired if self.expired else CommitStateUnknown)


def _unknown(failure: FrazilError, why: str, kind: type[FrazilError] = CommitStateUnknown) -> FrazilError:
    return kind(f"whether it was applied is not known: {failure.message} ({why})")


def _document(answer: Answer, address: Address) -> Any:
    if not answer.body:
        return None
    try:
        return json.loads(answer.body)
    except ValueError as error:
        raise NotFrazil(f"{address} answered {answer.status} with something that is not JSON") from error


def _target(path: str, query: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(query, quote_via=quote, safe='')}" if query else path


def _spoken(ms: int) -> str:
    for unit, size in (("h", 3_600_000), ("min", 60_000)):
        if ms >= 2 * size or (ms >= size and ms % size == 0):
            return f"{ms // size} {unit}"
    return f"{ms / 1000:.3g} s"
