"""One commit at a time on a table, within a process: who would only overtake another waits for it instead.

Without this, of many writers all but one write files in vain and are told so after two round trips. Nothing depends on
it: other processes know nothing of it, and the pointer's CAS decides. Who waited too long for its turn gives it on
and says that nothing was applied, so a store that stalls for one does not run a queue of stale requests afterwards.
"""

from __future__ import annotations

from collections import deque

from frazil import limits
from frazil.effects import Effects, Promise
from frazil.errors import Unavailable


class Turns:
    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._waiting: dict[str, deque[Promise[None]]] = {}

    async def take(self, table: str) -> None:
        """Returns when it is this one's turn; then `give` must follow, come what may."""
        waiting = self._waiting.get(table)
        if waiting is None:
            self._waiting[table] = deque()
            return
        mine, since = self._effects.tasks.promise(), self._effects.clock.mark()
        waiting.append(mine)
        try:
            await mine.wait()
        except BaseException:  # cancelled: its turn, come or still to come, is the next one's
            if mine in waiting:
                waiting.remove(mine)
            else:
                self.give(table)
            raise
        if await self._effects.clock.passed(since, limits.wait_ms):
            self.give(table)
            raise Unavailable("other commits to this table take too long; nothing was applied")

    def give(self, table: str) -> None:
        waiting = self._waiting[table]
        if waiting:
            waiting.popleft().give(None)
        else:
            del self._waiting[table]
