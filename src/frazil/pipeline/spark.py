"""A SparkSession wired to a Frazil catalog.

    from frazil.pipeline import session
    spark = session()
    spark.sql("select * from lake.sales.orders")

PySpark is imported when a session is asked for, not before: everything else here works without it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.pipeline import jar as iceberg
from frazil.pipeline.java import PipelineError, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "4.1.4"
SPARK_LINE = "4.1."


def session(
    uri: str = "http://127.0.0.1:8181/iceberg",
    *,
    token: str | None = None,
    catalog: str = "lake",
    warehouse: str | None = None,
    master: str = "local[2]",
    **settings: str,
) -> SparkSession:
    """Start Spark with the catalog at `uri` as its default catalog, under the name `catalog`.

    `settings` are Spark's own, by their dotted names, and win over what is chosen here. A process has one session:
    stop it before starting one for another catalog. `PipelineError` says in one line what is missing on this machine.
    """
    find_java(os.environ)
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise PipelineError("PySpark is not installed: pip install 'frazil[spark]'") from error
    check_pyspark(pyspark.__version__)
    _refuse_second(SparkSession.getActiveSession(), catalog, uri)

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "frazil")
    conf = wiring(uri, token=token, catalog=catalog, warehouse=warehouse, master=master)
    if not any(name in settings for name in ("spark.jars", "spark.jars.packages")):
        found = iceberg.find_jar(os.environ.get("FRAZIL_ICEBERG_JAR"), cache)
        conf |= {"spark.jars": str(found)} if found else {"spark.jars.packages": iceberg.COORDINATE}
    conf |= settings
    if local(master):
        # Spark's Python workers are `python3` otherwise, whichever that is, without this environment's packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # What Spark listens on before it reads its settings.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

    builder = SparkSession.builder.master(master)
    for name, value in conf.items():
        builder = builder.config(name, value)
    try:
        started = builder.getOrCreate()
    except Exception as error:
        if "spark.jars.packages" in conf:
            hint = "it had to fetch Iceberg's runtime: FRAZIL_ICEBERG_JAR can name the jar"
            raise PipelineError(f"Spark does not start; {hint} ({iceberg.COORDINATE})") from error
        raise
    _keep_fetched(started, conf, cache)
    return started


def check_pyspark(version: str) -> None:
    """`PipelineError` unless Iceberg has a runtime for this PySpark."""
    if not version.startswith(SPARK_LINE):
        raise PipelineError(
            f"PySpark {version} is installed, and Iceberg has no runtime for it: pip install 'pyspark=={SPARK}'"
        )


def wiring(uri: str, *, token: str | None, catalog: str, warehouse: str | None, master: str) -> dict[str, str]:
    """The settings of a session, but for the jar."""
    prefix = f"spark.sql.catalog.{catalog}"
    conf = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "rest",
        f"{prefix}.uri": uri,
        "spark.sql.defaultCatalog": catalog,
        # Timestamps mean the same on every machine.
        "spark.sql.session.timeZone": "UTC",
        # The only catalog is ours: no Hive metastore beside it.
        "spark.sql.catalogImplementation": "in-memory",
    }
    if warehouse is not None:
        conf[f"{prefix}.warehouse"] = warehouse
    if token is not None:
        conf[f"{prefix}.header.Authorization"] = f"Bearer {token}"
        # Spark hides what looks like a secret from its logs and its UI; this header does not look like one to it.
        conf["spark.redaction.regex"] = "(?i)secret|password|token|access[.]?key|authorization"
    if local(master):
        conf |= _SMALL_MACHINE
    return conf


def local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


_SMALL_MACHINE = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def _refuse_second(running: SparkSession | None, catalog: str, uri: str) -> None:
    # Spark would hand out the running session, still wired to the other place.
    if running is None:
        return
    wired = running.conf.get(f"spark.sql.catalog.{catalog}.uri", None)
    if wired != uri:
        raise PipelineError(f"a Spark session without {catalog} at {uri} is running: stop() it first")


def _keep_fetched(started: SparkSession, conf: dict[str, str], cache: Path) -> None:
    if "spark.jars.packages" not in conf:
        return
    for fetched in started.sparkContext.getConf().get("spark.jars", "").split(","):
        if fetched.endswith(iceberg.FILE_NAME):
            iceberg.keep(Path(fetched.removeprefix("file://")), cache)
