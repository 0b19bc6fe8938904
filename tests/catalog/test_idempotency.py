"""Keys: what they look like, what they are bound to, and that a repeated mutation gives the first one's answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil import limits
from frazil.catalog import idempotency
from frazil.catalog.catalog import Catalog
from frazil.errors import BadInput, CommitStateUnknown, Conflict, ReplayFailed
from frazil.grants import Grant
from frazil.names import TableName
from frazil.store import keys
from tests.catalog.builders import (
    ASSERT_CREATE,
    EMPTY,
    GRANT,
    NS,
    ROOT,
    Lake,
    T,
    U,
    a_namespace,
    a_table,
    an_append,
    by,
    commit,
    definition,
    drop,
    load,
    namespaces,
    properties,
    register,
    rename,
    staged,
    status,
    tables,
    told,
)

HOUR_MS = 3_600_000
STAGED = "0197a1b2-0000-7000-8000-00000000abcd"


@dataclass(frozen=True)
class Mutation:
    """One kind of mutation: what must be there before, how it is sent, and what was done if it was done."""

    name: str
    before: Callable[[Lake, Catalog], Awaitable[Any]]
    #: (catalog, grant, key, body, which resource, what `before` gave)
    send: Callable[[Catalog, Grant, str, object, int, Any], Awaitable[Any]]
    done: Callable[[Catalog], Awaitable[Any]]

    def __str__(self) -> str:
        return self.name


async def _nothing(lake: Lake, catalog: Catalog) -> None: ...


async def _two_namespaces(lake: Lake, catalog: Catalog) -> None:
    await a_namespace(catalog, "n0")
    await a_namespace(catalog, "n1")


async def _two_tables(lake: Lake, catalog: Catalog) -> None:
    await a_table(catalog, T)
    await a_table(catalog, U)


async def _a_file(lake: Lake, catalog: Catalog) -> str:
    location = (await a_table(catalog, TableName(NS, "away"))).location
    await drop(catalog, TableName(NS, "away"))
    return location


def _table(which: int) -> TableName:
    return (T, U)[which]


async def _properties(catalog: Catalog) -> Any:
    return dict((await load(catalog)).metadata.properties), (await lake_number(catalog))


async def lake_number(catalog: Catalog) -> int:
    read = await catalog.context.pointers.read((await catalog.table_entry(GRANT, T)).uuid)
    assert read is not None
    return read.pointer.commit_number


async def _listed(catalog: Catalog) -> Any:
    return await tables(catalog)


async def _all_namespaces(catalog: Catalog) -> Any:
    return [(name, (await catalog.load_namespace(GRANT, (name,))).properties) for name in await namespaces(catalog)]


async def _tags(catalog: Catalog) -> Any:
    return (await catalog.table_entry(GRANT, T)).tags


MUTATIONS = [
    Mutation(
        "create namespace",
        _nothing,
        lambda c, g, k, b, n, x: c.create_namespace(g, (f"n{n}",), {"a": "b"}, by(k, b)),
        _all_namespaces,
    ),
    Mutation(
        "drop namespace",
        _two_namespaces,
        lambda c, g, k, b, n, x: c.drop_namespace(g, (f"n{n}",), by(k, b)),
        _all_namespaces,
    ),
    Mutation(
        "namespace properties",
        _two_namespaces,
        lambda c, g, k, b, n, x: c.update_namespace(g, (f"n{n}",), ["gone"], {"a": "b"}, by(k, b)),
        _all_namespaces,
    ),
    Mutation(
        "create table", _nothing, lambda c, g, k, b, n, x: c.create_table(g, _table(n), definition(), by(k, b)), _listed
    ),
    Mutation(
        "staged create",
        _nothing,
        lambda c, g, k, b, n, x: c.commit_table(g, _table(n), [ASSERT_CREATE], staged(STAGED), by(k, b)),
        _listed,
    ),
    Mutation("register", _a_file, lambda c, g, k, b, n, x: c.register_table(g, _table(n), x, False, by(k, b)), _listed),
    Mutation(
        "commit",
        _two_tables,
        lambda c, g, k, b, n, x: c.commit_table(g, _table(n), [EMPTY], an_append(1), by(k, b)),
        _properties,
    ),
    Mutation(
        "rename",
        _two_tables,
        lambda c, g, k, b, n, x: c.rename_table(g, _table(n), TableName(NS, "r"), by(k, b)),
        _listed,
    ),
    Mutation("drop", _two_tables, lambda c, g, k, b, n, x: c.drop_table(g, _table(n), False, by(k, b)), _listed),
    Mutation("purge", _two_tables, lambda c, g, k, b, n, x: c.drop_table(g, _table(n), True, by(k, b)), _listed),
    Mutation("tags", _two_tables, lambda c, g, k, b, n, x: c.set_tags(g, _table(n), {"a": "b"}, by(k, b)), _tags),
]

every_mutation = pytest.mark.parametrize("mutation", MUTATIONS, ids=str)


@pytest.mark.seed(1, 63, 91, 251, 254, 270, 271, 282, 283)
@every_mutation
async def test_a_repeated_mutation_gives_the_first_ones_answer_and_has_no_second_effect(
    lake, catalog, second, mutation
):
    key, arranged = lake.key(), await mutation.before(lake, catalog)
    first = await told(mutation.send(catalog, GRANT, key, {"p": 1}, 0, arranged))
    assert status(first) == 200, first
    done = await mutation.done(catalog)
    await lake.settled()
    for process in (catalog, second, await lake.opened()):
        assert await told(mutation.send(process, GRANT, key, {"p": 1}, 0, arranged)) == first
    assert await mutation.done(await lake.opened()) == done


@pytest.mark.seed(70, 140, 252, 253, 255)
@every_mutation
async def test_a_key_used_for_another_payload_is_409_with_the_fixed_message(lake, catalog, second, mutation):
    key, arranged = lake.key(), await mutation.before(lake, catalog)
    await mutation.send(catalog, GRANT, key, {"p": 1}, 0, arranged)
    await lake.settled()
    for process in (catalog, second):
        assert await told(mutation.send(process, GRANT, key, {"p": 2}, 0, arranged)) == (
            409,
            "CommitFailedException",
            "Idempotency-Key reused with different request payload",
        )


@pytest.mark.seed(253)
@every_mutation
async def test_a_key_used_for_another_resource_is_409(lake, catalog, second, mutation):
    key, arranged = lake.key(), await mutation.before(lake, catalog)
    await mutation.send(catalog, GRANT, key, None, 0, arranged)
    await lake.settled()
    done = await mutation.done(catalog)
    answer = await told(mutation.send(second, GRANT, key, None, 1, arranged))
    assert answer[:2] == (409, "CommitFailedException")
    assert await mutation.done(second) == done


@every_mutation
async def test_a_key_used_by_another_principal_is_409(lake, catalog, second, mutation):
    key, arranged = lake.key(), await mutation.before(lake, catalog)
    await mutation.send(catalog, Grant(principal="ann"), key, None, 0, arranged)
    await lake.settled()
    answer = await told(mutation.send(second, Grant(principal="bob"), key, None, 0, arranged))
    assert answer[:2] == (409, "CommitFailedException")


@pytest.mark.seed(253)
async def test_a_key_used_for_another_operation_is_409(lake, catalog):
    key = lake.key()
    await a_table(catalog)
    await rename(catalog, T, U, key=key)
    assert (await told(drop(catalog, U, key=key)))[:2] == (409, "CommitFailedException")
    assert await tables(catalog) == ["u"]


@pytest.mark.seed(253)
async def test_a_key_used_for_another_namespace_that_reads_alike_is_409(lake, catalog):
    """Levels hold dots, too: `a.b` is one level or two, and one was dropped, not the other."""
    for namespace in (("a",), ("a", "b"), ("a.b",)):
        await a_namespace(catalog, *namespace)
    key = lake.key()
    await catalog.drop_namespace(GRANT, ("a.b",), by(key))
    assert status(await told(catalog.drop_namespace(GRANT, ("a", "b"), by(key)))) == 409


@pytest.mark.seed(253)
async def test_a_key_used_for_another_table_that_reads_alike_is_409(lake, catalog):
    for namespace in (("a",), ("a", "b"), ("a.b",)):
        await a_namespace(catalog, *namespace)
    for name in (TableName(("a", "b"), "t"), TableName(("a.b",), "t"), TableName(("a",), "b.t")):
        await a_table(catalog, name)
    key = lake.key()
    await drop(catalog, TableName(("a.b",), "t"), key=key)
    assert status(await told(drop(catalog, TableName(("a", "b"), "t"), key=key))) == 409
    assert status(await told(drop(catalog, TableName(("a",), "b.t"), key=key))) == 409


# -- failures -------------------------------------------------------------------------------------------------------

Fails = Callable[[Catalog, str], Awaitable[Any]]
Mends = Callable[[Catalog], Awaitable[Any]]


async def _the_table(catalog: Catalog) -> None:
    await a_table(catalog)


async def _no_snapshot_any_more(catalog: Catalog) -> None:
    await commit(catalog, {"action": "remove-snapshot-ref", "ref-name": "main"})


FAILURES: dict[str, tuple[Mends, Fails, Mends, tuple[int, str]]] = {
    "namespace exists": (
        lambda c: a_namespace(c, "n"),
        lambda c, k: a_namespace(c, "n", key=k),
        lambda c: c.drop_namespace(GRANT, ("n",), by()),
        (409, "AlreadyExistsException"),
    ),
    "no such namespace to drop": (
        _nothing_to_do := lambda c: namespaces(c),  # noqa: PLW0108
        lambda c, k: c.drop_namespace(GRANT, ("n",), by(k)),
        lambda c: a_namespace(c, "n"),
        (404, "NoSuchNamespaceException"),
    ),
    "namespace not empty": (
        _the_table,
        lambda c, k: c.drop_namespace(GRANT, NS, by(k)),
        drop,
        (409, "NamespaceNotEmptyException"),
    ),
    "no such namespace to set": (
        _nothing_to_do,
        lambda c, k: c.update_namespace(GRANT, ("n",), [], {"a": "b"}, by(k)),
        lambda c: a_namespace(c, "n"),
        (404, "NoSuchNamespaceException"),
    ),
    "table exists": (
        _the_table,
        lambda c, k: a_table(c, key=k),
        drop,
        (409, "AlreadyExistsException"),
    ),
    "staged table exists": (
        _the_table,
        lambda c, k: commit(c, *staged(STAGED), requirements=[ASSERT_CREATE], key=k),
        drop,
        (409, "CommitFailedException"),
    ),
    "no such table to drop": (
        _nothing_to_do,
        lambda c, k: drop(c, key=k),
        _the_table,
        (404, "NoSuchTableException"),
    ),
    "no such table to rename": (
        _nothing_to_do,
        lambda c, k: rename(c, T, U, key=k),
        _the_table,
        (404, "NoSuchTableException"),
    ),
    "no such table to commit to": (
        _nothing_to_do,
        lambda c, k: commit(c, properties(a="b"), key=k),
        _the_table,
        (404, "NoSuchTableException"),
    ),
    "requirement not met": (
        _the_table,
        lambda c, k: commit(c, requirements=[{**EMPTY, "snapshot-id": 1}], key=k),
        lambda c: commit(c, *an_append(1)),
        (409, "CommitFailedException"),
    ),
    "bad update": (
        _the_table,
        lambda c, k: commit(c, {"action": "set-current-schema", "schema-id": 7}, key=k),
        _nothing_to_do,
        (400, "BadRequestException"),
    ),
    "tags of nothing": (
        _nothing_to_do,
        lambda c, k: c.set_tags(GRANT, T, {}, by(k)),
        _the_table,
        (404, "NoSuchTableException"),
    ),
}


@pytest.mark.seed(64, 73, 91, 254, 259, 265)
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failure_is_told_again_as_it_was_told_first_whatever_happened_since(lake, catalog, second, failure):
    before, send, mend, expected = FAILURES[failure]
    await before(catalog)
    key = lake.key()
    first = await told(send(catalog, key))
    assert first[:2] == expected
    await mend(catalog)
    await lake.settled()
    for process in (catalog, second, await lake.opened()):
        assert await told(send(process, key)) == first


async def test_a_registration_that_failed_for_want_of_its_file_is_told_so_again(lake, catalog):
    """One key, one verdict: a client that read 400 has given up, and must not find a table later."""
    body = await lake.body((await _a_file(lake, catalog)).removeprefix(f"{ROOT}/"))
    key = lake.key()
    first = await told(register(catalog, f"{ROOT}/later.json", key=key))
    assert first[0] == 400
    await lake.put("later.json", body)
    assert await told(register(catalog, f"{ROOT}/later.json", key=key)) == first


@pytest.mark.seed(74, 260)
async def test_what_is_no_verdict_is_not_stored(lake, catalog):
    """The store failed: the same key may be repeated, and then it runs."""
    await a_table(catalog)
    await lake.settled()
    for part in ("/metadata/", "iceberg_idempotency", "iceberg_pointers", "manifest.json"):
        key = lake.key()
        lake.store.refuse_writes(part) if part != "manifest.json" else lake.store.silence(part)
        assert status(await told(commit(catalog, properties(**{part: "x"}), key=key))) >= 500
        lake.store.heal()
        await lake.settled()
        await commit(catalog, properties(**{part: "x"}), key=key)
        await lake.settled()
        assert part in (await load(catalog)).metadata.properties


@pytest.mark.seed(74, 260)
async def test_a_creation_that_could_not_be_decided_is_run_by_its_repetition(lake, catalog, second):
    key = lake.key()
    lake.store.refuse_writes("manifest.json")
    answer = await told(a_table(catalog, key=key))
    assert answer[:2] == (500, "CommitStateUnknownException")
    lake.store.heal()
    await a_table(second, key=key)
    assert await tables(second) == ["t"]


@pytest.mark.seed(60, 61, 264)
async def test_a_replay_whose_metadata_file_is_gone_is_a_5xx_and_is_never_run_again(lake, catalog, second):
    key = lake.key()
    await a_table(catalog)
    location = (await commit(catalog, properties(a="b"), key=key)).location
    await commit(catalog, properties(c="d"))
    await lake.settled()
    await lake.store.memory.delete(location.removeprefix(f"{ROOT}/"))
    with pytest.raises(ReplayFailed) as caught:
        await commit(second, properties(a="b"), key=key)
    assert (caught.value.status, caught.value.subtype) == (500, "idempotency_replay_failed")
    assert await lake_number(second) == 2


@pytest.mark.seed(264)
async def test_the_replay_of_a_creation_whose_first_metadata_file_is_gone_is_a_5xx(lake, catalog, second):
    key = lake.key()
    location = (await a_table(catalog, key=key)).location
    await commit(catalog, properties(c="d"))
    await lake.store.memory.delete(location.removeprefix(f"{ROOT}/"))
    with pytest.raises(ReplayFailed):
        await a_table(second, key=key)


@pytest.mark.seed(264)
async def test_the_replay_of_a_registration_whose_metadata_file_is_gone_is_a_5xx(lake, catalog, second):
    """Known to have happened: a 400 would make the client believe that it did not."""
    location, key = await _a_file(lake, catalog), lake.key()
    await register(catalog, location, key=key)
    await commit(catalog, properties(c="d"))
    await lake.settled()
    await lake.store.memory.delete(location.removeprefix(f"{ROOT}/"))
    with pytest.raises(ReplayFailed):
        await register(second, location, key=key)


@pytest.mark.seed(91, 254)
@pytest.mark.parametrize("after", ["dropped", "renamed", "dropped and made anew"])
async def test_a_commit_is_replayed_whatever_became_of_the_table(lake, catalog, second, after):
    key, create_key = lake.key(), lake.key()
    created = await told(a_table(catalog, key=create_key))
    first = await told(commit(catalog, properties(a="b"), key=key))
    await lake.settled()
    if after == "renamed":
        await rename(catalog, T, U)
    else:
        await drop(catalog)
    if after == "dropped and made anew":
        await a_table(catalog)
    for process in (catalog, second):
        assert await told(commit(process, properties(a="b"), key=key)) == first
        assert await told(a_table(process, key=create_key)) == created
    expected = {"dropped": [], "renamed": ["u"], "dropped and made anew": ["t"]}[after]
    assert await tables(second) == expected


# -- the form of a key ----------------------------------------------------------------------------------------------


@pytest.mark.seed(51, 141, 258)
@pytest.mark.parametrize(
    "key",
    [
        "",
        "x",
        "0197a1b2-0000-4000-8000-000000000001",
        "0197a1b2-0000-1000-8000-000000000001",
        "0197a1b2-0000-7000-7000-000000000001",
        "0197a1b2-0000-7000-c000-000000000001",
        "0197a1b2000070008000000000000001",
        "{0197a1b2-0000-7000-8000-000000000001}",
        "0197a1b2-0000-7000-8000-00000000000g",
        "0197a1b2-0000-7000-8000-000000000001\n",
        "urn:uuid:0197a1b2-0000-7000-8000-000000000001",
        "0197a1b2-0000-7000-8000-00000000000\u0661",
    ],
)
async def test_a_key_that_is_no_uuid7_in_its_36_characters_is_refused(lake, catalog, key):
    with pytest.raises(BadInput, match="Idempotency-Key"):
        await a_table(catalog, key=key)
    assert await tables(catalog) == []


@pytest.mark.seed(49, 51)
@every_mutation
async def test_a_key_in_capitals_is_the_same_key(lake, catalog, mutation):
    key, arranged = lake.key(), await mutation.before(lake, catalog)
    first = await told(mutation.send(catalog, GRANT, key, None, 0, arranged))
    await lake.settled()
    assert await told(mutation.send(catalog, GRANT, key.upper(), None, 0, arranged)) == first


def _key_at(ms: int) -> str:
    return f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7000-8000-000000000001"


@every_mutation
async def test_a_key_from_the_future_is_refused_and_both_clocks_are_named(lake, catalog, mutation):
    arranged = await mutation.before(lake, catalog)
    now_ms = lake.clock.now_ms()
    done = await mutation.done(catalog) if mutation.name in {"commit", "tags"} else None
    answer = await told(mutation.send(catalog, GRANT, _key_at(now_ms + 5 * 60_000 + 1), None, 0, arranged))
    assert answer[0] == 400
    assert len(re.findall(r"20\d\d-\d\d-\d\dT", answer[2])) == 2
    if done is not None:
        assert await mutation.done(catalog) == done


async def test_a_key_a_little_ahead_is_a_clock_a_little_wrong(lake, catalog):
    await a_table(catalog, key=_key_at(lake.clock.now_ms() + 5 * 60_000))


@pytest.mark.seed(51, 141)
@pytest.mark.parametrize("key", ["ffffffff-ffff-7fff-bfff-ffffffffffff", "f0000000-0000-7000-8000-000000000001"])
async def test_a_key_from_beyond_the_calendar_is_refused_like_any_from_the_future(catalog, key):
    with pytest.raises(BadInput):
        await a_table(catalog, key=key)


@every_mutation
async def test_a_key_older_than_its_retention_is_not_run_nor_called_failed(lake, catalog, mutation):
    arranged = await mutation.before(lake, catalog)
    done = await mutation.done(catalog) if mutation.name in {"commit", "tags"} else None
    key = _key_at(lake.clock.now_ms() - 25 * HOUR_MS - 1)
    with pytest.raises(CommitStateUnknown):
        await mutation.send(catalog, GRANT, key, None, 0, arranged)
    if done is not None:
        assert await mutation.done(catalog) == done


@pytest.mark.seed(159, 256, 257)
async def test_a_key_is_replayed_until_its_retention_ends(lake, catalog, second):
    key = lake.key()
    first = await told(a_table(catalog, key=key))
    committed = await told(commit(catalog, properties(a="b"), key=key))
    await lake.settled()
    lake.clock.pass_by(limits.key_lifetime_ms + limits.key_grace_ms)
    assert await told(a_table(second, key=key)) == first
    assert await told(commit(second, properties(a="b"), key=key)) == committed


def test_the_advertised_lifetime_is_an_hour_and_a_day_more_is_kept():
    assert idempotency.retention_ms() == 25 * HOUR_MS


@pytest.mark.seed(248)
async def test_without_a_key_every_request_is_a_new_one(catalog):
    await a_table(catalog)
    with pytest.raises(Conflict):
        await a_table(catalog)


@pytest.mark.seed(49)
def test_the_hash_of_a_key_is_the_sha256_of_its_small_letters():
    key = "0197a1b2-0000-7000-8000-000000000001"
    assert keys.key_hash(key) == hashlib.sha256(key.encode()).hexdigest()


# -- the canonical hash ---------------------------------------------------------------------------------------------

_NUMBERS = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["\ue0001\ue000", "a\x7f", "\u2028", "\x00", "\x1f", "/", "\\", '"', "\U0001f600", "\ufb33", "é"]
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.seed(52, 273)
@settings(deadline=None)
@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 2]))
def test_the_fast_canonical_form_is_the_plain_one(document, ascii_only, indent):
    body = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode()
    assert idempotency.canonical(body) == idempotency.canonical_plainly(body)


@pytest.mark.seed(52, 273)
@settings(deadline=None)
@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_the_order_of_keys_and_the_white_space_between_do_not_count(document, random):
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            items = list(value.items())
            random.shuffle(items)
            return {key: shuffled(item) for key, item in items}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    one = json.dumps(document).encode()
    other = json.dumps(shuffled(document), indent=3, ensure_ascii=False).encode()
    assert idempotency.request_hash(one) == idempotency.request_hash(other)


def _as_read(value: Any) -> Any:
    """What a JSON document says: numbers as the doubles they are, integers exact."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    if isinstance(value, int | float):
        return ("number", int(value) if value == int(value) else value)
    if isinstance(value, list):
        return ("list", [_as_read(item) for item in value])
    return ("dict", {key: _as_read(item) for key, item in value.items()})


