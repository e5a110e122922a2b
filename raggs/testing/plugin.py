"""The pytest plugin: options, the marker, and the fixture `golden`. See the package docstring for its import rule."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from raggs.testing.fixture import GoldenFixture

MARKER = "raggs_golden"
HELP = "golden set of the fixture `golden`: a raggs run directory, an export, or a file of labels"
OUT_HELP = (
    "folder for eval.json of checks by the fixture `golden`, and for reports of failed checks [default: pytest's cache]"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--raggs-golden`, `--raggs-out`, and the ini option `raggs_golden`."""
    group = parser.getgroup("raggs")
    group.addoption("--raggs-golden", metavar="PATH", help=HELP)
    group.addoption("--raggs-out", metavar="DIR", help=OUT_HELP)
    parser.addini(MARKER, HELP)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, so that pytest knows it under `--strict-markers`."""
    config.addinivalue_line("markers", f"{MARKER}(path): the {HELP}")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> GoldenFixture:
    """Return the golden set of the marker, of `--raggs-golden` or of the ini option.

    In a test, call ``golden.check(search, ...)``.
    """
    from raggs.testing.fixture import GoldenFixture  # imported lazily: pytest loads this module in every project

    config = request.config
    out, keeps = _output_folder(config, request.node.nodeid), bool(config.getoption("--raggs-out"))
    return GoldenFixture(_golden_path(request), base=config.rootpath, out=out, keeps=keeps)


def _golden_path(request: pytest.FixtureRequest) -> Path | None:
    """Return the path with the highest precedence: marker, command line, ini option.

    Paths of the command line are relative to the folder where pytest was started.
    """
    config, marker = request.config, request.node.get_closest_marker(MARKER)
    if marker is not None and marker.args:
        return config.rootpath / str(marker.args[0])
    if given := config.getoption("--raggs-golden"):
        return config.invocation_params.dir / str(given)
    named = config.getini(MARKER)
    base = config.inipath.parent if config.inipath else config.rootpath
    return base / str(named) if named else None


def _output_folder(config: pytest.Config, nodeid: str) -> Path:
    folder = re.sub(r"[^\w.-]+", "-", nodeid).strip("-.")[-120:]
    if given := config.getoption("--raggs-out"):
        return config.invocation_params.dir / str(given) / folder
    if getattr(config, "cache", None) is None:  # the user has disabled pytest's cache: -p no:cacheprovider
        return Path(mkdtemp(prefix="raggs-")) / folder
    return config.cache.mkdir("raggs") / folder
