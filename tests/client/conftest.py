import pytest

from frazil.client.address import parse_address
from frazil.client.client import Client, World
from frazil.effects import RandomIds, SystemClock
from tests.client.scripted import Scripted, serving


class Time(SystemClock):
    """Stands still but for the sleeps it is asked for, and what a test lets pass."""

    def __init__(self) -> None:
        self.ms = 1_800_000_000_000
        self.slept: list[float] = []
        self.oversleep_ms = 0

    def now_ms(self):
        return self.ms

    def mark(self):
        return self.ms - 1_700_000_000_000

    def pause(self, seconds):
        self.slept.append(seconds)
        self.ms += round(seconds * 1000) + self.oversleep_ms


class Numbered(RandomIds):
    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.made = 0

    def uuid7(self):
        self.made += 1
        return f"01912345-6789-7abc-8def-{self.made:012}"


class Most:
    """Chance that always takes the longest wait."""

    def jitter_ms(self, most_ms):
        return most_ms


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def advertised():
    """What the server says its keys live; a test may parametrize it."""
    return "PT1H"


@pytest.fixture
def scripted(advertised):
    return Scripted(advertised)


@pytest.fixture
def base(scripted):
    with serving(scripted) as uri:
        yield uri


@pytest.fixture
def again():
    """What the client told of its repeats."""
    return []


@pytest.fixture
def client(base, time, again):
    return Client(parse_address(base), World(time, Numbered(), Most(), time.pause), on_again=again.append)
