import asyncio
import fcntl
import json
import os
import random
import zlib

import pytest

from frazil.errors import BadInput, Corrupt
from frazil.store import barrier, conform, local, slots
from frazil.store.base import Applied, Found, Refused, StoreUnavailable, Unchanged, Unclear
from frazil.store.drafts import Drafts
from frazil.store.local import LocalBackend

RECORD = "_catalog/iceberg_pointers/p.json"
PLAIN = "tables/t/metadata/00001.metadata.json"

WAYS = {
    "syncfs": {},
    "hidden names": {"nameless": False},
    "each file synced": {"sync_all": False},
    "each file synced, hidden names": {"sync_all": False, "nameless": False},
    "not synced": {"sync": False},
}


@pytest.fixture
async def opened(tmp_path):
    """Open handles on one directory, as processes would."""
    handles = []

    def open_another(**options) -> LocalBackend:
        handles.append(LocalBackend(str(tmp_path / "root"), **options))
        return handles[-1]

    yield open_another
    for handle in handles:
        await handle.close()


async def version_of(put) -> str:
    answer = await put
    assert isinstance(answer, Applied), answer
    return answer.version


@pytest.mark.seed(3, 39, 40, 42, 44)
@pytest.mark.parametrize("way", WAYS)
async def test_a_directory_is_admitted_however_it_works(tmp_path, way):
    report = await conform.check(lambda: LocalBackend(str(tmp_path), **WAYS[way]), rounds=12, writers=8)
    assert report.admitted, report.text()
    assert len(report.checks) == 26


async def test_the_way_is_found_by_trying(opened):
    assert opened()._drafts.nameless is True
    assert opened(nameless=False)._drafts.nameless is False


async def test_plain_objects_are_files_of_exactly_their_bytes(opened, tmp_path):
    await opened().create(PLAIN, b"bytes\x00")
    assert (tmp_path / "root" / PLAIN).read_bytes() == b"bytes\x00"


async def test_records_read_as_a_sequence_of_json_documents(opened, tmp_path):
    backend = opened(sync=False)
    version = await version_of(backend.create(RECORD, b'{"v":1}'))
    assert documents(tmp_path) == [{"v": 1}]
    version = await version_of(backend.swap(RECORD, b'{"v":2,"long":"' + b"x" * 500 + b'"}', version))
    assert [d["v"] for d in documents(tmp_path)] == [1, 2]
    version = await version_of(backend.swap(RECORD, b'{"v":3}', version))
    await backend.swap(RECORD, b'{"v":4}', version)
    assert [d["v"] for d in documents(tmp_path)] == [3, 4]


def documents(tmp_path):
    """What `jq` would make of the file, without the headers."""
    text, at, found = (tmp_path / "root" / RECORD).read_text(), 0, []
    while at < len(text.rstrip()):
        document, at = json.JSONDecoder().raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        found.append(document)
    assert all("frazil-slot" in header for header in found[::2])
    return found[1::2]


async def test_a_record_outgrows_its_slots_and_goes_on(opened):
    one, other = opened(), opened()
    version = await version_of(one.create(RECORD, b"0"))
    for size in (10, 4000, 5000, 100, 70_000, 300_000, 5):
        body = os.urandom(size)
        version = await version_of(one.swap(RECORD, body, version))
        assert await other.get(RECORD) == Found(body, version)
        assert await other.get_if_changed(RECORD, version) == Unchanged()
        one, other = other, one


@pytest.mark.parametrize("key", [RECORD, PLAIN])
async def test_versions_grow_over_deletes_and_between_processes(opened, key):
    handles = [opened(sync=False), opened(sync=False)]
    last = 0
    for turn in range(60):
        one, other = handles[turn % 2], handles[1 - turn % 2]
        first = int(await version_of(one.create(key, b"a")))
        second = int(await version_of(other.swap(key, b"b", str(first))))
        assert last < first < second
        last = second
        await one.delete(key)


async def test_versions_grow_when_the_clock_goes_back(opened):
    one, other = opened(sync=False), opened(sync=False)
    first = await version_of(one.create(RECORD, b"a"))
    other._clock.now_ms = lambda: 0
    second = await version_of(other.swap(RECORD, b"b", first))
    await one.delete(RECORD)
    third = await version_of(other.create(RECORD, b"a"))
    assert int(first) < int(second) < int(third)


# -- durability -------------------------------------------------------------------------------------------------------


async def test_no_write_is_reported_before_a_barrier_that_began_after_it(opened, monkeypatch):
    backend = opened()
    order: list[str] = []

    def sync(paths):
        order.append("barrier")

    monkeypatch.setattr(backend._barrier, "_sync", sync)
    version = await version_of(backend.create(RECORD, b"a"))
    assert order == ["barrier"]
    await backend.swap(RECORD, b"b", version)
    assert order == ["barrier", "barrier"]
    await backend.create("_catalog/pipeline/plans/j/1", b"plan")
    assert order == ["barrier"] * 4, "a contested plain name appears when its content is on the disk"
    await backend.delete(RECORD)
    assert order == ["barrier"] * 5


