"""The stories that are explored, and what must hold at the end of every one of their schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from frazil.catalog.catalog import Catalog
from frazil.catalog.entries import namespace_key, table_key
from frazil.names import TableName
from tests.explore.engine import Budget, Scenario, run_until
from tests.explore.world import (
    GRANT,
    NS,
    Call,
    Store,
    T,
    Told,
    append,
    bodies,
    built,
    by,
    create,
    drop,
    key,
    keyless,
    load,
    namespace,
    process,
    put,
    rename,
    stage_and_commit,
)

#: A small scope: two more tries than the first show every way in which a try can meet another.
SMALL_SCOPE = {"tries_max": 3, "registry_rounds_max": 4}

U = TableName(NS, "u")
OLD = TableName(NS, "t_old")

KNOWN_FAILURES = {400, 404, 409, 422}


def status(answer: Any) -> int:
    """What a caller reads of an answer; 0 where the process died before it gave one."""
    if isinstance(answer, Unanswered):
        return 0
    return answer[0] if isinstance(answer, tuple) else 200


class Unanswered:
    """A request whose process died."""


def statuses(answers: Mapping[str, Any], names: Iterable[str]) -> set[int]:
    return {status(answers.get(name, Unanswered())) for name in names}


def one_verdict(told: Told, uuid: str, given: set[int], key_: str) -> str | None:
    """A commit is in the history at most once; success means in, a 4xx means not in, whoever of its tries was told."""
    times = told.times(uuid, key_)
    if times > 1:
        return f"applied {times} times"
    if 200 in given and times == 0:
        return "told success, and it is not there"
    if KNOWN_FAILURES & given and times == 1:
        return f"told {sorted(KNOWN_FAILURES & given)}, and it is there"
    if KNOWN_FAILURES & given and 200 in given:
        return f"one key, two verdicts: {sorted(given)}"
    return None


def sound(told: Told) -> str | None:
    """What holds of every store: names lead to pointers, pointers to metadata, and no receipt is missing."""
    for at, uuid in told.names.items():
        pointer = told.pointer(uuid)
        if pointer is None:
            return f"{at!r} is named and has no pointer"
        if pointer.state != "live" and uuid not in {owed.uuid for owed in told.owed}:
            return f"{at!r} is named and its pointer is buried"
        if told.namespace_of(at) not in told.namespaces:
            return f"{at!r} lies in a namespace that is not there"
    for uuid in told.named_ever:
        if missing := told.receipts_missing(uuid):
            return f"no receipt of {missing}"
    return None


BASE = built(namespace, create())
UUID = next(iter(Told(bodies(BASE)).names.values()))


DROPPED = built(namespace, create(), put("a"), drop())


def commits(*tries: tuple[str, tuple[str, ...]]) -> Callable[[Mapping[str, bytes], Mapping[str, Any]], str | None]:
    """Each key with the requests that tried it."""

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        for key_, names in tries:
            if (problem := one_verdict(told, UUID, statuses(answers, names), key_)) is not None:
                return f"{'/'.join(names)}: {problem}"
        return sound(told)

    return check


def warm(name: str, call: Call, store: Store = BASE, *, after: tuple[str, ...] = (), skew_ms: int = 0) -> Any:
    """One request in a process of its own that has loaded the table before."""
    return process(name, {name: call}, seen=store, warm=load(), after=after, skew_ms=skew_ms)


def commit_and_retry() -> Scenario:
    """One client, one key; the second try may run beside the first, on a server whose clock is four minutes behind."""
    return Scenario(
        "commit × retry",
        (warm("F", append(1, key_=1)), warm("R", append(1, key_=1), skew_ms=-240_000)),
        BASE,
        commits((key(1), ("F", "R"))),
    )


def duplicates_without_faults() -> Scenario:
    """A fault-free duplicate: at the end somebody must have committed, whoever was told to wait."""

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        given = statuses(answers, ("F", "R"))
        if 200 not in given and not told.times(UUID, key(1)):
            return f"told {sorted(given)}: nobody commits, and no fault was met"
        return one_verdict(told, UUID, given, key(1)) or sound(told)

    return Scenario(
        "a duplicate without faults",
        (warm("F", put("a", key_=1)), warm("R", put("a", key_=1), skew_ms=1)),
        BASE,
        check,
        Budget(0, 0, 0),
    )


def same_key_and_writer() -> Scenario:
    """The same key twice beside a writer that makes them rebase."""
    return Scenario(
        "same key twice × another writer",
        (warm("F", append(1, key_=1)), warm("R", append(1, key_=1)), warm("W", put("w"))),
        BASE,
        commits((key(1), ("F", "R")), (keyless("W"), ("W",))),
    )


def requirement_and_writer() -> Scenario:
    """The same key twice, with a requirement that another writer's commit breaks."""
    asked = append(1, key_=1, first=True)
    return Scenario(
        "requirement × retry × another writer",
        (warm("F", asked), warm("R", asked), warm("W", append(2, first=True))),
        BASE,
        commits((key(1), ("F", "R")), (keyless("W"), ("W",))),
    )


