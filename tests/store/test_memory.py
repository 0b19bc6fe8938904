import pytest

from frazil.store import conform
from frazil.store.base import Applied
from frazil.store.memory import MemoryBackend


@pytest.mark.seed(3, 42, 44)
async def test_memory_is_admitted():
    backend = MemoryBackend()
    report = await conform.check(lambda: backend, rounds=16, writers=8)
    assert report.admitted, report.text()


@pytest.mark.seed(39)
async def test_versions_are_never_used_again():
    backend = MemoryBackend()
    seen = set()
    for _ in range(5):
        answer = await backend.create("a", b"same")
        assert isinstance(answer, Applied)
        assert answer.version not in seen
        seen.add(answer.version)
        await backend.delete("a")


async def test_the_suite_leaves_nothing_behind():
    backend = MemoryBackend()
    await conform.check(lambda: backend, rounds=2, writers=2)
    assert await backend.list("") == []
