"""Identity: one CAS a change, shared by whoever asks at the same time; checkpoints; a plain dict says the same."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from frazil import limits
from frazil.catalog.catalog import Catalog
from frazil.catalog.entries import ICEBERG, TABLE, Entry, children, named_by, namespace_key, table_key
from frazil.catalog.idempotency import Request
from frazil.catalog.registry import Decision, Draft, Operation, table_entry
from frazil.errors import AlreadyExists, Conflict, FrazilError, NoSuchTable, Unavailable
from frazil.names import TableName
from frazil.store import keys
from tests.catalog.builders import (
    GRANT,
    NS,
    Lake,
    T,
    U,
    a_namespace,
    a_table,
    by,
    commit,
    drop,
    load,
    namespaces,
    properties,
    rename,
    status,
    tables,
    told,
)


@pytest.fixture
def small(monkeypatch):
    """Checkpoints every few changes, ranges of a few entries."""
    monkeypatch.setattr(limits, "head_changes_max", 5)
    monkeypatch.setattr(limits, "range_entries_max", 4)


def an_operation(lake: Lake, *, put: dict[str, Entry] | None = None, removed: dict[str, str] | None = None) -> Any:
    """A change as some operation might make it, without its checks."""
    request = Request(lake.key(), False, "test", "", "", None)

    async def decide(draft: Draft) -> Decision:
        return Decision(put=put or {}, removed=removed or {})

    return Operation(request, decide)


# -- group commit -----------------------------------------------------------------------------------------------------


async def test_fifty_creations_at_once_cost_few_writes_of_the_head(lake, catalog):
    lake.store.calls.clear()
    names = [TableName(NS, f"t{number:02}") for number in range(50)]
    answers = await asyncio.gather(*(told(a_table(catalog, name)) for name in names))
    assert all(status(answer) == 200 for answer in answers)
    assert lake.store.count("swap", keys.HEAD) <= 5
    assert await tables(catalog) == [name.name for name in names]


async def test_of_many_creations_of_one_name_at_once_one_succeeds(lake, catalog, second):
    answers = await asyncio.gather(*(told(a_table(process)) for process in (catalog, second) for _ in range(10)))
    assert sorted(map(status, answers)) == [200] + [409] * 19
    made = next(answer for answer in answers if status(answer) == 200)
    assert (await load(await lake.opened())).location == made


async def test_one_refusal_in_a_batch_does_not_touch_the_others(lake, catalog):
    await a_table(catalog, U)
    requests = (a_table(catalog, T), a_table(catalog, U), a_namespace(catalog, "n"), drop(catalog, TableName(NS, "v")))
    assert [status(answer) for answer in await asyncio.gather(*map(told, requests))] == [200, 409, 200, 404]


async def test_operations_of_one_batch_see_each_other(lake, catalog):
    """In the order they came in: a table in the namespace made a moment before."""
    gate = lake.store.hold("swap", keys.HEAD)
    first = asyncio.create_task(a_namespace(catalog, "first"))
    await gate.reached.wait()
    rest = [
        asyncio.create_task(told(request))
        for request in (
            a_namespace(catalog, "new"),
            a_namespace(catalog, "new", "inner"),
            catalog.drop_namespace(GRANT, ("new",), by()),
            a_namespace(catalog, "new"),
        )
    ]
    await asyncio.sleep(0)
    gate.open()
    await first
    assert [status(answer) for answer in await asyncio.gather(*rest)] == [200, 200, 409, 409]


async def test_changes_of_two_processes_are_all_made(lake, catalog, second):
    answers = await asyncio.gather(
        *(told(a_namespace(process, f"{at}-{n}")) for at, process in enumerate((catalog, second)) for n in range(40))
    )
    assert all(status(answer) == 200 for answer in answers)
    assert len(await namespaces(await lake.opened())) == 81
    seqs = (await lake.head()).seq
    assert seqs == 81


@pytest.mark.seed(251, 268)
async def test_the_same_key_many_times_at_once_is_one_operation(lake, catalog, second):
    key = lake.key()
    answers = await asyncio.gather(*(told(a_table(p, key=key)) for p in (catalog, second) for _ in range(8)))
    assert len(set(answers)) == 1
    assert status(answers[0]) == 200


async def test_a_cancelled_request_does_not_take_its_batch_with_it(lake, catalog):
    """Whoever leads a batch may be cancelled; the others hear what became of their own request."""
    gate = lake.store.hold("swap", keys.HEAD)
    leader = asyncio.create_task(a_namespace(catalog, "leader"))
    follower = asyncio.create_task(told(a_namespace(catalog, "follower")))
    await gate.reached.wait()
    leader.cancel()
    gate.open()
    with pytest.raises(asyncio.CancelledError):
        await leader
    assert status(await asyncio.wait_for(follower, 5)) in {200, 500, 503}
    assert status(await told(a_namespace(catalog, "next"))) == 200


# -- undecided ------------------------------------------------------------------------------------------------------


@pytest.mark.seed(145)
async def test_a_change_whose_write_has_no_outcome_is_unknown_and_never_called_failed(lake, catalog):
    lake.store.refuse_writes(keys.HEAD)
    answer = await told(a_namespace(catalog, "n"))
    assert answer[:2] == (500, "CommitStateUnknownException")


async def test_a_change_whose_answer_was_lost_is_found_by_its_own_id(lake, catalog, second):
    """The write landed, others wrote on top; the repetition finds itself instead of `already exists`."""
    key = lake.key()
    lake.store.lose_answer("swap", keys.HEAD)
    assert await a_namespace(catalog, "n", key=key) == {}
    await a_namespace(second, "other")
    assert await a_namespace(catalog, "n", key=key) == {}


@pytest.mark.seed(142)
async def test_a_store_that_does_not_answer_is_known_not_applied_before_anything_is_sent(lake, catalog):
    lake.store.silence(keys.HEAD)
    with pytest.raises(Unavailable) as caught:
        await tables(catalog)
    assert caught.value.retry_after_s


# -- order and number ------------------------------------------------------------------------------------------------


async def test_every_change_has_the_next_number(lake, catalog):
    before = (await lake.head()).seq
    await a_table(catalog)
    await rename(catalog, T, U)
    await drop(catalog, U)
    assert (await lake.head()).seq == before + 3


async def test_a_reader_that_lags_behind_is_not_set_back_by_an_older_head(lake, catalog, second):
    """A slow read of an old head ends after a newer one was seen."""
    await tables(second)
    gate = lake.store.hold("get_if_changed", keys.HEAD)
    slow = asyncio.create_task(tables(second))
    await gate.reached.wait()
    await a_table(catalog)
    assert await tables(second) == ["t"]
    gate.open()
    assert await slow == ["t"]
    assert await tables(second) == ["t"]


@pytest.mark.parametrize("process", ["first", "second", "new"])
async def test_what_was_answered_is_seen_by_every_process(lake, catalog, second, process, small):
    for number in range(20):
        await a_table(catalog, TableName(NS, f"t{number:02}"))
        if number % 3 == 0:
            await rename(catalog, TableName(NS, f"t{number:02}"), TableName(NS, f"r{number:02}"))
        reader = {"first": catalog, "second": second}.get(process) or await lake.opened()
        expected = [f"r{n:02}" for n in range(number + 1) if n % 3 == 0]
        expected += [f"t{n:02}" for n in range(number + 1) if n % 3]
        assert await tables(reader) == expected


# -- a plain dict ---------------------------------------------------------------------------------------------------

LEVELS = ["a", "b", "a.b", "ä", "A", "a b", "\U0001f600", "a/b", "%1F"]
TABLES = ["t", "t.x", "T", "ü", "%2F", "z" * 255]
SPACES = [(level,) for level in LEVELS] + [("a", level) for level in LEVELS[:4]] + [("a", "b", "c")]
NAMES = [TableName(space, name) for space in SPACES[:4] + SPACES[-3:] for name in TABLES]


class Registered(RuleBasedStateMachine):
    """Any sequence of changes, by two processes, over many checkpoints: the same as with a plain dict."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.limits = {name: getattr(limits, name) for name in ("head_changes_max", "range_entries_max", "page_max")}
        self.spaces: dict[tuple[str, ...], dict[str, str]] = {}
        self.tables: dict[TableName, str] = {}
        self.told: dict[str, tuple[Any, Any]] = {}

    @initialize(head=st.integers(1, 6), entries=st.integers(1, 5), page=st.integers(1, 4))
    def open(self, head: int, entries: int, page: int) -> None:
        limits.head_changes_max, limits.range_entries_max, limits.page_max = head, entries, page
        self.lake = Lake()
        self.processes = [self.runner.run(self.lake.opened()) for _ in range(2)]

    def teardown(self) -> None:
        for name, value in self.limits.items():
            setattr(limits, name, value)
        self.runner.close()

    def _ask(self, make: Any, process: int, keyed: bool) -> Any:
        """Send it, and if it has a key, send it again through the other process: the same answer."""
        key = self.lake.key() if keyed else None
        answer = self.runner.run(told(make(self.processes[process], key)))
        if keyed:
            self.told[key or ""] = (make, answer)
        return answer

    processes_ = st.integers(0, 1)
    space = st.sampled_from(SPACES)
    name = st.sampled_from(NAMES)

    @rule(space=space, process=processes_, keyed=st.booleans())
    def create_namespace(self, space: tuple[str, ...], process: int, keyed: bool) -> None:
        kept = {"p": "/".join(space)}
        answer = self._ask(lambda c, k: c.create_namespace(GRANT, space, kept, by(k, [space])), process, keyed)
        if len(space) > 1 and space[:-1] not in self.spaces:
            assert answer[:2] == (404, "NoSuchNamespaceException")
        elif space in self.spaces:
            assert answer[:2] == (409, "AlreadyExistsException")
        else:
            assert answer == kept
            self.spaces[space] = kept

    @rule(space=space, process=processes_, keyed=st.booleans())
    def drop_namespace(self, space: tuple[str, ...], process: int, keyed: bool) -> None:
        answer = self._ask(lambda c, k: c.drop_namespace(GRANT, space, by(k, [space])), process, keyed)
        if space not in self.spaces:
            assert answer[:2] == (404, "NoSuchNamespaceException")
        elif any(other[:-1] == space for other in self.spaces) or any(at.namespace == space for at in self.tables):
            assert answer[:2] == (409, "NamespaceNotEmptyException")
        else:
            assert answer is None
            del self.spaces[space]

    @rule(name=name, process=processes_, keyed=st.booleans())
    def create(self, name: TableName, process: int, keyed: bool) -> None:
        answer = self._ask(lambda c, k: a_table(c, name, key=k), process, keyed)
        if name.namespace not in self.spaces:
            assert answer[:2] == (404, "NoSuchNamespaceException")
        elif name in self.tables:
            assert answer[:2] == (409, "AlreadyExistsException")
        else:
            self.tables[name] = answer.split("/tables/")[1].split("/")[0]

    @rule(name=name, process=processes_, keyed=st.booleans(), pick=st.randoms(use_true_random=False))
    def drop(self, name: TableName, process: int, keyed: bool, pick: random.Random) -> None:
        name = pick.choice([name, *self.tables])
        answer = self._ask(lambda c, k: drop(c, name, key=k), process, keyed)
        if name in self.tables:
            assert answer is None
            del self.tables[name]
        else:
            assert answer[:2] == (404, "NoSuchTableException")

    @rule(name=name, process=processes_, keyed=st.booleans(), pick=st.randoms(use_true_random=False))
    def rename(self, name: TableName, process: int, keyed: bool, pick: random.Random) -> None:
        source = pick.choice([*NAMES[:2], *self.tables])
        answer = self._ask(lambda c, k: rename(c, source, name, key=k), process, keyed)
        if source not in self.tables:
            assert answer[:2] == (404, "NoSuchTableException")
        elif name.namespace not in self.spaces:
            assert answer[:2] == (404, "NoSuchNamespaceException")
        elif name in self.tables:
            assert answer[:2] == (409, "AlreadyExistsException")
        else:
            assert answer is None
            self.tables[name] = self.tables.pop(source)

    @rule(process=processes_, pick=st.randoms(use_true_random=False))
    def replay(self, process: int, pick: random.Random) -> None:
        if self.told:
            key = pick.choice(list(self.told))
            make, answer = self.told[key]
            assert self.runner.run(told(make(self.processes[process], key))) == answer

    @rule(process=processes_)
    def restart(self, process: int) -> None:
        self.processes[process] = self.runner.run(self.lake.opened())

    @rule(process=processes_, size=st.integers(1, 5))
    def page_through(self, process: int, size: int) -> None:
        for space in [(), *self.spaces]:
            expected = sorted(other[-1] for other in self.spaces if other[:-1] == space)
            assert self.runner.run(_pages(self.processes[process].list_namespaces, space, size)) == expected
            if space:
                expected = sorted(at.name for at in self.tables if at.namespace == space)
                assert self.runner.run(_pages(self.processes[process].list_tables, space, size)) == expected

    @invariant()
    def says_the_same(self) -> None:
        if hasattr(self, "lake"):
            for process in self.processes:
                self.runner.run(self._compare(process))

    async def _compare(self, process: Catalog) -> None:
        for space in [(), *self.spaces]:
            assert await namespaces(process, *space) == sorted(s[-1] for s in self.spaces if s[:-1] == space)
            if space:
                assert await tables(process, *space) == sorted(at.name for at in self.tables if at.namespace == space)
                assert (await process.load_namespace(GRANT, space)).properties == self.spaces[space]
        view = await process.context.registry.view()
        for name, uuid in self.tables.items():
            entry = await table_entry(view, name)
            assert entry is not None
            assert entry.uuid == uuid
            assert await view.named(uuid) == table_key(name)


