"""The guard's word against what the store really did, for every fault, alone and in a row, beside a rival or not."""

import asyncio
import itertools

import pytest

from frazil.effects import SystemChance, SystemClock
from frazil.errors import Unavailable
from frazil.store import guard as guard_module
from frazil.store.base import Applied, Found, Overtaken, StoreUnavailable, Unchanged, Undecided
from frazil.store.cloud import open_s3
from frazil.store.guard import Guard, SendAgain, verdict
from frazil.store.memory import MemoryBackend
from tests.store.faults import (
    CONFLICT,
    CONFLICT_AFTER_APPLYING,
    DELAYED,
    ERROR_AFTER_APPLYING,
    EVERY,
    HANGS,
    LOST_ANSWER,
    LOST_REQUEST,
    REFUSED_AFTER_APPLYING,
    FaultProxy,
    FaultyBackend,
)

KEY = "_catalog/iceberg_pointers/k.json"


class Ticks:
    """A clock on which the deadline is a number of pauses. `at_pause` happens in the middle of one."""

    def __init__(self, pauses: int = 10) -> None:
        self._left = pauses
        self.at_pause: dict = {}
        self.paused = 0

    def now_ms(self):
        return 0

    def mark(self):
        return 0

    async def passed(self, mark, wait_ms):
        return self.paused >= self._left

    async def sleep(self, wait_ms):
        assert 1 <= wait_ms <= guard_module.LONGEST_PAUSE_MS + 1
        self.paused += 1
        if act := self.at_pause.get(self.paused):
            await act()


def guarded(backend, pauses=10):
    clock = Ticks(pauses)
    return Guard(backend, clock, SystemChance(), deadline_ms=1000), clock


async def version_of(put) -> str:
    answer = await put
    assert isinstance(answer, Applied), answer
    return answer.version


async def test_a_clean_write_is_one_request():
    backend = FaultyBackend()
    store, clock = guarded(backend)
    made = await store.put_new(KEY, b"a")
    assert isinstance(made, Applied)
    assert isinstance(await store.put_if(KEY, b"b", made.version), Applied)
    assert (backend.sent, clock.paused) == ([b"a", b"b"], 0)


@pytest.mark.seed(40)
async def test_a_stale_write_is_overtaken_and_told_by_what():
    backend = MemoryBackend()
    store, _ = guarded(backend)
    old = await store.put_new(KEY, b"a")
    new = await store.put_if(KEY, b"b", old.version)
    assert await store.put_if(KEY, b"c", old.version) == Overtaken(Found(b"b", new.version))
    assert await store.put_new(KEY, b"c") == Overtaken(Found(b"b", new.version))
    assert await store.put_if("_catalog/none.json", b"c", "7") == Overtaken(None)


@pytest.mark.parametrize("second", [None, *EVERY], ids=str)
@pytest.mark.parametrize("first", EVERY, ids=str)
async def test_the_guard_never_lies(first, second):
    faults = (first,) if second is None else (first, second)
    for new, rival_at, lands_at in itertools.product((True, False), (None, 1, 2), (1, 2, 9)):
        await the_guard_does_not_lie(new, faults, rival_at, lands_at)


async def the_guard_does_not_lie(new, faults, rival_at, lands_at):
    """A rival writes, and what is delayed lands, in the guard's pauses of these numbers."""
    backend = FaultyBackend()
    store, clock = guarded(backend, pauses=4)
    version = "" if new else await version_of(MemoryBackend.create(backend, KEY, b"before"))

    async def rival():
        there = await MemoryBackend.get(backend, KEY)
        if there is None:
            await MemoryBackend.create(backend, KEY, b"rival")
        else:
            await MemoryBackend.swap(backend, KEY, b"rival", there.version)

    async def pause():
        if clock.paused == lands_at:
            await backend.land()
        if clock.paused == rival_at:
            await rival()

    clock.at_pause = dict.fromkeys((1, 2, 3), pause)
    backend.faults.extend(faults)
    outcome = await (store.put_new(KEY, b"mine") if new else store.put_if(KEY, b"mine", version))
    decided = list(backend.history)
    await backend.land()

    assert set(backend.sent) == {b"mine"}, "the very same bytes, whenever they are sent again"
    assert backend.history.count(b"mine") <= 1, "one write takes effect once"
    match outcome:
        case Applied(version):
            assert decided == [b"mine"]
        case Overtaken(found):
            assert found is not None
            assert found.body == b"rival"
            assert backend.history == decided, "an overtaken write lands no more"
        case Undecided():
            pytest.fail("after two faults the third try is clean")
    if rival_at is None:
        assert isinstance(outcome, Applied)


