"""Several processes on one local directory, killed in the middle of what they do, again and again."""

import asyncio
import os
import random
import subprocess
import sys
from collections import defaultdict

import pytest

from frazil.store.local import LocalBackend
from tests.store import hammer

PROCESSES = 3
KILLS = 10


@pytest.mark.seed(42)
@pytest.mark.parametrize("nameless", [True, False], ids=["O_TMPFILE", "hidden names"])
@pytest.mark.parametrize("sync", [True, False], ids=["synced", "not synced"])
async def test_no_update_is_lost_and_no_read_torn_when_processes_are_killed(tmp_path, sync, nameless):
    root, ledger = tmp_path / "root", tmp_path / "ledger"
    command = [
        *(sys.executable, "-m", "tests.store.hammer", str(root), str(ledger)),
        *("sync" if sync else "no", "nameless" if nameless else "named"),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start():
        return subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)

    running = [start() for _ in range(PROCESSES)]
    try:
        for _ in range(KILLS):
            await asyncio.sleep(random.uniform(0.2, 0.5))
            victim = running.pop(0)
            killed_alive(victim)
            running.append(start())
        for _ in range(300):  # a busy machine may have done little by now
            if enough(acknowledgements(ledger)):
                break
            await asyncio.sleep(0.1)
    finally:
        for process in running:
            killed_alive(process)

    acknowledged = acknowledgements(ledger)
    assert enough(acknowledged), {key: len(updates) for key, updates in acknowledged.items()}
    backend = LocalBackend(str(root), sync=False)
    for key, updates in acknowledged.items():
        counts = [count for count, _ in updates]
        assert len(set(counts)) == len(counts), f"{key}: two updates of one state were both acknowledged"
        updates.sort()
        assert updates == sorted(updates, key=lambda update: update[1]), f"{key}: versions do not grow with the count"
        found = await backend.get(key)
        assert found is not None
        # The last update may have been applied by a process that was killed before it could note so.
        assert hammer.check(found) >= updates[-1], f"{key}: the last acknowledged update is gone"
        assert len(counts) <= max(hammer.check(found)[0], 1)
    await backend.close()


def acknowledgements(ledger) -> dict[str, list[tuple[int, int]]]:
    """Count and version of every update of each key, in the order of the ledger."""
    found = defaultdict(list)
    for line in ledger.read_text().splitlines() if ledger.exists() else ():
        key, count, version, _ = line.split()
        found[key].append((int(count), int(version)))
    return found


def enough(acknowledged) -> bool:
    fresh = sum(key not in hammer.KEYS for key in acknowledged)
    return fresh > 20 and all(len(acknowledged[key]) > 20 for key in hammer.KEYS)


def killed_alive(process) -> None:
    """Kill -9; a process that ended before had found something wrong."""
    ended = process.poll()
    process.kill()
    said = process.communicate()[1].decode()
    assert ended is None, said[-3000:]