async def _pages(listing: Any, space: tuple[str, ...], size: int) -> list[str]:
    names: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await listing(GRANT, space, after, size)
        assert len(page.names) <= size
        names += page.names
        after = page.more
    return names


TestRegistered = Registered.TestCase
TestRegistered.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.seed(16, 17)
async def test_two_thousand_names_over_many_checkpoints_are_a_plain_dict(lake, catalog, second, monkeypatch):
    """Created, renamed and dropped at random; then a new process reads names, uuids and operations from ranges."""
    monkeypatch.setattr(limits, "head_changes_max", 40)
    monkeypatch.setattr(limits, "range_entries_max", 16)
    rng = random.Random(7)
    model: dict[str, str] = {}
    done: list[tuple[str, str]] = []
    numbers = itertools.count()
    while len(model) < 1_100:
        batch: list[Any] = []
        plans: list[tuple[str, str | None]] = []
        gone = set()
        for _ in range(60):
            name = f"{rng.randrange(10**6):06}"
            victim = rng.choice(sorted(model)) if model and rng.random() < 0.25 else None
            key = lake.key()
            if victim and victim not in gone:
                gone.add(victim)
                uuid = model.pop(victim)
                removed = {table_key(TableName(NS, victim)): uuid}
                put = {}
                if rng.random() < 0.5:
                    put = {table_key(TableName(NS, name)): Entry(TABLE, uuid, ICEBERG, "x")}
                    model[name] = uuid
                    gone.add(name)
            elif name not in model and name not in gone:
                uuid = f"uuid-{next(numbers)}"
                put, removed = {table_key(TableName(NS, name)): Entry(TABLE, uuid, ICEBERG, "x")}, {}
                model[name] = uuid
                gone.add(name)
            else:
                continue
            batch.append(_change(rng.choice((catalog, second)), key, put, removed))
            plans.append((key, None))
        await asyncio.gather(*batch)
        done += [(key, "") for key, _ in plans]
    fresh = await lake.opened()
    assert await tables(fresh) == sorted(model)
    view = await fresh.context.registry.view()
    for name, uuid in model.items():
        assert await view.named(uuid) == table_key(TableName(NS, name))
    for key, _ in done:
        assert await view.outcome(key) is not None
    assert await view.outcome(lake.key()) is None
    assert max(span.count for span in view.index.names) <= 16
    assert sum(span.count for span in view.index.names) >= 1_000


