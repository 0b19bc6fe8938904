"""`frazil store check`: whether a catalog may be put there."""

from __future__ import annotations

import argparse
import asyncio

from frazil.cli import output
from frazil.cli.failures import FAILED, OK, Misused
from frazil.cli.place import backend
from frazil.cli.settings import effective


def check(arguments: argparse.Namespace) -> int:
    from frazil.errors import BadInput
    from frazil.store import conform

    options = {name: getattr(arguments, name) for name in ("rounds", "writers") if getattr(arguments, name)}
    config = effective(arguments, root=arguments.root)
    try:
        report = asyncio.run(conform.check(lambda: backend(config), **options))
    except BadInput as error:
        raise Misused(error.message) from None
    if arguments.json:
        output.print_json({"root": arguments.root, **report.data()})
    else:
        print("\n".join(output.text(line) for line in report.text().splitlines()))
    return OK if report.admitted else FAILED
