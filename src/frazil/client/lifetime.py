"""How long a server keeps idempotency keys, as it advertises it."""

from __future__ import annotations

import re

_DURATION = re.compile(
    r"P(?:(?P<weeks>\d+)W|(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+)(?:[.,](?P<fraction>\d+))?S)?)?)",
    re.IGNORECASE | re.ASCII,
)


def parse_lifetime(text: object) -> int | None:
    """The milliseconds of an ISO-8601 duration. None where there is none to rely on: then keys count as unsupported.

    Years and months have no fixed length and count as nothing to rely on.
    """
    if not isinstance(text, str) or (match := _DURATION.fullmatch(text)) is None:
        return None
    weeks, days, hours, minutes, seconds = (
        int(match[unit] or 0) for unit in ("weeks", "days", "hours", "minutes", "seconds")
    )
    milliseconds = int((match["fraction"] or "0").ljust(3, "0")[:3])
    total = ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
    return total or None
