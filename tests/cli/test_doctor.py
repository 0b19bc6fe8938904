"""What `frazil doctor` finds, each thing in its good and its bad state."""

import json
import os
import socket
from email.utils import formatdate

import pytest

from frazil import config
from frazil.cli import doctor
from frazil.cli.doctor import BAD, GOOD, NOTE
from frazil.client.address import Address
from frazil.client.wire import Answer
from tests.servers import free_port

NOW_MS = 1_800_000_000_000


def configured(**flags):
    return config.load(None, {}, flags)


def answered(at_ms):
    return Answer(200, {"date": formatdate(at_ms / 1000, usegmt=True)}, b"")


@pytest.mark.parametrize(
    "apart_s, verdict, said",
    [
        (0, GOOD, "agree"),
        (1, GOOD, "agree"),
        (60, NOTE, "60 s ahead"),
        (-4000, NOTE, "behind"),
        (400, BAD, "refuses idempotency keys"),
    ],
)
def test_clocks_that_are_apart_are_found(apart_s, verdict, said):
    found = doctor.clock("1.0", answered(NOW_MS), NOW_MS + apart_s * 1000)
    assert found.verdict == verdict
    assert said in found.detail


def test_a_server_that_does_not_answer_leaves_the_clocks_uncompared():
    found = doctor.server_and_clock(Address("http", "127.0.0.1", free_port(), ""))
    assert found.verdict == NOTE
    assert "no server answers" in found.detail


def test_a_root_that_is_not_there_yet_is_well(tmp_path):
    found = doctor.root(configured(root=str(tmp_path / "new" / "lake")))
    assert found.verdict == GOOD
    assert not (tmp_path / "new").exists()


def test_a_file_is_no_root(tmp_path):
    (tmp_path / "file").write_text("")
    assert doctor.root(configured(root=str(tmp_path / "file"))).verdict == BAD


@pytest.mark.parametrize("root", ["lake", "new"])
def test_a_root_that_cannot_be_written_is_found(tmp_path, monkeypatch, root):
    (tmp_path / "lake").mkdir()
    # As root everything is writable: the system's answer is what counts.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = doctor.root(configured(root=str(tmp_path / root)))
    assert found.verdict == BAD
    assert "not writable" in found.detail


@pytest.mark.parametrize("root", ["gs://bucket", "ftp://x/y"])
def test_a_root_that_frazil_does_not_know_is_found(root):
    assert doctor.root(configured(root=root)).verdict == BAD


def test_a_token_file_that_others_can_read_is_found(tmp_path):
    file = tmp_path / "tokens"
    file.write_text("ada 0123456789abcdef\n")
    file.chmod(0o644)
    found = doctor.tokens(str(file))
    assert found.verdict == BAD
    assert "chmod 600" in found.detail
    file.chmod(0o600)
    assert doctor.tokens(str(file)).verdict == GOOD
    assert "0123456789abcdef" not in doctor.tokens(str(file)).detail


def test_a_free_port_is_well():
    assert doctor.port(configured(listen=f"127.0.0.1:{free_port()}")).verdict == GOOD


def test_a_port_that_another_program_has_is_found():
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(5)
        found = doctor.port(configured(listen=f"127.0.0.1:{other.getsockname()[1]}"))
    assert found.verdict == BAD
    assert "another program" in found.detail


def test_an_address_that_is_not_this_machines_is_found(tmp_path):
    (tmp_path / "t").write_text("ada 0123456789abcdef\n")
    found = doctor.port(configured(listen="203.0.113.1:8181", token_file=str(tmp_path / "t")))
    assert found.verdict == BAD


def test_a_machine_without_java_is_told_and_can_serve(tmp_path):
    found = doctor.java({"PATH": str(tmp_path)})
    assert found.verdict == NOTE
    assert "no Java found" in found.detail


@pytest.mark.parametrize("version", ["24.0.1", "25.0.3"])
def test_a_java_that_is_too_new_for_spark_is_told(tmp_path, version):
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    found = doctor.java({"PATH": f"{tmp_path}:/bin:/usr/bin"})
    assert found.verdict == NOTE
    assert "too new for Spark" in found.detail


def test_a_pyspark_that_is_too_new_is_told(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "4.2.1")
    assert "Iceberg has no runtime for it" in doctor.spark().detail


def test_the_verdict_is_the_exit_code(frazil, tmp_path):
    (tmp_path / "file").write_text("")
    well = frazil("doctor", "--root", tmp_path / "lake", "--listen", f"127.0.0.1:{free_port()}", "--json")
    assert well.code == 0
    assert json.loads(well.out)["well"]
    ill = frazil("doctor", "--root", tmp_path / "file")
    assert ill.code == 1
    assert "FAIL" in ill.out
