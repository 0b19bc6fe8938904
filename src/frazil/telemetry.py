"""What the server tells its operator: log lines, metrics, and never a secret.

A request is counted in plain Python cells (under a microsecond) and the cells are written to prometheus-client's
shared files a second later: writing there for each request would cost as much as answering it. Every worker process of
one server has its files in one directory, so any of them answers for all.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import sys
import tempfile
from bisect import bisect_left
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

LATENCY_BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Secret:
    """A value that no log line, message or listing shows. Only `reveal` gives it away."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


# -- log -----------------------------------------------------------------------------------------------------------

#: Attributes of every log record; what else is on one was said with `extra`.
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_encoder = msgspec.json.Encoder(enc_hook=str)


def _said(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _PLAIN}


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            **_said(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _encoder.encode(line).decode()


class Readable(logging.Formatter):
    """For people at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        extra = "".join(f" {name}={_one_line(value)}" for name, value in _said(record).items())
        line = f"{_moment(record)} {record.levelname:7} {record.getMessage()}{extra}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


def _one_line(value: object) -> str:
    text = str(value)
    return text if text.isprintable() else repr(text)


class RotatedFile(logging.Handler):
    """A log file that several processes append to. Whoever finds it full moves it on, under a lock.

    A process still writing to a file that was moved on finds that one full, comes for the lock, and sees that the name
    leads elsewhere by now: it opens that and moves nothing.
    """

    def __init__(self, path: str, most_bytes: int, keep: int) -> None:
        super().__init__()
        self._path = path
        self._most_bytes = most_bytes
        self._keep = keep
        self._fd = self._open()

    def _open(self) -> int:
        # The log names tables and people: for its owner alone.
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            os.write(self._fd, self.format(record).encode() + b"\n")
            if os.fstat(self._fd).st_size >= self._most_bytes:
                self._turn()
        except Exception:
            self.handleError(record)

    def _turn(self) -> None:
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _same_file(self._path, self._fd):
                for number in range(self._keep, 0, -1):
                    older = self._path if number == 1 else f"{self._path}.{number - 1}"
                    with contextlib.suppress(FileNotFoundError):
                        Path(older).replace(f"{self._path}.{number}")
                if self._keep == 0:
                    Path(self._path).unlink()
            full, self._fd = self._fd, self._open()
            os.close(full)
        finally:
            os.close(lock)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._fd)
        super().close()


def _same_file(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def start_log(format: str, path: str | None, most_bytes: int, keep: int) -> None:
    """Where this process and those it forks write their log: standard error, or a file."""
    handler: logging.Handler = (
        logging.StreamHandler(sys.stderr) if path is None else RotatedFile(path, most_bytes, keep)
    )
    handler.setFormatter(JsonLines() if format == "json" else Readable())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    # Of what a record can say about its maker only the process is written; not asking for the rest saves a third.
    logging.logThreads = logging.logMultiprocessing = False
    # Its own remarks about requests and connections are made by ours, in one form.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


# -- metrics ---------------------------------------------------------------------------------------------------------


class Metrics:
    """What one worker counted. `write` brings the files up to date, `render` reads those of all workers."""

    def __init__(self, directory: str, worker: int) -> None:
        self.in_flight = 0
        self._requests: dict[tuple[str, int], list[float]] = {}
        self._store: dict[str, list[float]] = {}
        self._files = _Files(directory, worker)

    def request(self, route: str, status: int, took_s: float) -> None:
        """Hot: 0.5 µs."""
        cell = self._requests.get((route, status))
        if cell is None:
            cell = self._requests[route, status] = [0.0] * (len(LATENCY_BOUNDS_S) + 2)
        cell[bisect_left(LATENCY_BOUNDS_S, took_s)] += 1
        cell[-1] += took_s

    def verb(self, name: str) -> list[float]:
        """A cell to count a store operation in: `cell[0] += 1`."""
        return self._store.setdefault(name, [0.0])

    def write(self) -> None:
        for (route, status), cell in self._requests.items():
            if any(cell):
                counted, self._requests[route, status] = list(cell), [0.0] * len(cell)
                self._files.add_requests(route, status, counted)
        for verb, counter in self._store.items():
            if counter[0]:
                self._files.add_store(verb, counter[0])
                counter[0] = 0.0
        self._files.set_in_flight(self.in_flight)

    def render(self) -> bytes:
        self.write()
        return self._files.render()

    def close(self) -> None:
        self.write()
        self._files.close()


def metrics_directory(place: str) -> str:
    """A new directory for the metrics of one run of a server. What servers that were killed left behind goes.

    A directory is in use while somebody holds its lock: this process, or a worker that inherits it.
    """
    for left in Path(place).glob(f"{_DIRECTORY}*"):
        with contextlib.suppress(OSError):
            lock = os.open(left / "lock", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)
    made = tempfile.mkdtemp(prefix=_DIRECTORY, dir=place)
    lock = os.open(f"{made}/new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    Path(f"{made}/new").rename(f"{made}/lock")  # from now on others look at it, and it is held
    return made


_DIRECTORY = "frazil-metrics-"


class _Files:
    """prometheus-client's multiprocess files, one set a worker, in one directory for all.

    A worker that replaces a dead one has its number, so it goes on counting where that one stopped.
    """

    def __init__(self, directory: str, worker: int) -> None:
        self._directory = directory
        self._worker = worker
        self._files: dict[str, Any] = {}
        self._values: dict[tuple[str, str], float] = {}
        self._in_flight = 0

    def _file(self, type: str) -> Any:
        if type not in self._files:
            from prometheus_client.mmap_dict import MmapedDict

            path = f"{self._directory}/{type}_{self._worker}.db"
            self._files[type] = MmapedDict(path)  # type: ignore[no-untyped-call]
        return self._files[type]

    def _add(self, type: str, metric: str, name: str, labels: dict[str, str], help: str, amount: float) -> None:
        file, key = self._file(type), _key(metric, name, tuple(labels.items()), help)
        if (type, key) not in self._values:
            self._values[type, key] = file.read_value(key)[0]
        self._values[type, key] += amount
        file.write_value(key, self._values[type, key], 0.0)

    def add_requests(self, route: str, status: int, cell: list[float]) -> None:
        counts, took_s = cell[:-1], cell[-1]
        labels = {"route": route, "status": str(status)}
        help = "Requests answered."
        self._add("counter", "frazil_requests", "frazil_requests_total", labels, help, sum(counts))
        name, help = "frazil_request_seconds", "Time from a whole request to its answer."
        for bound, count in zip((*LATENCY_BOUNDS_S, float("inf")), counts, strict=True):
            le = {"route": route, "le": "+Inf" if bound == float("inf") else str(bound)}
            self._add("histogram", name, f"{name}_bucket", le, help, count)
        self._add("histogram", name, f"{name}_sum", {"route": route}, help, took_s)

    def add_store(self, verb: str, count: float) -> None:
        name, help = "frazil_store_operations", "Requests to the object store."
        self._add("counter", name, f"{name}_total", {"verb": verb}, help, count)

    def set_in_flight(self, count: int) -> None:
        if count == self._in_flight:
            return
        self._in_flight = count
        key = _key("frazil_in_flight", "frazil_in_flight", (), "Requests being worked on.")
        self._file("gauge_livesum").write_value(key, float(count), 0.0)

    def render(self) -> bytes:
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()


@cache
def _key(metric: str, name: str, labels: tuple[tuple[str, str], ...], help: str) -> str:
    from prometheus_client.mmap_dict import mmap_key

    keys, values = [key for key, _ in labels], [value for _, value in labels]
    return str(mmap_key(metric, name, keys, values, help))
