"""The program around the commands: exit codes, one line for every failure, an early Ctrl-C, a quick start."""

import errno
import subprocess
import sys

import pytest

from frazil import errors
from frazil.cli import failures, main
from frazil.cli.failures import FAILED, INTERRUPTED, MISSING, OK, UNKNOWN, USAGE, Misused
from frazil.client.failures import WindowExpired
from frazil.pipeline.java import PipelineError


@pytest.mark.parametrize(
    "error, code",
    [
        (Misused("wrong"), USAGE),
        (errors.NoSuchTable("m"), MISSING),
        (errors.NoSuchNamespace("m"), MISSING),
        (errors.Conflict("m"), FAILED),
        (errors.Unavailable("m"), FAILED),
        (errors.CommitStateUnknown("m"), UNKNOWN),
        (WindowExpired("m"), UNKNOWN),
        (PipelineError("no Java"), FAILED),
        (OSError(errno.EACCES, "Permission denied", "/x"), FAILED),
    ],
)
def test_a_failure_is_one_line_and_its_exit_code(error, code, monkeypatch, capsys):
    monkeypatch.setattr(main, "_run", _raising(error))
    assert main.main([]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("frazil: ")
    assert said.err.count("\n") == 1


def test_a_failure_says_its_type_and_its_message_on_one_line(capsys):
    assert failures.told(errors.NoSuchTable("Table does not exist:\na.b\x1b[0m")) == MISSING
    assert capsys.readouterr().err == "frazil: NoSuchTableException: Table does not exist:\\na.b\\x1b[0m\n"


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(main, "_run", _raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main.main([])


def test_ctrl_c_is_130_and_no_traceback(monkeypatch, capsys):
    monkeypatch.setattr(main, "_run", _raising(KeyboardInterrupt()))
    assert main.main([]) == INTERRUPTED
    assert capsys.readouterr().err == "frazil: interrupted\n"


def _raising(error):
    def run(argv):
        raise error

    return run


def test_the_version_is_told(capsys):
    assert main.main(["--version"]) == OK
    assert capsys.readouterr().out == f"frazil {main.version()}\n"


def test_the_version_needs_hardly_anything_imported():
    code = """
import sys
from frazil.cli.main import main
main(["--version"])
heavy = {"argparse", "asyncio", "msgspec", "http.client", "uvicorn", "frazil.errors"} & set(sys.modules)
sys.exit(f"imported: {sorted(heavy)}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "line", [["--help"], ["tables", "--help"], ["tables", "set", "--help"], ["up", "--help"]], ids=" ".join
)
def test_help_is_printed(line, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(line)
    assert ended.value.code == OK
    assert capsys.readouterr().out


def test_a_reader_that_stops_reading_is_no_traceback():
    command = f"{sys.executable} -m frazil.cli config show | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
