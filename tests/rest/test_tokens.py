"""Authentication over the wire."""

import time

import pytest

TOKEN, OTHER = "t" * 40, "o" * 40


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"ada {TOKEN}\n")
    path.chmod(0o600)
    return path


def test_a_token_opens_what_is_closed_without_it(start, token_file):
    with start(token_file=str(token_file)) as live:
        stranger, ada = live.client(), live.client(authorization=f"Bearer {TOKEN}")
        for reply in (
            stranger.get("/namespaces"),
            stranger.get("/iceberg/v1/config", base=""),
            stranger.get("/metrics", base=""),
            stranger.get("/no/such/path", base=""),
            stranger.post("/namespaces", {"namespace": ["x"]}),
        ):
            assert reply.error == (401, "NotAuthorizedException")
            assert reply.headers["www-authenticate"] == "Bearer"
        assert stranger.head("/namespaces/x").status == 401
        assert [stranger.get(path, base="").status for path in ("/health", "/ready", "/lakehouse/health")] == [200] * 3
        assert ada.post("/namespaces", {"namespace": ["x"]}).status == 200
        assert ada.get("/namespaces").json == {"namespaces": [["x"]]}


def test_with_tokens_the_server_may_have_any_name_and_serve_pages(start, token_file):
    with start(token_file=str(token_file)) as live:
        ada = live.client(authorization=f"Bearer {TOKEN}", host="lake.example", origin="https://app.example")
        assert ada.get("/namespaces").status == 200


def test_who_asks_is_recorded_and_belongs_to_the_key(start, token_file):
    token_file.write_text(f"ada {TOKEN}\nbob {OTHER}\n")
    with start(token_file=str(token_file)) as live:
        from tests.rest.live import a_key, setting

        ada = live.client(authorization=f"Bearer {TOKEN}")
        bob = live.client(authorization=f"Bearer {OTHER}")
        path, key = ada.a_table(), a_key()
        done = ada.commit(path, setting(a="1"), idempotency_key=key)

        async def source():
            uuid = done.json["metadata"]["table-uuid"]
            return (await live.app.site.catalog.context.pointers.read(uuid)).producer.source

        assert live.do(source()).principal == "ada"
        assert bob.commit(path, setting(a="1"), idempotency_key=key).error == (409, "CommitFailedException")


def test_a_changed_token_file_is_used_within_a_moment(start, token_file):
    with start(token_file=str(token_file)) as live:
        ada, bob = (live.client(authorization=f"Bearer {token}") for token in (TOKEN, OTHER))
        assert (ada.get("/namespaces").status, bob.get("/namespaces").status) == (200, 401)
        token_file.write_text(f"bob {OTHER}\n")
        until = time.monotonic() + 5
        while bob.get("/namespaces").status != 200 and time.monotonic() < until:
            time.sleep(0.05)
        assert (ada.get("/namespaces").status, bob.get("/namespaces").status) == (401, 200)


def test_no_token_is_in_the_log(start, token_file, caplog):
    with start(token_file=str(token_file)) as live, caplog.at_level("DEBUG"):
        ada = live.client(authorization=f"Bearer {TOKEN}")
        ada.post("/namespaces", {"namespace": ["x"]})
        ada.post("/namespaces", {"namespace": ["x"]})
        live.client(authorization=f"Bearer {OTHER}").get("/namespaces")
        live.client(authorization=f"Bearer {OTHER}").get("/nowhere")
    assert TOKEN not in caplog.text
    assert OTHER not in caplog.text
