"""An exhaustive explorer of the real core.

The core awaits only a store, a clock, ids and its own way of doing things side by side, so a process can be stepped one
storage call at a time and run again from what it saw. A state is the store, what each process saw, the writes in
flight and the faults left; equal states have equal futures, so each is expanded once and schedules are summed exactly.

Faults: a process crashes anywhere (what it put off with `later` goes with it); a write is applied, or not, without an
answer; a write is delayed and lands at any time after, or never. Time: `passed` is answered both ways: every skew and
every lease is covered.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frazil import limits
from frazil.effects import Effects
from frazil.errors import FrazilError
from frazil.store.base import Applied, Found, Listed, Refused, StoreUnavailable, Unchanged, Unclear

NOW_MS = 1_767_225_600_000
#: How often one task may ask whether time has passed and get either answer; after that its patience is at an end
#: everywhere, and leases are not taken over any more: so every story ends.
PATIENCE = 2


# -- what a process asks of the world --------------------------------------------------------------------------------


class Step:
    """One thing a coroutine waits for; the explorer answers."""

    __slots__ = ("call",)

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __await__(self) -> Any:
        return (yield self)


class SteppedBackend:
    """A backend whose every call is a step."""

    async def get(self, key: str) -> Any:
        return await Step("get", key)

    async def get_if_changed(self, key: str, version: str) -> Any:
        return await Step("get_if_changed", key, version)

    async def create(self, key: str, body: bytes) -> Any:
        return await Step("create", key, body)

    async def swap(self, key: str, body: bytes, version: str) -> Any:
        return await Step("swap", key, body, version)

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> Any:
        return await Step("list", prefix, after, limit)

    async def delete(self, key: str) -> Any:
        return await Step("delete", key)

    async def close(self) -> None: ...


class _Promise:
    def __init__(self, process: Process) -> None:
        self._process = process
        self.settled: tuple[str, Any] | None = None
        self.waiting: list[str] = []

    def give(self, value: Any) -> None:
        self._settle(("value", value))

    def fail(self, error: BaseException) -> None:
        self._settle(("error", error))

    def _settle(self, outcome: tuple[str, Any]) -> None:
        if self.settled is None:
            self.settled = outcome
            self._process.ready.extend(self.waiting)
            self.waiting.clear()

    async def wait(self) -> Any:
        kind, value = await Step("wait", self)
        if kind == "error":
            raise value
        return value


class _Tasks:
    def __init__(self, process: Process) -> None:
        self._process = process

    async def together(self, *steps: Coroutine[Any, Any, Any]) -> tuple[Any, ...]:
        outcomes = await Step("together", steps)
        for kind, value in outcomes:
            if kind == "error":
                raise value
        return tuple(value for _, value in outcomes)

    def later(self, step: Coroutine[Any, Any, object]) -> None:
        self._process.put_off(step)

    def promise(self) -> _Promise:
        return _Promise(self._process)


class _Clock:
    def __init__(self, process: Process, now_ms: int) -> None:
        self._process = process
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def mark(self) -> int:
        return 0

    async def passed(self, mark: int, wait_ms: int) -> bool:
        if self._process.out_of_patience():
            return wait_ms != limits.lease_ms
        return bool(await Step("choose", f"{wait_ms} ms passed?"))

    async def sleep(self, wait_ms: int) -> None: ...


class _Ids:
    """Ids that follow from the process, the task and how many that task has drawn: the same in every run."""

    def __init__(self, process: Process, now_ms: int) -> None:
        self._process = process
        self._now_ms = now_ms

    def _next(self) -> str:
        return self._process.draw()

    def uuid7(self) -> str:
        ms, tail = f"{self._now_ms:012x}", self._number(15)
        return f"{ms[:8]}-{ms[8:]}-7{tail[:3]}-8{tail[3:6]}-{tail[6:].rjust(12, '0')}"

    def uuid4(self) -> str:
        tail = self._number(30)
        return f"{tail[:8]}-{tail[8:12]}-4{tail[12:15]}-8{tail[15:18]}-{tail[18:30]}"

    def _number(self, width: int) -> str:
        return self._next().encode().hex()[-width:].rjust(width, "0")

    def ulid(self) -> str:
        return f"ulid-{self._next()}"

    def stamp(self) -> str:
        return self._next()


class _Chance:
    def jitter_ms(self, most_ms: int) -> int:
        return 0


# -- one process: requests, and what they put off ----------------------------------------------------------------------


class _Task:
    def __init__(self, path: str, coroutine: Coroutine[Any, Any, Any], parent: str | None) -> None:
        self.path = path
        self.coroutine = coroutine
        self.parent = parent
        self.waits: tuple[Any, ...] | None = None
        self.children: list[str] = []
        self.outcome: tuple[str, Any] | None = None
        self.drawn = 0
        self.forked = 0
        self.waited = 0


@dataclass(frozen=True)
class Actor:
    """A process: `start` makes its requests, by name, over the world it is given.

    A request named "warm" runs first, unexplored, on the store as it was in `seen`: it fills the process's caches.
    """

    name: str
    start: Callable[[Effects, SteppedBackend], Mapping[str, Callable[[], Coroutine[Any, Any, Any]]]]
    seen: Mapping[str, tuple[int, bytes]] = field(default_factory=dict)
    #: The requests start only when these are answered (or their process is dead).
    after: tuple[str, ...] = ()
    skew_ms: int = 0
    crashes: bool = True


class Process:
    def __init__(self, actor: Actor, live: dict[str, tuple[int, bytes]] | None = None) -> None:
        self.actor = actor
        self._warm_store = dict(actor.seen) if live is None else live
        self.tasks: dict[str, _Task] = {}
        self.ready: list[str] = []
        self.current = ""
        self.closed = False
        self.answers: dict[str, Any] = {}
        now_ms = NOW_MS + actor.skew_ms
        self.effects = Effects(_Clock(self, now_ms), _Ids(self, now_ms), _Chance(), _Tasks(self))
        backend = SteppedBackend()
        requests = actor.start(self.effects, backend)
        if "warm" in requests:
            self._warm_up(requests["warm"])
        for name, make in requests.items():
            if name != "warm":
                self._add(name, make(), None)

    def _warm_up(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        store = self._warm_store
        self._add("warm", make(), None)
        self.begin("warm")
        while calls := self.pending():
            for path, call in calls.items():
                self.feed(path, answer(store, call))
        assert describe(self.answers.pop("warm")) is None, "warming up answers nothing"
        self.tasks.clear()

    def draw(self) -> str:
        task = self.tasks[self.current]
        task.drawn += 1
        return f"{self.actor.name}.{self.current}.{task.drawn}"

    def out_of_patience(self) -> bool:
        task = self.tasks[self.current]
        task.waited += 1
        return task.waited > PATIENCE

    def put_off(self, step: Coroutine[Any, Any, object]) -> None:
        if self.closed:
            step.close()
            return
        task = self.tasks[self.current]
        task.forked += 1
        self._add(f"{self.current}+{task.forked}", step, None)
        self.ready.append(f"{self.current}+{task.forked}")

    def _add(self, path: str, coroutine: Coroutine[Any, Any, Any], parent: str | None) -> _Task:
        task = self.tasks[path] = _Task(path, coroutine, parent)
        return task

    def begin(self, request: str) -> None:
        self._advance(request, None)
        self._settle_ready()

    def feed(self, path: str, result: Any) -> None:
        task = self.tasks[path]
        assert task.waits is not None, path
        task.waits = None
        if isinstance(result, StoreUnavailable):
            self._advance(path, None, result)
        else:
            self._advance(path, result)
        self._settle_ready()

    def _settle_ready(self) -> None:
        while self.ready:
            path = self.ready.pop(0)
            task = self.tasks[path]
            if task.waits is not None and task.waits[0] == "wait":
                outcome = task.waits[1].settled
                task.waits = None
                self._advance(path, outcome)
            elif task.waits is None and task.outcome is None:
                self._advance(path, None)

    def _advance(self, path: str, value: Any, error: BaseException | None = None) -> None:
        task = self.tasks[path]
        before, self.current = self.current, path
        try:
            step = task.coroutine.throw(error) if error is not None else task.coroutine.send(value)
        except StopIteration as end:
            task.outcome = ("value", end.value)
        except Exception as failure:
            task.outcome = ("error", failure)
        else:
            self._wait(task, step.call)
        finally:
            self.current = before
        if task.outcome is not None:
            self._ended(task)

    def _wait(self, task: _Task, call: tuple[Any, ...]) -> None:
        match call:
            case ("together", steps):
                task.children = [f"{task.path}/{task.forked}.{number}" for number in range(len(steps))]
                task.forked += 1
                task.waits = ("join",)
                for path, step in zip(task.children, steps, strict=True):
                    self._add(path, step, task.path)
                for path in list(task.children):
                    self._advance(path, None)
                if not steps:
                    task.waits = None
                    self._advance(task.path, [])
            case ("wait", promise):
                task.waits = call
                if promise.settled is not None:
                    self.ready.append(task.path)
                else:
                    promise.waiting.append(task.path)
            case _:
                task.waits = call

    def _ended(self, task: _Task) -> None:
        if task.parent is None:
            if "+" not in task.path:
                self.answers[task.path] = task.outcome
            return
        parent = self.tasks[task.parent]
        siblings = [self.tasks.get(path) for path in parent.children]
        if all(sibling is not None and sibling.outcome is not None for sibling in siblings):
            outcomes = [sibling.outcome for sibling in siblings if sibling is not None]
            parent.children = []
            parent.waits = None
            self._advance(parent.path, outcomes)

    def pending(self) -> dict[str, tuple[Any, ...]]:
        """The steps that the world can answer now."""
        calls = {}
        for path, task in self.tasks.items():
            if task.outcome is not None:
                continue
            if task.waits is None and task.parent is None and "+" not in path:
                calls[path] = ("start",)
            elif task.waits is not None and task.waits[0] not in ("join", "wait"):
                calls[path] = task.waits
        return calls

    def close(self) -> None:
        self.closed = True
        for task in list(self.tasks.values()):
            task.coroutine.close()


def describe(outcome: tuple[str, Any]) -> Any:
    """An answer as the caller sees it: a value, or the error's status and type."""
    kind, value = outcome
    if kind == "value":
        return value
    if isinstance(value, FrazilError):
        return (value.status, value.type, value.message)
    raise AssertionError(f"a request ended in a bug: {value!r}") from value


