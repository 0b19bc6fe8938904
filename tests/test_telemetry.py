"""Log lines, rotation by several processes, secrets, and what counting costs."""

import json
import logging
import multiprocessing
import time
from pathlib import Path

import pytest

from frazil import telemetry
from frazil.telemetry import Metrics, RotatedFile, Secret


@pytest.fixture
def logger(tmp_path):
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    uvicorn = logging.getLogger("uvicorn").level
    for handler in before:
        root.removeHandler(handler)

    def start(**given):
        settings = {"format": "json", "path": str(tmp_path / "log"), "most_bytes": 10**6, "keep": 3, **given}
        telemetry.start_log(**settings)
        return logging.getLogger("frazil.test")

    yield start
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    for handler in before:
        root.addHandler(handler)
    root.setLevel(level)
    logging.getLogger("uvicorn").setLevel(uvicorn)


def lines(tmp_path):
    return (tmp_path / "log").read_text().splitlines()


def test_a_json_line_has_time_level_message_and_what_else_was_said(logger, tmp_path):
    logger().warning("it is %s", "late", extra={"request": "r1", "status": 503})
    (line,) = map(json.loads, lines(tmp_path))
    assert line["time"].endswith("Z")
    assert {key: line[key] for key in ("level", "logger", "message", "request", "status")} == {
        "level": "warning",
        "logger": "frazil.test",
        "message": "it is late",
        "request": "r1",
        "status": 503,
    }


def test_an_exception_is_one_line_of_json(logger, tmp_path):
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logger().exception("it failed")
    (line,) = map(json.loads, lines(tmp_path))
    assert "ValueError: two" in line["exception"]


def test_a_readable_line_is_for_people(logger, tmp_path):
    logger(format="readable").info("serving", extra={"address": "http://x"})
    (line,) = lines(tmp_path)
    assert line.endswith("INFO    serving address=http://x")


@pytest.mark.parametrize("format", ["json", "readable"])
def test_what_a_client_sent_cannot_begin_a_line(logger, tmp_path, format):
    logger(format=format).info("refused", extra={"reason": "no\n2026-01-01 INFO forged"})
    assert len(lines(tmp_path)) == 1


@pytest.mark.parametrize("format", ["json", "readable"])
def test_a_secret_is_never_logged(logger, tmp_path, format):
    secret = Secret("very-secret")
    logger(format=format).info("with %s and %r", secret, secret, extra={"key": secret, "keys": [secret, {"a": secret}]})
    assert "very-secret" not in "\n".join(lines(tmp_path))
    assert secret.reveal() == "very-secret"


def test_a_full_file_is_put_aside_and_few_are_kept(logger, tmp_path):
    log = logger(most_bytes=2000, keep=2)
    for number in range(100):
        log.info("line %04d", number)
    kept = sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock"))
    assert kept == ["log", "log.1", "log.2"]
    assert all(path.stat().st_size < 2400 for path in tmp_path.iterdir())
    whole = "".join((tmp_path / name).read_text() for name in ("log.2", "log.1", "log"))
    told = [json.loads(line)["message"] for line in whole.splitlines()]
    assert told == [f"line {number:04}" for number in range(100 - len(told), 100)]


def _write(path, worker, count):
    handler = RotatedFile(path, 4096, 1000)
    for number in range(count):
        handler.emit(logging.makeLogRecord({"msg": f"{worker}-{number}"}))
    handler.close()


def test_several_processes_share_a_file_and_lose_no_line(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(str(tmp_path / "log"), worker, 2000)) for worker in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    files = [path for path in tmp_path.glob("log*") if path.suffix != ".lock"]
    found = [line for path in files for line in path.read_text().splitlines()]
    assert sorted(found) == sorted(f"{worker}-{number}" for worker in range(3) for number in range(2000))


def test_a_worker_that_replaces_another_goes_on_counting(tmp_path):
    for _ in range(2):
        worker = Metrics(str(tmp_path), 1)
        worker.request("GET /x", 200, 0.002)
        worker.verb("get")[0] += 5
        worker.close()
    other = Metrics(str(tmp_path), 2)
    other.request("GET /x", 200, 0.2)
    said = other.render().decode()
    other.close()
    assert 'frazil_requests_total{route="GET /x",status="200"} 3.0' in said
    assert 'frazil_request_seconds_bucket{le="0.0025",route="GET /x"} 2.0' in said
    assert 'frazil_request_seconds_count{route="GET /x"} 3.0' in said
    assert 'frazil_store_operations_total{verb="get"} 10.0' in said


def test_counting_a_request_costs_next_to_nothing(tmp_path):
    """Measured at 0.2 µs; the bound leaves room for a busy machine."""
    metrics = Metrics(str(tmp_path), 0)
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(10_000):
            metrics.request("GET /x", 200, 0.0004)
        best = min(best, (time.perf_counter() - began) / 10_000)
    assert best < 3e-6


def test_what_a_killed_server_left_behind_goes_and_what_is_in_use_stays(tmp_path):
    in_use = telemetry.metrics_directory(str(tmp_path))
    left = tmp_path / "frazil-metrics-left"
    left.mkdir()
    (left / "lock").touch()
    (left / "counter_0.db").touch()
    being_made = tmp_path / "frazil-metrics-new"
    being_made.mkdir()
    other = telemetry.metrics_directory(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {Path(in_use).name, Path(other).name, being_made.name}
