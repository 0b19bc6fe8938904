"""A lake in memory, and two server processes on it. What fails after an answer fails the test."""

import asyncio
import runpy

import pytest

from frazil import limits
from tests.catalog.builders import Lake, a_namespace


@pytest.fixture
async def lake():
    made = Lake()
    yield made
    made.store.heal()
    await asyncio.wait_for(made.settled(), 10)
    assert not made.failed, made.failed


@pytest.fixture
async def catalog(lake):
    """A catalog with the namespace `ns`."""
    opened = await lake.opened()
    await a_namespace(opened)
    return opened


@pytest.fixture
async def second(lake, catalog):
    """Another process on the same store."""
    return await lake.opened()


_PRODUCT = runpy.run_path(limits.__file__)


@pytest.fixture(autouse=True)
def _limits_of_the_product(monkeypatch):
    """Whatever other suites in this process made smaller."""
    for name in ("tries_max", "registry_rounds_max"):
        monkeypatch.setattr(limits, name, _PRODUCT[name])
