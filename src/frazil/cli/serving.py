"""`frazil up` and `frazil serve`: a server in the foreground, until a signal ends it."""

from __future__ import annotations

import argparse

from frazil.cli.settings import effective
from frazil.cli.snippets import welcome


def serve(arguments: argparse.Namespace) -> int:
    config = effective(arguments)
    from frazil import serve as server

    return server.serve(config)


def up(arguments: argparse.Namespace) -> int:
    config = effective(arguments, root=arguments.directory)
    from frazil import serve as server

    def announce(uri: str) -> None:
        print(welcome(uri, tokens=config.token_file is not None), flush=True)

    return server.serve(config, announce)
