"""A sweep in Python: by names of the package itself, and as a frame where pandas is."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from types import ModuleType

import pytest
from support.sweeping import make_sweep

import raggs
from raggs.base.errors import PrerequisiteError
from raggs.sweeps.plots import make_frame, table_csv


class _Frame:
    """What is used of pandas."""

    def __init__(self, rows: list[list[object]], columns: list[str]) -> None:
        self.rows, self.columns = rows, columns


def test_the_package_itself_sweeps_and_gives_a_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_sweep(tmp_path, axes={"mode": ["lexical"], "k": [10, 20]})
    report = raggs.sweep(raggs.load_sweep(project.config)).report
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(PrerequisiteError, match="pip install pandas"):
        make_frame(report)
    fake = ModuleType("pandas")
    fake.DataFrame = _Frame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", fake)
    frame = make_frame(report)
    head, *rows = csv.reader(io.StringIO(table_csv(report)))
    assert list(frame.columns) == head
    assert [row[0] for row in frame.rows] == [row[0] for row in rows] == ["lexical+k10", "lexical+k20"]
    assert all(isinstance(row[head.index("ra_nwg@5")], float) for row in frame.rows)