@pytest.mark.parametrize("fault", [f for f in EVERY if not f.applies], ids=str)
async def test_what_never_lands_is_undecided_at_the_deadline(fault):
    backend = FaultyBackend()
    backend.faults.extend([fault] * 50)
    store, clock = guarded(backend, pauses=6)
    outcome = await store.put_new(KEY, b"mine")
    assert isinstance(outcome, Undecided)
    assert outcome.reason
    assert (len(backend.sent), clock.paused) == (7, 6)


async def test_a_delayed_write_that_lands_after_the_deadline_was_called_undecided():
    backend = FaultyBackend()
    backend.faults.extend([DELAYED] * 50)
    store, _ = guarded(backend, pauses=3)
    assert isinstance(await store.put_new(KEY, b"mine"), Undecided)
    await backend.land()
    assert backend.history == [b"mine"]


@pytest.mark.parametrize("blind", [1, 3])
@pytest.mark.parametrize("fault", [LOST_ANSWER, LOST_REQUEST, CONFLICT, REFUSED_AFTER_APPLYING], ids=str)
async def test_a_read_back_without_an_answer_is_read_again(fault, blind):
    backend = FaultyBackend()
    backend.faults.append(fault)
    backend.blind_reads = blind
    store, _ = guarded(backend)
    assert isinstance(await store.put_new(KEY, b"mine"), Applied)
    assert backend.history == [b"mine"]


async def test_a_store_that_cannot_be_read_leaves_the_write_undecided():
    backend = FaultyBackend()
    backend.faults.append(LOST_ANSWER)
    backend.blind_reads = 99
    store, _ = guarded(backend)
    outcome = await store.put_new(KEY, b"mine")
    assert isinstance(outcome, Undecided)
    assert "read-back" in outcome.reason


async def test_the_same_bytes_by_somebody_else_count_as_applied():
    """A receipt is settled by whoever meets it first, with the same bytes."""
    backend = MemoryBackend()
    other = await backend.create(KEY, b"receipt")
    store, _ = guarded(backend)
    assert await store.put_new(KEY, b"receipt") == other


def test_the_verdict_of_a_read_back():
    mine, other = Found(b"mine", "2"), Found(b"other", "1")
    assert verdict(b"mine", "1", mine) == Applied("2")
    assert verdict(b"mine", None, mine) == Applied("2")
    assert verdict(b"mine", "1", other) == SendAgain()
    assert verdict(b"mine", None, None) == SendAgain()
    assert verdict(b"mine", "0", other) == Overtaken(other)
    assert verdict(b"mine", None, other) == Overtaken(other)
    assert verdict(b"mine", "1", None) == Overtaken(None)


async def test_reads_are_repeated_and_then_say_what_could_not_be_read():
    backend = FaultyBackend()
    await backend.create(KEY, b"a")
    store, _ = guarded(backend, pauses=3)
    backend.blind_reads = 3
    found = await store.get(KEY)
    assert found is not None
    assert await store.get_if_changed(KEY, found.version) == Unchanged()
    assert [item.key for item in await store.list("_catalog/")] == [KEY]
    backend.blind_reads = 99
    store, _ = guarded(backend, pauses=3)
    with pytest.raises(Unavailable, match=f"get {KEY}"):
        await store.get(KEY)