# -- a store that answers at once: to build the beginning, and to count ----------------------------------------


def answer(store: dict[str, tuple[int, bytes]], call: tuple[Any, ...]) -> Any:
    """What a healthy store says to one call, changing `store`."""
    match call:
        case ("get", key):
            found = store.get(key)
            return None if found is None else Found(found[1], str(found[0]))
        case ("get_if_changed", key, version):
            found = store.get(key)
            if found is None:
                return None
            return Unchanged() if str(found[0]) == version else Found(found[1], str(found[0]))
        case ("create", key, body):
            if key in store:
                return Refused()
            store[key] = (1, body)
            return Applied("1")
        case ("swap", key, body, version):
            found = store.get(key)
            if found is None or str(found[0]) != version:
                return Refused()
            store[key] = (found[0] + 1, body)
            return Applied(str(found[0] + 1))
        case ("list", prefix, after, limit):
            names = sorted(key for key in store if key.startswith(prefix) and key > after)[:limit]
            return [Listed(key, str(store[key][0])) for key in names]
        case ("delete", key):
            store.pop(key, None)
            return None
        case ("choose", _):
            return 1
    raise AssertionError(f"no such call: {call}")


@dataclass
class Alone:
    """What one process did by itself on a healthy store: answers, calls, and how long the chain was."""

    answers: dict[str, Any]
    calls: list[tuple[str, str]]
    #: Rounds of calls side by side until every request was answered.
    chain: int