def three_writers() -> Scenario:
    """Keyless writers on one table: each is told the truth about itself."""
    return Scenario(
        "three writers",
        (warm("A", append(1, first=True)), warm("B", put("b")), warm("C", put("c"))),
        BASE,
        commits((keyless("A"), ("A",)), (keyless("B"), ("B",)), (keyless("C"), ("C",))),
    )


def commit_and_drop() -> Scenario:
    """A keyed commit with a retry beside a drop."""
    return Scenario(
        "commit × retry × drop",
        (warm("F", put("a", key_=1)), warm("R", put("a", key_=1)), warm("D", drop(key_=2))),
        BASE,
        commits((key(1), ("F", "R"))),
    )


def drop_replay_and_commit() -> Scenario:
    """A drop, its replay, and a commit that begins after the replay was answered, on a server that knows the name."""

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        if status(answers.get("D2", Unanswered())) == 200 and status(answers.get("C", Unanswered())) == 200:
            return "a commit succeeded on a table whose drop had been answered"
        return one_verdict(told, UUID, statuses(answers, ("C",)), key(3)) or sound(told)

    return Scenario(
        "drop × its replay × a later commit",
        (warm("D1", drop(key_=2)), warm("D2", drop(key_=2)), warm("C", put("c", key_=3), after=("D2",))),
        BASE,
        check,
    )


def drop_replay_and_commit_in_flight() -> Scenario:
    """A commit that resolved the name before the drop must be fenced once the drop's replay is answered."""

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        pointer = told.pointer(UUID)
        if status(answers.get("D2", Unanswered())) == 200 and pointer is not None and pointer.state == "live":
            return "a drop was answered, and its table can still be committed to"
        return one_verdict(told, UUID, statuses(answers, ("C",)), key(3)) or sound(told)

    return Scenario(
        "drop × its replay × a commit in flight",
        (warm("D1", drop(key_=2)), warm("D2", drop(key_=2)), warm("C", put("c", key_=3))),
        BASE,
        check,
    )


def unsettled() -> Store:
    """A commit (key 5) whose server died before its receipt, and a claim (key 1) on top whose server died there too."""
    store = dict(BASE)
    for name, call in (("O", append(3, key_=5)), ("F", append(1, key_=1))):
        run_until(warm(name, call, store), store, lambda step: step[0] == "create" and "/committed/" in step[1])
    return store


def takeover_over_an_unsettled_commit() -> Scenario:
    """A retry fences a dead claim's base, which is all that tells of another's commit; a writer goes on from there."""
    store = unsettled()
    return Scenario(
        "takeover over an unsettled commit × another writer × that commit's retry",
        (
            # Remembers the table from before both: what it fences is not what it settled.
            warm("R", append(1, key_=1), BASE),
            warm("W", put("w"), store),
            warm("O2", append(3, key_=5), store),
        ),
        store,
        commits((key(1), ("R",)), (key(5), ("O2",)), (keyless("W"), ("W",))),
    )


