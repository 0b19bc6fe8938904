"""What is measured: how each workload prepares a server, one operation of it, and what must be true afterwards."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import orjson

from bench import load, payloads
from bench.load import Operation
from bench.payloads import request
from bench.servers import Server

LIST_TABLES = 1000
#: A commit's table keeps this many snapshots, or quick servers would be measured on larger tables than slow ones.
KEPT = 10


class BenchError(Exception):
    """The server did not do what it was asked: no figure of this run means anything."""


class Prepared(NamedTuple):
    """A workload on a server: what client number n repeats, and a check for afterwards."""

    operation: Callable[[int], Operation]
    verify: Callable[[], None] = lambda: None


class Prepare(Protocol):
    def __call__(self, site: Site) -> Prepared: ...


class Workload(NamedTuple):
    name: str
    prepare: Prepare
    #: How many times better than the reference server, in CPU per operation; None where no goal is set.
    goal: float | None = None
    clients: int = 16
    #: What is compared: CPU per operation, or operations per second.
    by: str = "cpu"


class Site:
    """A server as the workloads see it: paths, and simple calls for preparing and checking."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.root = f"{server.base}/v1{server.prefix}"
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)

    def namespace(self, name: str) -> str:
        return f"{self.root}/namespaces/{name}"

    def table(self, namespace: str, name: str) -> str:
        return f"{self.namespace(namespace)}/tables/{name}"

    def call(self, method: str, path: str, body: bytes = b"") -> Any:
        self._connection.request(method, path, body or None, {"Content-Type": "application/json"} if body else {})
        response = self._connection.getresponse()
        said = response.read()
        if response.status >= 300:
            raise BenchError(f"{method} {path}: {response.status} {said[:300]!r}")
        return orjson.loads(said) if said else None

    def etag(self, path: str) -> str:
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        response.read()
        found = response.getheader("ETag")
        if found is None:
            raise BenchError(f"GET {path}: no ETag")
        return found

    def make_namespace(self, name: str) -> None:
        self.call("POST", f"{self.root}/namespaces", orjson.dumps({"namespace": [name], "properties": {}}))

    def make_table(self, namespace: str, name: str, snapshots: int = 0, a_time: int = 10) -> Table:
        made = self.call("POST", f"{self.namespace(namespace)}/tables", payloads.table(name))
        table = Table(self.table(namespace, name), made["metadata"]["table-uuid"], made["metadata"]["location"])
        for at in range(0, snapshots, a_time):
            self.call("POST", table.path, table.append(min(a_time, snapshots - at)))
            table.landed()
        return table


