import pytest

from tests.rest.live import serving


@pytest.fixture(scope="session")
def live(tmp_path_factory):
    """One server for all tests that change none of its settings: take a namespace of your own."""
    with serving(tmp_path_factory.mktemp("live")) as server:
        yield server


@pytest.fixture
def client(live):
    return live.client()


@pytest.fixture
def start(tmp_path):
    """Start a server with settings of the test's own: `with start(token_file=…) as server`."""

    def started(**flags):
        return serving(tmp_path, **flags)

    return started
