"""The composition root: from a configuration to a running server, and to its end.

One worker is this very process; several are forked from it (`rest/workers.py`).

Ends with 0 when it was asked to, with 2 when it could not begin (one line on standard error says why), with 1 when it
had to be cut short.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import importlib.metadata
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import uvloop

from frazil import effects as real
from frazil import telemetry
from frazil.access.authn import Nobody, Tokens
from frazil.catalog.catalog import Catalog
from frazil.catalog.context import Context
from frazil.catalog.files import Place
from frazil.catalog.opening import open_context
from frazil.config import Address, Config
from frazil.effects import Effects, EventLoopTasks
from frazil.errors import BadInput, FrazilError
from frazil.names import Location
from frazil.rest import workers
from frazil.rest.app import App, endpoints
from frazil.rest.call import Site
from frazil.rest.server import Server
from frazil.rest.tables import Rendered
from frazil.store import conform
from frazil.store.base import Backend, Found, Listed, RawPut, Unchanged
from frazil.store.guard import Guard
from frazil.store.open import open_backend
from frazil.telemetry import Metrics

log = logging.getLogger("frazil")

SWEEP_S = 30

#: Enough for a store that checks a condition without a lock to let two writers win.
ADMISSION_ROUNDS = 8
ADMISSION_WRITERS = 8

Announce = Callable[[str], None]


def serve(config: Config, announce: Announce | None = None) -> int:
    """Run until a signal ends it. `announce` is told the address, as http://HOST:PORT, once requests are answered."""
    telemetry.start_log(config.log.format, config.log.file, config.log.file_bytes, config.log.files)
    _keep_memory()
    metrics_directory = telemetry.metrics_directory(tempfile.gettempdir())
    sockets: list[socket.socket] = []
    try:
        if config.token_file is not None:
            Tokens(config.token_file)  # heard of here, not from a worker
        sockets = workers.listen(config.listen, config.workers)
        address = Address(config.listen.host, sockets[0].getsockname()[1])

        def ready() -> None:
            log.info("serving", extra={"address": f"http://{address}", "root": config.root, "workers": config.workers})
            if announce is not None:
                announce(f"http://{address}")

        if config.workers == 1:
            return _Worker(config, metrics_directory, 0, sockets[0]).run(ready)

        def work(number: int, listening: socket.socket, lifeline: int, ready: Callable[[], None]) -> int:
            return _Worker(config, metrics_directory, number, listening, lifeline).run(ready)

        return workers.Supervisor(sockets, work, time.monotonic).run(ready)
    except FrazilError as error:
        sys.stderr.write(f"frazil: {error.message}\n")
        return 2
    finally:
        for listening in sockets:
            listening.close()
        shutil.rmtree(metrics_directory, ignore_errors=True)


