"""The real effects: ids in order, work side by side, what is put off and waited for."""

import asyncio
import re

import pytest

from frazil.catalog.idempotency import parse_key
from frazil.effects import EventLoopTasks, RandomIds, SystemChance, SystemClock, system
from frazil.store import keys


class Stopped(SystemClock):
    ms = 1_767_225_600_000

    def now_ms(self):
        return self.ms


def test_ids_of_one_process_are_in_order_even_within_a_millisecond():
    ids = RandomIds(Stopped())
    made = [ids.uuid7() for _ in range(10_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(parse_key(each, Stopped.ms + 60_000) == each for each in made[:100])


def test_ids_do_not_go_back_with_the_clock():
    clock = Stopped()
    ids = RandomIds(clock)
    first = ids.uuid7()
    clock.ms -= 10_000
    assert ids.uuid7() > first


def test_a_uuid7_says_when_it_was_made():
    assert keys.uuid7_ms(RandomIds(Stopped()).uuid7()) == Stopped.ms


def test_stamps_and_event_ids_are_unique_and_of_their_form():
    ids = RandomIds(SystemClock())
    assert len({ids.stamp() for _ in range(1000)}) == 1000
    assert all(re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}", ids.ulid()) for _ in range(100))
    assert RandomIds(Stopped()).ulid()[:10] == RandomIds(Stopped()).ulid()[:10]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", ids.uuid4())


async def test_time_passes():
    clock = SystemClock()
    mark = clock.mark()
    assert not await clock.passed(mark, 10_000)
    await clock.sleep(5)
    assert await clock.passed(mark, 4)


def test_jitter_is_within_its_bound():
    assert {SystemChance().jitter_ms(2) for _ in range(200)} == {0, 1, 2}


@pytest.fixture
def heard():
    return []


@pytest.fixture
def tasks(heard):
    return EventLoopTasks(heard.append)


async def value(of, waits=0):
    for _ in range(waits):
        await asyncio.sleep(0)
    return of


async def failing(error, waits=0):
    for _ in range(waits):
        await asyncio.sleep(0)
    raise error


async def test_steps_side_by_side_give_their_values_in_order(tasks):
    assert await tasks.together(value(1, 3), value(2), value(3, 1)) == (1, 2, 3)
    assert await tasks.together() == ()


async def test_steps_run_side_by_side_not_one_after_the_other(tasks):
    one, other = asyncio.Event(), asyncio.Event()

    async def first():
        one.set()
        await other.wait()

    async def second():
        await one.wait()
        other.set()

    await asyncio.wait_for(tasks.together(first(), second()), 2)


@pytest.mark.parametrize("waits", [(0, 0), (2, 0), (0, 2), (2, 2)])
async def test_all_steps_end_before_the_first_failure_in_order_is_raised(tasks, waits):
    ended = []

    async def slow():
        await value(None, 5)
        ended.append(True)

    with pytest.raises(KeyError):
        await tasks.together(failing(KeyError("a"), waits[0]), slow(), failing(IndexError(), waits[1]))
    assert ended


async def test_a_cancelled_step_is_cancelled_inside(tasks):
    seen = []

    async def step():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    inner = asyncio.current_task

    async def cancelling():
        await asyncio.sleep(0)
        for task in asyncio.all_tasks():
            if task is not outer and task is not inner():
                task.cancel()

    outer = asyncio.current_task()
    cancel = asyncio.create_task(cancelling())
    with pytest.raises(asyncio.CancelledError):
        await tasks.together(step())
    await asyncio.gather(cancel, return_exceptions=True)
    assert seen == ["cancelled"]


async def test_what_is_put_off_runs_and_is_waited_for_and_its_failure_is_heard(tasks, heard):
    done = []

    async def work():
        await value(None, 3)
        done.append(1)
        tasks.later(more())

    async def more():
        done.append(2)

    error = ValueError("x")
    tasks.later(work())
    tasks.later(failing(error, 2))
    await tasks.drain()
    assert done == [1, 2]
    assert heard == [error]
    await tasks.drain()


async def test_a_promise_is_kept_once_and_for_everybody(tasks):
    promise = tasks.promise()
    waiting = [asyncio.create_task(promise.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    promise.give(1)
    promise.give(2)
    promise.fail(ValueError())
    assert await asyncio.gather(*waiting) == [1, 1, 1]
    assert await promise.wait() == 1


async def test_who_stops_waiting_for_a_promise_does_not_break_it_for_others(tasks):
    promise = tasks.promise()
    gone, stays = (asyncio.create_task(promise.wait()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    promise.give(1)
    assert await stays == 1


async def test_a_promise_that_fails_fails_for_whoever_waits_and_warns_nobody_else(tasks):
    promise = tasks.promise()
    promise.fail(ValueError("x"))
    with pytest.raises(ValueError, match="x"):
        await promise.wait()
    tasks.promise().fail(ValueError("nobody waits"))


def test_a_servers_effects_are_all_there():
    effects = system(lambda error: None)
    assert effects.clock.now_ms() > Stopped.ms
    assert effects.ids.uuid7() != effects.ids.uuid7()
