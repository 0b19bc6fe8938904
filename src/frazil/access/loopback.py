"""Without authentication, only programs of this machine's own users may ask: no web page, whoever opened it.

A page can make a browser send requests to 127.0.0.1. What it cannot do is choose the headers that say so: `Origin`,
`Sec-Fetch-Site`, and `Host`, which holds the page's own name where its DNS was pointed at loopback (rebinding).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from frazil.errors import Forbidden

_PLACE = rb"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?"
_HOST = re.compile(_PLACE, re.IGNORECASE)
_ORIGIN = re.compile(rb"https?://" + _PLACE, re.IGNORECASE)

#: How a browser says that no other site made it ask.
_OWN = (b"same-origin", b"none")


def check(fields: Mapping[bytes, bytes]) -> None:
    """Refuse what did not come from a program on this machine."""
    host = fields.get(b"host", b"")
    if not _HOST.fullmatch(host):
        raise Forbidden(
            f"the Host {_shown(host)} is not loopback: without a token file this server answers 127.0.0.1, localhost "
            "and [::1] only"
        )
    origin = fields.get(b"origin")
    if origin is not None:
        if not _ORIGIN.fullmatch(origin):
            raise Forbidden(f"the Origin {_shown(origin)} is not loopback: web pages may not use this server")
    elif fields.get(b"sec-fetch-site", b"none").lower() not in _OWN:
        raise Forbidden("a web page of another site may not use this server")


def _shown(value: bytes) -> str:
    return repr(value[:80].decode("latin-1"))
