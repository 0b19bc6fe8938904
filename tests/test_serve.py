"""Servers in processes of their own: starting, refusing to start, stopping, dying."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.rest.live import Client, a_key, setting, status_of, talk

PROGRAM = """
import json, sys
from frazil.config import load
from frazil.errors import FrazilError
from frazil.serve import serve
try:
    config = load(None, {}, json.loads(sys.argv[1]))
except FrazilError as error:
    sys.exit(f"frazil: {error.message}")
code = serve(config, lambda address: print(address, flush=True))
print(json.dumps(sorted(sys.modules)), flush=True)
sys.exit(code)
"""


class Process:
    def __init__(self, process, port, started_s):
        self.process = process
        self.pid = process.pid
        self.port = port
        self.started_s = started_s
        self.client = Client(port)

    def children(self):
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def stop(self, number=signal.SIGTERM):
        """(exit code, seconds, the rest of what it said)."""
        began = time.monotonic()
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, time.monotonic() - began, out


def command(root, **flags):
    settings = {"root": str(root), "listen": "127.0.0.1:0", "sync": False, **flags}
    return [sys.executable, "-c", PROGRAM, json.dumps(settings)]


@contextmanager
def served(root, log=None, **flags):
    log = log or root.parent / "stderr"
    began = time.monotonic()
    environ = {**os.environ, "TMPDIR": str(scratch(log))}
    with log.open("ab") as stderr:
        process = subprocess.Popen(
            command(root, **flags), stdout=subprocess.PIPE, stderr=stderr, text=True, env=environ
        )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, log.read_text()
        yield Process(process, int(address.rpartition(":")[2]), time.monotonic() - began)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def scratch(beside):
    """Where a server keeps what it needs while it runs."""
    place = beside.parent / "scratch"
    place.mkdir(exist_ok=True)
    return place


def refused(root, **flags):
    """What a server that does not start says."""
    done = subprocess.run(command(root, **flags), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return done.returncode, line


@pytest.fixture
def root(tmp_path):
    return tmp_path / "lakehouse"


several = pytest.mark.parametrize("workers", [1, 3])


def eventually(holds, seconds=10.0):
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    assert holds()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# -- starting ----------------------------------------------------------------------------------------------------------


@several
def test_a_server_starts_answers_and_stops(root, workers):
    with served(root, workers=workers) as server:
        path = server.client.a_table("ns" if server.client.a_namespace("ns") else "")
        assert server.client.get(path).status == 200
        code, seconds, _ = server.stop()
        assert code == 0
        assert seconds < 5


def test_interrupting_it_stops_it_too(root):
    with served(root) as server:
        assert server.stop(signal.SIGINT)[0] == 0


def test_a_server_starts_quickly_and_small_and_loads_no_heavy_library(root):
    """The goals are 0.5 s and 80 MB; time is bounded loosely, machines are busy."""
    with served(root) as server:
        assert server.started_s < 5
        server.client.get("/metrics", base="")
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert int(status.partition("VmRSS:")[2].split()[0]) < 80 * 1024
        loaded = set(json.loads(server.stop()[2]))
    assert not loaded & {"pyspark", "pyarrow", "pyiceberg", "obstore", "pandas", "numpy"}


@pytest.mark.seed(3)
@several
def test_another_server_on_the_same_directory_serves_the_same_tables(root, workers):
    with served(root, workers=workers) as one, served(root, log=root.parent / "other") as other:
        namespace = one.client.a_namespace()
        path = one.client.a_table(namespace)
        assert other.client.get(path).json == one.client.get(path).json
        other.client.commit(path, setting(a="1"))
        assert one.client.get(path).json["metadata"]["properties"] == {"a": "1"}


@several
def test_a_table_survives_its_server(root, workers):
    with served(root, workers=workers) as server:
        path = server.client.a_table()
        before = server.client.get(path)
        server.process.kill()
        eventually(lambda: server.process.poll() is not None)
    with served(root) as server:
        after = server.client.get(path)
        assert (after.json, after.headers["etag"]) == (before.json, before.headers["etag"])


def test_a_copy_of_the_directory_serves_the_same_tables_from_the_same_path(root):
    """As `cp -r` copies: contents, and none of the times."""
    with served(root) as server:
        path = server.client.a_table()
        server.client.commit(path, setting(a="1"))
        server.stop()
    copied = root.parent / "copied"
    shutil.copytree(root, copied, copy_function=shutil.copyfile)
    shutil.rmtree(root)
    copied.rename(root)
    with served(root) as server:
        assert server.client.get(path).json["metadata"]["properties"] == {"a": "1"}
        assert server.client.commit(path, setting(b="2")).status == 200
        assert server.client.get(path).json["metadata"]["properties"] == {"a": "1", "b": "2"}


# -- refusing to start -------------------------------------------------------------------------------------------------


@several
def test_a_busy_port_is_one_clear_line(root, workers):
    with served(root, workers=workers) as server:
        code, line = refused(root, listen=f"127.0.0.1:{server.port}", workers=workers)
    assert (code, line) == (2, f"frazil: cannot listen on 127.0.0.1:{server.port}: Address already in use")


@several
def test_a_root_that_cannot_be_made_is_one_clear_line(tmp_path, workers):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a directory")
    code, line = refused(in_the_way / "lakehouse", workers=workers)
    assert code == 2
    assert str(in_the_way) in line


def test_an_unwritable_root_is_one_clear_line():
    code, line = refused(Path("/proc/lakehouse"))  # not even root can write there
    assert code == 2
    assert "/proc/lakehouse" in line


@several
def test_a_directory_that_was_moved_is_refused_by_both_names(tmp_path, workers):
    with served(tmp_path / "one") as server:
        server.stop()
    (tmp_path / "one").rename(tmp_path / "two")
    code, line = refused(tmp_path / "two", workers=workers)
    assert code == 2
    assert f"file://{tmp_path}/one" in line
    assert f"file://{tmp_path}/two" in line
    (tmp_path / "two").rename(tmp_path / "one")
    with served(tmp_path / "one") as server:
        assert server.client.get("/namespaces").status == 200


def test_a_catalogs_name_is_fixed(root):
    with served(root, catalog="first") as server:
        assert Client(server.port, "/iceberg/v1/first").get("/namespaces").status == 200
        server.stop()
    code, line = refused(root, catalog="second")
    assert code == 2
    assert "'first'" in line
    assert "'second'" in line
    with served(root) as server:  # unasked, it goes by its name
        assert Client(server.port, "/iceberg/v1/first").get("/namespaces").status == 200


def test_elsewhere_than_loopback_it_does_not_listen_without_tokens(root, tmp_path):
    code, line = refused(root, listen="0.0.0.0:0")
    assert "token_file" in line
    assert not root.exists()
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada {'t' * 40}\n")
    tokens.chmod(0o644)
    code, line = refused(root, listen="0.0.0.0:0", token_file=str(tokens))
    assert code == 2
    assert f"chmod 600 {tokens}" in line
    tokens.chmod(0o600)
    with served(root, listen="0.0.0.0:0", token_file=str(tokens)) as server:
        assert server.client.get("/namespaces").status == 401
        assert server.client.get("/namespaces", authorization=f"Bearer {'t' * 40}").status == 200


# -- stopping ----------------------------------------------------------------------------------------------------------


class Load:
    """Clients that never stop asking, each on a connection it keeps, and what became of their requests."""

    def __init__(self, port, paths):
        self.port = port
        self.answered = []
        self.cut = []
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(path,)) for path in paths]
        for thread in self.threads:
            thread.start()

    def _work(self, path):
        body = json.dumps({"requirements": [], "updates": [setting(a="1")]}).encode()
        head = f"POST /iceberg/v1/lake{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        number = 0
        while not self.stopped.is_set():
            try:
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
            except OSError:
                return  # it accepts no more
            with connection:
                accepted = False
                while not self.stopped.is_set():
                    number += 1
                    key = a_key()
                    request = f"{head}Idempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
                    try:
                        connection.sendall(request[: len(request) // 2])
                        connection.sendall(request[len(request) // 2 :])
                        said = _one_answer(connection)
                    except OSError as error:
                        said = repr(error).encode()
                    if not said.startswith(b"HTTP/1.1 200"):
                        # A connection that was never answered on may have been still in the system's queue.
                        if accepted:
                            self.cut.append((path, number, said))
                        break
                    accepted = True
                    self.answered.append(number)
                    if b"connection: close" in said:
                        break

    def end(self):
        for thread in self.threads:
            thread.join(30)
        return self.cut


def _one_answer(connection):
    said = b""
    while b"\r\n\r\n" not in said:
        piece = connection.recv(65536)
        if not piece:
            return said
        said += piece
    head, _, body = said.partition(b"\r\n\r\n")
    left = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]) - len(body)
    while left > 0:
        left -= len(connection.recv(left))
    return head


@several
def test_a_stop_under_load_cuts_no_accepted_request(root, workers):
    with served(root, workers=workers) as server:
        namespace = server.client.a_namespace()
        paths = [server.client.a_table(namespace, f"t{number}") for number in range(6)]
        load = Load(server.port, paths)
        eventually(lambda: len(load.answered) > 200, 30)
        code, seconds, _ = server.stop()
        assert load.end() == []
        assert code == 0
        assert seconds < 20


@several
def test_a_request_whose_body_is_still_on_its_way_is_finished(root, workers):
    with served(root, workers=workers) as server:
        body = b'{"namespace":["in-time"]}'
        head = b"POST /iceberg/v1/lake/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
            time.sleep(0.2)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(1.0)
            connection.sendall(body[5:])
            said = connection.recv(65536)
        assert status_of(said) == 200
        assert b"connection: close" in said
        assert server.process.wait(20) == 0


def test_told_twice_it_ends_at_once(root):
    with served(root) as server, socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n")
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(5) == 1


# -- dying -------------------------------------------------------------------------------------------------------------


def test_no_worker_outlives_a_parent_that_was_killed(root):
    with served(root, workers=3) as server:
        workers = server.children()
        assert len(workers) == 3
        server.process.kill()
        eventually(lambda: not any(map(alive, workers)))
        assert not list(scratch(root).iterdir())
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", server.port), timeout=1).close()


def test_a_killed_workers_place_is_taken_and_nobody_is_refused(root):
    with served(root, workers=2) as server:
        path = server.client.a_table()
        before = server.children()
        os.kill(before[0], signal.SIGKILL)
        for _ in range(40):
            assert server.client.get(path).status == 200
        eventually(lambda: len(server.children()) == 2 and before[0] not in server.children())
        assert server.stop()[0] == 0


# -- what all workers share --------------------------------------------------------------------------------------------


def test_any_worker_tells_the_metrics_of_all(root):
    with served(root, workers=3) as server:
        path = server.client.a_table()
        for _ in range(60):
            server.client.get(path)
        wanted = 'route="GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",status="200"} 60.0'

        def told_by_each():
            return all(wanted in server.client.get("/metrics", base="").body.decode() for _ in range(8))

        eventually(told_by_each)
        assert list(scratch(root).iterdir())
        server.stop()
        assert not list(scratch(root).iterdir())


def test_the_log_of_all_workers_is_one_file_of_json_lines(root, tmp_path):
    log = tmp_path / "frazil.log"
    with served(root, workers=2, **{"log.file": str(log), "log.format": "json"}) as server:
        for number in range(20):
            server.client.post("/namespaces", {"namespace": [f"n{number}"]}, x_request_id=f"r{number}")
        server.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["request"] for line in lines if "request" in line} == {f"r{number}" for number in range(20)}
    assert len({line["process"] for line in lines if "request" in line}) == 2


def test_a_malformed_head_is_answered_by_the_real_server_too(root):
    with served(root) as server:
        assert status_of(talk(server.port, b"NONSENSE\r\n\r\n")) == 400
