"""`frazil config show` and `frazil store check`."""

import pytest

from frazil.cli.failures import FAILED, OK, USAGE
from tests.servers import free_port, s3_server


def test_every_setting_is_shown_with_its_origin(frazil, tmp_path, monkeypatch):
    (tmp_path / "frazil.toml").write_text('root = "/from/toml"\nworkers = 3\n')
    monkeypatch.setenv("FRAZIL_WORKERS", "4")
    done = frazil("config", "show", "--config", tmp_path / "frazil.toml", "--listen", "127.0.0.1:9000", "--json")
    assert done.code == OK
    assert done.json["root"] == {"value": "/from/toml", "origin": str(tmp_path / "frazil.toml")}
    assert done.json["workers"] == {"value": "4", "origin": "FRAZIL_WORKERS"}
    assert done.json["listen"] == {"value": "127.0.0.1:9000", "origin": "--listen"}
    assert done.json["catalog"]["origin"] == "default"


def test_the_file_may_be_named_by_the_environment(frazil, tmp_path, monkeypatch):
    (tmp_path / "frazil.toml").write_text('catalog = "mine"\n')
    monkeypatch.setenv("FRAZIL_CONFIG", str(tmp_path / "frazil.toml"))
    assert frazil("config", "show", "--json").json["catalog"]["value"] == "mine"


def test_secrets_are_not_shown(frazil, monkeypatch):
    monkeypatch.setenv("FRAZIL_S3_SECRET_ACCESS_KEY", "very-s3cret")
    done = frazil("config", "show")
    assert "very-s3cret" not in done.out
    assert "FRAZIL_S3_SECRET_ACCESS_KEY" in done.out


@pytest.mark.parametrize(
    "words",
    [
        ["config", "show", "--config", "/nowhere/frazil.toml"],
        ["config", "show", "--listen", "nonsense"],
        ["serve", "--workers", "1000"],
        ["serve", "--listen", "0.0.0.0:8181"],
        ["up", "--listen", "0.0.0.0:8181"],
    ],
    ids=" ".join,
)
def test_a_wrong_setting_is_one_line_and_exit_code_2(frazil, words):
    done = frazil(*words)
    assert done.code == USAGE
    assert done.out == ""
    assert done.err.startswith("frazil: ")
    assert done.err.count("\n") == 1


def test_a_directory_is_admitted(frazil, tmp_path):
    done = frazil("store", "check", tmp_path, "--rounds", 2, "--writers", 2, "--json")
    assert done.code == OK
    assert done.json["admitted"]


def test_a_check_that_fails_is_exit_code_1(frazil, tmp_path, monkeypatch):
    from frazil.store import conform

    async def check(open, **named):
        return conform.Report((conform.Check("create", False, "two writers won"),), ())

    monkeypatch.setattr(conform, "check", check)
    done = frazil("store", "check", tmp_path)
    assert done.code == FAILED
    assert "NOT admitted" in done.out


@pytest.mark.parametrize("root", ["gs://bucket", "/proc/none/here"])
def test_what_cannot_be_a_store_is_one_line(frazil, root):
    done = frazil("store", "check", root)
    assert done.code == USAGE
    assert done.err.count("\n") == 1


@pytest.fixture(scope="module")
def s3():
    with s3_server() as started:
        yield started


@pytest.fixture
def bucket(s3, monkeypatch, frazil):
    """The root of a bucket, with what reaches it in the environment."""
    for name, value in s3.options().items():
        monkeypatch.setenv(f"FRAZIL_S3_{name.upper()}", value)
    return f"{s3.root}/cli"


def test_a_bucket_is_admitted(frazil, bucket):
    done = frazil("store", "check", bucket, "--rounds", 2, "--writers", 4)
    assert done.code == OK, done.out
    assert "admitted" in done.out
    assert "secret" not in done.out


def test_doctor_looks_into_a_bucket(frazil, bucket):
    done = frazil("doctor", "--root", bucket, "--listen", f"127.0.0.1:{free_port()}", "--json")
    assert done.code == OK
    assert "holds no catalog yet" in next(each["detail"] for each in done.json["checks"] if each["about"] == "root")


def test_a_bucket_that_does_not_answer_is_found(frazil, bucket, monkeypatch):
    monkeypatch.setenv("FRAZIL_S3_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    done = frazil("doctor", "--root", bucket, "--listen", f"127.0.0.1:{free_port()}")
    assert done.code == FAILED
    assert "FAIL  root" in done.out
