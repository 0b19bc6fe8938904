"""What lies in a bucket is read for ever: fixtures of every version of every stored object, and the page about them."""

import hashlib
import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import frazil.catalog
from frazil.catalog import claims, context, entries, formats, pointers, ranges, receipts, registry
from frazil.catalog.catalog import Catalog, Mutation
from frazil.catalog.opening import VERSION as IDENTITY_VERSION
from frazil.catalog.opening import open_context
from frazil.effects import system
from frazil.errors import Corrupt, FrazilError
from frazil.grants import Grant
from frazil.names import TableName
from frazil.store import keys
from frazil.store.guard import Guard
from frazil.store.memory import MemoryBackend
from frazil.store.open import open_backend
from tests.catalog.formats import make

FOLDER = Path(make.__file__).parent
PAGE = FOLDER.parents[2] / "docs" / "formats.md"

UUID = "019b76da-a800-7001-8000-000000000008"
TABLE = f"s3://bucket/lake/tables/{UUID}"
CREATE_HASH = "5212931ebb8a4b958d9ba7a94c597581e34a565b3c52277681e14a8d361889c4"
APPEND_HASH = "266dcc3dc4f1831900edd876ec24150bdcd757d9ceec6377360bcf1a7363b64c"
CREATED = f"{TABLE}/metadata/00000-{CREATE_HASH}-stamp-0009.metadata.json"
APPENDED = f"{TABLE}/metadata/00001-{APPEND_HASH}-stamp-0014.metadata.json"
AT = "2026-01-01T00:00:00.000Z"
ADA = receipts.IcebergRest("PyIceberg/0.12.0", "ada")
MAIN = {"main": {"type": "branch", "snapshot-id": 101}}


class Kind(NamedTuple):
    """A stored object: its struct, the newest version, and its name in the page."""

    struct: Any
    newest: int
    title: str


IDENTITY = Kind(context.Identity, IDENTITY_VERSION, "Identity")
HEAD = Kind(registry.Head, registry.VERSION, "Head")
INDEX = Kind(ranges.Index, ranges.VERSION, "Index")
RANGE = Kind(ranges._Body, ranges.VERSION, "Range")
POINTER = Kind(pointers.Pointer, pointers.VERSION, "Pointer")
MARKER = Kind(claims.Marker, claims.VERSION, "Marker")
PENDING = Kind(receipts.Pending, receipts.VERSION, "Pending")
RECEIPT = Kind(receipts.Receipt, receipts.VERSION, "Receipt")

#: By the first word of a fixture's name.
OBJECTS = {
    "catalog": IDENTITY,
    "head": HEAD,
    "checkpoint-index": INDEX,
    "checkpoint": RANGE,
    "pointer": POINTER,
    "marker": MARKER,
    "receipt-pending": PENDING,
    "receipt": RECEIPT,
}

#: What lies inside them.
PARTS = [
    entries.Change,
    entries.Entry,
    entries.Outcome,
    entries.Failure,
    entries.Owed,
    ranges.Span,
    claims.Target,
    receipts.Servo,
    receipts.IcebergRest,
    receipts.AdminApi,
]

EVERY_FIXTURE = sorted(FOLDER.glob("v*/*.json"))


def kind_of(fixture: Path) -> Kind:
    names = [fixture.stem, *(fixture.stem.rsplit("-", cut)[0] for cut in range(1, fixture.stem.count("-") + 1))]
    return next(OBJECTS[name] for name in names if name in OBJECTS)


def stored(name: str, version: str = "v1") -> bytes:
    """A fixture as it lies in a bucket: without the white space that makes it readable here."""
    return msgspec.json.format((FOLDER / version / f"{name}.json").read_bytes(), indent=-1)


def decoded(name: str, kind: Kind, version: str = "v1") -> Any:
    return formats.decode(stored(name, version), kind.struct, kind.newest, name)