def run_until(actor: Actor, store: dict[str, tuple[int, bytes]], stop: Callable[[tuple[Any, ...]], bool]) -> None:
    """Run a process until it asks for something that `stop` picks; there it dies."""
    process = Process(actor)
    for request in list(process.tasks):
        process.begin(request)
    while steps := process.pending():
        for path, call in steps.items():
            if stop(call):
                process.close()
                return
            process.feed(path, answer(store, call))
    raise AssertionError(f"{actor.name} never came to where it should die")


def run_alone(
    actor: Actor, store: dict[str, tuple[int, bytes]], meanwhile: Callable[[], object] | None = None
) -> Alone:
    """Run a process to its end. Calls that wait at the same time are answered in one round: a round is a round trip.

    With `meanwhile` the process warms up on this very store, and that happens before its requests.
    """
    process = Process(actor, store if meanwhile is not None else None)
    if meanwhile is not None:
        meanwhile()
    calls: list[tuple[str, str]] = []
    chain, rounds = 0, 0
    for request in list(process.tasks):
        process.begin(request)
    while steps := {path: call for path, call in process.pending().items() if call[0] != "start"}:
        if any(call[0] != "choose" for call in steps.values()):
            rounds += 1
        before = len(process.answers)
        for path, call in steps.items():
            if call[0] != "choose":
                calls.append((call[0], call[1]))
            process.feed(path, answer(store, call))
        if len(process.answers) > before:
            chain = rounds
    assert all(task.outcome is not None for task in process.tasks.values()), "a task waits for nothing"
    failed = [
        task.outcome[1]
        for task in process.tasks.values()
        if "+" in task.path and task.outcome is not None and task.outcome[0] == "error"
    ]
    if failed:
        raise failed[0]
    return Alone({name: describe(outcome) for name, outcome in process.answers.items()}, calls, chain)


