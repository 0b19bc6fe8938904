"""For whoever watches the server: health, readiness, metrics, request ids, the log."""

import logging
import re
from importlib.metadata import version

from frazil.errors import Unavailable
from tests.rest.live import setting


def test_health_tells_the_version(client):
    assert client.get("/health", base="").json == {"status": "ok", "version": version("frazil")}


def test_the_seeds_health_is_a_plain_ok(client):
    reply = client.get("/lakehouse/health", base="")
    assert (reply.status, reply.body) == (200, b"OK")
    assert reply.headers["content-type"].startswith("text/plain")


def test_ready_means_that_the_head_can_be_read(client, live, monkeypatch):
    assert client.get("/ready", base="").status == 200

    async def gone():
        raise Unavailable("The object store did not answer")

    monkeypatch.setattr(live.app.site.catalog.context.registry, "view", gone)
    assert client.get("/ready", base="").error == (503, "ServiceUnavailableException")
    assert client.get("/health", base="").status == 200


def figure(text, name, **labels):
    """The value of a sample with these labels."""
    for line in text.splitlines():
        found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if found and found[1] == name and all(f'{key}="{value}"' in (found[2] or "") for key, value in labels.items()):
            return float(found[3])
    return 0.0


def test_metrics_count_requests_by_route_and_the_stores_operations_by_verb(client):
    def metrics():
        return client.get("/metrics", base="").body.decode()

    path = client.a_table()
    before = metrics()
    route = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"
    for _ in range(3):
        client.get(path)
    client.get(f"{path}x")
    after = metrics()

    def grown(name, **labels):
        return figure(after, name, **labels) - figure(before, name, **labels)

    assert grown("frazil_requests_total", route=route, status="200") == 3
    assert grown("frazil_requests_total", route=route, status="404") == 1
    assert grown("frazil_request_seconds_count", route=route) == 4
    assert grown("frazil_request_seconds_bucket", route=route, le="+Inf") == 4
    assert grown("frazil_request_seconds_sum", route=route) > 0
    assert grown("frazil_store_operations_total", verb="get_if_changed") >= 6
    assert figure(after, "frazil_in_flight") >= 1  # the one that asks


def test_a_request_has_an_id_its_own_or_one_of_ours(client):
    assert client.get("/health", base="", x_request_id="mine-1.2:3").headers["x-request-id"] == "mine-1.2:3"
    made = {client.get("/health", base="").headers["x-request-id"] for _ in range(3)}
    assert len(made) == 3


def test_an_insane_request_id_is_replaced(client):
    for given in ("x" * 65, "a b", "<script>", "", "ü"):
        assert client.get("/health", base="", x_request_id=given.encode()).headers["x-request-id"].startswith("test-")


def test_changes_and_refused_changes_are_logged_reads_are_not(client, caplog):
    path = client.a_table()
    with caplog.at_level(logging.INFO):
        caplog.clear()
        client.get(path)
        client.get(f"{path}x")
        client.commit(path, setting(a="1"), x_request_id="one")
        client.commit(path, {"action": "fly"}, x_request_id="two")
    said = [(record.request, record.status) for record in caplog.records if hasattr(record, "request")]
    assert said == [("one", 200), ("two", 400)]


def test_answers_have_a_date(client):
    assert client.get("/health", base="").headers["date"].endswith(" GMT")
