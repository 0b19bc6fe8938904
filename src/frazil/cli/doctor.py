"""`frazil doctor`: what on this machine is in the way of serving or using a catalog. It looks, and repairs nothing."""

from __future__ import annotations

import argparse
import errno
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from frazil import limits
from frazil.cli import output, place, server
from frazil.cli.failures import FAILED, OK
from frazil.cli.settings import effective
from frazil.client.address import Address
from frazil.client.wire import Answer, exchange
from frazil.errors import BadInput, FrazilError
from frazil.pipeline.java import PipelineError, find_java

if TYPE_CHECKING:
    from frazil.config import Config

GOOD, NOTE, BAD = "ok", "note", "FAIL"

#: The server's Date has whole seconds, and the question took time.
CLOCK_MS = 2_000
WAIT_S = 2.0


class Finding(NamedTuple):
    verdict: str
    about: str
    detail: str


def doctor(arguments: argparse.Namespace) -> int:
    config = effective(arguments)
    named = arguments.uri or os.environ.get("FRAZIL_URI")
    findings = [
        server_and_clock(server.address(arguments) if named else near(config)),
        root(config),
        tokens(config.token_file),
        port(config),
        java(os.environ),
        spark(),
    ]
    if arguments.json:
        output.print_json({"checks": [each._asdict() for each in findings], "well": _well(findings)})
    else:
        output.print_table(["", "what", "found"], findings)
    return OK if _well(findings) else FAILED


def _well(findings: list[Finding]) -> bool:
    return all(each.verdict != BAD for each in findings)


# -- the server and its clock --------------------------------------------------------------------------------------


def server_and_clock(address: Address, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> Finding:
    before_ms = now_ms()
    try:
        answer = exchange(address, "GET", "/health", {"Accept": "application/json"}, None, WAIT_S)
    except FrazilError as error:
        return Finding(NOTE, "clocks", f"not compared: {error.message}")
    if (served := _version(answer)) is None:
        return Finding(NOTE, "clocks", f"not compared: what answers at {address} is no Frazil")
    return clock(served, answer, (before_ms + now_ms()) // 2)


def clock(served: str, answer: Answer, here_ms: int) -> Finding:
    try:
        there_ms = round(parsedate_to_datetime(answer.headers["date"]).timestamp() * 1000) + 500
    except (KeyError, ValueError):
        return Finding(NOTE, "clocks", f"Frazil {served} answers without its time")
    apart_ms = here_ms - there_ms
    told = f"this machine is {abs(apart_ms) / 1000:.0f} s {'ahead of' if apart_ms > 0 else 'behind'} the server"
    if abs(apart_ms) <= CLOCK_MS:
        return Finding(GOOD, "clocks", f"this machine and the server (Frazil {served}) agree")
    if apart_ms > limits.key_ahead_ms:
        return Finding(BAD, "clocks", f"{told}: it refuses idempotency keys made here. Set the clocks right")
    return Finding(NOTE, "clocks", f"{told}: harmless below {limits.key_ahead_ms // 60_000} minutes")


def _version(answer: Answer) -> str | None:
    try:
        health = json.loads(answer.body)
    except ValueError:
        return None
    version = health.get("version") if isinstance(health, dict) else None
    return version if isinstance(version, str) else None


# -- the place -----------------------------------------------------------------------------------------------------


def root(config: Config) -> Finding:
    try:
        directory = place.directory(config.root)
        return _bucket(config) if directory is None else _directory(directory, config)
    except FrazilError as error:
        return Finding(BAD, "root", error.message)


def _directory(directory: Path, config: Config) -> Finding:
    if not directory.exists():
        above = next(parent for parent in directory.parents if parent.exists())
        if not os.access(above, os.W_OK | os.X_OK):
            return Finding(BAD, "root", f"{directory} is not there, and {above} is not writable")
        return Finding(GOOD, "root", f"{directory} is not there yet: the first start makes it")
    if not directory.is_dir():
        return Finding(BAD, "root", f"{directory} is not a directory")
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return Finding(BAD, "root", f"{directory} is not writable for this user")
    if not place.has_catalog(directory):
        return Finding(GOOD, "root", f"{directory} is writable and holds no catalog yet: the first start makes it")
    return _catalog(config, str(directory))


def _bucket(config: Config) -> Finding:
    return _catalog(config, config.root)


def _catalog(config: Config, where: str) -> Finding:
    found = place.identity(config)
    if found is None:
        return Finding(GOOD, "root", f"{where} can be read and holds no catalog yet: the first start makes it")
    if not place.is_made_at(found, config):
        return Finding(BAD, "root", f"the catalog at {where} was made at {found.root}: serve it from there")
    if found.name != config.catalog and config.origins["catalog"] != "default":
        return Finding(BAD, "root", f"the catalog at {where} is called {found.name}, not {config.catalog}")
    return Finding(GOOD, "root", f"{where} holds the catalog {found.name} ({found.catalog_uuid})")


# -- tokens, port, Java --------------------------------------------------------------------------------------------


def tokens(file: str | None) -> Finding:
    if file is None:
        return Finding(GOOD, "tokens", "no token file: only loopback is served, and everybody on this machine may ask")
    from frazil.access.authn import read_tokens

    try:
        principals = set(read_tokens(file).values())
    except BadInput as error:
        return Finding(BAD, "tokens", error.message)
    return Finding(GOOD, "tokens", f"{file} is its owner's alone and names {len(principals)} principals")


def port(config: Config) -> Finding:
    """Whether a server could listen; one of ours that does is well, too."""
    host, number = config.listen
    try:
        families = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        with socket.socket(families[0][0], socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(families[0][4])
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return Finding(BAD, "port", f"{config.listen} cannot be listened on: {error.strerror}")
        return _taken(config)
    return Finding(GOOD, "port", f"{config.listen} is free")


def near(config: Config) -> Address:
    """Where a server with these settings is reached from this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.listen.host, config.listen.host)
    return Address("http", host, config.listen.port, "")


def _taken(config: Config) -> Finding:
    try:
        answer = exchange(near(config), "GET", "/health", {}, None, WAIT_S)
    except FrazilError:
        answer = None
    if answer is not None and (served := _version(answer)) is not None:
        return Finding(GOOD, "port", f"{config.listen} is served by Frazil {served}")
    return Finding(BAD, "port", f"{config.listen} is taken by another program: choose another with --listen")


def java(environ: Mapping[str, str]) -> Finding:
    try:
        found = find_java(environ)
    except PipelineError as error:
        return Finding(NOTE, "Java", f"{error} (the server itself needs none)")
    return Finding(GOOD, "Java", f"{found.version} ({found.path})")


def spark() -> Finding:
    from importlib import metadata

    from frazil.pipeline.spark import check_pyspark

    try:
        version = metadata.version("pyspark")
        check_pyspark(version)
    except metadata.PackageNotFoundError:
        return Finding(NOTE, "Spark", "not installed here: pip install 'frazil[spark]' (the server itself needs none)")
    except PipelineError as error:
        return Finding(NOTE, "Spark", str(error))
    return Finding(GOOD, "Spark", f"PySpark {version}")