# -- every version ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fixture", EVERY_FIXTURE, ids=lambda fixture: f"{fixture.parent.name}-{fixture.stem}")
def test_a_stored_object_is_read_and_written_back_without_loss(fixture):
    kind = kind_of(fixture)
    body = stored(fixture.stem, fixture.parent.name)
    document = formats.decode(body, kind.struct, kind.newest, fixture.stem)
    again = formats.encode(document)
    if document.version == kind.newest:
        assert again == body
    assert formats.decode(again, kind.struct, kind.newest, fixture.stem) == document


def test_there_is_a_fixture_of_every_kind_in_its_newest_version():
    newest = {
        (kind_of(fixture).title, msgspec.json.decode(fixture.read_bytes())["version"]) for fixture in EVERY_FIXTURE
    }
    assert newest >= {(kind.title, kind.newest) for kind in OBJECTS.values()}


async def test_todays_code_writes_what_the_newest_fixtures_show():
    for file, content in (await make.fixtures()).items():
        fixture = FOLDER / make.NEWEST / file
        if fixture.suffix == ".json":
            assert shape(content) == shape(fixture.read_bytes()), f"{file}: a changed shape is a new version"
        else:
            assert content == fixture.read_bytes()


def shape(document: bytes) -> Any:
    """Field names in their order, and the kind of each value."""

    def of(value: Any) -> Any:
        match value:
            case dict():
                return [(name, of(item)) for name, item in value.items()]
            case list():
                return [of(item) for item in value]
        return type(value).__name__

    text = re.sub(rb"stamp-\d+|[0-9a-f]{8}-[0-9a-f]{4}-7001-8000-[0-9a-f]{12}", b"id", document)
    return of(msgspec.json.decode(text))


# -- what version 1 says ----------------------------------------------------------------------------------------------


def test_the_catalog_of_version_1_knows_its_name_and_root():
    assert decoded("catalog", IDENTITY) == context.Identity(
        version=1,
        name="lake",
        root="s3://bucket/lake",
        catalog_uuid="00000000-0000-4000-8000-000000000001",
        log_uuid="00000000-0000-4000-8000-000000000002",
        shard_count=16,
    )


def test_a_head_of_version_1_names_its_checkpoint_and_has_the_changes_since():
    head = decoded("head", HEAD)
    assert (head.seq, head.epoch) == (6, 0)
    assert head.checkpoint == "_catalog/core/snapshots/00000000000000000004-index-stamp-0041.json"
    assert head.owed == [entries.Owed(make.key(6), UUID, purge=True)]
    renamed, dropped = (msgspec.json.decode(change, type=entries.Change) for change in head.changes)
    assert renamed.removed == {"sales\0torders": UUID}
    entry = entries.Entry("table", UUID, "ICEBERG", TABLE, tags={"tier": "gold"})
    assert renamed.put == {"sales\0torders_copy": entry}
    assert (dropped.seq, dropped.id, dropped.put) == (6, make.key(6), {})
    assert dropped.outcome.operation == "table.purge"
    assert dropped.outcome.result == {"uuid": UUID}
    assert head.stamp == "stamp-0044"


def test_a_checkpoint_of_version_1_is_three_ordered_maps():
    index = decoded("checkpoint-index", INDEX)
    assert index.seq == 4
    assert [span.count for span in (*index.names, *index.uuids, *index.operations)] == [2, 2, 4]
    names, uuids, operations = (
        dict(decoded(f"checkpoint-{part}", RANGE).entries) for part in ("names", "uuids", "operations")
    )
    assert (index.names[0].first, index.names[0].last) == ("\0nsales", "sales\0torders") == tuple(names)
    namespace = msgspec.json.decode(names["\0nsales"], type=entries.Entry)
    assert (namespace.kind, namespace.properties) == ("namespace", {"comment": "what customers bought"})
    assert msgspec.json.decode(uuids[UUID], type=str) == "sales\0torders"
    refused = msgspec.json.decode(operations[make.key(5)], type=entries.Outcome)
    assert refused == entries.Outcome(
        operation="namespace.create",
        resource="sales",
        request=hashlib.sha256(b'{"namespace":1}').hexdigest(),
        principal="ada",
        at=make.NOW_MS,
        failure=entries.Failure(409, "AlreadyExistsException", "Namespace already exists: sales"),
    )


