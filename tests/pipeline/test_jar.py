"""Iceberg's jar: as configured, then the cache, then Maven; never another file than the released one."""

import hashlib
from pathlib import Path

import pytest

from frazil.pipeline import jar
from frazil.pipeline.java import PipelineError

RELEASED = b"the released jar"


@pytest.fixture
def release(monkeypatch, tmp_path):
    """A world in which the released jar is a few bytes, and there is no Maven."""
    monkeypatch.setattr(jar, "SHA256", hashlib.sha256(RELEASED).hexdigest())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path


def a_maven(folder: Path, delivers: bytes) -> None:
    script = folder / "bin" / "mvn"
    script.write_text(
        "#!/bin/sh\n"
        'for option; do case $option in -DoutputDirectory=*) out="${option#*=}";; esac; done\n'
        f"printf %s '{delivers.decode()}' > \"$out/{jar.FILE_NAME}\"\n"
    )
    script.chmod(0o755)


def test_a_configured_jar_is_taken_as_it_is(release):
    mine = release / "mine.jar"
    mine.write_bytes(RELEASED)
    assert jar.find_jar(str(mine), release / "cache") == mine


@pytest.mark.parametrize("body", [b"another jar", None])
def test_a_configured_jar_that_is_not_the_released_one_is_refused(release, body):
    mine = release / "mine.jar"
    if body is not None:
        mine.write_bytes(body)
    with pytest.raises(PipelineError, match=r"mine\.jar is not iceberg-spark-runtime"):
        jar.find_jar(str(mine), release / "cache")


def test_maven_fetches_it_once_and_the_cache_has_it_afterwards(release):
    a_maven(release, RELEASED)
    kept = jar.find_jar(None, release / "cache")
    assert kept == release / "cache" / jar.FILE_NAME
    (release / "bin" / "mvn").unlink()
    assert jar.find_jar(None, release / "cache") == kept


def test_what_maven_brings_is_not_trusted_unread(release):
    a_maven(release, b"another jar")
    assert jar.find_jar(None, release / "cache") is None
    assert not (release / "cache").exists()


def test_a_damaged_cache_is_not_used(release):
    (release / "cache").mkdir()
    (release / "cache" / jar.FILE_NAME).write_bytes(RELEASED[:5])
    assert jar.find_jar(None, release / "cache") is None


def test_without_maven_it_is_left_to_spark(release):
    assert jar.find_jar(None, release / "cache") is None