async def _change(process: Catalog, key: str, put: dict[str, Entry], removed: dict[str, str]) -> None:
    async def decide(draft: Draft) -> Decision:
        return Decision(put=put, removed=removed)

    await process.context.registry.change(Operation(Request(key, True, "test", "", "", None), decide))


# -- the head stays small ---------------------------------------------------------------------------------------------


async def test_the_head_holds_no_more_changes_than_its_bound_and_a_checkpoint_the_rest(lake, catalog, small):
    for number in range(23):
        await a_table(catalog, TableName(NS, f"t{number}"))
        assert len((await lake.head()).changes) <= 5
    assert (await lake.head()).checkpoint is not None


async def test_the_head_is_bounded_in_bytes_too(lake, catalog):
    for number in range(30):
        await catalog.create_namespace(GRANT, (f"n{number}",), {"p": "x" * 8_000}, by())
        assert len(await lake.body(keys.HEAD)) < 64 * 1024 + 10_000
    assert len(await namespaces(await lake.opened())) == 31


async def test_a_crash_in_the_middle_of_a_checkpoint_loses_nothing(lake, catalog, second, small):
    for number in range(4):
        await a_table(catalog, TableName(NS, f"t{number}"))
    lake.store.refuse_writes("core/snapshots/")
    answer = await told(a_table(catalog, TableName(NS, "t4")))
    assert answer[:2] == (503, "ServiceUnavailableException")
    assert await tables(second) == ["t0", "t1", "t2", "t3"]
    lake.store.heal()
    await a_table(catalog, TableName(NS, "t4"))
    assert await tables(second) == ["t0", "t1", "t2", "t3", "t4"]