async def test_concurrent_writes_share_barriers(opened):
    backend = opened()
    await asyncio.gather(*(backend.create(f"_catalog/events/{n}.json", b"x") for n in range(200)))
    assert 1 <= backend._barrier.completed <= 100


def noted_at_writes(monkeypatch, backend) -> list[int]:
    """How many barriers were complete at each write of a slot."""
    completed: list[int] = []
    overwrite = slots.overwrite

    def noting(*args):
        completed.append(backend._barrier.completed)
        return overwrite(*args)

    monkeypatch.setattr(slots, "overwrite", noting)
    return completed


async def test_a_slot_over_a_version_of_unknown_durability_waits_for_a_barrier_first(opened, monkeypatch):
    """Else a power loss could spoil both: the slot that is written, and the newer one that never reached the disk."""
    one, other = opened(), opened()
    version = await version_of(one.create(RECORD, b"a"))
    barriers_at_write = noted_at_writes(monkeypatch, other)
    version = await version_of(other.swap(RECORD, b"b", version))
    assert barriers_at_write == [1], "written by another process: made durable here before the other slot is touched"
    await other.swap(RECORD, b"c", version)
    assert barriers_at_write == [1, 2], "written and made durable by this process: no barrier but the write's own"
    assert other._barrier.completed == 3


async def test_a_swap_over_a_write_whose_barrier_is_still_on_its_way_waits(opened, monkeypatch):
    backend = opened()
    version = await version_of(backend.create(RECORD, b"a"))
    barriers_at_write = noted_at_writes(monkeypatch, backend)
    first = asyncio.create_task(backend.swap(RECORD, b"b", version))
    await asyncio.sleep(0)
    seen = await backend.get(RECORD)
    assert seen is not None
    assert (seen.body, barriers_at_write) == (b"b", [1])
    await backend.swap(RECORD, b"c", seen.version)
    assert barriers_at_write[1] >= 2
    assert isinstance(await first, Applied)


async def test_a_refusal_waits_until_what_refused_it_is_durable(opened):
    one, other = opened(sync=False), opened()
    await one.create(RECORD, b"a")
    assert await other.create(RECORD, b"b") == Refused()
    assert other._barrier.completed == 1
    assert await other.create(RECORD, b"b") == Refused()
    assert other._barrier.completed == 1, "known by now"


async def test_after_a_failed_barrier_nothing_is_answered_any_more(opened, monkeypatch):
    backend = opened()
    version = await version_of(backend.create(RECORD, b"a"))

    def fail(paths):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(backend._barrier, "_sync", fail)
    answer = await backend.swap(RECORD, b"b", version)
    assert isinstance(answer, Unclear)
    assert "Input/output error" in answer.reason
    monkeypatch.undo()  # the disk says it is well again: what it dropped meanwhile nobody knows
    assert isinstance(await backend.create("_catalog/other.json", b"b"), Unclear)
    with pytest.raises(StoreUnavailable, match="restarted"):
        await backend.get(RECORD)
    with pytest.raises(StoreUnavailable):
        await backend.get_if_changed(RECORD, version)


async def test_without_syncfs_what_is_read_is_synced_before_what_is_built_on_it(opened, monkeypatch, tmp_path):
    one, other = opened(sync=False), opened(sync_all=False)
    await one.create(RECORD, b"a")
    synced: list[str] = []
    monkeypatch.setattr(barrier, "_sync_one", synced.append)
    await other.get(RECORD)
    await other.create("_catalog/other.json", b"b")
    root = tmp_path / "root"
    assert {str(root / RECORD), str(root / "_catalog/other.json"), str(root / "_catalog"), str(root)} <= set(synced)
    assert synced.index(str(root / RECORD)) < synced.index(str(root / "_catalog"))


async def test_reads_go_on_beside_a_barrier_that_syncs_what_was_read(opened):
    backend = opened(sync_all=False)
    await asyncio.gather(*(backend.create(f"_catalog/events/{n}.json", b"x") for n in range(40)))

    async def read(number):
        for _ in range(20):
            assert await backend.get(f"_catalog/events/{number}.json") is not None
            await asyncio.sleep(0)

    writes = (backend.create(f"_catalog/events/new-{n}.json", b"x") for n in range(40))
    await asyncio.gather(*writes, *(read(n) for n in range(40)))


async def test_not_syncing_never_waits(opened):
    backend = opened(sync=False)
    version = await version_of(backend.create(RECORD, b"a"))
    await backend.swap(RECORD, b"b", version)
    assert backend._barrier.completed == 0


