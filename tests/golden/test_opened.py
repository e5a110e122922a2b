"""What a path names as a golden set."""

from __future__ import annotations

import pytest

import raggs
from raggs.base.errors import NotFoundError
from raggs.golden.runs import RunGolden
from raggs.golden.sources import open_golden


def test_a_folder_without_a_run_or_labels_is_said(tmp_path):
    with pytest.raises(NotFoundError, match="no run here"):
        open_golden(tmp_path)


def test_it_is_a_name_of_the_package(run):
    assert isinstance(raggs.open_golden(run), RunGolden)
    assert isinstance(raggs.open_golden(str(run)), RunGolden)
