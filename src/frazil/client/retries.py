"""When a request may be sent again, and after how long. Decisions only; nothing here waits or sends."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from frazil.client.failures import ConnectionLost, NotReached
from frazil.effects import Chance
from frazil.errors import FrazilError, ReplayFailed

FIRST_MS = 200
MOST_MS = 5_000

_PASSING = {429, 502, 503, 504}


def is_passing(failure: FrazilError, *, mutation: bool, reached: bool) -> bool:
    """Whether the same request may fare better in a moment.

    `reached`: whether this server has answered before. One that never did is not waited for: it is not there.
    """
    if isinstance(failure, NotReached):
        return reached
    if isinstance(failure, ConnectionLost):
        return True
    if isinstance(failure, ReplayFailed):
        return False
    # A mutation's 500 may be an outcome the server could not find out; its key lets it look again. A read's is a fault.
    return failure.status in _PASSING or (mutation and failure.status == 500)


def may_be_applied(failure: FrazilError, *, told: bool) -> bool:
    """Whether a mutation that was answered like this may have happened. `told`: a Frazil said so, not a proxy."""
    if isinstance(failure, NotReached):
        return False
    if isinstance(failure, ConnectionLost):
        return True
    return failure.status >= 500 and not (told and failure.status == 503)


def is_outcome(failure: FrazilError, *, told: bool) -> bool:
    """Whether this answer to a repeat is the outcome of the operation under its key, so of the first try as well.

    Who asks, and whether the repeat arrived whole, is judged before anything is looked up under the key.
    """
    return told and failure.status < 500 and failure.status != 408 and failure.kind not in ("identity", "forbidden")


def wait_ms(tries: int, retry_after_ms: int | None, chance: Chance) -> int:
    """Twice as long every turn, half of it by chance; at least as long as the server asks for."""
    most_ms = min(FIRST_MS << min(tries - 1, 16), MOST_MS)
    waited_ms = most_ms // 2 + chance.jitter_ms(most_ms // 2)
    return waited_ms if retry_after_ms is None else retry_after_ms + chance.jitter_ms(most_ms // 2)


def parse_retry_after(text: str | None, now_ms: int) -> int | None:
    """Milliseconds from now, of a number of seconds or a date."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return int(text) * 1000
    try:
        return max(0, round(parsedate_to_datetime(text).timestamp() * 1000) - now_ms)
    except (ValueError, OverflowError):
        return None