@pytest.mark.seed(78)
@settings(max_examples=300, deadline=None)
@given(DOCUMENTS, DOCUMENTS)
def test_two_documents_have_one_hash_only_if_they_say_the_same(one, other):
    same = idempotency.request_hash(json.dumps(one).encode()) == idempotency.request_hash(json.dumps(other).encode())
    assert same == (_as_read(one) == _as_read(other))


@pytest.mark.seed(78)
@pytest.mark.parametrize(
    "one, other",
    [
        ('{"a": 1}', '{"a": 1, "unknown": null}'),
        ('{"a": 1}', '{"a": 2}'),
        ('{"a": 1}', '{"a": "1"}'),
        ('{"a": {}}', '{"a": []}'),
        ('{"a": 9007199254740992}', '{"a": 9007199254740993}'),
        ('{"a": 18446744073709551616}', '{"a": 18446744073709551617}'),
        ('{"a": -9223372036854775809}', '{"a": -9223372036854775810}'),
        ('{"a": 9007199254740993}', '{"a": "9007199254740993"}'),
        ('{"a": 9007199254740993}', '{"a": "\\ue0009007199254740993\\ue000"}'),
        ('{"a": 1}', '{"a": "\\ue0001\\ue000"}'),
        ('{"a": "e"}', '{"a": "\\u0065\\u0301"}'),
    ],
)
def test_every_field_and_every_digit_counts(one, other):
    assert idempotency.request_hash(one.encode()) != idempotency.request_hash(other.encode())


@pytest.mark.seed(77)
def test_the_order_of_updates_counts():
    assert idempotency.request_hash(b'{"updates":[1,2]}') != idempotency.request_hash(b'{"updates":[2,1]}')


@pytest.mark.seed(79)
@pytest.mark.parametrize(
    "body", ["{", "[1,]", '"\\ud800"', '{"\\udfff": 1}', "1e999", "NaN", "[" * 100_000 + "]" * 100_000, "\x00"]
)
def test_a_body_without_a_canonical_form_is_refused(body):
    with pytest.raises(BadInput, match="canonical"):
        idempotency.request_hash(body.encode())