# -- power loss and kills ---------------------------------------------------------------------------------------------

SPOILT = {
    "zeros": lambda slot: bytes(len(slot)),
    "no header": lambda slot: b"#" * slots.HEADER_BYTES + slot[slots.HEADER_BYTES :],
    "a wrong body": lambda slot: slot[: slots.HEADER_BYTES] + slot[slots.HEADER_BYTES :].replace(b"x", b"y"),
    "the end missing": lambda slot: slot[: len(slot) // 2] + bytes(len(slot) - len(slot) // 2),
    "half a header": lambda slot: slot[:40] + bytes(len(slot) - 40),
}


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("swaps", [1, 2, 3])
async def test_when_the_newest_slot_is_spoilt_the_one_before_is_the_truth(opened, tmp_path, how, swaps):
    backend = opened(sync=False)
    before = version = await version_of(backend.create(RECORD, b"0" + b"x" * 900))
    for turn in range(swaps):
        before, version = version, await version_of(backend.swap(RECORD, b"%d" % (turn + 1) + b"x" * 900, version))
    path = tmp_path / "root" / RECORD
    data = bytearray(path.read_bytes())
    at = slots.BLOCK if swaps % 2 else 0
    size = slots.HEADER_BYTES + 901
    data[at : at + size] = SPOILT[how](bytes(data[at : at + size]))
    path.write_bytes(data)

    after_the_loss = opened(sync=False)
    truth = Found(b"%d" % (swaps - 1) + b"x" * 900, before)
    assert await after_the_loss.get(RECORD) == truth
    assert await after_the_loss.get_if_changed(RECORD, before) == Unchanged()
    assert await after_the_loss.get_if_changed(RECORD, "1") == truth
    assert [item.version for item in await after_the_loss.list("_catalog/")] == [before]
    assert await after_the_loss.swap(RECORD, b"z", "1") == Refused()
    last = await version_of(after_the_loss.swap(RECORD, b"next", before))
    assert await opened().get(RECORD) == Found(b"next", last)
    assert int(last) > int(before)


async def test_a_record_with_no_whole_slot_is_an_error_and_never_absent(opened, tmp_path):
    backend = opened(sync=False)
    version = await version_of(backend.create(RECORD, b"x" * 100))
    await backend.swap(RECORD, b"x" * 100, version)
    path = tmp_path / "root" / RECORD
    path.write_bytes(path.read_bytes().replace(b"xxx", b"yyy"))
    for ask in (backend.get(RECORD), backend.swap(RECORD, b"b", version), backend.create(RECORD, b"b")):
        with pytest.raises(Corrupt, match=RECORD):
            await ask


@pytest.mark.parametrize("left", [0, 20, slots.HEADER_BYTES, slots.HEADER_BYTES + 50])
async def test_a_record_whose_content_was_lost_with_the_power_was_never_made(opened, tmp_path, left):
    backend = opened(sync=False)
    await backend.create(RECORD, b"x" * 100)
    path = tmp_path / "root" / RECORD
    path.write_bytes(path.read_bytes()[:left])
    assert await backend.get(RECORD) is None
    assert await backend.get_if_changed(RECORD, "1") is None
    assert await backend.list("_catalog/") == []
    assert await backend.swap(RECORD, b"b", "1") == Refused()
    version = await version_of(backend.create(RECORD, b"again"))
    assert await backend.get(RECORD) == Found(b"again", version)


async def test_no_power_loss_takes_back_what_was_reported(opened, tmp_path, monkeypatch):
    """Every state that a disk may be in when the power goes: of the blocks written since the last barrier, any subset.

    The barrier is replaced by one that notes what is on the disk from then on; after each write in the page cache the
    possible disks are drawn (all of a few blocks, some of many) and recovered from.
    """
    path, image = tmp_path / "root" / RECORD, tmp_path / "image"
    handles = [opened(), opened()]
    disk = b""
    reported, losses = 0, 0

    def sync(paths):
        nonlocal disk
        disk = path.read_bytes()

    def power_loss(cache):
        nonlocal losses
        old, new = disk.ljust(len(cache), b"\0"), cache
        changed = [at for at in range(0, len(new), 512) if old[at : at + 512] != new[at : at + 512]]
        for _ in range(40):
            mixed = bytearray(old)
            for at in changed:
                if random.random() < 0.5:
                    mixed[at : at + 512] = new[at : at + 512]
            image.write_bytes(mixed[: random.choice((len(disk), len(cache)))])
            fd = os.open(image, os.O_RDONLY)
            try:
                recovered = slots.read_locked(fd, "image")
            finally:
                os.close(fd)
            assert recovered is not None
            assert recovered[0] >= reported
            assert zlib.crc32(recovered[1][8:]) == int(recovered[1][:8], 16)
            losses += 1

    pwrite = os.pwrite

    def written(fd, content, at):
        done = pwrite(fd, content, at)
        if len(content) > 30:  # not the floor in a lock file
            power_loss(path.read_bytes())
        return done

    def body(size):
        content = os.urandom(size).hex().encode()
        return b"%08x" % zlib.crc32(content) + content

    for handle in handles:
        monkeypatch.setattr(handle._barrier, "_sync", sync)
    monkeypatch.setattr(os, "pwrite", written)
    version = await version_of(handles[0].create(RECORD, body(20)))
    for turn in range(60):
        reported = int(version)
        handle = random.choice(handles)
        version = await version_of(handle.swap(RECORD, body(random.choice((20, 700, 1500))), version))
        if turn % 3 == 0:
            racing = asyncio.create_task(handle.swap(RECORD, body(900), version))
            await asyncio.sleep(0)
            seen = await handles[0].get(RECORD)
            assert seen is not None
            await handles[1].swap(RECORD, body(300), seen.version)
            await racing
            now = await handles[0].get(RECORD)
            assert now is not None
            version = now.version
    assert losses > 3000


async def test_drafts_of_killed_processes_are_swept_once_they_are_old(opened, tmp_path):
    backend = opened()
    hidden = tmp_path / "root" / ".frazil" / "drafts"
    (hidden / "4711-0").write_bytes(b"left behind")
    now_ms = backend._clock.now_ms()
    Drafts(str(tmp_path / "root"), backend._root_fd, now_ms + 30_000)
    assert [entry.name for entry in hidden.iterdir()] == ["4711-0"]
    Drafts(str(tmp_path / "root"), backend._root_fd, now_ms + 90_000)
    assert list(hidden.iterdir()) == []


@pytest.mark.parametrize("nameless", [True, False])
async def test_nothing_is_left_behind_by_writes_of_any_kind(opened, tmp_path, nameless):
    backend = opened(nameless=nameless)
    for key in (RECORD, PLAIN):
        version = await version_of(backend.create(key, b"a"))
        assert await backend.create(key, b"b") == Refused()
        assert await backend.swap(key, b"x" * 50_000, "1") == Refused()
        await backend.swap(key, b"x" * 50_000, version)
    assert list((tmp_path / "root" / ".frazil" / "drafts").iterdir()) == []


async def test_a_stopped_process_that_holds_a_lock_makes_writes_unclear_and_reads_go_on(opened, monkeypatch):
    monkeypatch.setattr(local, "WAIT_MS", 50)
    one, other = opened(), opened()
    version = await version_of(one.create(RECORD, b"a"))
    fd = other._locks.take(RECORD, fcntl.LOCK_EX)
    answer = await one.swap(RECORD, b"b", version)
    assert isinstance(answer, Unclear)
    assert RECORD in answer.reason
    assert await one.get(RECORD) == Found(b"a", version)
    fcntl.flock(fd, fcntl.LOCK_UN)
    assert isinstance(await one.swap(RECORD, b"b", version), Applied)


# -- opening ----------------------------------------------------------------------------------------------------------


def test_a_root_that_cannot_be_used_is_one_clear_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for root, reason in (("missing/root", "No such file"), ("file", "Not a directory")):
        with pytest.raises(BadInput, match=f"{root} cannot hold a catalog: {reason}"):
            LocalBackend(str(tmp_path / root))
    monkeypatch.setattr(Drafts, "keeps_nanoseconds", lambda self: False)
    with pytest.raises(BadInput, match="nanoseconds"):
        LocalBackend(str(tmp_path / "coarse"))


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".frazil/locks/00", "a/.b", "a\0"]
)
async def test_a_key_stays_below_the_root(opened, key):
    backend = opened()
    for ask in (backend.get(key), backend.create(key, b""), backend.swap(key, b"", "1"), backend.delete(key)):
        with pytest.raises(AssertionError, match="not a key"):
            await ask


async def test_a_directory_is_no_object(opened):
    backend = opened(sync=False)
    await backend.create(PLAIN, b"a")
    assert await backend.get("tables/t") is None
    assert await backend.get(PLAIN + "/below") is None


async def test_a_version_of_another_store_is_refused(opened):
    backend = opened()
    await backend.create(RECORD, b"a")
    assert await backend.swap(RECORD, b"b", '"etag"') == Refused()
    assert isinstance(await backend.get_if_changed(RECORD, '"etag"'), Found)


async def test_what_is_no_file_is_no_object_and_nobody_waits_for_it(tmp_path):
    """A pipe that nobody writes to would hold up the whole server."""
    backend = LocalBackend(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert await backend.get("pipe") is None
    assert await backend.get("folder") is None
    assert await backend.get("n" * 300) is None
    await backend.close()
