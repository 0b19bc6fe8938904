import asyncio
import os
import subprocess
import sys

import pytest

from frazil.errors import BadInput, Unavailable
from frazil.store import conform
from frazil.store.base import Applied, Found, Refused, StoreUnavailable, Unchanged, Unclear
from frazil.store.cloud import open_s3
from frazil.store.local import LocalBackend
from frazil.store.open import open_backend
from tests.servers import ACCESS_KEY, SECRET_KEY, free_port
from tests.store.faults import BUSY, CONFLICT, EVERY, LOST_ANSWER, FaultProxy

KEY = "_catalog/iceberg_pointers/p.json"


@pytest.mark.seed(3, 39, 40, 41, 42, 44)
async def test_a_real_s3_server_is_admitted(s3_server):
    report = await conform.check(
        lambda: open_backend(f"{s3_server.root}/warehouse/one", options=s3_server.options()), rounds=20, writers=16
    )
    assert report.admitted, report.text()
    assert "equal bodies (documents) have the same version: only stamps keep them apart" in report.notes


async def test_keys_lie_under_the_prefix(s3_server):
    backend = open_s3(f"{s3_server.root}/under/this", s3_server.options())
    await backend.create(KEY, b"a")
    assert (s3_server.directory / "bucket" / "under" / "this" / KEY).read_bytes() == b"a"
    await backend.close()


@pytest.mark.seed(41)
async def test_the_etag_is_the_version(s3_server):
    backend = open_s3(f"{s3_server.root}/etag", s3_server.options())
    made = await backend.create(KEY, b"a")
    assert made == Applied('"0cc175b9c0f1b6a831c399e269772661"')
    assert await backend.get(KEY) == Found(b"a", made.version)
    assert await backend.get_if_changed(KEY, made.version) == Unchanged()
    assert await backend.swap(KEY, b"b", '"0"') == Refused()
    assert isinstance(await backend.swap(KEY, b"b", made.version), Applied)
    await backend.close()


async def test_listings_beyond_a_page_of_the_server(s3_server):
    backend = open_s3(f"{s3_server.root}/pages", s3_server.options())
    place = s3_server.directory / "bucket" / "pages" / "_catalog" / "many"
    place.mkdir(parents=True)
    for number in range(2300):
        (place / f"{number:06}").write_bytes(b"")
    page = await backend.list("_catalog/many/", limit=5000)
    assert [item.key[-6:] for item in page] == [f"{number:06}" for number in range(2300)]
    page = await backend.list("_catalog/many/", after="_catalog/many/001500", limit=700)
    assert (page[0].key[-6:], page[-1].key[-6:], len(page)) == ("001501", "002200", 700)
    await backend.close()


@pytest.mark.parametrize("fault", EVERY, ids=str)
async def test_what_is_no_success_is_refused_or_unclear_after_one_request(s3_server, fault):
    async with FaultProxy(s3_server.port) as proxy:
        through = s3_server.options(endpoint=f"http://127.0.0.1:{proxy.port}", timeout_ms="500")
        backend = await asyncio.to_thread(open_s3, f"{s3_server.root}/once", through)
        key = f"_catalog/{EVERY.index(fault)}.json"
        proxy.next("PUT", key, fault)
        answer = await backend.create(key, b"a")
        assert isinstance(answer, Refused if fault.answer in (409, 412) else Unclear)
        assert len(proxy.bodies("PUT", key)) == 1, "the client repeats nothing by itself"
        await backend.close()


@pytest.mark.parametrize("fault", [BUSY, LOST_ANSWER, CONFLICT], ids=str)
async def test_a_read_without_an_answer_is_no_absence(s3_server, fault):
    async with FaultProxy(s3_server.port) as proxy:
        through = s3_server.options(endpoint=f"http://127.0.0.1:{proxy.port}", timeout_ms="500")
        backend = await asyncio.to_thread(open_s3, f"{s3_server.root}/reads", through)
        proxy.next("GET", "", fault, fault, fault)
        for read in (backend.get(KEY), backend.get_if_changed(KEY, '"0"'), backend.list("_catalog/")):
            with pytest.raises(StoreUnavailable):
                await read
        await backend.close()


@pytest.mark.parametrize(
    ("uri", "options", "error", "says"),
    [
        ("s3://nobody", {}, BadInput, "no such bucket"),
        ("s3://bucket", {"secret_access_key": "wrong"}, BadInput, "credentials"),
        ("s3://bucket", {"endpoint": "http://127.0.0.1:{free}"}, Unavailable, "does not answer"),
        ("s3://bucket", {"colour": "red"}, BadInput, "no option colour"),
        ("s3:///prefix", {}, BadInput, "names no bucket"),
    ],
)
def test_a_bucket_that_cannot_be_used_is_one_clear_error(s3_server, uri, options, error, says):
    given = {name: value.format(free=free_port()) for name, value in options.items()}
    with pytest.raises(error, match=says) as raised:
        open_backend(uri, options=s3_server.options(**given))
    assert "\n" not in raised.value.message
    assert ACCESS_KEY not in raised.value.message
    assert SECRET_KEY not in raised.value.message


def test_credentials_may_come_from_the_environment(s3_server, monkeypatch):
    for name, value in (("ACCESS_KEY_ID", ACCESS_KEY), ("SECRET_ACCESS_KEY", SECRET_KEY), ("REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    asyncio.run(open_s3(s3_server.root, {"endpoint": f"http://127.0.0.1:{s3_server.port}"}).close())


@pytest.mark.parametrize("closing", [True, False])
def test_a_process_ends_cleanly(s3_server, closing):
    program = f"""
import asyncio
from frazil.store.cloud import open_s3
async def main():
    backend = open_s3({s3_server.root!r}, {s3_server.options()!r})
    await asyncio.gather(*(backend.create(f"_catalog/exit-{{n}}.json", b"x") for n in range(50)))
    if {closing}:
        await backend.close()
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, timeout=30, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")


# -- which backend ----------------------------------------------------------------------------------------------------


@pytest.mark.seed(3)
@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}"])
async def test_a_path_is_a_directory(tmp_path, form):
    backend = open_backend(form.format(tmp_path / "a root"), sync=False)
    assert isinstance(backend, LocalBackend)
    await backend.create(KEY, b"a")
    assert (tmp_path / "a root" / KEY).exists()
    await backend.close()


@pytest.mark.parametrize("root", ["", "gs://bucket", "ftp://x", "file:relative", "file://elsewhere/x"])
def test_anything_else_is_no_root(root):
    with pytest.raises(BadInput, match="is not a root Frazil knows"):
        open_backend(root)
