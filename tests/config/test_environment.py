"""The `.env` beside a configuration: what it is, before what it says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raggs.base.errors import DataError, NotFoundError
from raggs.config.source import environment_for


def test_a_pipe_is_no_dotenv(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    with pytest.raises(DataError, match=r"\.env: is a pipe, not a file"):
        environment_for(tmp_path / "raggs.yaml")


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to(os.devnull)], ids=["folder", "null"])
def test_a_folder_and_nothing_at_all_give_nothing(make, tmp_path: Path) -> None:
    make(tmp_path / ".env")
    assert environment_for(tmp_path / "raggs.yaml") == dict(os.environ)


@pytest.mark.skipif(not Path("/proc/self/mem").is_file(), reason="needs a file that exists but cannot be read")
def test_an_unreadable_dotenv_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to("/proc/self/mem")
    with pytest.raises(NotFoundError, match=r"\.env: cannot be read"):
        environment_for(tmp_path / "raggs.yaml")
