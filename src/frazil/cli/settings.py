"""`frazil config show`, and how every command that serves or looks at a server's place comes to its settings."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from frazil.cli import output
from frazil.cli.failures import OK, Misused

if TYPE_CHECKING:
    from frazil.config import Config


def show(arguments: argparse.Namespace) -> int:
    shown = effective(arguments).shown()
    if arguments.json:
        output.print_json({key: {"value": value, "origin": origin} for key, value, origin in shown})
    else:
        output.print_table(["setting", "value", "origin"], shown)
    return OK


def effective(arguments: argparse.Namespace, **flags: object) -> Config:
    """frazil.toml, then the environment, then options; `flags` are options by another name."""
    from frazil import config
    from frazil.errors import BadInput

    given = {key: getattr(arguments, key, None) for key in ("root", "listen", "workers", "token_file")}
    toml = getattr(arguments, "config", None) or os.environ.get("FRAZIL_CONFIG") or None
    try:
        return config.load(toml, os.environ, {**given, **flags})
    except BadInput as error:
        raise Misused(error.message) from None
