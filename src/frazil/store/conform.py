"""Whether an object store keeps the contract of `base.py`: a backend is admitted by this run, not by its documentation.

Works on documents (`_catalog/…json`) and on files (anything else) under names of its own, and deletes what it made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from frazil.effects import RandomIds, SystemClock
from frazil.store import keys
from frazil.store.base import Applied, Backend, Found, Listed, RawPut, Refused, StoreUnavailable, Unchanged, Unclear


class Check(msgspec.Struct, frozen=True):
    name: str
    passed: bool
    detail: str


class Report(msgspec.Struct, frozen=True):
    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    @property
    def admitted(self) -> bool:
        return all(check.passed for check in self.checks)

    def text(self) -> str:
        lines = [f"{'pass' if check.passed else 'FAIL'}  {check.name}: {check.detail}" for check in self.checks]
        lines += [f"note  {note}" for note in self.notes]
        passed = sum(check.passed for check in self.checks)
        return "\n".join([*lines, f"{passed} of {len(lines) - len(self.notes)} checks passed: {self._verdict()}"])

    def _verdict(self) -> str:
        return "admitted" if self.admitted else "NOT admitted, the store may serve reads only"

    def data(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return {"admitted": self.admitted, **built}


class Broken(Exception):
    """A check found that the contract does not hold."""


async def check(open: Callable[[], Backend], *, rounds: int = 64, writers: int = 16) -> Report:
    """Run every check over two handles on one store."""
    first, second = open(), open()
    trial = Trial(first, second, rounds, writers)
    try:
        checks = [await _judge(name, act, trial, kind) for name, act, kinds in CHECKS for kind in kinds]
    finally:
        await trial.clean()
        await first.close()
        await second.close()
    return Report(tuple(checks), tuple(trial.notes))


async def _judge(name: str, act: _Act, trial: Trial, kind: str) -> Check:
    name = f"{name} ({kind})"
    try:
        return Check(name, True, await act(trial, kind))
    except Broken as broken:
        return Check(name, False, str(broken))
    except StoreUnavailable as error:
        return Check(name, False, f"no answer: {error}")
    except Exception as error:
        return Check(name, False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


class Trial:
    """Two handles, and names and bodies that nobody else has."""

    def __init__(self, first: Backend, second: Backend, rounds: int, writers: int) -> None:
        self.first = first
        self.second = second
        self.rounds = rounds
        self.writers = writers
        self.notes: list[str] = []
        self._ids = RandomIds(SystemClock())
        self._run = self._ids.uuid4()

    def handle(self, writer: int) -> Backend:
        return (self.first, self.second)[writer % 2]

    def prefix(self, kind: str) -> str:
        return f"_catalog/conformance/{self._run}/" if kind == DOCUMENTS else f"tables/{self._run}/"

    def key(self, kind: str, name: str) -> str:
        return self.prefix(kind) + name + (".json" if kind == DOCUMENTS else "")

    def body(self, text: str = "") -> bytes:
        return f'{{"stamp":"{self._ids.stamp()}","text":"{text}"}}'.encode()

    async def clean(self) -> None:
        for kind in (DOCUMENTS, FILES):
            after = ""
            while page := await self.first.list(self.prefix(kind), after):
                await asyncio.gather(*(self.first.delete(listed.key) for listed in page))
                after = page[-1].key


DOCUMENTS = "documents"
FILES = "files"
_Act = Callable[[Trial, str], Awaitable[str]]


async def create_if_absent(trial: Trial, kind: str) -> str:
    key, body = trial.key(kind, "create"), trial.body()
    applied(await trial.first.create(key, body), "the first create")
    for again in (trial.body(), body):
        refused(await trial.second.create(key, again), "a create of what exists")
    ensure(found(await trial.first.get(key)).body == body, "a refused create changed the object")
    return "a second create is refused, with other bytes and with the same"


async def create_race(trial: Trial, kind: str) -> str:
    for turn in range(trial.rounds):
        key = trial.key(kind, f"race-{turn:04}")
        bodies = [trial.body() for _ in range(trial.writers)]
        answers = await asyncio.gather(*(trial.handle(at).create(key, body) for at, body in enumerate(bodies)))
        one_winner(answers, bodies, await trial.first.get(key), turn)
    return f"one winner in each of {trial.rounds} rounds of {trial.writers}"


async def swap_race(trial: Trial, kind: str) -> str:
    key = trial.key(kind, "swaps")
    applied(await trial.first.create(key, trial.body()), "create")
    for turn in range(trial.rounds):
        before = found(await trial.first.get(key))
        bodies = [trial.body() for _ in range(trial.writers)]
        answers = await asyncio.gather(
            *(trial.handle(at).swap(key, body, before.version) for at, body in enumerate(bodies))
        )
        after = found(await trial.first.get(key))
        one_winner(answers, bodies, after, turn)
        ensure(after.version != before.version, f"round {turn}: another body has the same version")
    return f"one winner in each of {trial.rounds} rounds of {trial.writers}"


async def chain(trial: Trial, kind: str) -> str:
    """Every writer adds one, again and again: the sum tells whether an update was lost."""
    key = trial.key(kind, "chain")
    applied(await trial.first.create(key, b"0 start"), "create")
    each = max(1, trial.rounds // 8)

    async def add(writer: int) -> tuple[int, int]:
        handle, done, unclear = trial.handle(writer), 0, 0
        while done + unclear < each:
            before = found(await handle.get(key))
            body = b"%d %s" % (int(before.body.split()[0]) + 1, trial.body())
            answer = await handle.swap(key, body, before.version)
            done += isinstance(answer, Applied)
            unclear += isinstance(answer, Unclear)
        return done, unclear

    sums = await asyncio.gather(*(add(writer) for writer in range(trial.writers)))
    done, unclear = (sum(column) for column in zip(*sums, strict=True))
    total = int(found(await trial.first.get(key)).body.split()[0])
    ensure(done <= total <= done + unclear, f"{done} updates were reported as applied, {total} are there")
    return f"{done} updates by {trial.writers} writers, none lost"


async def swap_on_nothing(trial: Trial, kind: str) -> str:
    there, missing = trial.key(kind, "there"), trial.key(kind, "missing")
    version = applied(await trial.first.create(there, trial.body()), "create")
    refused(await trial.first.swap(missing, trial.body(), version), "a swap on a missing key")
    ensure(await trial.first.get(missing) is None, "a refused swap made the object")
    return "refused"


async def swap_stale(trial: Trial, kind: str) -> str:
    key = trial.key(kind, "stale")
    old = applied(await trial.first.create(key, trial.body()), "create")
    last = b""
    for _ in range(3):
        last = trial.body()
        applied(await trial.first.swap(key, last, found(await trial.first.get(key)).version), "swap")
        refused(await trial.second.swap(key, trial.body(), old), "a swap over a stale version")
    ensure(found(await trial.second.get(key)).body == last, "a refused swap changed the object")
    return "refused, through the other handle too"


async def there_and_back(trial: Trial, kind: str) -> str:
    """An object that goes from A to B to what looks like A is another object, since its stamp is another."""
    key = trial.key(kind, "aba")
    first = applied(await trial.first.create(key, trial.body("A")), "create")
    second = applied(await trial.first.swap(key, trial.body("B"), first), "swap")
    third = applied(await trial.first.swap(key, trial.body("A"), second), "swap")
    refused(await trial.first.swap(key, trial.body("C"), first), "a swap over the first A")
    ensure(len({first, second, third}) == 3, "a version came back for another body")
    body = trial.body()
    fourth = applied(await trial.first.swap(key, body, third), "swap")
    fifth = applied(await trial.first.swap(key, trial.body(), fourth), "swap")
    sixth = applied(await trial.first.swap(key, body, fifth), "swap")
    same = "the same version: only stamps keep them apart" if fourth == sixth else "versions of their own"
    trial.notes.append(f"equal bodies ({kind}) have {same}")
    return "a stale version of a stamped body is refused"


async def read_after_write(trial: Trial, kind: str) -> str:
    key = trial.key(kind, "read")
    ensure(await trial.second.get(key) is None, "there is something under a name never used")
    body = trial.body()
    version = applied(await trial.first.create(key, body), "create")
    for turn in range(trial.rounds):
        for handle in (trial.first, trial.second):
            ensure(await handle.get(key) == Found(body, version), f"round {turn}: a read does not show the last write")
        body = trial.body()
        version = applied(await trial.handle(turn).swap(key, body, version), "swap")
    return f"{2 * trial.rounds} reads, each as the write before it, through both handles"


async def conditional_read(trial: Trial, kind: str) -> str:
    key, body = trial.key(kind, "conditional"), trial.body()
    ensure(await trial.first.get_if_changed(key, "1") is None, "a missing object is not told as missing")
    old = applied(await trial.first.create(key, trial.body()), "create")
    ensure(await trial.second.get_if_changed(key, old) == Unchanged(), "an unchanged object is not told as unchanged")
    new = applied(await trial.first.swap(key, body, old), "swap")
    ensure(await trial.second.get_if_changed(key, old) == Found(body, new), "a changed object is not told as changed")
    ensure(await trial.first.get_if_changed(key, new) == Unchanged(), "an unchanged object is not told as unchanged")
    await trial.first.delete(key)
    ensure(await trial.second.get_if_changed(key, new) is None, "a deleted object is not told as missing")
    return "unchanged, changed and missing are told apart"


async def listing(trial: Trial, kind: str) -> str:
    names = ["l/a-b", "l/a/b", "l/a/c", "l/a0", "l/b", "l/ba/x", "m"]
    expected = sorted(trial.key(kind, name) for name in names)
    versions = {key: applied(await trial.first.create(key, trial.body()), "create") for key in reversed(expected)}
    start = trial.prefix(kind)

    def page(*want: str) -> list[Listed]:
        return [Listed(key, versions[key]) for key in want]

    within = [key for key in expected if key.startswith(start + "l/")]
    same(await trial.second.list(start + "l/"), page(*within), "a directory, just written")
    same(await trial.first.list(start + "l/a"), page(*(k for k in within if "l/a" in k)), "the beginning of a name")
    same(await trial.first.list(start + "l/", after=within[2]), page(*within[3:]), "after a key")
    walked: list[Listed] = []
    while more := await trial.second.list(start + "l/", after=walked[-1].key if walked else "", limit=2):
        ensure(len(more) <= 2, "a page is longer than asked for")
        walked += more
    same(walked, page(*within), "pages of two")
    await trial.first.delete(within[0])
    same(await trial.first.list(start + "l/"), page(*within[1:]), "after a delete")
    same(await trial.first.list(start + "none/"), [], "nothing")
    return "ordered, complete just after the write, in pages, with the versions that reads give"


async def delete_and_recreate(trial: Trial, kind: str) -> str:
    key = trial.key(kind, "again")
    await trial.first.delete(key)
    versions = []
    for _ in range(4):
        versions.append(applied(await trial.first.create(key, trial.body()), "create after delete"))
        await trial.second.delete(key)
        ensure(await trial.first.get(key) is None, "a deleted object can be read")
        refused(await trial.first.swap(key, trial.body(), versions[-1]), "a swap of a deleted object")
    applied(await trial.second.create(key, trial.body()), "create after delete")
    for version in versions:
        refused(await trial.first.swap(key, trial.body(), version), "a swap over a version before the delete")
    return "a deleted name can be made again, its old versions are refused"


async def whole_bodies(trial: Trial, kind: str) -> str:
    """Bodies of 1 MiB, written over each other while they are read."""
    key = trial.key(kind, "large")

    def large() -> bytes:
        return trial.body().ljust(64) * (1 << 14)

    applied(await trial.first.create(key, large()), "create")
    seen: dict[str, bytes] = {}
    writing = True

    async def read(handle: Backend) -> int:
        reads = 0
        while writing or not reads:
            got = found(await handle.get(key))
            ensure(got.body == got.body[:64] * (1 << 14), "a read mixes two bodies")
            ensure(seen.setdefault(got.version, got.body[:64]) == got.body[:64], "a version has two bodies")
            reads += 1
            await asyncio.sleep(0)
        return reads

    async def write() -> int:
        nonlocal writing
        try:
            for turn in range(min(16, trial.rounds)):
                await trial.handle(turn).swap(key, large(), found(await trial.first.get(key)).version)
                for _ in range(turn % 3):  # out of step with the readers
                    await asyncio.sleep(0)
        finally:
            writing = False
        return 0

    reads = await asyncio.gather(read(trial.first), read(trial.second), write())
    return f"{sum(reads)} reads, none torn"


async def alphabet(trial: Trial, kind: str) -> str:
    """Names of the kinds that the catalog makes."""
    moment, key = "01936f2e-7a5b-7c3d-8e4f-0123456789ab", keys.commit_key("s3://b/t/m.json")
    names = [
        keys.pointer(moment),
        keys.marker(moment),
        keys.committed_receipt(1_795_000_000_000, key),
        f"00001-{key}-{moment}.metadata.json",
        "data/day=2026-01-01/part-00000_A.zstd.parquet",
        "cdc/log/0007/00000000000000000042",
    ]
    for name in names:
        path, body = trial.key(kind, "alphabet/" + name), trial.body()
        version = applied(await trial.first.create(path, body), f"create of {name}")
        ensure(await trial.second.get(path) == Found(body, version), f"{name} reads as something else")
    listed = [item.key for item in await trial.first.list(trial.prefix(kind) + "alphabet/")]
    ensure(listed == sorted(trial.key(kind, "alphabet/" + name) for name in names), f"listed as {listed}")
    return f"{len(names)} forms"


BOTH = (DOCUMENTS, FILES)
CHECKS: tuple[tuple[str, _Act, Sequence[str]], ...] = (
    ("create if absent", create_if_absent, BOTH),
    ("create, many at once", create_race, BOTH),
    ("swap, many at once", swap_race, BOTH),
    ("a chain of swaps", chain, BOTH),
    ("swap of a missing object", swap_on_nothing, BOTH),
    ("swap over a stale version", swap_stale, BOTH),
    ("there and back", there_and_back, BOTH),
    ("read after write", read_after_write, BOTH),
    ("read if changed", conditional_read, BOTH),
    ("list", listing, BOTH),
    ("delete and make again", delete_and_recreate, BOTH),
    ("large bodies stay whole", whole_bodies, BOTH),
    ("the catalog's names", alphabet, BOTH),
)


def ensure(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def applied(answer: RawPut, what: str) -> str:
    if not isinstance(answer, Applied):
        raise Broken(f"{what} was not applied: {answer}")
    return answer.version


def refused(answer: RawPut, what: str) -> None:
    ensure(isinstance(answer, Refused), f"{what} was not refused: {answer}")


def found(there: Found | None) -> Found:
    if there is None:
        raise Broken("an object that was written is missing")
    return there


def same(got: Sequence[Listed], want: Sequence[Listed], what: str) -> None:
    ensure(list(got) == list(want), f"{what}: listed {[item.key for item in got]}, not {[item.key for item in want]}")


def one_winner(answers: Sequence[RawPut], bodies: Sequence[bytes], after: Found | None, turn: int) -> None:
    winners = [at for at, answer in enumerate(answers) if isinstance(answer, Applied)]
    ensure(len(winners) <= 1, f"round {turn}: {len(winners)} writers won")
    there = found(after)
    if winners:
        ensure(there.body == bodies[winners[0]], f"round {turn}: the winner's body is not there")
    else:
        unclear = [bodies[at] for at, answer in enumerate(answers) if isinstance(answer, Unclear)]
        ensure(there.body in unclear, f"round {turn}: nobody won")
