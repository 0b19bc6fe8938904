"""The one place where a failure becomes a line on stderr and an exit code."""

from __future__ import annotations

import sys

from frazil.cli import output

OK = 0
FAILED = 1
USAGE = 2
MISSING = 3
UNKNOWN = 4
INTERRUPTED = 130

EXIT_CODES = """\
exit codes:
  0    done
  1    it failed, or a check did not pass; the reason is on stderr
  2    the command or the configuration is wrong; nothing was done
  3    what was named is not there
  4    whether it was applied is not known: look before doing it again
  130  interrupted
"""


class Misused(Exception):
    """The command line or the configuration is wrong, and nothing was done."""


def told(error: Exception) -> int | None:
    """Say it in one line. The exit code, or None for what nobody foresaw: that deserves its traceback."""
    # Imported here: a command that succeeds needs none of them.
    from frazil.errors import CommitStateUnknown, FrazilError, NotFound
    from frazil.pipeline.java import PipelineError

    match error:
        case Misused():
            return _say(str(error), USAGE)
        case NotFound():
            return _say(f"{error.type}: {error.message}", MISSING)
        case CommitStateUnknown():
            return _say(f"{error.type}: {error.message}", UNKNOWN)
        case FrazilError():
            return _say(f"{error.type}: {error.message}", FAILED)
        case PipelineError():
            return _say(str(error), FAILED)
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return _say(f"{where}{error.strerror or error}", FAILED)
        case _:
            return None


def _say(line: str, code: int) -> int:
    print(f"frazil: {output.text(line)}", file=sys.stderr)
    return code
