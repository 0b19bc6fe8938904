"""A server dies before and after every single call to the store; the same request, repeated in a new process, recovers.

Before call n + 1 is after call n, so dying before each call and after the last covers both. Calls made side by side
land in either order. What comes after the answer (receipt, marker) is part of the story.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from frazil.catalog.catalog import Catalog
from frazil.catalog.entries import namespace_key, table_key
from frazil.names import TableName
from tests.explore.engine import Actor, Process, answer, describe
from tests.explore.scenarios import sound
from tests.explore.world import (
    GRANT,
    NS,
    ROOT,
    Call,
    Store,
    T,
    Told,
    alone,
    append,
    bodies,
    built,
    by,
    create,
    definition,
    drop,
    key,
    load,
    namespace,
    process,
    put,
    rename,
    stage_and_commit,
)

U = TableName(NS, "u")
KEY = key(1)

EMPTY = built(namespace)
ONE = built(namespace, create())
UUID = next(iter(Told(bodies(ONE)).names.values()))


async def _create_namespace(catalog: Catalog) -> Any:
    return await catalog.create_namespace(GRANT, ("new",), {"a": "b"}, by(1))


async def _drop_namespace(catalog: Catalog) -> Any:
    return await catalog.drop_namespace(GRANT, NS, by(1))


async def _set_properties(catalog: Catalog) -> Any:
    return await catalog.update_namespace(GRANT, NS, ["gone"], {"a": "b"}, by(1))


async def _see(catalog: Catalog) -> None:
    await catalog.load_namespace(GRANT, NS)


def _location(store: Store) -> str:
    pointer = Told(bodies(store)).pointer(UUID)
    assert pointer is not None
    return pointer.current_metadata_location


def register(location: str) -> Call:
    return lambda catalog: catalog.register_table(GRANT, T, location, False, by(1))


def _ready_to_move(step: tuple[Any, ...]) -> bool:
    return step[0] == "swap" and "iceberg_pointers" in step[1]


def _die(actor: Actor, store: Store, stop: Callable[[tuple[Any, ...]], bool], *, reverse: bool) -> dict[str, Any]:
    """Run a process until it is about to make a call that `stop` picks. What it answered before it died."""
    running = Process(actor)
    for request in list(running.tasks):
        running.begin(request)
    while steps := running.pending():
        path, call = list(steps.items())[-1 if reverse else 0]
        if stop(call):
            break
        running.feed(path, answer(store, call))
    answers = {name: describe(outcome) for name, outcome in running.answers.items()}
    running.close()
    return answers


def dropped(*, owed: bool) -> Store:
    """The table dropped; with `owed`, by a server that died before it buried the pointer."""
    store = dict(ONE)
    if owed:
        _die(process("D", {"D": drop(key_=9)}, seen=dict(store), warm=load()), store, _ready_to_move, reverse=False)
    else:
        alone(store, drop(key_=9), name="D")
    return store


def half_registered() -> Store:
    """Somebody else's registration died between the pointer and the name."""
    store = dropped(owed=False)
    other = lambda catalog: catalog.register_table(GRANT, U, _location(store), False, by(8))  # noqa: E731
    moved: list[bool] = []

    def named_next(step: tuple[Any, ...]) -> bool:
        if _ready_to_move(step):
            moved.append(True)
        return bool(moved) and step[0] == "swap" and step[1].endswith("manifest.json")

    _die(process("G", {"G": other}, seen=dict(store)), store, named_next, reverse=False)
    return store


@dataclass(frozen=True)
class Story:
    """A request with a key, the store it meets, and how often its effect is in a store: once in the end."""

    name: str
    store: Store
    call: Call
    effects: Callable[[Told], int]
    warm: Call | None = None

    def __str__(self) -> str:
        return self.name


def _committed(told: Told) -> int:
    return told.times(UUID, KEY)


def _made(told: Told) -> int:
    uuid = told.names.get(table_key(T))
    return 0 if uuid is None else told.times(uuid, KEY)


def _registered(told: Told) -> int:
    pointer = told.pointer(UUID)
    live = pointer is not None and pointer.state == "live"
    return list(told.names.values()).count(UUID) if live else 0


def _dropped(told: Told) -> int:
    pointer = told.pointer(UUID)
    assert pointer is not None
    return int(UUID not in told.names.values() and pointer.state == "tombstone")


STORIES = [
    Story("create", EMPTY, create(key_=1), _made),
    Story("create, warm", EMPTY, create(key_=1), _made, _see),
    Story("staged create", EMPTY, stage_and_commit(key_=1), _made, _see),
    Story("commit", ONE, put("a", key_=1), _committed),
    Story("commit, warm", ONE, put("a", key_=1), _committed, load()),
    Story("append to an empty table", ONE, append(5, key_=1, first=True), _committed, load()),
    Story("drop", ONE, drop(key_=1), _dropped),
    Story("drop, warm", ONE, drop(key_=1), _dropped, load()),
    Story(
        "rename",
        ONE,
        rename(T, U, 1),
        lambda told: int(told.names == {table_key(U): UUID}),
    ),
    Story("register what nobody has", dropped(owed=False), register(_location(ONE)), _registered),
    Story("register over an owed tombstone", dropped(owed=True), register(_location(ONE)), _registered),
    Story("register over a dead registration", half_registered(), register(_location(ONE)), _registered),
    Story("create namespace", EMPTY, _create_namespace, lambda told: int(namespace_key(("new",)) in told.namespaces)),
    Story("drop namespace", EMPTY, _drop_namespace, lambda told: int(namespace_key(NS) not in told.namespaces)),
    Story("namespace properties", EMPTY, _set_properties, lambda told: int(namespace_key(NS) in told.namespaces)),
]