# -- operations age out -----------------------------------------------------------------------------------------------


@pytest.mark.seed(256, 257, 275)
async def test_operations_age_out_whole_after_the_retention_and_not_before(lake, catalog, small):
    old = [lake.key() for _ in range(12)]
    for number, key in enumerate(old):
        await a_namespace(catalog, f"old{number}", key=key)
    lake.clock.pass_by(24 * 3_600_000)
    for number in range(12):
        await a_namespace(catalog, f"mid{number}")
    view = await (await lake.opened()).context.registry.view()
    assert all([await view.outcome(key) for key in old])
    lake.clock.pass_by(2 * 3_600_000)
    for number in range(30):
        await a_namespace(catalog, f"new{number}")
    view = await (await lake.opened()).context.registry.view()
    # A range that a younger operation shares stays: fewer than a range of them.
    assert len([key for key in old if await view.outcome(key)]) < 4
    assert len(await namespaces(catalog)) == 55


async def test_an_operation_is_kept_as_long_as_any_server_would_run_its_key_again(lake, catalog, small):
    """Two clocks are four minutes apart: what the one ahead forgets, the other one must not take for new."""
    behind = await lake.opened(clock=lake.clock.skewed(-120_000))
    ahead = await lake.opened(clock=lake.clock.skewed(+120_000))
    key = lake.key()
    await a_table(catalog, key=key)
    for number in range(12):
        await a_namespace(catalog, f"x{number}")
    await drop(catalog)
    lake.clock.pass_by(limits.key_lifetime_ms + limits.key_grace_ms - 60_000)
    for number in range(12):
        await a_namespace(ahead, f"y{number}")
    answer = await told(a_table(behind, key=key))
    assert await tables(catalog) == [], f"made twice: {answer}"


