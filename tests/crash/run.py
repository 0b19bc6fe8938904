"""One crash run, from an empty directory to the verdict."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.crash.clients import SCHEMA, Client, Ledger
from tests.crash.judge import Verdict, judge
from tests.crash.servers import Killer, Server

CLIENTS = 6


@dataclass
class Run:
    kills: int
    ledger: Ledger
    verdict: Verdict
    unreadable: list[str]

    @property
    def acknowledged(self) -> int:
        return sum(told.status == 200 for told in self.ledger.told)

    @property
    def repeated(self) -> int:
        return sum(told.tries > 1 for told in self.ledger.told)

    def lines(self) -> list[str]:
        told = self.ledger.told
        commits = self.ledger.acknowledged("commit")
        keyed = sum(entry.key is not None for entry in commits)
        others = {name: len(self.ledger.acknowledged(name)) for name in ("create", "rename", "drop")}
        return [
            f"{self.kills} kills, {self.acknowledged:,} acknowledged of {len(told):,} operations",
            f"{self.repeated:,} repeated by key after a broken answer",
            f"{keyed:,} keyed and {len(commits) - keyed:,} keyless commits",
            ", ".join(f"{count:,} {name}s" for name, count in others.items()),
            f"{self.verdict.commits:,} commits of {self.verdict.tables:,} tables read back",
            f"{len(self.verdict.problems) + len(self.unreadable)} problems",
        ]


def run(folder: Path, seconds: float, every_s: float = 4.0) -> Run:
    root = folder / "lake"
    servers = [Server(root, folder / f"server{number}.log") for number in range(2)]
    for server in servers:
        server.start()
    ports = [server.port for server in servers]
    _post(ports[0], "namespaces", {"namespace": ["ns"]})
    _post(ports[0], "namespaces/ns/tables", {"name": "shared", "schema": SCHEMA})
    ledger = Ledger()
    ledger.names["shared"] = True
    until = time.monotonic() + seconds
    clients = [Client(number, ports, ledger, until) for number in range(CLIENTS)]
    for client in clients:
        client.prepare()
    killer = Killer(servers, every_s)
    killer.start()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    killer.end()
    for failure in (killer.failure, *(client.failure for client in clients)):
        if failure is not None:
            raise failure
    unreadable = [name for name, there in ledger.names.items() if there and not _loads(ports[0], name)]
    for server in servers:
        server.stop()
    return Run(sum(server.kills for server in servers), ledger, asyncio.run(judge(root, ledger)), unreadable)


def _post(port: int, path: str, body: object) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("POST", f"/iceberg/v1/lake/{path}", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.status == 200, response.read()


def _loads(port: int, name: str) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("GET", f"/iceberg/v1/lake/namespaces/ns/tables/{name}")
        return connection.getresponse().status == 200