every_story = pytest.mark.parametrize("story", STORIES, ids=str)
either_order = pytest.mark.parametrize("reverse", [False, True], ids=["in order", "the other way round"])


def _crash_points(story: Story, *, reverse: bool, name: str = "first") -> list[tuple[str, Store, dict[str, Any]]]:
    """(before which call, what is in the store, what was answered) for every point at which the server can die."""
    points: list[tuple[str, Store, dict[str, Any]]] = []
    for number in itertools.count():
        store = dict(story.store)
        count = itertools.count()
        last: list[str] = []

        def stop(call: tuple[Any, ...], count: Any = count, number: int = number, last: list[str] = last) -> bool:
            last.append(f"{call[0]} {call[1]}")
            return next(count) == number

        actor = process(name, {name: story.call}, seen=dict(store), warm=story.warm)
        answers = _die(actor, store, stop, reverse=reverse)
        points.append((last[-1] if len(last) > number else "the end", store, answers))
        if len(last) <= number:
            return points
    raise AssertionError


def _again(store: Store, story: Story, name: str, *, warm: Mapping[str, Any] | None = None) -> Any:
    """The same request in another process: one that starts now, or one that has known the lake from before."""
    done = alone(store, story.call, name=name, warm=story.warm if warm else None, seen=dict(warm) if warm else None)
    return done.answers[name]


def _check(story: Story, store: Store, answers: Mapping[str, Any], where: str) -> None:
    """The same request, from a process that knew the lake before and from new ones: one answer, one effect."""
    for old in (None, story.store):
        after = dict(store)
        given = [_again(after, story, "second", warm=old), _again(after, story, "third")]
        told = Told(bodies(after))
        said = f"{story}: died before {where}, was told {answers}, then {given}"
        assert not any(isinstance(one, tuple) for one in given), said
        assert len({repr(one) for one in [*answers.values(), *given]}) == 1, said
        assert story.effects(told) == 1, said
        assert sound(told) is None, f"{said}: {sound(told)}"
        assert _owed_after_a_sweep(after) == [], said


def _owed_after_a_sweep(store: Store) -> list[str]:
    alone(store, lambda catalog: catalog.sweep(), name="sweeper")
    told = Told(bodies(store))
    return [owed.uuid for owed in told.owed if (at := told.pointer(owed.uuid)) is not None and at.state == "live"]


@pytest.mark.seed(1, 65, 66, 67, 251, 254, 270, 276, 277, 278)
@every_story
@either_order
def test_a_request_cut_off_anywhere_has_one_effect_and_one_answer_when_repeated(story: Story, reverse: bool) -> None:
    points = _crash_points(story, reverse=reverse)
    assert len(points) > 2
    for before, store, answers in points:
        _check(story, store, answers, before)


@pytest.mark.seed(67, 68, 277)
@every_story
def test_a_request_whose_repetition_is_cut_off_too_has_one_effect_and_one_answer(story: Story) -> None:
    for before, store, answers in _crash_points(story, reverse=False):
        again = Story(story.name, store, story.call, story.effects)
        for before_too, store_too, answers_too in _crash_points(again, reverse=True, name="again"):
            _check(story, store_too, {**answers, **answers_too}, f"{before}, and then before {before_too}")


@every_story
def test_a_server_that_died_leaves_nothing_that_another_request_stumbles_over(story: Story) -> None:
    """Without the client's retry: others list, load, commit and create as if the request were whole or had not been."""

    async def look(catalog: Catalog) -> Any:
        names = (await catalog.list_tables(GRANT, NS, "", None)).names
        for name in names:
            await catalog.load_table(GRANT, TableName(NS, name))
            await put("other", name=TableName(NS, name))(catalog)
        await catalog.create_table(GRANT, TableName(NS, "another"), definition(), by())
        return names

    for before, store, _ in _crash_points(story, reverse=False):
        if namespace_key(NS) not in Told(bodies(store)).namespaces:
            continue
        done = alone(store, look, name="other")
        assert isinstance(done.answers["other"], list), f"{story}: died before {before}: {done.answers['other']}"
        assert sound(Told(bodies(store))) is None


def test_the_stories_meet_what_they_say_they_meet() -> None:
    owed, dead = Told(bodies(dropped(owed=True))), Told(bodies(half_registered()))
    assert [step.uuid for step in owed.owed] == [UUID]
    pointer = owed.pointer(UUID)
    assert pointer is not None
    assert pointer.state == "live"
    pointer = dead.pointer(UUID)
    assert pointer is not None
    assert pointer.state == "live"
    assert UUID not in dead.names.values()
    assert _location(ONE).startswith(ROOT)