# -- epoch and owed steps -------------------------------------------------------------------------------------------


async def _advance(lake: Lake, catalog: Catalog) -> None:
    async def decide(draft: Draft) -> Decision:
        return Decision(advance_epoch=True)

    await catalog.context.registry.change(Operation(Request(lake.key(), False, "epoch", "", "", None), decide))


async def test_a_creation_refuses_if_the_epoch_moved_since_it_began(lake, catalog, second):
    await tables(second)
    gate = lake.store.hold("swap", keys.HEAD)
    creating = asyncio.create_task(told(a_table(second)))
    await gate.reached.wait()
    await _advance(lake, catalog)
    gate.open()
    answer = await creating
    assert answer[:2] == (503, "ServiceUnavailableException")
    assert await tables(catalog) == []
    assert (await lake.head()).epoch == 1


async def test_other_changes_do_not_stop_a_creation(lake, catalog, second):
    await tables(second)
    gate = lake.store.hold("swap", keys.HEAD)
    creating = asyncio.create_task(told(a_table(second)))
    await gate.reached.wait()
    await a_namespace(catalog, "other")
    gate.open()
    assert status(await creating) == 200


# -- entries of other formats -----------------------------------------------------------------------------------------


async def a_delta_table(lake: Lake, catalog: Catalog, name: TableName = T) -> str:
    uuid = lake.ids.uuid7()
    entry = Entry(TABLE, uuid, "DELTA", "mem:///lake/delta")
    await catalog.context.registry.change(an_operation(lake, put={table_key(name): entry}))
    return uuid


