"""KEY=VALUE …, --owner, --description, --remove KEY: what they set and what they remove."""

from __future__ import annotations

import argparse

from frazil.cli.failures import Misused

OWNER = "owner"
DESCRIPTION = "comment"


def wanted(arguments: argparse.Namespace) -> tuple[dict[str, str], list[str]]:
    """The properties to set and those to remove; at least one of either."""
    updates, removals = updates_of(arguments), list(dict.fromkeys(arguments.remove))
    if not updates and not removals:
        raise Misused("nothing to do: give KEY=VALUE or --remove KEY")
    if both := sorted(set(updates) & set(removals)):
        raise Misused(f"set or removed? {', '.join(both)}")
    return updates, removals


def updates_of(arguments: argparse.Namespace) -> dict[str, str]:
    pairs = list(arguments.pairs)
    if getattr(arguments, "owner", None) is not None:
        pairs.append((OWNER, arguments.owner))
    if getattr(arguments, "description", None) is not None:
        pairs.append((DESCRIPTION, arguments.description))
    updates: dict[str, str] = {}
    for key, value in pairs:
        if updates.setdefault(key, value) != value:
            raise Misused(f"{key} is given two values")
    return updates
