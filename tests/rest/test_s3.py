"""The same server over a bucket: every operation waits, several workers share nothing but the store."""

import gzip
import signal

from tests.rest.live import a_key, setting
from tests.servers import ACCESS_KEY, SECRET_KEY, s3_server
from tests.test_serve import served


def test_a_server_over_a_bucket_keeps_its_keys_to_itself(tmp_path):
    with s3_server() as bucket:
        secret = tmp_path / "secret"
        secret.write_text(SECRET_KEY)
        options = {"s3.endpoint": bucket.options()["endpoint"], "s3.region": "us-east-1"}
        known = tmp_path / "id"
        known.write_text(ACCESS_KEY)
        keys = {"s3.access_key_id": f"file:{known}", "s3.secret_access_key": f"file:{secret}"}
        log = tmp_path / "log"
        with served(f"{bucket.root}/lake", log=log, workers=2, **options, **keys) as server:
            client = server.client
            config = client.get("/iceberg/v1/config", base="").json
            assert config["defaults"] == {
                "s3.endpoint": bucket.options()["endpoint"],
                "s3.region": "us-east-1",
                "client.region": "us-east-1",
                "s3.path-style-access": "true",
            }
            path, key = client.a_table(), a_key()
            loaded = client.get(path)
            assert loaded.json["config"] == config["defaults"]
            assert loaded.json["metadata"]["location"].startswith(f"{bucket.root}/lake/tables/")
            for _ in range(8):  # either worker
                assert client.get(path, if_none_match=loaded.headers["etag"]).status == 304
            done = client.commit(path, setting(a="1"), idempotency_key=key)
            for _ in range(8):
                assert client.get(path, accept_encoding="gzip").json == done.json
                again = client.commit(path, setting(a="1"), idempotency_key=key)
                assert (again.status, again.body) == (200, done.body)
            assert gzip.decompress(client.get(path, accept_encoding="gzip").body) == client.get(path).body
            code, _, out = server.stop(signal.SIGTERM)
            assert code == 0
        everything = log.read_text() + out + str(config) + str(loaded.json)
        assert SECRET_KEY not in everything
        assert ACCESS_KEY not in everything
