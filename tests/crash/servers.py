"""Two servers on one directory, killed with -9 in turn while clients work."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path


class Server:
    """One `frazil serve` on a port of its own, which it keeps over restarts."""

    def __init__(self, root: Path, log: Path) -> None:
        self.root = root
        self.log = log
        self.kills = 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [Path(sys.executable).parent / "frazil", "serve", "--root", self.root, "--workers", "1"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*map(str, command), "--listen", f"127.0.0.1:{self.port}"],
                stdout=log,
                stderr=log,
                env={**os.environ, "FRAZIL_LOG_FORMAT": "readable"},
                start_new_session=True,
            )
        self._wait_until_it_answers()

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)) as connection:
                try:
                    connection.request("GET", "/health")
                    if connection.getresponse().status == 200:
                        return
                except OSError:
                    time.sleep(0.05)
        raise AssertionError(f"the server did not start:\n{self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        """The whole process group, at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.kills += 1

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(timeout=30) == 0, self.log.read_text()[-2000:]


class Killer(threading.Thread):
    """Kills the servers in turn, a moment after each is up again."""

    def __init__(self, servers: list[Server], every_s: float) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._every_s = every_s
        self._enough = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        turn = 0
        try:
            while not self._enough.wait(self._every_s):
                server = self._servers[turn % len(self._servers)]
                server.kill()
                server.start()
                turn += 1
        except BaseException as error:
            self.failure = error
            raise

    def end(self) -> None:
        self._enough.set()
        self.join()
