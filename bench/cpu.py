"""What a process and all its descendants have used, from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> Iterator[int]:
    """The process and its living descendants."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from tree(int(child))


def _read(path: str) -> str:
    """A file of /proc; nothing where the process has ended meanwhile."""
    with contextlib.suppress(OSError):
        return Path(path).read_text()
    return ""


def used_s(pid: int) -> float:
    """CPU seconds of the whole tree; a child that ended is in its parent's account."""
    ticks = 0
    for each in tree(pid):
        # After the name, which may hold spaces: utime, stime, and both again for children that were waited for.
        fields = _read(f"/proc/{each}/stat").rpartition(")")[2].split()
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICKS


def memory_mb(pid: int) -> float:
    """Resident memory of the tree; pages that its processes share are counted once (PSS)."""
    kib = 0
    for each in tree(pid):
        for line in _read(f"/proc/{each}/smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                kib += int(line.split()[1])
    return kib / 1024


def machine_busy_s() -> float:
    """CPU seconds that anything on this machine has used since it started."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, soft_irq, _steal = fields
    return (user + nice + system + irq + soft_irq) / TICKS
