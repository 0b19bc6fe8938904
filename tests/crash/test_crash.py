"""Two servers on one directory, killed with -9 in turn under load: the short run of every push."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.run import run


@pytest.mark.timeout(180)
@pytest.mark.seed(1, 2, 10, 16, 17, 91, 251, 254, 270, 272, 277)
def test_every_acknowledged_effect_is_there_once_after_kills(tmp_path: Path) -> None:
    result = run(tmp_path, seconds=30)
    print("\n".join(result.lines()))
    assert result.verdict.problems == []
    assert result.unreadable == []
    assert result.kills >= 5
    assert len(result.ledger.acknowledged("commit")) >= 500
    done = {told.operation for told in result.ledger.told if told.status == 200}
    assert done == {"commit", "create", "rename", "drop"}
    assert result.repeated >= 1