@pytest.mark.seed(26, 27, 28, 29, 30, 31, 32)
def test_a_pointer_of_version_1_has_the_fields_of_its_table():
    pointer = decoded("pointer", POINTER)
    assert keys.pointer(UUID) == f"_catalog/iceberg_pointers/{UUID}.json"
    assert (pointer.version, pointer.table_uuid, pointer.state) == (1, UUID, "live")
    assert pointer.current_metadata_location == APPENDED
    assert pointer.current_snapshot_id == 101
    assert pointer.refs == MAIN
    assert pointer.last_sequence_number == 1
    assert pointer.previous_metadata_location == CREATED
    assert (pointer.updated_at, pointer.updated_by) == (AT, ADA)
    assert (pointer.commit_number, pointer.fences, pointer.purge_requested) == (1, 0, False)


def test_a_pointer_of_version_1_carries_the_receipt_of_its_commit_byte_for_byte():
    assert bytes(decoded("pointer", POINTER).producer) == stored("receipt-rest")


@pytest.mark.seed(34)
def test_a_tombstone_of_version_1_keeps_the_last_commit_and_whether_a_purge_was_asked_for():
    tombstone = decoded("pointer-tombstone", POINTER)
    assert (tombstone.state, tombstone.purge_requested, tombstone.fences) == ("tombstone", True, 1)
    assert bytes(tombstone.producer) == stored("receipt-servo")


@pytest.mark.seed(47, 48, 50, 53, 54, 55, 57, 58, 59, 274)
def test_a_marker_of_version_1_says_what_its_attempt_was_about_to_do():
    claim = decoded("marker-in-progress", MARKER)
    assert (claim.status, claim.idempotency_key, claim.attempt) == ("InProgress", make.key(2), 1)
    assert claim.request_hash == hashlib.sha256(b'{"append":101}').hexdigest()
    assert (claim.operation, claim.resource, claim.principal, claim.source) == (
        "table.commit",
        "sales:orders",
        "ada",
        ADA,
    )
    assert (claim.started_at, claim.committed_at, claim.failed_at) == (AT, None, None)
    assert claim.target == claims.Target(
        table_uuid=UUID,
        base_version="5",
        base_metadata_location=CREATED,
        metadata_location=APPENDED,
        commit_key=keys.commit_key(APPENDED),
        metadata_updated_ms=make.NOW_MS,
        commit_number=1,
        snapshot_id=101,
        event_id="01KDVDMM000000000000000015",
    )


@pytest.mark.seed(53, 55, 56)
def test_a_marker_of_version_1_says_how_it_ended():
    committed, failed, released = (decoded(f"marker-{end}", MARKER) for end in ("committed", "failed", "released"))
    assert (committed.status, committed.committed_at) == ("Committed", AT)
    assert (failed.status, failed.failed_at, failed.error_http_status) == ("Failed", AT, 409)
    assert failed.error_payload["type"] == "CommitFailedException"
    assert (released.status, released.committed_at, released.failed_at) == ("Released", None, None)


@pytest.mark.seed(95, 96, 97, 103, 150)
def test_a_receipt_of_version_1_tells_its_commit_whole():
    assert decoded("receipt-rest", RECEIPT) == receipts.Receipt(
        version=1,
        table_uuid=UUID,
        commit_key=hashlib.sha256(APPENDED.encode()).hexdigest(),
        commit_number=1,
        event_id="01KDVDMM000000000000000015",
        metadata_location=APPENDED,
        previous_metadata_location=CREATED,
        previous=keys.committed_receipt(make.NOW_MS, keys.commit_key(CREATED)),
        snapshot_id=101,
        operation="append",
        summary={"operation": "append", "added-records": "3"},
        refs=MAIN,
        schema_id=0,
        format_version=2,
        transaction_id=None,
        source=receipts.IcebergRest(client_info="PyIceberg/0.12.0", principal="ada"),
        committed_at=AT,
        metadata_updated_ms=make.NOW_MS,
        backfilled=False,
    )


