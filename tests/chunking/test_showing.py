"""What is cut where: places, torn sentences, what is lost and what is repeated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from raggs.base.document import markdown
from raggs.base.errors import NotFoundError
from raggs.chunking.cuts import is_torn, lay_out_cuts, show_cuts
from raggs.chunking.models import CutReport
from raggs.parts.chunkers import Chunker, ChunkerConfig, Document
from raggs.parts.corpora import CorpusContext
from raggs.parts.corpora.folder import FolderConfig, FolderCorpus, file_id

TEXT = "One two. Three four five. Six.\nSeven eight"


class FixedConfig(ChunkerConfig):
    type: Literal["fixed"] = "fixed"


class Fixed(Chunker):
    """Cuts at places that a test says."""

    def __init__(self, *places: tuple[int, int]) -> None:
        super().__init__(FixedConfig())
        self._places = places

    def places(self, document: Document) -> Iterator[tuple[int, int]]:
        return (place for place in self._places if document.text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt").write_text("")
    return tmp_path


def cuts(folder: Path, *places: tuple[int, int], file: str | None = None) -> CutReport:
    corpus = FolderCorpus(FolderConfig(path=folder))
    corpus.context = CorpusContext(lambda spec: Fixed(*places))
    return show_cuts(corpus, file).report


@pytest.mark.parametrize(
    ("real", "asked"),
    [
        ("My notes (1).txt", "My notes (1).txt"),
        ("My notes (1).txt", "My%20notes%20(1).txt"),
        ("sub/caf\u00e9 100%.txt", "cafe\u0301 100%.txt"),
        ("sub/cafe\u0301.txt", "sub/caf\u00e9.txt"),
        ("a/b/deep.txt", "b/deep.txt"),
    ],
)
def test_a_file_is_found_by_its_real_name(folder: Path, real: str, asked: str) -> None:
    path = folder / real
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEXT)
    for name in (asked, str(path), os.path.relpath(path)):
        (found,) = cuts(folder, (0, 8), file=name).files
        assert found.file == file_id(real)
    rows = lay_out_cuts(cuts(folder, (0, 8)), whole=False).scores.table.rows
    assert real in [row[0].text for row in rows]


def test_files_whose_names_look_the_same_are_told_apart(folder: Path) -> None:
    for name in ("caf\u00e9.txt", "cafe\u0301.txt"):
        (folder / name).write_text(TEXT)
        (found,) = cuts(folder, (0, 8), file=name).files
        assert found.file == name
    (folder / "sub/b.txt").write_text(TEXT)
    with pytest.raises(NotFoundError, match=r"no file c\.txt"):
        cuts(folder, file="c.txt")


def test_a_name_takes_one_short_line(folder: Path) -> None:
    for name in ("new\nline.txt", "n" * 200 + ".txt"):
        (folder / name).write_text(TEXT)
    rows = lay_out_cuts(cuts(folder, (0, 8)), whole=False).scores.table.rows
    names = [row[0].text for row in rows]
    assert "new%0Aline.txt" in names
    assert f"…{'n' * 35}.txt" in names


def test_the_first_files_are_shown_and_the_others_counted(folder: Path) -> None:
    for number in range(30):
        (folder / f"{number:02}.txt").write_text(TEXT)
    report = cuts(folder, (0, 8))
    document = lay_out_cuts(report, whole=False, most=20)
    assert len(document.scores.table.rows) == 20
    assert "32 files" in document.scores.sentences[0]
    assert document.scores.sentences[-1] == "first 20 files by name; for 12 more, use --all or --file FILE"


def test_each_chunk_has_its_place_its_words_and_whether_it_is_torn(folder: Path) -> None:
    [file] = cuts(folder, (0, 8), (9, 19), (20, 30), (31, 42), file="a.txt").files
    assert file.file == "sub/a.txt"
    assert [(chunk.start, chunk.end, chunk.torn) for chunk in file.chunks] == [
        (0, 8, False),
        (9, 19, True),
        (20, 30, False),
        (31, 42, False),
    ]
    assert (file.chunks[1].first, file.chunks[1].last) == ("Three four", "Three four")
    assert (file.lost, file.repeated) == (0, 0)


def test_what_no_chunk_holds_and_what_several_hold_is_counted(folder: Path) -> None:
    [file] = cuts(folder, (0, 8), (4, 12), file="sub/a.txt").files
    assert file.repeated == 4
    assert file.lost == sum(not char.isspace() for char in TEXT[12:])


@pytest.mark.parametrize(
    ("text", "end", "torn"),
    [
        ("One. Two.", 4, False),
        ("One two.", 3, True),
        ("One\ntwo", 3, False),
        ("One", 3, False),
        ('He said "go." Then', 13, False),
        ("One  \n two", 3, False),
        ("Wort", 2, True),
        ("One two. Three", 7, False),
        ("About 3.14", 7, True),
    ],
)
def test_a_cut_tears_a_sentence_where_its_line_goes_on(text: str, end: int, torn: bool) -> None:
    assert is_torn(text, end) is torn


def test_a_file_that_is_not_there_is_told(folder: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no file c\.txt"):
        cuts(folder, file="c.txt")


def test_all_files_are_rows_and_sizes_a_histogram(folder: Path) -> None:
    report = cuts(folder, (0, 8), (9, 19))
    page = markdown(lay_out_cuts(report, whole=False))
    assert "| sub/a.txt | 2 |" in page
    assert "1 (50%) end within a sentence" in page
    assert "▇" in page
    whole = markdown(lay_out_cuts(report, whole=True))
    assert "| 2 | 9:19 | 2 | Three four | Three four ~ |" in whole


def test_no_chunk_is_no_fault(folder: Path) -> None:
    assert "no chunks in 2 files" in markdown(lay_out_cuts(cuts(folder), whole=False))
