"""Each rule of the protocols, removed once: exploration must then find that rule's own hole.

The product has no switch for this: a rule is one named function, and the test replaces it by what was there before the
rule. What is found is a false verdict, a double effect or a lost one, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from frazil.catalog import claims, commits, creations, files, lifecycle, pointers, receipts, registry
from frazil.catalog.claims import Standing, Target
from frazil.catalog.commits import Committed
from frazil.catalog.context import Context
from frazil.catalog.entries import ICEBERG, TABLE, Entry, table_key
from frazil.catalog.idempotency import Request
from frazil.catalog.registry import Decision, Draft, Operation
from frazil.errors import Conflict, Unavailable
from frazil.iceberg import updates
from frazil.store import guard, keys
from frazil.store.base import Applied, Overtaken
from tests.explore import scenarios
from tests.explore.engine import Budget, Explorer, Scenario

_NONE = Budget(0, 0, 0)


@dataclass(frozen=True)
class Ablation:
    """A rule, how the core was without it, and the story in which that goes wrong."""

    rule: str
    patch: Callable[[pytest.MonkeyPatch], None]
    story: Callable[[], Scenario]
    budget: Budget
    finds: str


def unchanged_means_lost(patch: pytest.MonkeyPatch) -> None:
    def verdict(body: bytes, condition_version: str | None, found: Any) -> Any:
        return Applied(found.version) if found is not None and found.body == body else Overtaken(found)

    patch.setattr(guard, "verdict", verdict)


def own_id_not_looked_up(patch: pytest.MonkeyPatch) -> None:
    async def found_before(draft: Draft, request: Request) -> None:
        return None

    patch.setattr(registry, "found_before", found_before)


def replay_completes_nothing(patch: pytest.MonkeyPatch) -> None:
    async def complete_before_replay(context: Context, settled: Any) -> None:
        return None

    patch.setattr(lifecycle, "complete_before_replay", complete_before_replay)


def name_from_memory(patch: pytest.MonkeyPatch) -> None:
    async def still_named(context: Context, name: Any) -> Any:
        view = context.registry.last_seen
        return None if view is None else await registry.table_entry(view, name)

    patch.setattr(commits, "still_named", still_named)


def pointer_after_claim(patch: pytest.MonkeyPatch) -> None:
    move = commits._Commit._move

    async def later(self: Any, base: Any, attempt: Any) -> Any:
        now = await self.context.pointers.read(base.entry.uuid)
        return await move(self, msgspec.structs.replace(base, read=now), attempt)

    patch.setattr(commits._Commit, "_move", later)


def one_claim_for_all_bases(patch: pytest.MonkeyPatch) -> None:
    claim = commits._Commit._claim

    async def once(self: Any, target: Target) -> Any:
        if self.claim is not None and self.claim.marker.attempt == 1 and getattr(self, "owned", False):
            return None
        self.owned = True
        return await claim(self, target)

    patch.setattr(commits._Commit, "_claim", once)


def one_file_name_for_all_attempts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        commits,
        "file_name",
        lambda number, key_hash, attempt, compressed: files.file_name(number, key_hash, "same", compressed),
    )


def settling_need_not_be_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(receipts, "is_there", lambda put: True)


def fences_replace_the_producer(patch: pytest.MonkeyPatch) -> None:
    keeping = pointers.keeping_producer

    def replacing(base: Any, state: str, effects: Any) -> Any:
        receipt = msgspec.json.decode(bytes(base.producer), type=receipts.Receipt)
        mine = msgspec.structs.replace(receipt, commit_key=keys.commit_key(effects.ids.stamp()))
        producer = msgspec.Raw(msgspec.json.encode(mine))
        return msgspec.structs.replace(keeping(base, state, effects), producer=producer)

    patch.setattr(pointers, "keeping_producer", replacing)


def failure_told_unstored(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Any, error: Any) -> None:
        return None

    patch.setattr(commits._Commit, "_store_failure", nothing)


def takeover_without_a_fence(patch: pytest.MonkeyPatch) -> None:
    async def fenced(context: Context, read: Any, target: Target) -> bool:
        return True

    patch.setattr(commits, "fenced", fenced)


def buried_without_asking(patch: pytest.MonkeyPatch) -> None:
    async def still_owed(context: Context, owed: Any) -> bool:
        return True

    patch.setattr(lifecycle, "still_owed", still_owed)


def epoch_stays(patch: pytest.MonkeyPatch) -> None:
    async def advance(context: Context) -> None:
        async def decide(draft: Draft) -> Decision:
            return Decision()

        request = Request(context.effects.ids.uuid7(), False, "registry.epoch", "", "", None)
        await context.registry.change(Operation(request, decide))

    patch.setattr(creations, "_advance_epoch", advance)


def staged_create_with_a_marker(patch: pytest.MonkeyPatch) -> None:
    """A staged create's commit as any other: its key in a marker, "the pointer names it" taken for "it exists"."""

    async def commit_staged(context: Context, wanted: Any, requirements: Any, changes: Any) -> Committed:
        made = updates.apply(None, requirements, changes, now_ms=context.effects.clock.now_ms(), previous_location=None)
        assert not isinstance(made, updates.Rejected)
        location = creations._first_location(context, wanted, made)
        receipt = creations._receipt(context, wanted, made, location, 0, None, None)
        target = Target(table_uuid=made.uuid, metadata_location=location, commit_key=keys.commit_key(location))
        effects, store = context.effects, context.store
        claim = await claims.take(store, effects, wanted.request, target, wanted.source, over=None)
        if isinstance(claim, Standing):
            there = await context.pointers.read(made.uuid)
            if there is not None and there.location == claim.claim.marker.target.metadata_location:
                return Committed(there.location, made)
            raise Unavailable("in progress")
        await context.files.write(location, made)
        if not isinstance(await context.pointers.make(pointers.first(receipt, made, effects), receipt), Applied):
            raise Unavailable("contended")

        async def decide(draft: Draft) -> Decision:
            if await draft.entry(table_key(wanted.name)) is not None:
                raise Conflict("Requirement failed: table already exists")
            return Decision(put={table_key(wanted.name): Entry(TABLE, made.uuid, ICEBERG, made.location)})

        request = msgspec.structs.replace(wanted.request, id=effects.ids.uuid7(), keyed=False)
        await context.registry.change(Operation(request, decide))
        return Committed(location, made)

    patch.setattr(creations, "commit_staged", commit_staged)


