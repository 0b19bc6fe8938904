"""The benchmark's own instruments: every operation is counted once, and a goal missed is said."""

import asyncio
import os
import queue
import subprocess
import sys
import threading

import pytest

from bench import cpu, load, report
from bench.payloads import request


@pytest.fixture
def server():
    """Answers every request with its path, on a thread of its own; `seen` are the requests."""
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                seen.append(head)
                path = head.split()[1]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    ready: queue.Queue[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()

    async def serve() -> None:
        stop = asyncio.Event()
        running = await asyncio.start_server(answer, "127.0.0.1", 0)
        ready.put((running.sockets[0].getsockname()[1], asyncio.get_running_loop(), stop))
        await stop.wait()
        running.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    port, loop, stop = ready.get()
    yield port, seen
    loop.call_soon_threadsafe(stop.set)
    thread.join()


def test_an_operation_of_two_requests_is_counted_once(server):
    port, seen = server
    done = 0

    def pair(number):
        nonlocal done
        for path in ("/a", "/b"):
            answer = yield request("GET", path)
            assert answer == (200, path.encode())
        done += 1

    load.run(port, pair, clients=4, limit=50)
    assert done == 50
    assert len(seen) == 100


def test_the_measured_time_counts_what_ended_in_it_and_every_client_ends_its_operation(server):
    port, seen = server

    def once(number):
        yield request("GET", f"/{number}")

    edges = []
    done = load.run(
        port,
        once,
        clients=3,
        warm_s=0.05,
        measure_s=0.2,
        on_begin=lambda: edges.append(1),
        on_end=lambda: edges.append(2),
    )
    assert edges == [1, 2]
    assert 0 < done.operations == len(done.latencies_ms) <= len(seen)
    assert 0 < done.percentile_ms(50) <= done.percentile_ms(99)


def test_a_failed_expectation_ends_the_run(server):
    port, _ = server

    def wrong(number):
        answer = yield request("GET", "/x")
        raise ValueError(answer.status)

    with pytest.raises(ValueError, match="200"):
        load.run(port, wrong, clients=2, measure_s=5)


def test_a_child_that_ended_stays_in_its_parents_account():
    before = cpu.used_s(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(20_000_000))"], check=True)
    assert cpu.used_s(os.getpid()) > before + 0.05


def test_a_goal_that_is_not_reached_is_said():
    cell = {"cpu_us": 10.0, "rate": 100.0, "p50_ms": 1.0, "p99_ms": 2.0}
    side = {"cold_start_s": 0.6, "idle_mb": 50.0, "loaded_mb": 60.0}
    results = {
        "servers": {
            "frazil": side | {"workloads": {"load1": cell, "contend": cell}},
            "fixture": side | {"workloads": {"load1": cell | {"cpu_us": 190.0}, "contend": cell | {"rate": 5.0}}},
        }
    }
    assert report.missed(results) == [
        "load1: 19.0 of 20 times",
        "cold start of one server process: 0.60 s (at most 0.5)",
    ]
    assert "19.0" in report.table(results)
