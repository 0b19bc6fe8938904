"""The commands against a real server: what people see, what programs get, and that they agree."""

import itertools
import json
import shlex
import subprocess
import sys

import pytest

from frazil.cli.failures import FAILED, MISSING, OK
from frazil.client.address import parse_address
from frazil.client.wire import exchange
from tests.conftest import running

COUNT = itertools.count()


@pytest.fixture
def lake(frazil, server, monkeypatch):
    """A command line that knows its server."""
    monkeypatch.setenv("FRAZIL_URI", server)
    return frazil


@pytest.fixture
def ns(lake):
    """A namespace that no other test has."""
    name = f"cli{next(COUNT)}_{id(object())}"
    assert lake("namespaces", "create", name).code == OK
    return name


def put_table(server, namespace, name, properties=None):
    """A table as an engine makes it."""
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
    body = json.dumps({"name": name, "schema": schema, "properties": properties or {}}).encode()
    target = f"/iceberg/v1/lake/namespaces/{namespace}/tables"
    answer = exchange(parse_address(server), "POST", target, {"Content-Type": "application/json"}, body, 30)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


@pytest.fixture
def table(server, ns):
    put_table(server, ns, "orders")
    return f"{ns}.orders"


# -- namespaces ----------------------------------------------------------------------------------------------------


@pytest.mark.seed(283)
def test_a_namespace_is_made_shown_changed_and_dropped(lake):
    assert lake("namespaces", "create", "people", "a=b", "--owner", "ada", "--description", "who we know").code == OK
    assert lake("namespaces", "show", "people", "--json").json["properties"] == {
        "a": "b",
        "owner": "ada",
        "comment": "who we know",
    }
    changed = lake("namespaces", "set", "people", "c=d", "--remove", "a", "--remove", "zz")
    assert changed.out == "people: set c; removed a; was not there: zz\n"
    shown = lake("namespaces", "show", "people")
    assert shown.out.splitlines()[:3] == ["name         people", "owner        ada", "description  who we know"]
    assert lake("namespaces", "drop", "people").code == OK
    assert lake("namespaces", "show", "people").code == MISSING


def test_namespaces_inside_others_are_listed_by_their_parent_and_recursively(lake, ns):
    for name in (f"{ns}.b", f'{ns}."dotted.name"', f'{ns}."dotted.name".deep'):
        assert lake("namespaces", "create", name).code == OK
    inside = [each["name"] for each in lake("namespaces", "list", ns, "--json").json["namespaces"]]
    assert inside == [f"{ns}.b", f'{ns}."dotted.name"']
    everything = [each["name"] for each in lake("namespaces", "list", "-r", "--json").json["namespaces"]]
    assert everything[everything.index(ns) :][:4] == [ns, f"{ns}.b", f'{ns}."dotted.name"', f'{ns}."dotted.name".deep']


@pytest.mark.parametrize(
    "name", ['"with.dot"', '"two words"', "ünï", "a/b", "100%", "a+b", '"quo""te"', "%1F", '".."', '"?x=y#z"'], ids=repr
)
def test_every_name_that_can_be_written_can_be_made_listed_and_dropped(lake, ns, name):
    full = f"{ns}.{name}"
    assert lake("namespaces", "create", full).code == OK
    [listed] = lake("namespaces", "list", ns).out.splitlines()[1:]
    assert lake("namespaces", "show", listed).code == OK
    assert lake("namespaces", "drop", listed).code == OK


def test_a_namespace_that_is_not_there_is_one_line_and_its_own_exit_code(lake):
    done = lake("namespaces", "show", "nowhere")
    assert (done.code, done.out) == (MISSING, "")
    assert done.err == "frazil: NoSuchNamespaceException: Namespace does not exist: nowhere\n"


def test_a_namespace_with_a_table_is_not_dropped(lake, ns, table):
    done = lake("namespaces", "drop", ns)
    assert done.code == FAILED
    assert done.err.startswith("frazil: NamespaceNotEmptyException: ")


# -- tables --------------------------------------------------------------------------------------------------------


def test_a_table_is_listed_in_its_namespace_and_among_all(lake, ns, table):
    assert lake("tables", "list", ns).out == f"TABLE\n{table}\n"
    assert table in lake("tables", "list").out.splitlines()


@pytest.mark.seed(21)
def test_owner_description_and_tags_are_set_and_read(lake, table):
    assert lake("tables", "set", table, "--owner", "ada", "--description", "what was sold", "k=v").code == OK
    assert lake("tables", "tag", table, "tier=gold", "pii=no").code == OK
    shown = lake("tables", "show", table, "--json").json
    assert shown["metadata"]["properties"] == {"owner": "ada", "comment": "what was sold", "k": "v"}
    assert shown["tags"] == {"tier": "gold", "pii": "no"}
    assert lake("tables", "tag", table, "tier=silver", "--remove", "pii", "--json").json["tags"] == {"tier": "silver"}
    lines = lake("tables", "show", table).out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines[1:4]] == ["ada", "what was sold", "tier=silver"]


