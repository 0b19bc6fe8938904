"""Clients with a ledger: what they asked, under which key, and what they were told in the end."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}

#: A keyed request is repeated until it is answered for good; this long at the most.
PATIENCE_S = 60


def uuid7() -> str:
    ms = f"{time.time_ns() // 1_000_000:012x}"
    tail = os.urandom(10).hex()
    return f"{ms[:8]}-{ms[8:]}-7{tail[:3]}-8{tail[3:6]}-{tail[6:18]}"


@dataclass
class Told:
    """One operation and its last word. `status` 0: nobody knows (a keyless one whose connection broke)."""

    operation: str
    key: str | None
    status: int
    tries: int
    location: str | None = None
    subject: str = ""


@dataclass
class Ledger:
    told: list[Told] = field(default_factory=list)
    #: Table name → whether it must be there at the end.
    names: dict[str, bool] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledged(self, operation: str) -> list[Told]:
        return [told for told in self.told if told.operation == operation and told.status == 200]


class Client(threading.Thread):
    """Commits to a shared table, and leads tables of its own from creation to drop."""

    def __init__(self, number: int, ports: list[int], ledger: Ledger, until: float) -> None:
        super().__init__(daemon=True)
        self._number = number
        self._ports = ports
        self._ledger = ledger
        self._until = until
        self._turn = number
        self._count = 0
        self._connection: http.client.HTTPConnection | None = None
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while time.monotonic() < self._until:
                self._count += 1
                self._commit("shared", keyed=self._count % 2 == 0)
                self._commit(f"own{self._number}", keyed=self._count % 3 != 0)
                if self._count % 8 == 0:
                    self._a_tables_life()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._next_server()

    def prepare(self) -> None:
        self._ask("create", "POST", "tables", {"name": f"own{self._number}", "schema": SCHEMA}, keyed=True)

    def _commit(self, table: str, *, keyed: bool) -> Told:
        name = f"p{self._number}-{self._count}"
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: table}}]}
        return self._ask("commit", "POST", f"tables/{table}", body, keyed=keyed, subject=table)

    def _a_tables_life(self) -> None:
        first, second = f"a{self._number}-{self._count}", f"b{self._number}-{self._count}"
        self._ask("create", "POST", "tables", {"name": first, "schema": SCHEMA}, keyed=True, subject=first)
        self._ledger.names[first] = True
        self._commit(first, keyed=True)
        moved = {
            "source": {"namespace": ["ns"], "name": first},
            "destination": {"namespace": ["ns"], "name": second},
        }
        self._ask("rename", "POST", "/rename", moved, keyed=True, subject=second)
        self._ledger.names[first] = False
        self._ledger.names[second] = True
        if self._count % 16 == 0:
            self._ask("drop", "DELETE", f"tables/{second}", None, keyed=True, subject=second)
            self._ledger.names[second] = False

    def _ask(self, operation: str, method: str, what: str, body: Any, *, keyed: bool, subject: str = "") -> Told:
        key = uuid7() if keyed else None
        base = "/iceberg/v1/lake"
        path = f"{base}/tables{what}" if what.startswith("/") else f"{base}/namespaces/ns/{what}"
        told = Told(operation, key, 0, 0, subject=subject)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            told.tries += 1
            try:
                status, answer = self._once(method, path, body, key)
            except (OSError, http.client.HTTPException):
                self._next_server()
                status, answer = 0, {}
            told.status = 200 if status in (200, 204) else status
            told.location = answer.get("metadata-location")
            final = told.status == 200 or 400 <= status < 500
            if final or not keyed or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        with self._ledger.lock:
            self._ledger.told.append(told)
        if keyed and told.status != 200:
            raise AssertionError(f"{operation} {path} under {key} ended in {told.status}: {answer}")
        return told

    def _once(self, method: str, path: str, body: Any, key: str | None) -> tuple[int, dict[str, Any]]:
        if self._connection is None:
            port = self._ports[self._turn % len(self._ports)]
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        payload = response.read()
        return response.status, json.loads(payload) if payload else {}

    def _next_server(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._turn += 1
