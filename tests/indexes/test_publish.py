"""Files and folders appear whole or not at all."""

from __future__ import annotations

import pytest

from raggs.parts.indexes.files import building


def test_a_file_replaces_the_old_one(tmp_path):
    target = tmp_path / "sub" / "file"
    for text in ("old", "new"):
        with building(target) as product:
            product.write_text(text)
        assert target.read_text() == text
    assert [entry.name for entry in target.parent.iterdir()] == ["file"]


def test_a_folder_appears_with_all_its_files(tmp_path):
    with building(tmp_path / "index") as product:
        product.mkdir()
        (product / "a").write_text("1")
        assert not (tmp_path / "index").exists()
    assert (tmp_path / "index" / "a").read_text() == "1"


def test_a_folder_that_another_process_made_stays(tmp_path):
    with building(tmp_path / "index") as product:
        product.mkdir()
        (product / "a").write_text("mine")
        (tmp_path / "index").mkdir()
        (tmp_path / "index" / "a").write_text("theirs")
    assert (tmp_path / "index" / "a").read_text() == "theirs"


def test_a_failure_leaves_nothing(tmp_path):
    def build():
        with building(tmp_path / "file") as product:
            product.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        build()
    assert list(tmp_path.iterdir()) == []