@pytest.mark.seed(21)
def test_what_the_cli_sets_an_engine_reads_and_the_other_way_round(lake, server, ns):
    put_table(server, ns, "t", {"owner": "made by an engine"})
    assert "made by an engine" in lake("tables", "show", f"{ns}.t").out
    lake("tables", "set", f"{ns}.t", "--owner", "ada")
    target = f"/iceberg/v1/lake/namespaces/{ns}/tables/t"
    loaded = json.loads(exchange(parse_address(server), "GET", target, {}, None, 30).body)
    assert loaded["metadata"]["properties"]["owner"] == "ada"


def test_properties_are_removed(lake, table):
    lake("tables", "set", table, "a=1", "b=2")
    assert lake("tables", "set", table, "--remove", "a").out == f"{table}: removed a\n"
    assert lake("tables", "show", table, "--json").json["metadata"]["properties"] == {"b": "2"}


def test_the_history_grows_with_every_change_and_marks_the_current_one(lake, table):
    before = lake("tables", "history", table, "--json").json
    lake("tables", "set", table, "a=1")
    after = lake("tables", "history", table, "--json").json
    assert len(after["metadata"]) == len(before["metadata"]) + 1
    assert [each["current"] for each in after["metadata"]] == [False] * (len(after["metadata"]) - 1) + [True]
    assert "no data was written yet" in lake("tables", "history", table).out


@pytest.mark.seed(282)
def test_a_table_dropped_by_mistake_comes_back_by_what_drop_printed(lake, server, ns):
    name = f'{ns}."it\'s an ""order"""'
    put_table(server, ns, 'it\'s an "order"')
    lake("tables", "tag", name, "tier=gold", "note=two words")
    before = lake("tables", "show", name, "--json").json
    dropped = lake("tables", "drop", name)
    assert lake("tables", "show", name).code == MISSING
    for command in dropped.out.splitlines()[1:]:
        program, *words = shlex.split(command)
        assert program == "frazil"
        assert lake(*words).code == OK
    after = lake("tables", "show", name, "--json").json
    assert after["metadata"]["table-uuid"] == before["metadata"]["table-uuid"]
    assert after["tags"] == before["tags"]


def test_what_drop_prints_names_the_server_that_was_named(frazil, server, lake, table, monkeypatch):
    monkeypatch.delenv("FRAZIL_URI")
    assert frazil("tables", "drop", table, "--uri", server).out.splitlines()[1].endswith(f" --uri {server}")


@pytest.mark.seed(282)
def test_a_table_is_renamed_across_namespaces(lake, ns, table):
    lake("namespaces", "create", f"{ns}.other")
    assert lake("tables", "rename", table, f"{ns}.other.sold").code == OK
    assert lake("tables", "show", f"{ns}.other.sold").code == OK
    assert lake("tables", "show", table).code == MISSING


def test_what_a_purge_means_is_said(lake, table):
    done = lake("tables", "drop", table, "--purge")
    assert done.code == OK
    assert "may be deleted" in done.out


def test_a_reserved_property_is_refused_with_the_servers_reason(lake, table):
    done = lake("tables", "set", table, "frazil.x=1")
    assert done.code == FAILED
    assert done.err.startswith("frazil: BadRequestException: ")


def test_every_document_of_json_is_one_document(lake, ns, table):
    for words in (
        ["namespaces", "list"],
        ["namespaces", "show", ns],
        ["namespaces", "set", ns, "a=b"],
        ["namespaces", "create", f"{ns}.x"],
        ["namespaces", "drop", f"{ns}.x"],
        ["tables", "list"],
        ["tables", "show", table],
        ["tables", "history", table],
        ["tables", "set", table, "a=b"],
        ["tables", "tag", table, "a=b"],
        ["tables", "rename", table, f"{ns}.moved"],
        ["tables", "drop", f"{ns}.moved"],
        ["doctor"],
        ["config", "show"],
    ):
        done = lake(*words, "--json")
        assert isinstance(done.json, dict), words


# -- servers -------------------------------------------------------------------------------------------------------


def test_no_server_is_one_line_that_says_what_to_do(frazil, tmp_path):
    from tests.servers import free_port

    done = frazil("tables", "list", "--uri", f"http://127.0.0.1:{free_port()}")
    assert done.code == FAILED
    assert done.err.count("\n") == 1
    assert "`frazil up` starts one" in done.err


def test_a_server_with_tokens_answers_who_has_one(frazil, tmp_path, monkeypatch):
    tokens = tmp_path / "tokens"
    tokens.write_text("ada 0123456789abcdef\n")
    tokens.chmod(0o600)
    with running(tmp_path / "lake", "--token-file", tokens) as started:
        assert "NotAuthorizedException" in frazil("namespaces", "list", "--uri", started.uri).err
        monkeypatch.setenv("FRAZIL_TOKEN", "0123456789abcdef")
        assert frazil("namespaces", "list", "--uri", started.uri).code == OK
        assert "this machine and the server" in frazil("doctor", "--uri", started.uri).out


def test_doctor_knows_its_server_on_the_port(lake, server):
    done = lake("doctor", "--listen", server.removeprefix("http://"))
    assert "served by Frazil" in done.out


def test_a_busy_port_is_one_line(frazil, server, tmp_path):
    listen = server.removeprefix("http://")
    for command in (["up", tmp_path / "a"], ["serve", "--root", tmp_path / "b"]):
        words = [sys.executable, "-m", "frazil.cli", *map(str, command), "--listen", listen]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode not in (0, 130)
        assert listen in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") == 1
