from typing import Any, NamedTuple

import pytest

from frazil.cli.main import main


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        import json

        return json.loads(self.out)


@pytest.fixture
def frazil(capsys, monkeypatch):
    """Runs a command line in this process, away from the settings of whoever runs the tests."""
    import os

    for name in list(os.environ):
        if name.startswith("FRAZIL_"):
            monkeypatch.delenv(name)

    def run(*words):
        try:
            code = main([str(word) for word in words])
        except SystemExit as ended:
            code = int(str(ended.code))
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run
