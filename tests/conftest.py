"""What tests of several packages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # speed is measured in benchmarks, never in a test
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def elastic_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that speaks Elasticsearch's protocol, one for the whole session."""
    from support.elastic import running

    with running(tmp_path_factory.mktemp("elastic")) as url:
        yield url


@pytest.fixture(autouse=True)
def no_elastic_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have credentials for a real server; none of them goes anywhere."""
    for name in ("ELASTIC_API_KEY", "ELASTIC_USERNAME", "ELASTIC_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_secret_outlives_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test made known as a secret is not hidden in the texts of the next."""
    from raggs import secrets

    monkeypatch.setattr(secrets, "_remembered", set())
