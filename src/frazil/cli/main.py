"""`frazil`: reads the command line, runs one command, turns whatever goes wrong into a line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from frazil.cli import failures


def main(argv: Sequence[str] | None = None) -> int:
    """The program: one command, run to its end."""
    try:
        return _run(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        print("frazil: interrupted", file=sys.stderr)
        return failures.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough. What is still buffered must not be written when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failures.FAILED
    except Exception as error:
        code = failures.told(error)
        if code is None:
            raise
        return code


def _run(argv: list[str]) -> int:
    if argv[:1] == ["--version"]:
        print(f"frazil {version()}")
        return failures.OK
    from frazil.cli.arguments import parse

    arguments = parse(argv)
    module, function = arguments.run
    code: int = getattr(importlib.import_module(f"frazil.cli.{module}"), function)(arguments)
    sys.stdout.flush()
    return code


def version() -> str:
    from importlib import metadata

    return metadata.version("frazil")
