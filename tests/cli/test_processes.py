"""The program as a process: signals, pipes, ports and places where it cannot start."""

import contextlib
import signal
import socket
import subprocess
import sys

import pytest

from frazil.cli.failures import INTERRUPTED, OK
from tests.servers import free_port

PROGRAM = [sys.executable, "-m", "frazil.cli"]


def run(*words, **named):
    return subprocess.run(
        [*PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60, check=False, **named
    )


def start(*words):
    command = [*PROGRAM, *map(str, words)]
    with _in_the_foreground():
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")


@contextlib.contextmanager
def _in_the_foreground():
    """Where the tests themselves run in the background, ^C is ignored, and a program started there inherits that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def up(root, listen):
    """`frazil up`, once it has said its first line; interrupted at the end, as a person does."""
    with start("up", root, "--listen", listen) as process:
        try:
            assert process.stdout.readline() == f"A catalog is served at http://{listen}\n"
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def test_up_says_where_it_is_and_what_to_paste_once_it_answers(tmp_path):
    listen = f"127.0.0.1:{free_port()}"
    with up(tmp_path / "lake", listen) as process:
        assert run("namespaces", "list", "--uri", f"http://{listen}").returncode == OK
        process.send_signal(signal.SIGINT)
        said, log = process.stdout.read(), process.stderr.read()
    assert process.returncode == OK
    assert f'uri="http://{listen}/iceberg"' in said
    assert "Traceback" not in log


def test_up_makes_its_directory_and_serves_the_same_tables_the_next_time(tmp_path):
    listen = f"127.0.0.1:{free_port()}"
    uri = f"http://{listen}"
    with up(tmp_path / "lake", listen):
        assert run("namespaces", "create", "kept", "--uri", uri).returncode == OK
    with up(tmp_path / "lake", listen):
        assert "kept" in run("namespaces", "list", "--uri", uri).stdout


def test_ctrl_c_while_a_server_is_silent_is_130_and_one_line():
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        start("tables", "list", "--uri", f"http://127.0.0.1:{silent.getsockname()[1]}") as asking,
    ):
        silent.settimeout(20)
        connection, _ = silent.accept()
        with connection:
            connection.settimeout(20)
            assert connection.recv(10)
            asking.send_signal(signal.SIGINT)
            _, err = asking.communicate(timeout=20)
    assert asking.returncode == INTERRUPTED
    assert err == "frazil: interrupted\n"


@pytest.mark.parametrize("command", [["up"], ["serve", "--root"], ["store", "check"]], ids=" ".join)
@pytest.mark.parametrize("place", ["/proc/none/lake", "/dev/null", "/dev/null/lake"])
def test_a_place_that_cannot_hold_a_catalog_is_one_line(command, place):
    listen = ["--listen", f"127.0.0.1:{free_port()}"] if command[0] != "store" else []
    done = run(*command, place, *listen)
    assert done.returncode not in (OK, INTERRUPTED)
    assert done.stdout == ""
    assert done.stderr.startswith("frazil: ")
    assert done.stderr.count("\n") == 1
    assert place in done.stderr


def test_another_address_than_loopback_without_tokens_ends_at_once(tmp_path):
    done = run("serve", "--root", tmp_path, "--listen", "0.0.0.0:8181")
    assert done.returncode not in (OK, INTERRUPTED)
    assert done.stderr.count("\n") == 1


def test_a_catalog_that_was_moved_is_refused_by_name(tmp_path):
    listen = f"127.0.0.1:{free_port()}"
    with up(tmp_path / "first", listen):
        pass
    (tmp_path / "first").rename(tmp_path / "second")
    done = run("up", tmp_path / "second", "--listen", listen)
    assert done.returncode not in (OK, INTERRUPTED)
    assert done.stderr.count("\n") == 1
    found = run("doctor", "--root", tmp_path / "second", "--listen", listen)
    assert found.returncode == 1
    for said in (done.stderr, found.stdout):
        assert str(tmp_path / "first") in said
        assert str(tmp_path / "second") in said
