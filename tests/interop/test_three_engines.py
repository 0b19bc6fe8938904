"""Whatever one of Spark, PyIceberg and DuckDB writes, the other two read, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import running
from tests.interop.engines import DuckDB, Engine, PyIceberg, Rows, Spark

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(300),
    # The engines' own clients leave sockets to the garbage collector, and warn of their own changes.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

NAMES = ("PyIceberg", "Spark", "DuckDB")


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Engine]]:
    from frazil.pipeline import session

    root: Path = tmp_path_factory.mktemp("lake")
    with running(root) as started:
        spark = session(f"{started.uri}/iceberg")
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield {"PyIceberg": PyIceberg(started.uri), "Spark": Spark(spark), "DuckDB": DuckDB(started.uri)}
        finally:
            spark.stop()


@pytest.mark.seed(180, 182, 189, 397, 399, 401)
@pytest.mark.parametrize("writer", NAMES)
def test_every_engine_reads_what_one_wrote_before_and_after_a_schema_change(
    engines: dict[str, Engine], writer: str
) -> None:
    table = f"by_{writer.lower()}"
    engine = engines[writer]
    engine.create(table)
    engine.append(table, [{"id": 1, "name": "wren"}, {"id": 2, "name": None}])
    narrow: Rows = [{"id": 1, "name": "wren"}, {"id": 2, "name": None}]
    assert {name: reader.read(table) for name, reader in engines.items()} == dict.fromkeys(NAMES, narrow)

    engine.widen(table)
    engine.append(table, [{"id": 3, "name": "heron", "kind": "wader"}])
    wide: Rows = [{**row, "kind": None} for row in narrow] + [{"id": 3, "name": "heron", "kind": "wader"}]
    assert {name: reader.read(table) for name, reader in engines.items()} == dict.fromkeys(NAMES, wide)


def test_all_three_write_to_one_table_whoever_changed_its_schema(engines: dict[str, Engine]) -> None:
    engines["Spark"].create("together")
    rows = []
    for number, name in enumerate(NAMES):
        engines[name].append("together", [{"id": number, "name": name}])
        rows.append({"id": number, "name": name})
    engines["DuckDB"].widen("together")
    rows = [{**row, "kind": None} for row in rows]
    for number, name in enumerate(NAMES, start=10):
        engines[name].append("together", [{"id": number, "name": name, "kind": "late"}])
        rows.append({"id": number, "name": name, "kind": "late"})
    assert {name: reader.read("together") for name, reader in engines.items()} == dict.fromkeys(NAMES, rows)


def test_spark_creates_as_select_merges_deletes_and_replaces(engines: dict[str, Engine]) -> None:
    spark = engines["Spark"]
    assert isinstance(spark, Spark)
    sql = spark.sql
    sql("create table shared.source using iceberg as select 1L as id, 'a' as name union all select 2L, 'b'")
    sql("create table shared.target (id bigint, name string) tblproperties ('write.delete.mode'='merge-on-read')")
    spark.append("target", [{"id": 2, "name": "old"}, {"id": 3, "name": "c"}])
    sql(
        "merge into shared.target t using shared.source s on t.id = s.id "
        "when matched then update set name = s.name when not matched then insert *"
    )
    sql("delete from shared.target where id = 3")
    merged = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    assert spark.read("target") == merged
    assert engines["PyIceberg"].read("target") == merged
    sql("alter table shared.target create branch audit")
    sql("insert into shared.target.branch_audit values (9, 'z')")
    assert spark.read("target") == merged
    assert sql("select count(*) as n from shared.target version as of 'audit'").collect()[0]["n"] == 3
    assert sql("select count(*) as n from shared.target.snapshots").collect()[0]["n"] >= 3
    sql("create or replace table shared.target as select 7L as id, 'new' as name")
    assert spark.read("target") == [{"id": 7, "name": "new"}]
    sql("alter table shared.target rename to shared.moved")
    assert spark.read("moved") == [{"id": 7, "name": "new"}]
    sql("drop table shared.moved")
