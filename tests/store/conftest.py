import pytest

from tests.servers import s3_server as started


@pytest.fixture(scope="session")
def s3_server():
    """A real S3 server. Built on first use; that it cannot be built fails the test, with the reason."""
    with started() as server:
        yield server
