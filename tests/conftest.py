"""What tests of several folders share."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.servers import free_port


class Running(NamedTuple):
    """A Frazil server in processes of its own."""

    uri: str
    root: Path
    process: subprocess.Popen


@contextlib.contextmanager
def running(root, *options, listen=None):
    """`frazil serve` over a directory, ready; stopped as an operator stops it. Its log is in the error if it ends."""
    listen = listen or f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "frazil.cli", "serve", "--root", str(root), "--listen", listen, *map(str, options)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FRAZIL_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ, text=True) as process:
        try:
            _wait_until_ready(process, f"http://{listen}")
            yield Running(f"http://{listen}", Path(root), process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _wait_until_ready(process, uri):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"frazil serve ended with {process.returncode}: {process.stdout.read()}")
        try:
            with urllib.request.urlopen(f"{uri}/ready", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    raise RuntimeError("frazil serve was not ready in 30 s")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The base URI of a real server that the tests of a run share: take a namespace that no other test has."""
    with running(tmp_path_factory.mktemp("lakehouse")) as started:
        yield started.uri