class Table:
    """A client's picture of a table that it alone writes, so that it need not read answers to make the next commit."""

    def __init__(self, path: str, uuid: str, location: str) -> None:
        self.path = path
        self.uuid = uuid
        self.location = location
        self.sequence = 0
        #: Sequence number of the newest snapshot that was removed.
        self.removed = 0
        self._next = (0, 0)

    def append(self, count: int = 1, keep: int | None = None) -> bytes:
        """Add snapshots; once there are more than `keep` and a tenth, remove the oldest down to `keep`."""
        now_ms = time.time_ns() // 1_000_000
        newest = self.sequence + count
        full = keep is not None and newest - self.removed >= keep + max(1, keep // 10)
        oldest = newest - keep if keep is not None and full else self.removed
        self._next = newest, oldest
        added = [payloads.snapshot(at, self.location, now_ms) for at in range(self.sequence + 1, newest + 1)]
        removed = [payloads.FIRST_ID + at for at in range(self.removed + 1, oldest + 1)]
        main = payloads.FIRST_ID + self.sequence if self.sequence else None
        return payloads.commit(self.uuid, main, added, removed)

    def landed(self) -> None:
        self.sequence, self.removed = self._next


def expect(answer: load.Answer, *statuses: int) -> None:
    if answer.status not in statuses:
        raise BenchError(f"answered {answer.status} {answer.body[:300]!r}")


def repeat(wire: bytes, status: int) -> Prepared:
    """The same request for ever."""

    def operation(_: int) -> Operation:
        expect((yield wire), status)

    return Prepared(operation)


# -- reading -----------------------------------------------------------------------------------------------------------


def config(site: Site) -> Prepared:
    return repeat(request("GET", f"{site.server.base}/v1/config"), 200)


def namespace_head(site: Site) -> Prepared:
    site.make_namespace("head")
    return repeat(request("HEAD", site.namespace("head")), 204)


def load_table(snapshots: int, namespace: str, headers: dict[str, str] | None = None) -> Prepare:
    def prepare(site: Site) -> Prepared:
        site.make_namespace(namespace)
        table = site.make_table(namespace, "t", snapshots)
        return repeat(request("GET", table.path + "?snapshots=all", headers=headers), 200)

    return prepare


def load_unchanged(site: Site) -> Prepared:
    site.make_namespace("unchanged")
    table = site.make_table("unchanged", "t", 10)
    path = table.path + "?snapshots=all"
    return repeat(request("GET", path, headers={"If-None-Match": site.etag(path)}), 304)


def list_tables(site: Site) -> Prepared:
    site.make_namespace("list")
    path = f"{site.namespace('list')}/tables"
    names = iter(range(LIST_TABLES))

    def make(_: int) -> Operation:
        expect((yield request("POST", path, payloads.table(f"table_{next(names):05}"))), 200)

    load.run(site.server.port, make, clients=16, limit=LIST_TABLES)
    if len(site.call("GET", path)["identifiers"]) != LIST_TABLES:
        raise BenchError("not every table is listed")
    return repeat(request("GET", path), 200)


# -- writing -----------------------------------------------------------------------------------------------------------


def commit(*, keyed: bool) -> Prepare:
    """Every client its own table: append one snapshot, remove the oldest of eleven."""

    def prepare(site: Site) -> Prepared:
        namespace = "keyed" if keyed else "keyless"
        site.make_namespace(namespace)
        tables = [site.make_table(namespace, f"t{number}", KEPT) for number in range(16)]
        return _commits(site, tables, KEPT, keyed=keyed)

    return prepare


def add_snapshot(snapshots: int) -> Prepare:
    """One client, one table with many snapshots: what a commit costs as history grows."""

    def prepare(site: Site) -> Prepared:
        site.make_namespace(f"grown{snapshots}")
        table = site.make_table(f"grown{snapshots}", "t", snapshots, a_time=max(10, snapshots // 50))
        return _commits(site, [table], snapshots, keyed=False)

    return prepare


def _commits(site: Site, tables: list[Table], keep: int, *, keyed: bool) -> Prepared:
    def operation(number: int) -> Operation:
        table = tables[number]
        headers = {"Idempotency-Key": payloads.key(time.time_ns() // 1_000_000)} if keyed else None
        expect((yield request("POST", table.path, table.append(keep=keep), headers)), 200)
        table.landed()

    def verify() -> None:
        for table in tables:
            metadata = site.call("GET", table.path)["metadata"]
            seen = metadata["last-sequence-number"], metadata["current-snapshot-id"], len(metadata["snapshots"])
            acknowledged = table.sequence, payloads.FIRST_ID + table.sequence, table.sequence - table.removed
            if seen != acknowledged:
                raise BenchError(f"{table.path}: acknowledged {acknowledged}, found {seen}")

    return Prepared(operation, verify)


def contend(site: Site) -> Prepared:
    """Sixteen writers, one table: load, commit, and again on 409, until it lands. An operation is a success."""
    site.make_namespace("contend")
    table = site.make_table("contend", "t", KEPT)
    landed = 0

    def operation(_: int) -> Operation:
        nonlocal landed
        while True:
            answer = yield request("GET", table.path)
            expect(answer, 200)
            mine = Table(table.path, table.uuid, table.location)
            mine.sequence = orjson.loads(answer.body)["metadata"]["last-sequence-number"]
            mine.removed = mine.sequence - KEPT
            answer = yield request("POST", table.path, mine.append(keep=KEPT))
            expect(answer, 200, 409)
            if answer.status == 200:
                landed += 1
                return

    def verify() -> None:
        found = site.call("GET", table.path)["metadata"]["last-sequence-number"]
        if found != KEPT + landed:
            raise BenchError(f"{landed} commits acknowledged, {found - KEPT} found")

    return Prepared(operation, verify)


def create_and_drop(site: Site) -> Prepared:
    site.make_namespace("pairs")
    return pairs(site, "pairs")


def pairs(site: Site, namespace: str) -> Prepared:
    """A table made and dropped again; the pair is one operation."""
    path = f"{site.namespace(namespace)}/tables"

    def operation(number: int) -> Operation:
        name = f"pair_{number}"
        expect((yield request("POST", path, payloads.table(name))), 200)
        expect((yield request("DELETE", f"{path}/{name}")), 204)

    return Prepared(operation)


def renames(site: Site, namespace: str) -> Prepared:
    """A table renamed there and back; the pair is one operation."""
    for number in range(16):
        site.make_table(namespace, f"here_{number}")
    path = f"{site.root}/tables/rename"

    def operation(number: int) -> Operation:
        here, there = ({"namespace": [namespace], "name": f"{where}_{number}"} for where in ("here", "there"))
        for source, destination in ((here, there), (there, here)):
            body = orjson.dumps({"source": source, "destination": destination})
            expect((yield request("POST", path, body)), 204, 200)

    return Prepared(operation)


GZIP = {"Accept-Encoding": "gzip"}

#: The goals are those of docs: loads and lists 20, unchanged 70, commits 16, pairs 35, sixteen writers 20.
WORKLOADS = (
    Workload("config", config),
    Workload("nshead", namespace_head),
    Workload("load1", load_table(1, "load1"), 20),
    Workload("load1x256", load_table(1, "load1x256"), clients=256),
    Workload("load100", load_table(100, "load100"), 20),
    Workload("load1000", load_table(1000, "load1000"), 20),
    Workload("load100gz", load_table(100, "load100gz", GZIP), 20),
    Workload("load1000gz", load_table(1000, "load1000gz", GZIP), 20),
    Workload("load304", load_unchanged, 70),
    Workload("list1000", list_tables, 20),
    Workload("commit", commit(keyed=False), 16),
    Workload("commitkey", commit(keyed=True), 16),
    Workload("contend", contend, 20, by="rate"),
    Workload("createdrop", create_and_drop, 35),
    Workload("add10", add_snapshot(10), clients=1),
    Workload("add1000", add_snapshot(1000), clients=1),
    Workload("add10000", add_snapshot(10_000), clients=1),
)