@pytest.mark.seed(149, 151)
def test_receipts_of_version_1_tell_a_pipeline_task_and_a_person_apart():
    servo = receipts.Servo(run_id="01KDVDMM00RVN0000000000001", task_id="01KDVDMM00TASK000000000001")
    assert decoded("receipt-servo", RECEIPT).source == servo
    assert decoded("receipt-admin", RECEIPT).source == receipts.AdminApi(user_id="ada")


@pytest.mark.seed(102)
def test_a_pending_receipt_of_version_1_has_the_fields_of_an_attempt():
    pending, committed = decoded("receipt-pending", PENDING), decoded("receipt-servo", RECEIPT)
    assert pending == receipts.Pending(
        version=1,
        table_uuid=UUID,
        commit_key=committed.commit_key,
        event_id=committed.event_id,
        metadata_location=committed.metadata_location,
        base_metadata_location=committed.previous_metadata_location,
        snapshot_id=103,
        source=committed.source,
        started_at=AT,
    )


# -- a bucket of version 1 --------------------------------------------------------------------------------------------


async def bucket(newer: str | None = None) -> Guard:
    """The fixtures under their keys; the object at key `newer` as a later version of Frazil would have written it."""
    head, index = decoded("head", HEAD), decoded("checkpoint-index", INDEX)
    lying = {
        keys.CATALOG: stored("catalog"),
        keys.HEAD: stored("head"),
        head.checkpoint: stored("checkpoint-index"),
        index.names[0].key: stored("checkpoint-names"),
        index.uuids[0].key: stored("checkpoint-uuids"),
        index.operations[0].key: stored("checkpoint-operations"),
        keys.pointer(UUID): stored("pointer-tombstone"),
        keys.marker(make.key(3)): stored("marker-failed"),
        RECEIPT_KEY: stored("receipt-rest"),
    }
    backend = MemoryBackend()
    effects = system(make._raise)
    for key, body in lying.items():
        await backend.create(key, as_newer(body) if key == newer else body)
    return Guard(backend, effects.clock, effects.chance)


def as_newer(body: bytes) -> bytes:
    document = msgspec.json.decode(body)
    return msgspec.json.encode({**document, "version": document["version"] + 1, "what we do not know": True})


RECEIPT_KEY = keys.committed_receipt(make.NOW_MS, keys.commit_key(APPENDED))


async def opened(store: Guard) -> Catalog:
    clock = make.FixedClock()
    effects = system(make._raise)
    effects.clock = clock
    return Catalog(await open_context(store, effects, name="lake", root="s3://bucket/lake"))


async def test_a_bucket_of_version_1_is_served():
    catalog = await opened(await bucket())
    assert (await catalog.list_namespaces(Grant(), (), "", None)).names == ["sales"]
    assert (await catalog.list_tables(Grant(), make.NS, "", None)).names == []


@pytest.mark.seed(64)
async def test_what_a_bucket_of_version_1_refused_is_refused_in_the_same_words():
    catalog = await opened(await bucket())
    with pytest.raises(FrazilError, match="Namespace already exists: sales") as told:
        await catalog.create_namespace(make.GRANT, ("sales",), {}, Mutation(b'{"namespace":1}', make.key(5)))
    assert (told.value.status, told.value.type) == (409, "AlreadyExistsException")
    with pytest.raises(FrazilError, match="UUID does not match") as told:
        await catalog.commit_table(make.GRANT, make.ORDERS, [], [], Mutation(b'{"append":102}', make.key(3)))
    assert (told.value.status, told.value.type) == (409, "CommitFailedException")


# -- a newer version --------------------------------------------------------------------------------------------------


async def serve_a_lookup(store: Guard) -> None:
    catalog = await opened(store)
    view = await catalog.context.registry.view()
    await view.entry(entries.table_key(TableName(("sales",), "a")))
    await view.named(UUID[:-1] + "7")
    await view.outcome(make.key(5))
    await catalog.context.pointers.read(UUID)
    await claims.look(store, catalog._bind(make.GRANT, "table.commit", make.ORDERS, Mutation(b"", make.key(3))))
    await receipts.find(store, make.NOW_MS, keys.commit_key(APPENDED))