TWO = built(namespace, create(), create(U))
TWO_UUIDS = Told(bodies(TWO)).names


def renames_and_commit() -> Scenario:
    """t → t_old, then u → t, then a commit to t by a server that remembers the first t."""
    first, second = TWO_UUIDS[table_key(T)], TWO_UUIDS[table_key(U)]

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        if status(answers.get("R2", Unanswered())) == 200 and told.times(first, key(3)):
            return "a commit by name landed on the table that had the name before"
        applied = told.times(first, key(3)) + told.times(second, key(3))
        if applied > 1:
            return "applied twice"
        if status(answers.get("C", Unanswered())) == 200 and not applied:
            return "told success, and it is not there"
        return sound(told)

    return Scenario(
        "two renames × a later commit",
        (
            warm("R1", rename(T, OLD, 1), TWO),
            warm("R2", rename(U, T, 2), TWO, after=("R1",)),
            warm("C", put("c", key_=3), TWO, after=("R2",)),
        ),
        TWO,
        check,
    )


EMPTY = built(namespace)


def namespace_drop_and_create() -> Scenario:
    """A namespace goes while a table is made in it."""

    async def drop_namespace(catalog: Catalog) -> Any:
        await catalog.drop_namespace(GRANT, NS, by(1))

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        if {200} == statuses(answers, ("X",)) and namespace_key(NS) in told.namespaces:
            return "a dropped namespace is there"
        return creators(told, answers, C=key(2), C2=key(2)) or sound(told)

    return Scenario(
        "namespace drop × child create × its retry",
        (
            process("X", {"X": drop_namespace}, seen=EMPTY, warm=_see),
            process("C", {"C": create(key_=2)}, seen=EMPTY, warm=_see),
            process("C2", {"C2": create(key_=2)}, seen=EMPTY, warm=_see),
        ),
        EMPTY,
        check,
    )


async def _see(catalog: Catalog) -> None:
    await catalog.load_namespace(GRANT, NS)


def creators(told: Told, answers: Mapping[str, Any], **by_name: str) -> str | None:
    """Of everybody who tried to make t: whoever was told success is the one whose table it is, or it was dropped."""
    uuid = told.names.get(table_key(T))
    made_by = {key_: uuid is not None and told.times(uuid, key_) == 1 for key_ in by_name.values()}
    for name, key_ in by_name.items():
        given = status(answers.get(name, Unanswered()))
        if given == 200 and not made_by[key_]:
            return f"{name} was told success, and its table is not there"
        if given in KNOWN_FAILURES and made_by[key_]:
            return f"{name} was told {given}, and its table is there"
    return None


def two_creators() -> Scenario:
    """Two keyless creations of one name, and a third change on the same head."""

    async def other(catalog: Catalog) -> Any:
        return await catalog.create_namespace(GRANT, ("other",), {}, by())

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        return creators(told, answers, A=keyless("A"), B=keyless("B")) or sound(told)

    return Scenario(
        "two creations of one name × another change",
        (
            process("A", {"A": create()}, seen=EMPTY, warm=_see),
            process("B", {"B": create()}, seen=EMPTY, warm=_see),
            process("N", {"N": other}, seen=EMPTY, warm=_see),
        ),
        EMPTY,
        check,
    )


def staged_and_retry() -> Scenario:
    """A staged create's commit and its retry, beside a plain creation of the same name."""

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        return creators(told, answers, S=key(1), S2=key(1), P=keyless("P")) or sound(told)

    return Scenario(
        "staged create × its retry × a creation",
        (
            process("S", {"S": stage_and_commit(key_=1)}, seen=EMPTY, warm=_see),
            process("S2", {"S2": stage_and_commit(key_=1)}, seen=EMPTY, warm=_see),
            process("P", {"P": create()}, seen=EMPTY, warm=_see),
        ),
        EMPTY,
        check,
    )


