"""A corpus of files: ids that are safe and unique, places that are exact, files that are named when wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from raggs.corpora.base import LeftOut
from raggs.corpora.folder import FolderConfig, FolderCorpus, file_id
from raggs.errors import DataError, NotFoundError

LONG = "\n\n".join(" ".join(f"word{number}" for number in range(start, start + 15)) for start in range(0, 60, 15))


def corpus(folder: Path, **settings: Any) -> FolderCorpus:
    return FolderCorpus(FolderConfig(path=folder, **settings))


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_passages_come_by_path_with_exact_places(tmp_path: Path) -> None:
    sources = {"b.md": "# A title\r\n\r\n" + LONG, "a/deep.txt": "\ufeffShort text.", "z.txt": LONG}
    for name, content in sources.items():
        write(tmp_path, name, content)
    found = list(corpus(tmp_path, max_words=20).passages())
    assert [passage.doc_id for passage in found] == [
        "a/deep.txt#1",
        *(f"b.md#{number}" for number in range(1, 5)),
        *(f"z.txt#{number}" for number in range(1, 5)),
    ]
    for passage in found:
        place = passage.span
        source = sources[place.source].removeprefix("\ufeff")
        assert source[place.start : place.end] == passage.text
    titles = {passage.span.source: passage.title for passage in found}
    assert titles == {"a/deep.txt": "a/deep.txt", "b.md": "A title", "z.txt": "z.txt"}
    assert list(corpus(tmp_path, max_words=20).passages()) == found


def test_patterns_choose_the_files_and_hidden_ones_are_left_alone(tmp_path: Path) -> None:
    for name in ("a.md", "b.txt", "c.rst", ".hidden.md", ".git/d.md", "e/f.rst"):
        write(tmp_path, name, "text")
    assert [passage.doc_id for passage in corpus(tmp_path).passages()] == ["a.md#1", "b.txt#1"]
    assert [passage.doc_id for passage in corpus(tmp_path, patterns=["*.rst"]).passages()] == ["c.rst#1", "e/f.rst#1"]
    both = corpus(tmp_path, patterns=["*.md", "a.*"])
    assert [passage.doc_id for passage in both.passages()] == ["a.md#1"], "a file that fits twice counts once"


@pytest.mark.parametrize("settings", [{"patterns": []}, {"patterns": ["/etc/*"]}, {"patterns": [""]}, {"max_words": 0}])
def test_settings_that_cannot_be_right(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        corpus(tmp_path, **settings)


def test_white_space_in_names_is_escaped(tmp_path: Path) -> None:
    for name in ("my file.md", "my%20file.md", "été\u00a0chaud.md"):
        write(tmp_path, name, "text")
    ids = [passage.doc_id for passage in corpus(tmp_path).passages()]
    assert ids == ["my%20file.md#1", "my%2520file.md#1", "été%C2%A0chaud.md#1"]


@given(st.lists(st.text(st.characters(exclude_characters="\0/")), unique=True, max_size=8))
def test_ids_of_different_files_differ_and_hold_no_white_space(names: list[str]) -> None:
    ids = [file_id(name) for name in names]
    assert len(set(ids)) == len(names)
    assert all(len(found.split()) <= 1 for found in ids)
    for found in ids:
        found.encode()


@pytest.mark.skipif(sys.platform != "linux", reason="only here can a file name be no text")
def test_a_name_that_is_no_unicode_is_escaped(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("text")
    (found,) = corpus(tmp_path).passages()
    assert found.doc_id == "caf%ED%B3%A9.md#1"
    assert corpus(tmp_path).source_hash()


def test_files_without_text_are_left_out_and_named(tmp_path: Path) -> None:
    write(tmp_path, "a.md", " \n\n ")
    write(tmp_path, "b.md", "text")
    read = corpus(tmp_path)
    for _ in range(2):
        assert [passage.doc_id for passage in read.passages()] == ["b.md#1"]
        assert read.left_out == [LeftOut("a.md", 1)]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"one\ntwo\xff", "not UTF-8"), (b"one\ntw\0o", "not a text file"), (b"\n\xff\0", "text file")],
)
def test_a_file_that_is_no_text_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path, "bad.txt", content)
    with pytest.raises(DataError, match=message) as caught:
        list(corpus(tmp_path).passages())
    assert (caught.value.where, caught.value.line) == (str(path), 2)
    assert "corpus.patterns" in (caught.value.remedy or "")


def test_no_folder_no_fitting_file(tmp_path: Path) -> None:
    path = write(tmp_path, "data.csv", "a,b")
    for method in (lambda read: read.source_hash(), lambda read: list(read.passages())):
        with pytest.raises(NotFoundError, match="no such folder"):
            method(corpus(tmp_path / "none"))
        with pytest.raises(NotFoundError, match="is a file, not a folder"):
            method(corpus(path))
        with pytest.raises(DataError, match=r"no file that fits \*\.txt or \*\.md") as caught:
            method(corpus(tmp_path))
        assert caught.value.remedy


def test_the_hash_follows_names_and_contents_of_the_files_that_count(tmp_path: Path) -> None:
    path = write(tmp_path, "a.md", "one")
    first = corpus(tmp_path).source_hash()
    write(tmp_path, "ignored.csv", "x")
    os.utime(path, (0, 0))
    assert corpus(tmp_path).source_hash() == first
    path.write_text("two")
    second = corpus(tmp_path).source_hash()
    path.rename(tmp_path / "b.md")
    assert len({first, second, corpus(tmp_path).source_hash()}) == 3


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    path = folder / "texts"
    path.mkdir()
    (path / "b c.md").write_text("# One\n\nSome text.\n\n" + "More of it. " * 100)
    (path / "a.txt").write_text("Other text.")
    return {"path": path}


GUIDE = "# Guide\n\nWelcome.\n\n## Install\n\nType it.\n\n```\n# no heading\n```\n\n# Reference\n\nWords."


def test_without_a_chunker_passages_and_causes_are_those_of_before(tmp_path: Path) -> None:
    write(tmp_path, "a.md", GUIDE)
    read = corpus(tmp_path)
    assert read.causes() == {
        "type": "folder",
        "patterns": ["*.txt", "*.md"],
        "max_words": 200,
        "version": 1,
        "packages": {},
    }
    (found,) = read.passages()
    assert (found.doc_id, found.title, found.text) == ("a.md#1", "Guide", GUIDE)


@pytest.mark.parametrize(
    ("settings", "titles"),
    [
        ({"chunker": {"type": "markdown"}}, ["Guide", "Guide > Install", "Reference"]),
        ({"chunker": {"type": "markdown"}, "breadcrumb": "none"}, ["", "", ""]),
        ({"chunker": {"type": "paragraphs", "max_words": 20}, "breadcrumb": "title"}, ["a.md"]),
        ({"breadcrumb": "title"}, ["a.md"]),
    ],
)
def test_a_chunker_cuts_and_titles_are_paths_of_sections(
    tmp_path: Path, settings: dict[str, Any], titles: list[str]
) -> None:
    write(tmp_path, "a.md", GUIDE)
    found = list(corpus(tmp_path, **settings).passages())
    assert [passage.title for passage in found] == titles
    assert all(GUIDE[passage.span.start : passage.span.end] == passage.text for passage in found if passage.span)


def test_a_breadcrumb_in_the_text_stands_before_it_and_moves_no_place(tmp_path: Path) -> None:
    write(tmp_path, "a.md", GUIDE)
    found = list(corpus(tmp_path, chunker={"type": "markdown"}, breadcrumb="text").passages())[1]
    assert found.title == ""
    assert found.text.startswith("Guide > Install\n\n## Install\n\nType it.")
    assert found.span is not None
    assert found.text.endswith(GUIDE[found.span.start : found.span.end])


def test_a_file_that_is_no_markdown_is_called_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "# not Markdown\n\ntext")
    (found,) = corpus(tmp_path, chunker={"type": "paragraphs"}).passages()
    assert found.title == "a.txt"


def test_the_chunker_and_breadcrumbs_count_as_causes(tmp_path: Path) -> None:
    made = [
        corpus(tmp_path, **settings).causes()
        for settings in ({}, {"chunker": {"type": "markdown"}}, {"chunker": {"type": "markdown", "size": 9}})
    ] + [corpus(tmp_path, breadcrumb="text").causes()]
    assert all(made.count(one) == 1 for one in made)


def test_two_sizes_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="say it in the chunker"):
        corpus(tmp_path, max_words=50, chunker={"type": "paragraphs"})
    with pytest.raises(ValidationError, match="unknown type 'markdwon'"):
        corpus(tmp_path, chunker={"type": "markdwon"})
