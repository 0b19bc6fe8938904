"""A store that fails its conformance run serves reads, and says so wherever somebody would write."""

import msgspec
import pytest

from frazil import serve
from frazil.config import load
from frazil.rest.app import App, endpoints
from frazil.store.memory import MemoryBackend
from tests.rest.test_asgi import asked
from tests.store.test_conform import IgnoresVersions


@pytest.mark.seed(45)
async def test_a_store_that_ignores_conditions_is_found_out_at_the_start(monkeypatch):
    config = load(None, {}, {"root": "s3://bucket/lake"})
    broken, sound = IgnoresVersions(), MemoryBackend()
    monkeypatch.setattr(serve, "open_backend", lambda root, **options: broken)
    assert "fails its conformance run" in str(await serve.why_unfit(config))
    monkeypatch.setattr(serve, "open_backend", lambda root, **options: sound)
    assert await serve.why_unfit(config) is None


@pytest.mark.seed(45)
def test_a_server_on_an_unfit_store_advertises_no_write_and_refuses_them(live):
    site = msgspec.structs.replace(live.app.site, unfit="the store is unfit", endpoints=endpoints(writing=False))
    app = App(site, live.app.authentication, live.app.metrics, tick=lambda: 0.0, instance="unfit", in_flight=8)
    status, _, body = live.do(asked(app, "GET", "/iceberg/v1/config"))
    advertised = msgspec.json.decode(body)["endpoints"]
    assert status == 200
    assert "GET /v1/{prefix}/namespaces" in advertised
    assert {row.split()[0] for row in advertised if "/metrics" not in row} == {"GET", "HEAD"}
    status, _, body = live.do(asked(app, "POST", "/iceberg/v1/lake/namespaces", b'{"namespace":["never"]}'))
    assert (status, msgspec.json.decode(body)["error"]["message"]) == (406, "the store is unfit")
    assert live.do(asked(app, "GET", "/iceberg/v1/lake/namespaces/never"))[0] == 404