# -- the exploration --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    crashes: int = 1
    ambiguous: int = 1
    in_flight: int = 1
    #: How often one process may be interrupted by another while it has something to do. None: any number.
    switches: int | None = None


@dataclass(frozen=True)
class Scenario:
    name: str
    actors: tuple[Actor, ...]
    store: Mapping[str, tuple[int, bytes]]
    #: (the store at the end, the answers by request: None where there was none) → what is wrong, or None
    check: Callable[[Mapping[str, bytes], Mapping[str, Any]], str | None]
    budget: Budget = Budget()
    #: Branches of one request do not talk to each other: their order in what a process saw does not matter. False
    #: where several requests share the process.
    canonical: bool = True


@dataclass
class Result:
    scenario: str
    states: int
    schedules: int
    violations: int
    seconds: float
    complete: bool
    message: str | None = None
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        end = "" if self.complete else " (stopped)"
        return (
            f"{self.scenario}: {self.states:,} states, {self.schedules:,} schedules, "
            f"{self.violations:,} violations, {self.seconds:.1f} s{end}"
        )


_RUNS, _DEAD = 0, 1


@dataclass
class _Frame:
    state: Any
    successors: list[tuple[Any, str]]
    at: int = 0
    schedules: int = 0
    violations: int = 0


class Explorer:
    """Depth first over all states; can be pickled between any two expansions, so a long run resumes from disk."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.memo: dict[Any, tuple[int, int]] = {}
        self.stack: list[_Frame] = []
        self.message: str | None = None
        self.trace: tuple[str, ...] = ()
        self.seconds = 0.0
        self._bodies: dict[bytes, int] = {}
        self._by_number: list[bytes] = []
        self._outlooks: dict[Any, tuple[dict[str, tuple[Any, ...]], dict[str, Any]]] = {}
        budget = scenario.budget
        store = tuple(sorted((key, version, self._body(body)) for key, (version, body) in scenario.store.items()))
        self._first = (
            store,
            tuple((_RUNS, ()) for _ in scenario.actors),
            (),
            (budget.crashes, budget.ambiguous, budget.in_flight),
            (None, budget.switches),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "scenario": None, "_outlooks": {}}

    @classmethod
    def resumed(cls, path: Path, scenario: Scenario) -> Explorer:
        if not path.exists():
            return cls(scenario)
        explorer: Explorer = pickle.loads(path.read_bytes())
        explorer.scenario = scenario
        return explorer

    def save(self, path: Path) -> None:
        partial = path.with_suffix(".partial")
        partial.write_bytes(pickle.dumps(self))
        partial.replace(path)

    def _body(self, body: bytes) -> int:
        number = self._bodies.get(body)
        if number is None:
            number = self._bodies[body] = len(self._by_number)
            self._by_number.append(body)
        return number

    # -- walking ---------------------------------------------------------------------------------------------------

    def run(
        self, *, most_states: int | None = None, most_seconds: float | None = None, first_only: bool = False
    ) -> Result:
        started = time.monotonic()
        if not self.stack and self._first not in self.memo:
            self.stack.append(_Frame(self._first, self._successors(self._first)))
        while self.stack:
            if most_states is not None and len(self.memo) >= most_states:
                break
            if most_seconds is not None and time.monotonic() - started > most_seconds:
                break
            if first_only and self.message is not None:
                break
            self._expand()
        self.seconds += time.monotonic() - started
        complete = not self.stack
        schedules, violations = self.memo.get(self._first, (0, 0))
        if not complete:
            # So far: what the states on the way down have counted behind them.
            schedules = sum(frame.schedules for frame in self.stack)
            violations = sum(frame.violations for frame in self.stack) or int(self.message is not None)
        return Result(
            self.scenario.name,
            len(self.memo),
            schedules,
            violations,
            self.seconds,
            complete,
            self.message,
            self.trace,
        )

    def _expand(self) -> None:
        frame = self.stack[-1]
        if frame.at < len(frame.successors):
            state, _ = frame.successors[frame.at]
            known = self.memo.get(state)
            if known is None:
                self.stack.append(_Frame(state, self._successors(state)))
                return
            frame.at += 1
            frame.schedules += known[0]
            frame.violations += known[1]
            return
        if not frame.successors:
            frame.schedules = 1
            frame.violations = self._judge(frame.state)
        self.memo[frame.state] = (frame.schedules, frame.violations)
        self.stack.pop()

    def _judge(self, state: Any) -> int:
        store = {key: self._by_number[body] for key, _, body in state[0]}
        answers: dict[str, Any] = {}
        for number, (status, seen) in enumerate(state[1]):
            pending, given = self._outlook(number, seen)
            answers.update({name: None for name, call in pending.items() if call == ("start",)})
            answers.update(given)
            assert status == _DEAD or not pending, "nothing to do, and yet not done"
        problem = self.scenario.check(store, answers)
        if problem is None:
            return 0
        trace = tuple(frame.successors[frame.at][1] for frame in self.stack[:-1])
        if self.message is None or len(trace) < len(self.trace):
            self.message, self.trace = problem, trace
        return 1

    # -- one state's next steps ------------------------------------------------------------------------------------

    def _outlook(self, number: int, seen: Any) -> tuple[dict[str, tuple[Any, ...]], dict[str, Any]]:
        """What a process that saw this asks next, and what it has answered: found by running it again."""
        known = self._outlooks.get((number, seen))
        if known is None:
            process = Process(self.scenario.actors[number])
            try:
                _replay(process, seen, self.scenario.canonical)
                answers = {name: describe(outcome) for name, outcome in process.answers.items()}
                known = process.pending(), answers
            finally:
                process.close()
            self._outlooks[number, seen] = known
        return known

    def _answered(self, state: Any) -> set[str]:
        names: set[str] = set()
        for number, (status, seen) in enumerate(state[1]):
            pending, given = self._outlook(number, seen)
            names.update(given)
            if status == _DEAD:
                names.add(self.scenario.actors[number].name)
                names.update(path for path in pending if "/" not in path and "+" not in path)
        return names

    def _successors(self, state: Any) -> list[tuple[Any, str]]:
        store, actors, flying, budget, turn = state
        result: list[tuple[Any, str]] = []
        answered = self._answered(state) if any(actor.after for actor in self.scenario.actors) else set()
        for number, (status, seen) in enumerate(actors):
            if status == _DEAD:
                continue
            actor = self.scenario.actors[number]
            if actor.after and not seen and not answered.issuperset(actor.after):
                continue
            pending, _ = self._outlook(number, seen)
            for path, call in pending.items():
                if self._commutes(store, call):
                    alone: list[tuple[Any, str]] = []
                    self._steps(state, number, path, call, turn, alone)
                    return alone
                next_turn = self._turn(state, number)
                if next_turn is not None:
                    self._steps(state, number, path, call, next_turn, result)
            if budget[0] > 0 and seen and pending and actor.crashes:
                dead = _with(actors, number, (_DEAD, seen))
                result.append(((store, dead, flying, (budget[0] - 1, *budget[1:]), turn), f"{actor.name} crashes"))
        for at, write in enumerate(flying):
            rest = flying[:at] + flying[at + 1 :]
            landed, _ = self._write(store, write)
            result.append(((landed, actors, rest, budget, turn), f"the net: {_shown(write)} lands"))
            result.append(((store, actors, rest, budget, turn), f"the net: {_shown(write)} is lost"))
        return result

    def _turn(self, state: Any, number: int) -> tuple[int | None, int | None] | None:
        """Whose turn it is after a step of this process, and how many interruptions are left; None: it may not."""
        last, left = state[4]
        if left is None:
            return (None, None)
        if last is None or last == number:
            return (number, left)
        status, seen = state[1][last]
        if status == _DEAD or not self._outlook(last, seen)[0]:
            return (number, left)
        return (number, left - 1) if left > 0 else None

    def _commutes(self, store: Any, call: tuple[Any, ...]) -> bool:
        """Whether a step has no effect on anybody else whenever it is taken: then it is taken at once, in all its ways.

        Beginning and asking the time touch nothing. A metadata file or a pending receipt is written under a name that
        nobody else knows yet. What is never written twice reads the same at any time once it is there.
        """
        match call:
            case ("start",) | ("choose", _):
                return True
            case ("create", key, _):
                return key.startswith("tables/") or "/iceberg/pending/" in key
            case ("get", key):
                fixed = key.startswith("tables/") or "/iceberg/committed/" in key
                return fixed and any(item[0] == key for item in store)
        return False

    def _steps(
        self, state: Any, number: int, path: str, call: tuple[Any, ...], turn: Any, result: list[tuple[Any, str]]
    ) -> None:
        store, actors, flying, (crashes, ambiguous, in_flight), _ = state
        name = self.scenario.actors[number].name
        label = f"{name} {path}: {_shown(call)}"

        def saw(what: Any, store_: Any, note: str, flying_: Any = flying, budget: Any = None) -> None:
            seen = self._seen(actors[number][1], path, what)
            changed = _with(actors, number, (_RUNS, seen))
            result.append(((store_, changed, flying_, budget or state[3], turn), f"{label} → {note}"))

        def dies(store_: Any, note: str, flying_: Any, budget: Any) -> None:
            dead = _with(actors, number, (_DEAD, actors[number][1]))
            result.append(((store_, dead, flying_, budget, turn), f"{label} → {note}"))

        match call:
            case ("start",):
                saw("start", store, "")
            case ("choose", _):
                saw(0, store, "no")
                saw(1, store, "yes")
            case ("create" | "swap", *_):
                write = (call[0], call[1], self._body(call[2]), *call[3:])
                landed, what = self._write(store, write)
                saw(what, landed, type(what).__name__)
                if ambiguous:
                    note = "applied, no answer" if landed is not store else "refused, no answer"
                    saw(Unclear("lost"), landed, note, budget=(crashes, ambiguous - 1, in_flight))
                    if landed is not store:
                        saw(
                            Unclear("lost"), store, "not applied, no answer", budget=(crashes, ambiguous - 1, in_flight)
                        )
                if in_flight:
                    flown = tuple(sorted((*flying, write), key=repr))
                    saw(Unclear("late"), store, "delayed, no answer", flown, (crashes, ambiguous, in_flight - 1))
                    if crashes and self.scenario.actors[number].crashes:
                        dies(store, "delayed, and it dies", flown, (crashes - 1, ambiguous, in_flight - 1))
                if crashes and landed is not store and self.scenario.actors[number].crashes:
                    dies(landed, "applied, and it dies", flying, (crashes - 1, ambiguous, in_flight))
            case _:
                saw(self._read(store, call), store, "")

    def _seen(self, seen: Any, path: str, what: Any) -> Any:
        if not self.scenario.canonical:
            return (*seen, (path, what))
        by_path = dict(seen)
        by_path[path] = (*by_path.get(path, ()), what)
        return tuple(sorted(by_path.items()))

    def _read(self, store: Any, call: tuple[Any, ...]) -> Any:
        return answer({key: (version, self._by_number[body]) for key, version, body in store if key == call[1]}, call)

    def _write(self, store: Any, write: tuple[Any, ...]) -> tuple[Any, Any]:
        kind, key, body, *condition = write
        there = next((at for at, item in enumerate(store) if item[0] == key), None)
        if kind == "create":
            if there is not None:
                return store, Refused()
            return tuple(sorted((*store, (key, 1, body)))), Applied("1")
        if there is None or str(store[there][1]) != condition[0]:
            return store, Refused()
        version = store[there][1] + 1
        return (*store[:there], (key, version, body), *store[there + 1 :]), Applied(str(version))


def _replay(process: Process, seen: Any, canonical: bool) -> None:
    if not canonical:
        for path, what in seen:
            if what == "start":
                process.begin(path)
            else:
                process.feed(path, what)
        return
    left = {path: list(results) for path, results in seen}
    while left:
        path = min(path for path in left if path in process.pending())
        what = left[path].pop(0)
        if not left[path]:
            del left[path]
        if what == "start":
            process.begin(path)
        else:
            process.feed(path, what)


def _with(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    return (*items[:at], item, *items[at + 1 :])


def _shown(call: tuple[Any, ...]) -> str:
    return " ".join(str(part) for part in (call[0], *call[1:2]))