@pytest.mark.seed(19, 117)
@pytest.mark.parametrize("warm", [False, True])
async def test_a_table_of_another_format_is_listed_and_refused_by_name_of_its_format(lake, catalog, second, warm):
    await a_delta_table(lake, catalog)
    if warm:
        await tables(second)
    for request in (
        load(second),
        commit(second, properties(a="b")),
        commit(second, properties(a="b"), key=lake.key()),
    ):
        answer = await told(request)
        assert answer[0] == 400
        assert "DELTA" in answer[2]
    assert await tables(second) == ["t"]
    assert (await second.table_entry(GRANT, T)).format == "DELTA"


async def test_a_table_of_another_format_can_be_renamed_tagged_and_dropped(lake, catalog):
    await a_delta_table(lake, catalog)
    await catalog.set_tags(GRANT, T, {"a": "b"}, by())
    await rename(catalog, T, U)
    with pytest.raises(AlreadyExists):
        await a_table(catalog, U)
    await drop(catalog, U, key=lake.key())
    assert await tables(catalog) == []
    with pytest.raises(NoSuchTable):
        await load(catalog, U)


# -- name keys --------------------------------------------------------------------------------------------------------


def test_a_name_key_says_the_name_and_everything_in_a_namespace_is_one_range():
    all_keys = sorted([namespace_key(space) for space in SPACES] + [table_key(name) for name in NAMES])
    for name in NAMES:
        assert named_by(table_key(name)) == name
    for space in SPACES:
        at = [n for n, key in enumerate(all_keys) if key.startswith(children(space))]
        assert at == list(range(at[0], at[-1] + 1)) if at else True
    assert len(set(all_keys)) == len(all_keys)


async def test_a_namespace_and_a_table_of_one_name_are_two_things(catalog):
    await a_namespace(catalog, "ns", "t")
    await a_table(catalog)
    await drop(catalog)
    assert await namespaces(catalog, "ns") == ["t"]
    with pytest.raises(Conflict):
        await catalog.drop_namespace(GRANT, NS, by())


async def test_every_refusal_of_the_registry_is_one_of_the_tree(lake, catalog):
    for request in (a_table(catalog, TableName(("x",), "t")), drop(catalog), rename(catalog, T, U)):
        with pytest.raises(FrazilError):
            await request