ABLATIONS = (
    Ablation(
        "§1.1 the unchanged object is sent again [H1]",
        unchanged_means_lost,
        scenarios.three_writers,
        Budget(0, 0, 1, 1),
        "A: told .409., and it is there",
    ),
    Ablation(
        "§2 own operation id looked up before repeating [H2]",
        own_id_not_looked_up,
        scenarios.two_creators,
        Budget(0, 1, 0),
        "told 409, and its table is there",
    ),
    Ablation(
        "§2 a replay completes the owed steps [H5]",
        replay_completes_nothing,
        scenarios.drop_replay_and_commit_in_flight,
        Budget(1, 0, 0),
        "its table can still be committed to",
    ),
    Ablation(
        "§2 assert-create is a registry operation [H13]",
        staged_create_with_a_marker,
        scenarios.staged_and_retry,
        Budget(1, 0, 0),
        "told success, and its table is not there",
    ),
    Ablation(
        "§2 a tombstone is owed until a registration strikes it off",
        buried_without_asking,
        scenarios.drop_and_register,
        _NONE,
        "a registered table is buried",
    ),
    Ablation(
        "§2 the epoch moves before an unnamed pointer is taken over [H10]",
        epoch_stays,
        scenarios.two_registrations,
        _NONE,
        "the table is another",
    ),
    Ablation(
        "§3.1 the name is revalidated [H5]",
        name_from_memory,
        scenarios.renames_and_commit,
        _NONE,
        "landed on the table that had the name before",
    ),
    Ablation(
        "§3.2 the pointer is read before the claim [H12]",
        pointer_after_claim,
        scenarios.same_key_and_writer,
        _NONE,
        "applied 2 times|and it is there|it is not there|two verdicts",
    ),
    Ablation(
        "§3.2 a new base is a new claim [H12]",
        one_claim_for_all_bases,
        scenarios.same_key_and_writer,
        _NONE,
        "applied 2 times|and it is there",
    ),
    Ablation(
        "§3.2 every attempt has its own file name [Z1]",
        one_file_name_for_all_attempts,
        scenarios.duplicates_without_faults,
        _NONE,
        "nobody commits",
    ),
    Ablation(
        "§3.3 settle known [H17]",
        settling_need_not_be_known,
        scenarios.three_writers,
        Budget(0, 1, 1, 2),
        "no receipt of|and it is there",
    ),
    Ablation(
        "§3.4 a fence or tombstone keeps the producer [H11]",
        fences_replace_the_producer,
        scenarios.takeover_over_an_unsettled_commit,
        _NONE,
        "no receipt of|and it is there|applied 2 times",
    ),
    Ablation(
        "§3.5 failure stored before told [H3]",
        failure_told_unstored,
        scenarios.requirement_and_writer,
        _NONE,
        "and it is there|two verdicts",
    ),
    Ablation(
        "§3.6 takeover fences [H3]",
        takeover_without_a_fence,
        scenarios.commit_and_retry,
        _NONE,
        "applied 2 times|and it is there",
    ),
)


@pytest.mark.seed(37, 67, 68, 120)
@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda ablation: ablation.rule)
def test_without_the_rule_its_own_hole_is_found(ablation: Ablation, monkeypatch: pytest.MonkeyPatch) -> None:
    ablation.patch(monkeypatch)
    scenario = scenarios.with_budget(ablation.story(), ablation.budget)
    result = Explorer(scenario).run(most_states=600_000, first_only=True)
    print(f"without {ablation.rule}: {result}\n  {result.message}\n  " + "\n  ".join(result.trace))
    assert result.message is not None, f"nothing found in {result}"

    assert re.search(ablation.finds, result.message), result.message