def group_commit() -> Scenario:
    """Two creations in one process share a CAS, beside another process's change."""

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        for name, key_, at in (("A", key(1), T), ("B", key(2), U), ("C", key(3), T)):
            uuid = told.names.get(table_key(at))
            there = uuid is not None and told.times(uuid, key_) == 1
            given = status(answers.get(name, Unanswered()))
            if given == 200 and not there:
                return f"{name} was told success, and its table is not there"
            if given in KNOWN_FAILURES and there:
                return f"{name} was told {given}, and its table is there"
        return sound(told)

    return Scenario(
        "group commit × another process",
        (
            process("P", {"A": create(key_=1), "B": create(U, key_=2)}, seen=EMPTY, warm=_see),
            process("Q", {"C": create(key_=3)}, seen=EMPTY, warm=_see),
        ),
        EMPTY,
        check,
        canonical=False,
    )


def commits_in_one_process() -> Scenario:
    """Two commits in one process take turns, beside a third in another."""
    return Scenario(
        "two commits in one process × another process",
        (
            process("P", {"A": append(1, first=True, key_=1), "B": append(2, first=True)}, seen=BASE, warm=load()),
            warm("W", put("w")),
        ),
        BASE,
        commits((key(1), ("A",)), (keyless("B", "P"), ("B",)), (keyless("W"), ("W",))),
        canonical=False,
    )


def two_registrations() -> Scenario:
    """A dropped table is registered twice at once, under two names, each from a file of its own."""
    pointer = Told(bodies(DROPPED)).pointer(UUID)
    assert pointer is not None
    newer, older = Told(bodies(DROPPED)).lineage(UUID)[:2]

    def registering(name: TableName, location: str, key_: int) -> Call:
        return lambda catalog: catalog.register_table(GRANT, name, location, False, by(key_))

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        for request, name, location in (("G1", T, older), ("G2", U, newer)):
            if status(answers.get(request, Unanswered())) != 200:
                continue
            if told.names.get(table_key(name)) != UUID:
                return f"{request} was answered, and its name is not there"
            now = told.pointer(UUID)
            if now is None or now.current_metadata_location != location:
                return f"{request} was told it registered one file, and the table is another"
        return sound(told)

    return Scenario(
        "two registrations of one table × its first one's retry",
        (
            process("G1", {"G1": registering(T, older, 1)}, seen=DROPPED, warm=_see),
            process("G2", {"G2": registering(U, newer, 2)}, seen=DROPPED, warm=_see),
            process("G3", {"G3": registering(T, older, 1)}, seen=DROPPED, warm=_see),
        ),
        DROPPED,
        check,
    )


def drop_and_register() -> Scenario:
    """A table is dropped and registered again while its tombstone may still be owed, and a sweep runs."""
    location = Told(bodies(BASE)).pointer(UUID).current_metadata_location  # type: ignore[union-attr]

    async def register(catalog: Catalog) -> Any:
        return await catalog.register_table(GRANT, T, location, False, by(2))

    async def sweep(catalog: Catalog) -> None:
        await catalog.sweep()

    def check(store: Mapping[str, bytes], answers: Mapping[str, Any]) -> str | None:
        told = Told(store)
        named = told.names.get(table_key(T))
        if status(answers.get("G", Unanswered())) == 200 and named is None:
            return "a registration was answered, and the name is not there"
        if named is not None and (pointer := told.pointer(named)) is not None and pointer.state != "live":
            return "a registered table is buried"
        return sound(told)

    return Scenario(
        "drop × register × sweep",
        (
            warm("D", drop(key_=1)),
            warm("G", register, after=("D",)),
            warm("S", sweep),
        ),
        BASE,
        check,
    )


NAMED = (
    commit_and_retry,
    same_key_and_writer,
    requirement_and_writer,
    three_writers,
    commit_and_drop,
    drop_replay_and_commit,
    drop_replay_and_commit_in_flight,
    renames_and_commit,
    namespace_drop_and_create,
    two_creators,
    staged_and_retry,
    group_commit,
    commits_in_one_process,
    drop_and_register,
    two_registrations,
    takeover_over_an_unsettled_commit,
)


def with_budget(scenario: Scenario, budget: Budget) -> Scenario:
    return replace(scenario, budget=budget)
