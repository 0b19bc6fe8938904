"""S3 and what speaks its protocol, through obstore.

obstore is called synchronously, in threads: its asynchronous mode costs twice as much and can abort the process at its
end. Its own retries are off, because a repeated conditional write is answered by the write before it: a write that was
won would be reported as lost. What an answer means is decided by the guard, which reads the object back.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit

from frazil.errors import BadInput, Unavailable
from frazil.limits import store_attempt_s
from frazil.store.base import (
    Applied,
    Backend,
    Found,
    Listed,
    RawPut,
    Refused,
    StoreUnavailable,
    Unchanged,
    Unclear,
)

try:
    import obstore
    from obstore.exceptions import (
        AlreadyExistsError,
        BaseError,
        NotFoundError,
        NotModifiedError,
        PreconditionError,
        UnknownConfigurationKeyError,
    )
    from obstore.store import S3Store
except ModuleNotFoundError as missing:  # an extra
    raise BadInput("s3:// needs obstore: pip install 'frazil[s3]'") from missing

T = TypeVar("T")

#: Options of `open_s3` that have obstore's name; the rest is below. Credentials that are not given come from the
#: environment, a web identity token, or the machine, in obstore's order.
CREDENTIALS = ("access_key_id", "secret_access_key", "session_token", "region", "endpoint")
OPTIONS = (*CREDENTIALS, "path_style", "timeout_ms", "connect_timeout_ms", "threads")
CONNECT_TIMEOUT_MS = 2_000
THREADS = 32

#: obstore raises the built-in error as well as its own.
MISSING = (NotFoundError, FileNotFoundError)
FAULTS = (BaseError, OSError, ValueError)

_TELLING = (
    re.compile(r"status code: (\d{3} [A-Za-z -]+)"),
    re.compile(r"<Code>(\w+)</Code>"),
    re.compile(r"kind: (Connect|Timeout|Request|Decode)\b"),
)


#: How often a body is read again whose E-Tag is another's.
_READS_MAX = 8


class CloudBackend:
    """A bucket, or the part of it under a prefix. The E-Tag is the version."""

    def __init__(self, store: S3Store, threads: int = THREADS) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="frazil-s3")

    async def get(self, key: str) -> Found | None:
        try:
            return await self._run(self._get, key, None)
        except MISSING:
            return None
        except FAULTS as error:
            raise StoreUnavailable(said(error)) from None

    async def get_if_changed(self, key: str, version: str) -> Found | Unchanged | None:
        try:
            return await self._run(self._get, key, version)
        except NotModifiedError:
            return Unchanged()
        except MISSING:
            return None
        except FAULTS as error:
            raise StoreUnavailable(said(error)) from None

    def _get(self, key: str, version: str | None) -> Found:
        """A body with its own version. A store may answer with one object's E-Tag and the next one's body while it is
        overwritten (a gateway over files did): where E-Tags are MD5 sums, a pair that does not fit is read again.
        The same pair twice is a store whose E-Tags are something else."""
        before: Found | None = None
        for _ in range(_READS_MAX):
            got = obstore.get(self._store, key, options={"if_none_match": version} if version is not None else None)
            found = Found(got.bytes().to_bytes(), _version(got.meta))
            if found == before or _fits(found):
                return found
            before = found
        raise StoreUnavailable(f"{key} changes faster than it can be read whole")

    async def create(self, key: str, body: bytes) -> RawPut:
        return await self._put(key, body, "create")

    async def swap(self, key: str, body: bytes, version: str) -> RawPut:
        return await self._put(key, body, {"e_tag": version})

    async def _put(self, key: str, body: bytes, mode: Any) -> RawPut:
        try:
            done = await self._run(obstore.put, self._store, key, body, mode=mode, use_multipart=False)
            return Applied(_version(done))
        except (AlreadyExistsError, PreconditionError, *MISSING):
            return Refused()  # a 409 is among these too: the guard takes no refusal for a verdict
        except (*FAULTS, StoreUnavailable) as error:
            return Unclear(said(error))

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[Listed]:
        try:
            return await self._run(self._list, prefix, after, limit)
        except FAULTS as error:
            raise StoreUnavailable(said(error)) from None

    def _list(self, prefix: str, after: str, limit: int) -> Sequence[Listed]:
        # obstore's prefixes are directories: the rest of ours is compared here.
        directory = prefix[: prefix.rfind("/")] if "/" in prefix else None
        page: list[Listed] = []
        for chunk in obstore.list(self._store, directory, offset=after or None, chunk_size=limit):
            for item in chunk:
                key = item["path"]
                if key.startswith(prefix):
                    page.append(Listed(key, _version(item)))
                if len(page) == limit or (key > prefix and not key.startswith(prefix)):
                    return page
        return page

    async def delete(self, key: str) -> None:
        try:
            await self._run(obstore.delete, self._store, key)
        except MISSING:
            pass
        except FAULTS as error:
            raise StoreUnavailable(said(error)) from None

    async def _run(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: call(*args, **named))

    async def close(self) -> None:
        # A request in flight ends by itself within its time-out: threads that were abandoned would abort the exit.
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)


def open_s3(uri: str, options: Mapping[str, str]) -> Backend:
    """`s3://bucket/prefix`. Asks the bucket once, so that a wrong name or credential is heard of here."""
    place = urlsplit(uri)
    if not place.netloc:
        raise BadInput(f"{uri} names no bucket")
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise BadInput(f"An S3 store has no option {', '.join(unknown)}; it has {', '.join(OPTIONS)}")
    endpoint = options.get("endpoint", "")
    path_style = options.get("path_style", "true" if endpoint else "false").lower() == "true"
    settings: dict[str, Any] = {name: options[name] for name in CREDENTIALS if options.get(name)}
    try:
        store = S3Store(
            place.netloc,
            prefix=place.path.strip("/") or None,
            virtual_hosted_style_request=not path_style,
            conditional_put="etag",
            client_options={
                "timeout": f"{int(options.get('timeout_ms', store_attempt_s * 1000))}ms",
                "connect_timeout": f"{int(options.get('connect_timeout_ms', CONNECT_TIMEOUT_MS))}ms",
                "allow_http": endpoint.startswith("http://"),
            },
            retry_config={"max_retries": 0},
            **settings,
        )
        next(iter(obstore.list(store, chunk_size=1)), None)
    except UnknownConfigurationKeyError as error:
        raise BadInput(f"{uri} cannot be opened: {error}") from None
    except FAULTS as error:
        raise _not_opened(uri, said(error)) from None
    return CloudBackend(store, int(options.get("threads", THREADS)))


def _not_opened(uri: str, reason: str) -> BadInput | Unavailable:
    if "NoSuchBucket" in reason or "404" in reason:
        return BadInput(f"{uri} cannot be opened: there is no such bucket ({reason})")
    if "403" in reason or "401" in reason or "Credential" in reason:
        return BadInput(f"{uri} cannot be opened: the credentials are missing or refused ({reason})")
    return Unavailable(f"{uri} cannot be opened: the store does not answer ({reason})")


def said(error: Exception) -> str:
    """What went wrong, without what obstore quotes: access keys, signatures, addresses of credential endpoints."""
    text = str(error)
    parts = [type(error).__name__]
    for pattern in (
        r"status code: (\d{3} [A-Za-z -]+)",
        r"<Code>(\w+)</Code>",
        r"kind: (Connect|Timeout|Request|Decode)\b",
    ):
        parts += re.findall(pattern, text)[:1]
    if "credential" in text.lower() or "169.254." in text:
        parts.append("NoCredentials")
    return " ".join(part.strip() for part in parts)


def _version(meta: Mapping[str, Any]) -> str:
    version = meta["e_tag"]
    if not isinstance(version, str):
        raise StoreUnavailable("the store gave no E-Tag")
    return version


def _fits(found: Found) -> bool:
    """Whether the E-Tag is the body's MD5 sum, as with most stores and most bodies."""
    return found.version.strip('"') == hashlib.md5(found.body, usedforsecurity=False).hexdigest()
