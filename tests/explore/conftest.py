"""What every exploration runs under."""

from __future__ import annotations

import pytest

from frazil import limits
from tests.explore.scenarios import SMALL_SCOPE


@pytest.fixture(autouse=True)
def small_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL_SCOPE.items():
        monkeypatch.setattr(limits, name, value)
