"""The folder of an export: what is not of that format is never written over unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raggs.base.errors import ProviderError, UsageError
from raggs.golden.formats import MARK_FILE, claimed
from raggs.golden.formats.beir import BeirExporter
from raggs.golden.formats.trec import TrecExporter


def test_a_folder_of_others_is_refused_unless_forced(golden, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with (
        pytest.raises(UsageError, match=r"exists and contains something other than a beir export.*--force"),
        claimed(tmp_path, BeirExporter),
    ):
        pytest.fail("claimed")
    with claimed(tmp_path, BeirExporter, force=True):
        BeirExporter().write(golden(), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with claimed(tmp_path, BeirExporter):  # its own again, with what lies beside
        pass
    with pytest.raises(UsageError, match="something other than a trec export"), claimed(tmp_path, TrecExporter):
        pytest.fail("claimed")


def test_an_export_of_an_older_raggs_is_one(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(json.dumps({"files": {"corpus.jsonl": {"rows": 1}}}))
    with claimed(tmp_path, BeirExporter):
        pass
    (tmp_path / "meta.json").write_text(json.dumps({"format": "hf", "files": {"corpus.jsonl": {"rows": 1}}}))
    with pytest.raises(UsageError), claimed(tmp_path, BeirExporter):
        pytest.fail("claimed")


def test_what_a_killed_export_left_is_its_own(tmp_path: Path) -> None:
    (tmp_path / MARK_FILE).write_text("beir")
    (tmp_path / "corpus.jsonl").write_text("{}\n")
    with pytest.raises(UsageError), claimed(tmp_path, TrecExporter):
        pytest.fail("claimed")
    with claimed(tmp_path, BeirExporter):
        assert (tmp_path / MARK_FILE).read_text() == "beir"
    assert not (tmp_path / MARK_FILE).exists()


def test_what_fails_leaves_no_trace(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    with pytest.raises(RuntimeError), claimed(folder, TrecExporter):
        assert folder.is_dir()
        raise RuntimeError
    assert not folder.parent.exists()
    (tmp_path / "file").touch()
    with pytest.raises(ProviderError, match="cannot be written"), claimed(tmp_path / "file", TrecExporter):
        pytest.fail("claimed")
