"""Three foreign engines behind one small face: create, append, add a column, read every row."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Protocol

Rows = list[dict[str, Any]]


class Engine(Protocol):
    def create(self, table: str) -> None:
        """An empty table of `id` and `name`."""
        ...

    def append(self, table: str, rows: Rows) -> None: ...

    def widen(self, table: str) -> None:
        """Add the column `kind`."""
        ...

    def read(self, table: str) -> Rows: ...


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: row["id"])


class PyIceberg:
    def __init__(self, uri: str) -> None:
        from pyiceberg.catalog import load_catalog

        self._catalog = load_catalog("lake", type="rest", uri=f"{uri}/iceberg")
        self._catalog.create_namespace_if_not_exists("shared")

    def create(self, table: str) -> None:
        from pyiceberg.schema import Schema
        from pyiceberg.types import LongType, NestedField, StringType

        schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
        self._catalog.create_table(f"shared.{table}", schema=schema)

    def append(self, table: str, rows: Rows) -> None:
        import pyarrow as pa

        loaded = self._catalog.load_table(f"shared.{table}")
        loaded.append(pa.Table.from_pylist(rows, schema=loaded.schema().as_arrow()))

    def widen(self, table: str) -> None:
        from pyiceberg.types import StringType

        with self._catalog.load_table(f"shared.{table}").update_schema() as update:
            update.add_column("kind", StringType())

    def read(self, table: str) -> Rows:
        return in_order(self._catalog.load_table(f"shared.{table}").scan().to_arrow().to_pylist())


class Spark:
    def __init__(self, session: Any) -> None:
        self.sql = session.sql

    def create(self, table: str) -> None:
        self.sql(f"create table shared.{table} (id bigint, name string)")

    def append(self, table: str, rows: Rows) -> None:
        self._refresh(table)
        self.sql(f"insert into shared.{table} values {_values(rows)}")

    def widen(self, table: str) -> None:
        self.sql(f"alter table shared.{table} add columns (kind string)")

    def _refresh(self, table: str) -> None:
        """Spark's own catalog keeps a table for 30 s, whatever others do to it."""
        self.sql(f"refresh table shared.{table}")

    def read(self, table: str) -> Rows:
        self._refresh(table)
        return in_order([row.asDict() for row in self.sql(f"select * from shared.{table}").collect()])


class DuckDB:
    def __init__(self, uri: str) -> None:
        import duckdb

        self._db = duckdb.connect()
        for name in ("httpfs", "avro", "iceberg"):
            wheel = files(f"duckdb_extension_{name}")
            self._db.load_extension(str(wheel / f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"))
        self._db.execute(f"ATTACH 'lake' AS lake (TYPE iceberg, ENDPOINT '{uri}/iceberg', AUTHORIZATION_TYPE 'none')")

    def create(self, table: str) -> None:
        self._db.execute(f"CREATE TABLE lake.shared.{table} (id BIGINT, name VARCHAR)")

    def append(self, table: str, rows: Rows) -> None:
        self._db.execute(f"INSERT INTO lake.shared.{table} VALUES {_values(rows)}")

    def widen(self, table: str) -> None:
        self._db.execute(f"ALTER TABLE lake.shared.{table} ADD COLUMN kind VARCHAR")

    def read(self, table: str) -> Rows:
        return in_order(self._db.sql(f"SELECT * FROM lake.shared.{table}").to_arrow_table().to_pylist())


def _values(rows: Rows) -> str:
    return ", ".join("(" + ", ".join(_literal(value) for value in row.values()) + ")" for row in rows)


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else f"'{value}'"
