"""docs/reference/python.md: its blocks run as they stand, and it names everything that is public."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import raggs

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "python.md"


def test_the_blocks_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    shutil.copytree(ROOT / "examples" / "runs", tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("runs"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)):
        exec(compile(block, f"{PAGE}: block {number}", "exec"), names)
    said = capsys.readouterr().out
    assert "['embed', 'retrieve', 'merge', 'judge', 'prune', 'rank']" in said
    assert "the function returned None (NoneType), not a list" in said
    assert (tmp_path / "eval" / "eval.json").is_file()


def test_the_page_names_whatever_is_public_and_all_of_it_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in raggs.__all__ if not re.search(rf"`(raggs\.)?{name}\b|raggs\.{name}\(", text)] == []
    assert [name for name in raggs.__all__ if getattr(raggs, name, None) is None] == []
    assert set(raggs.__all__) <= set(dir(raggs))