@pytest.mark.parametrize("verb", ["delete", "list"])
async def test_deletes_and_lists_are_repeated_too(verb):
    class Flaky(MemoryBackend):
        left = 2

        def fail(self):
            self.left -= 1
            if self.left >= 0:
                raise StoreUnavailable("503")

        async def delete(self, key):
            self.fail()
            await super().delete(key)

        async def list(self, prefix, after="", limit=1000):
            self.fail()
            return await super().list(prefix, after, limit)

    backend = Flaky()
    store, clock = guarded(backend)
    await getattr(store, verb)(KEY)
    assert clock.paused == 2
    backend.left = 999
    with pytest.raises(Unavailable, match=f"{verb} {KEY}"):
        await getattr(store, verb)(KEY)


# -- the same over a real S3 server -----------------------------------------------------------------------------------


async def opened(server, proxy, prefix, timeout_ms="500"):
    """Straight to the server, and through the proxy. Opening asks the bucket: not in the loop that runs the proxy."""
    through = server.options(endpoint=f"http://127.0.0.1:{proxy.port}", timeout_ms=timeout_ms)
    direct = await asyncio.to_thread(open_s3, f"{server.root}/{prefix}", server.options())
    return direct, await asyncio.to_thread(open_s3, f"{server.root}/{prefix}", through)


@pytest.mark.seed(41, 42)
@pytest.mark.parametrize("new", [True, False], ids=["put_new", "put_if"])
@pytest.mark.parametrize("fault", EVERY, ids=str)
async def test_every_fault_of_a_real_store_is_seen_through(s3_server, fault, new):
    async with FaultProxy(s3_server.port) as proxy:
        direct, backend = await opened(s3_server, proxy, "guard")
        key = f"_catalog/{fault.name.replace(' ', '-').replace(',', '')}-{new}.json"
        store = Guard(backend, SystemClock(), SystemChance(), deadline_ms=5000)
        version = "" if new else await version_of(direct.create(key, b"before"))
        proxy.next("PUT", key, fault)
        outcome = await (store.put_new(key, b"mine") if new else store.put_if(key, b"mine", version))
        await proxy.landed()
        assert isinstance(outcome, Applied), outcome
        assert await direct.get(key) == Found(b"mine", outcome.version)
        assert len(set(proxy.bodies("PUT", key))) == 1
        await backend.close()
        await direct.close()


@pytest.mark.parametrize("faults", [(ERROR_AFTER_APPLYING,), (LOST_ANSWER,), (CONFLICT_AFTER_APPLYING,)], ids=str)
async def test_a_rival_on_top_of_an_applied_write_leaves_the_decision_to_the_caller(s3_server, faults):
    async with FaultProxy(s3_server.port) as proxy:
        direct, backend = await opened(s3_server, proxy, "rival")
        key = f"_catalog/{faults[0].applies}-{faults[0].answer}.json"

        class Rival:
            """Writes just before the read-back."""

            def __getattr__(self, name):
                return getattr(backend, name)

            async def get(self, key):
                there = await direct.get(key)
                assert there is not None
                if there.body == b"mine":
                    await direct.swap(key, b"rival", there.version)
                return await backend.get(key)

        store = Guard(Rival(), SystemClock(), SystemChance(), deadline_ms=5000)
        proxy.next("PUT", key, *faults)
        outcome = await store.put_new(key, b"mine")
        assert isinstance(outcome, Overtaken)
        assert outcome.found is not None
        assert outcome.found.body == b"rival"
        await backend.close()
        await direct.close()


async def test_a_store_that_hangs_leaves_the_write_undecided_in_time(s3_server):
    async with FaultProxy(s3_server.port) as proxy:
        direct, backend = await opened(s3_server, proxy, "hangs", timeout_ms="300")
        store = Guard(backend, SystemClock(), SystemChance(), deadline_ms=1000)
        proxy.next("PUT", ".json", *[HANGS] * 50)
        outcome = await store.put_new("_catalog/hangs.json", b"mine")
        assert isinstance(outcome, Undecided)
        await backend.close()
        await direct.close()
