"""The server that a command asks, as its options and the environment name it."""

from __future__ import annotations

import argparse
import os
import sys
import time

from frazil.cli import output
from frazil.cli.arguments import DEFAULT_URI
from frazil.cli.failures import Misused
from frazil.cli.main import version
from frazil.client.address import Address, parse_address
from frazil.client.catalog import RemoteCatalog
from frazil.client.client import Again, Client, World
from frazil.client.failures import NotReached
from frazil.effects import RandomIds, SystemChance, SystemClock
from frazil.errors import BadInput

#: Shorter waits are over before a line is read.
TOLD_MS = 1_000


def catalog(arguments: argparse.Namespace) -> RemoteCatalog:
    try:
        return RemoteCatalog(client(arguments))
    except NotReached as error:
        raise NotReached(f"{error.message}. `frazil up` starts one, --uri names another") from None


def client(arguments: argparse.Namespace) -> Client:
    clock = SystemClock()
    world = World(clock, RandomIds(clock), SystemChance(), time.sleep)
    token = arguments.token or os.environ.get("FRAZIL_TOKEN") or None
    try:
        return Client(address(arguments), world, token=token, agent=f"frazil/{version()}", on_again=_tell)
    except BadInput as error:
        raise Misused(error.message) from None


def address(arguments: argparse.Namespace) -> Address:
    try:
        return parse_address(arguments.uri or os.environ.get("FRAZIL_URI") or DEFAULT_URI)
    except BadInput as error:
        raise Misused(error.message) from None


def _tell(again: Again) -> None:
    if again.wait_ms >= TOLD_MS:
        line = f"frazil: {again.failure.message}; trying again in {again.wait_ms / 1000:.0f} s"
        print(output.text(line), file=sys.stderr)
