"""Starting and ending the servers under measurement, each in a process group and a directory of its own."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.jars import PROJECT, class_path, java_home


class Server(NamedTuple):
    """A running server. Requests go to `base` plus the specification's paths; `prefix` is what its config would say."""

    name: str
    pid: int
    port: int
    base: str
    prefix: str
    root: Path
    cold_start_s: float

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.base}"


@contextlib.contextmanager
def frazil(workers: int = 2, environ: Mapping[str, str] | None = None, root: Path | None = None) -> Iterator[Server]:
    """Our server over a fresh directory, or over `root`."""
    with directory() as scratch:
        port = free_port()
        root = root or scratch / "root"
        listen = ["--listen", f"127.0.0.1:{port}", "--workers", str(workers)]
        command = [str(PROJECT / ".venv" / "bin" / "frazil"), "serve", "--root", str(root), *listen]
        with _running(command, environ or {}, scratch / "log", port, "/iceberg/v1/config") as (pid, cold_start_s):
            yield Server("frazil", pid, port, "/iceberg", "/lake", root, cold_start_s)


@contextlib.contextmanager
def fixture() -> Iterator[Server]:
    """Iceberg's reference server, its catalog in an SQLite file, its warehouse a local directory."""
    home = java_home()
    java, jars = str(home / "bin" / "java"), class_path(home)
    with directory() as scratch:
        classes = scratch / "classes"  # compiled beforehand: the start that is measured is the server's
        compiler = [java, "--module", "jdk.compiler/com.sun.tools.javac.Main", "-d", str(classes)]
        subprocess.run([*compiler, "-cp", jars, str(PROJECT / "bench" / "Fixture.java")], check=True)
        port = free_port()
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"  # it would log every request otherwise
        command = [java, quiet, "-cp", f"{classes}:{jars}", "Fixture", str(port)]
        environ = {
            "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
            "CATALOG_URI": f"jdbc:sqlite:{scratch}/catalog.db",
            "CATALOG_WAREHOUSE": f"{scratch}/warehouse",
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        }
        with _running(command, environ, scratch / "log", port, "/v1/config") as (pid, cold_start_s):
            yield Server("fixture", pid, port, "", "", scratch, cold_start_s)


def free_port() -> int:
    """A port below the ephemeral range: up there a client polling for a server can meet itself."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory for the time being."""
    scratch = Path(tempfile.mkdtemp(prefix="frazil-", dir="/tmp"))  # the kit's own tables lie in /tmp as well
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def _running(
    command: Sequence[str], environ: Mapping[str, str], log: Path, port: int, ready: str
) -> Iterator[tuple[int, float]]:
    begin = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env=os.environ | dict(environ), start_new_session=True
        )
    try:
        _wait(process, port, ready, log)
        yield process.pid, time.monotonic() - begin
    finally:
        _end(process)


def _wait(process: subprocess.Popen[bytes], port: int, path: str, log: Path, patience_s: float = 60) -> None:
    deadline = time.monotonic() + patience_s
    while process.poll() is None and time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.005)
    said = log.read_text(errors="replace").strip().splitlines()
    raise SystemExit("server did not start: " + " | ".join(said[-5:] or ["it said nothing"]))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