SPANS = decoded("checkpoint-index", INDEX)
EVERY_KEY = [
    keys.CATALOG,
    keys.HEAD,
    decoded("head", HEAD).checkpoint,
    SPANS.names[0].key,
    SPANS.uuids[0].key,
    SPANS.operations[0].key,
    keys.pointer(UUID),
    keys.marker(make.key(3)),
    RECEIPT_KEY,
]


@pytest.mark.seed(235)
@pytest.mark.parametrize("key", EVERY_KEY, ids=lambda key: key.removeprefix("_catalog/")[:40])
async def test_an_object_of_a_newer_version_is_refused_by_name(key):
    await serve_a_lookup(await bucket())
    with pytest.raises(Corrupt, match="newer Frazil") as refused:
        await serve_a_lookup(await bucket(newer=key))
    assert key in refused.value.message


async def test_a_receipt_of_a_newer_version_inside_a_pointer_is_refused_by_name():
    pointer = msgspec.json.decode(stored("pointer"))
    pointer["producer"]["version"] += 1
    backend, effects = MemoryBackend(), system(make._raise)
    await backend.create(keys.pointer(UUID), msgspec.json.encode(pointer))
    with pytest.raises(Corrupt, match=f"the producer in {keys.pointer(UUID)} is of format version 2"):
        await pointers.Pointers(Guard(backend, effects.clock, effects.chance)).read(UUID)


# -- a local directory's files ----------------------------------------------------------------------------------------


async def test_a_record_of_version_1_in_a_local_directory_is_its_newest_whole_slot(tmp_path):
    place = tmp_path / keys.HEAD
    place.parent.mkdir(parents=True)
    place.write_bytes((FOLDER / "v1" / "two-slots.txt").read_bytes())
    backend = open_backend(str(tmp_path), sync=False)
    found = await backend.get(keys.HEAD)
    await backend.close()
    assert found is not None
    assert (found.body, found.version) == (b'{"version":1,"stamp":"second"}', "2")


async def test_a_record_with_slots_of_a_newer_version_is_refused_by_name(tmp_path):
    place = tmp_path / keys.HEAD
    place.parent.mkdir(parents=True)
    content = (FOLDER / "v1" / "two-slots.txt").read_bytes()
    place.write_bytes(content.replace(b'"frazil-slot":1', b'"frazil-slot":2'))
    backend = open_backend(str(tmp_path), sync=False)
    with pytest.raises(Corrupt, match=keys.HEAD):
        await backend.get(keys.HEAD)
    await backend.close()


# -- the page ---------------------------------------------------------------------------------------------------------


def documented() -> dict[str, list[str]]:
    """Heading → the fields in the table below it."""
    found = {}
    for section in re.split(r"^#+ ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        if fields := re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE):
            found[title.split(":")[0].strip()] = fields
    return found


@pytest.mark.parametrize(
    ("title", "struct"),
    sorted({kind.title: kind.struct for kind in OBJECTS.values()}.items()) + [(part.__name__, part) for part in PARTS],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_page_names_every_field_of_a_stored_object_and_no_other(title, struct):
    fields = [field.encode_name for field in msgspec.structs.fields(struct)]
    tag = struct.__struct_config__.tag_field
    assert documented()[title] == ([tag] if tag else []) + fields, f"docs/formats.md and {struct.__name__} disagree"


def test_no_stored_object_is_left_out_of_the_page():
    known = {kind.struct for kind in OBJECTS.values()}
    for found in pkgutil.iter_modules(frazil.catalog.__path__):
        for struct in structs(importlib.import_module(f"frazil.catalog.{found.name}")):
            versioned = any(field.name == "version" and field.type is int for field in msgspec.structs.fields(struct))
            assert not versioned or struct in known, f"{struct} has a format version and no fixture"


def structs(module: Any) -> list[Any]:
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)]
    return [struct for struct in found if struct not in (msgspec.Struct, formats._Versioned)]
