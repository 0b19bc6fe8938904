"""What a session is wired with, and what it says on a machine where Spark cannot start."""

import subprocess
import sys

import pytest

from frazil.pipeline import PipelineError, session
from frazil.pipeline.spark import check_pyspark, wiring


def wired(**changed):
    return wiring(
        **{"uri": "http://x", "token": None, "catalog": "lake", "warehouse": None, "master": "local[2]"} | changed
    )


def test_the_catalog_is_the_default_one_and_speaks_rest():
    conf = wired(catalog="mine", warehouse="w")
    assert conf["spark.sql.defaultCatalog"] == "mine"
    assert conf["spark.sql.catalog.mine.type"] == "rest"
    assert conf["spark.sql.catalog.mine.uri"] == "http://x"
    assert conf["spark.sql.catalog.mine.warehouse"] == "w"


def test_the_token_goes_into_the_header_and_stays_out_of_sparks_logs():
    conf = wired(token="s3cret")
    assert conf["spark.sql.catalog.lake.header.Authorization"] == "Bearer s3cret"
    assert "authorization" in conf["spark.redaction.regex"]
    assert not [name for name in wired() if "Authorization" in name]


def test_a_local_session_listens_on_loopback_and_a_cluster_is_left_to_its_own_settings():
    assert wired()["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in wired(master="yarn")


@pytest.mark.parametrize("version", ["4.2.1", "4.3.0", "3.5.9", "4.0.5"])
def test_a_pyspark_that_iceberg_does_not_know_is_refused(version):
    with pytest.raises(PipelineError, match="Iceberg has no runtime for it"):
        check_pyspark(version)


def test_the_pinned_pyspark_is_accepted():
    check_pyspark("4.1.4")


def test_without_java_a_session_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(PipelineError, match="no Java found"):
        session()


def test_without_pyspark_a_session_says_what_to_install(monkeypatch):
    monkeypatch.setattr("frazil.pipeline.spark.find_java", lambda environ: None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(PipelineError, match=r"pip install 'frazil\[spark\]'"):
        session()


def test_the_package_can_be_imported_without_pyspark():
    code = "import sys; import frazil.pipeline; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
