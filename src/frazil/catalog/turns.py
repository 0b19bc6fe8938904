"""One commit at a time on a table, within a process: who would only overtake another waits for it instead.

Without this, of many writers all but one write files in vain and are told so after two round trips. Nothing depends on
it: other processes know nothing of it, and the pointer's CAS decides.
"""

from __future__ import annotations

from collections import deque

from frazil.effects import Promise, Tasks


class Turns:
    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._waiting: dict[str, deque[Promise[None]]] = {}

    async def take(self, table: str) -> None:
        """Returns when it is this one's turn; then `give` must follow, come what may."""
        waiting = self._waiting.get(table)
        if waiting is None:
            self._waiting[table] = deque()
            return
        mine = self._tasks.promise()
        waiting.append(mine)
        await mine.wait()

    def give(self, table: str) -> None:
        waiting = self._waiting[table]
        if waiting:
            waiting.popleft().give(None)
        else:
            del self._waiting[table]