def _keep_memory() -> None:
    """Large buffers come and go with every answer: glibc shall keep them, not give them back each time (25 times)."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in ((-1, 256 << 20), (-2, 64 << 20), (-3, 32 << 20)):  # trim threshold, top pad, mmap
            mallopt(option, value)


# -- one worker --------------------------------------------------------------------------------------------------------


class _Worker:
    def __init__(
        self,
        config: Config,
        metrics_directory: str,
        number: int,
        listening: socket.socket,
        lifeline: int | None = None,
    ) -> None:
        self.config = config
        self.metrics_directory = metrics_directory
        self.listening = listening
        self.number = number
        self.lifeline = lifeline

    def run(self, ready: Callable[[], None]) -> int:
        loop = uvloop.new_event_loop()
        try:
            return loop.run_until_complete(self._run(ready))
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    async def _run(self, ready: Callable[[], None]) -> int:
        stop = self._until_told()
        effects = real.system(_failed_later)
        metrics = Metrics(self.metrics_directory, self.number)
        unfit = await why_unfit(self.config)
        context = await open_catalog(self.config, effects, metrics, writable=unfit is None)
        authentication = Tokens(self.config.token_file) if self.config.token_file is not None else Nobody()
        app = App(
            _site(self.config, context, metrics, unfit),
            authentication,
            metrics,
            tick=time.perf_counter,
            instance=effects.ids.uuid4()[:8],
            in_flight=self.config.in_flight,
        )
        server = Server(app, effects.clock)
        await server.start(self.listening)
        gc.collect()
        gc.freeze()
        sweeping = asyncio.create_task(_sweep(app.site.catalog) if unfit is None else stop.wait())
        ready()
        await stop.wait()
        await server.stop()
        sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeping
        assert isinstance(effects.tasks, EventLoopTasks)
        await effects.tasks.drain()
        await context.store.close()
        metrics.close()
        return 0

    def _until_told(self) -> asyncio.Event:
        """SIGTERM, or the end of the process that started this one. Told twice, it is cut short."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        signals = 0

        def told() -> None:
            nonlocal signals
            signals += 1
            if signals > 1:
                os._exit(1)
            stop.set()

        loop.add_signal_handler(signal.SIGTERM, told)
        if self.lifeline is None:
            loop.add_signal_handler(signal.SIGINT, told)
        else:
            # A terminal's ^C goes to all processes; the one that started the workers stops them.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            loop.add_reader(self.lifeline, self._orphaned, loop, stop)
        return stop

    def _orphaned(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
        assert self.lifeline is not None
        loop.remove_reader(self.lifeline)
        stop.set()
        shutil.rmtree(self.metrics_directory, ignore_errors=True)


def _failed_later(error: BaseException) -> None:
    log.error("work put off until after an answer failed; it is taken up again", exc_info=error)


async def _sweep(catalog: Catalog) -> None:
    """Complete what crashed operations owe, of this server or another."""
    while True:
        try:
            if steps := await catalog.sweep():
                log.info("completed what was owed", extra={"steps": steps})
        except FrazilError as error:
            log.warning("the sweep did not end well: %s", error.message)
        except Exception:
            log.exception("the sweep failed")
        await asyncio.sleep(SWEEP_S)


# -- what it serves ----------------------------------------------------------------------------------------------------


def root_uri(root: str) -> str:
    """The root as tables' locations have it: absolute, without a slash at its end."""
    scheme, colon, _ = root.partition(":")
    if colon and "/" not in scheme and scheme != "file":
        return root.rstrip("/")
    path = unquote(urlsplit(root).path) if scheme == "file" and colon else root
    # As written, symbolic links included: whoever moves what they lead to keeps the catalog where it was made.
    return "file://" + os.path.abspath(path)  # noqa: PTH100


async def why_unfit(config: Config) -> str | None:
    """What of the store contract the root's store does not keep; None where it does.

    A bucket is admitted by a short conformance run at each start, because what stands behind an endpoint may change.
    A directory is this program's own code, which the tests have admitted.
    """
    if not config.root.startswith("s3:"):
        return None

    def open_store() -> Backend:
        return open_backend(config.root, sync=config.sync, options=_s3_options(config))

    report = await conform.check(open_store, rounds=ADMISSION_ROUNDS, writers=ADMISSION_WRITERS)
    if report.admitted:
        return None
    failed = ", ".join(check.name for check in report.checks if not check.passed)
    log.error("the store is not fit for writing: only reads are served", extra={"failed": failed})
    return f"the store under {config.root} fails its conformance run ({failed}), so nothing is written to it"


async def open_catalog(config: Config, effects: Effects, metrics: Metrics, *, writable: bool = True) -> Context:
    def store(root: str) -> Guard:
        backend = open_backend(root, sync=config.sync, options=_s3_options(config))
        return Guard(_Counted(backend, metrics), effects.clock, effects.chance)

    root = root_uri(config.root)
    allowed = [Place(Location(uri), store(uri)) for uri in config.allowed_locations]
    context = await open_context(
        store(config.root), effects, name=config.catalog, root=root, allowed=allowed, writable=writable
    )
    if context.identity.name != config.catalog and config.origins["catalog"] != "default":
        raise BadInput(
            f"{config.origins['catalog']}: the catalog at {root} is called {context.identity.name!r}, "
            f"not {config.catalog!r}; its name is fixed"
        )
    return context


def _s3_options(config: Config) -> dict[str, str]:
    s3 = config.s3
    given = {"endpoint": s3.endpoint, "region": s3.region}
    given["path_style"] = None if s3.path_style is None else str(s3.path_style).lower()
    for name in ("access_key_id", "secret_access_key", "session_token"):
        secret = getattr(s3, name)
        given[name] = secret.reveal() if secret is not None else None
    return {name: value for name, value in given.items() if value is not None}


def file_io(config: Config) -> dict[str, str]:
    """What clients need to reach the files: never a secret, unless the operator shares it on loopback."""
    if not config.root.startswith("s3:"):
        return {}
    s3 = config.s3
    told: dict[str, str | None] = {"s3.endpoint": s3.endpoint, "s3.region": s3.region, "client.region": s3.region}
    if s3.path_style or (s3.path_style is None and s3.endpoint):
        told["s3.path-style-access"] = "true"
    if config.share_credentials:
        for name, secret in (
            ("s3.access-key-id", s3.access_key_id),
            ("s3.secret-access-key", s3.secret_access_key),
            ("s3.session-token", s3.session_token),
        ):
            told[name] = secret.reveal() if secret is not None else None
    return {name: value for name, value in told.items() if value is not None}


def _site(config: Config, context: Context, metrics: Metrics, unfit: str | None = None) -> Site:
    clients = file_io(config)
    return Site(
        catalog=Catalog(context),
        name=context.identity.name,
        root=context.identity.root,
        separator=config.namespace_separator,
        file_io=clients,
        version=importlib.metadata.version("frazil"),
        rendered=Rendered(clients),
        endpoints=endpoints(writing=unfit is None),
        unfit=unfit,
        metrics=metrics.render,
    )


class _Counted:
    """A backend whose requests are counted by verb."""

    def __init__(self, backend: Backend, metrics: Metrics) -> None:
        self._backend = backend
        self._cells = {
            verb: metrics.verb(verb) for verb in ("get", "get_if_changed", "create", "swap", "list", "delete")
        }
        self._reads = self._cells["get_if_changed"]
        self.close = backend.close

    def get(self, key: str) -> Coroutine[Any, Any, Found | None]:
        self._cells["get"][0] += 1
        return self._backend.get(key)

    def get_if_changed(self, key: str, version: str) -> Coroutine[Any, Any, Found | Unchanged | None]:
        self._reads[0] += 1
        return self._backend.get_if_changed(key, version)

    def create(self, key: str, body: bytes) -> Coroutine[Any, Any, RawPut]:
        self._cells["create"][0] += 1
        return self._backend.create(key, body)

    def swap(self, key: str, body: bytes, version: str) -> Coroutine[Any, Any, RawPut]:
        self._cells["swap"][0] += 1
        return self._backend.swap(key, body, version)

    def list(self, prefix: str, after: str = "", limit: int = 1000) -> Coroutine[Any, Any, Sequence[Listed]]:
        self._cells["list"][0] += 1
        return self._backend.list(prefix, after, limit)

    def delete(self, key: str) -> Coroutine[Any, Any, None]:
        self._cells["delete"][0] += 1
        return self._backend.delete(key)
