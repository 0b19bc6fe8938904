"""What to paste to reach a catalog: the same text in `frazil up` and in the README, run by the tests.

In this order they work on an empty catalog, each reading what the one before wrote. `{uri}` stands for the server's
address, for example http://127.0.0.1:8181.
"""

from __future__ import annotations

from typing import NamedTuple


class Snippet(NamedTuple):
    engine: str
    language: str
    #: What the engine needs on the machine.
    needs: str
    template: str

    def text(self, uri: str) -> str:
        return self.template.replace("{uri}", uri)


PYICEBERG = Snippet(
    "PyIceberg",
    "python",
    "pip install 'pyiceberg[pyarrow]'",
    """\
import pyarrow as pa
from pyiceberg.catalog import load_catalog

lake = load_catalog("lake", type="rest", uri="{uri}/iceberg")
birds = pa.table({"id": [1, 2], "name": ["wren", "robin"]})

lake.create_namespace_if_not_exists("demo")
table = lake.create_table_if_not_exists("demo.birds", schema=birds.schema)
table.append(birds)
print(table.scan().to_arrow().to_pylist())
""",
)

SPARK = Snippet(
    "Spark",
    "python",
    "pip install 'frazil[spark]', and Java 17",
    """\
from frazil.pipeline import session

spark = session("{uri}/iceberg")
spark.sql("create namespace if not exists demo")
spark.sql("create table if not exists demo.birds (id bigint, name string)")
spark.sql("insert into demo.birds values (3, 'finch')")
spark.sql("select * from demo.birds order by id").show()
""",
)

DUCKDB = Snippet(
    "DuckDB",
    "python",
    "pip install duckdb==1.5.5 duckdb-extension-{httpfs,avro,iceberg}==1.5.5",
    """\
import duckdb
from importlib.resources import files

db = duckdb.connect()
for name in ("httpfs", "avro", "iceberg"):  # in DuckDB's own shell instead: INSTALL iceberg; LOAD iceberg;
    wheel = files(f"duckdb_extension_{name}")
    db.load_extension(str(wheel / f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"))

db.sql("ATTACH 'lake' AS lake (TYPE iceberg, ENDPOINT '{uri}/iceberg', AUTHORIZATION_TYPE 'none')")
db.sql("CREATE SCHEMA IF NOT EXISTS lake.demo")
db.sql("CREATE TABLE IF NOT EXISTS lake.demo.birds (id BIGINT, name VARCHAR)")
db.sql("INSERT INTO lake.demo.birds VALUES (4, 'heron')")
db.sql("SELECT * FROM lake.demo.birds ORDER BY id").show()
""",
)

SNIPPETS = (PYICEBERG, SPARK, DUCKDB)


#: What each of them needs on top where the server has a token file.
TOKENS = """\
This server asks for a token:
    PyIceberg  load_catalog(…, token="…")
    Spark      session(…, token="…")
    DuckDB     AUTHORIZATION_TYPE 'oauth2', TOKEN '…'"""


def welcome(uri: str, *, tokens: bool = False) -> str:
    """What `frazil up` says. Code stands at the left edge: it is pasted as it is."""
    pasted = (f"# -- {each.engine}: {each.needs}\n\n{each.text(uri).rstrip()}" for each in SNIPPETS)
    parts = [f"A catalog is served at {uri}", *pasted, *([TOKENS] if tokens else []), "# -- Ctrl-C stops it"]
    return "\n\n".join(parts)
