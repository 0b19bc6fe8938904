"""The CLI is a client too: each of its mutations, done once although the first answer to it was lost."""

import contextlib
import itertools
import json

import pytest

from frazil.cli.failures import MISSING, OK, UNKNOWN
from frazil.client.address import parse_address
from frazil.client.wire import exchange
from tests.cli.test_commands import put_table
from tests.client.scripted import Scripted, serving

COUNT = itertools.count()


class Losing(Scripted):
    """Hands every request on to a real server, and cuts the connection instead of giving the answers it is told to."""

    def __init__(self, server) -> None:
        super().__init__()
        self.server = parse_address(server)
        self.mutations: list[tuple[str | None, int]] = []
        self.lose = 0
        self.advertise = True

    def handle(self, handler):
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0)) or None
        named = {"content-type", "idempotency-key", "accept", "user-agent"}
        headers = {name: value for name, value in handler.headers.items() if name.lower() in named}
        answer = exchange(self.server, handler.command, handler.path, headers, body, 30)
        told = answer.body
        if handler.path.endswith("/v1/config") and not self.advertise:
            config = json.loads(told)
            del config["idempotency-key-lifetime"]
            told = json.dumps(config).encode()
        if handler.command != "GET":
            self.mutations.append((handler.headers.get("idempotency-key"), answer.status))
            if self.lose > 0:
                self.lose -= 1
                handler.close_connection = True
                return
        handler.send_response(answer.status)
        if answer.status != 204:
            handler.send_header("Content-Length", str(len(told)))
        handler.end_headers()
        handler.wfile.write(told)


@pytest.fixture
def losing(server):
    return Losing(server)


@pytest.fixture
def lake(frazil, losing, monkeypatch):
    """A command line whose server loses answers."""
    with contextlib.ExitStack() as stack:
        monkeypatch.setenv("FRAZIL_URI", stack.enter_context(serving(losing)))
        yield frazil


@pytest.fixture
def ns(lake, server):
    name = f"lost{next(COUNT)}_{id(object())}"
    assert lake("namespaces", "create", name).code == OK
    put_table(server, name, "t")
    return name


MUTATIONS = {
    "namespaces create": lambda ns: ["namespaces", "create", f"{ns}.new"],
    "namespaces set": lambda ns: ["namespaces", "set", ns, "a=b"],
    "namespaces drop": lambda ns: ["namespaces", "drop", f"{ns}.empty"],
    "tables set": lambda ns: ["tables", "set", f"{ns}.t", "a=b"],
    "tables tag": lambda ns: ["tables", "tag", f"{ns}.t", "a=b"],
    "tables rename": lambda ns: ["tables", "rename", f"{ns}.t", f"{ns}.u"],
    "tables drop": lambda ns: ["tables", "drop", f"{ns}.t"],
}


@pytest.mark.seed(91, 254, 270, 271, 282, 283)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("command", MUTATIONS)
def test_a_mutation_whose_answer_was_lost_is_done_once_and_reported_done(lake, losing, ns, command, times):
    lake("namespaces", "create", f"{ns}.empty")
    losing.mutations.clear()
    losing.lose = times
    done = lake(*MUTATIONS[command](ns))
    assert (done.code, done.err) == (OK, "")
    assert len(losing.mutations) == times + 1
    [key] = {key for key, _ in losing.mutations}
    assert key is not None
    assert len({status for _, status in losing.mutations}) == 1


@pytest.mark.seed(270)
def test_a_register_whose_answer_was_lost_is_reported_done(lake, losing, ns):
    location = lake("tables", "drop", f"{ns}.t", "--json").json["metadata-location"]
    losing.lose = 1
    assert lake("tables", "register", f"{ns}.t", location).code == OK


def test_a_commit_whose_answer_was_lost_is_one_version_of_the_table(lake, losing, ns):
    losing.lose = 2
    lake("tables", "set", f"{ns}.t", "a=b")
    assert len(lake("tables", "history", f"{ns}.t", "--json").json["metadata"]) == 2


@pytest.mark.seed(279)
def test_without_the_advertisement_a_lost_answer_is_told_as_unknown_and_nothing_is_repeated(lake, losing, ns):
    losing.advertise = False
    losing.mutations.clear()
    losing.lose = 1
    done = lake("tables", "drop", f"{ns}.t")
    assert done.code == UNKNOWN
    assert "whether it was applied is not known" in done.err
    assert losing.mutations == [(None, 200)]
    assert lake("tables", "show", f"{ns}.t").code == MISSING
