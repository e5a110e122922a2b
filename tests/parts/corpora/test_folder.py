"""A corpus of files: ids that are safe and unique, places that are exact, files that are named when wrong."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.pdf import make_pdf

from raggs.base.errors import DataError, NotFoundError, PrerequisiteError
from raggs.base.files import hash_file
from raggs.base.hashing import hash_value
from raggs.parts.corpora import EmptyPassage
from raggs.parts.corpora.folder import FolderConfig, FolderCorpus, SkippedFile, describe_skipped, file_id
from raggs.parts.workspace import Workspace

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
    read = corpus(tmp_path, chunker={"type": "paragraphs", "max_words": 20})
    found = list(read.passages())
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
    assert list(read.passages()) == found


def test_patterns_choose_the_files_and_hidden_ones_are_left_alone(tmp_path: Path) -> None:
    for name in ("a.md", "b.txt", "c.rst", ".hidden.md", ".git/d.md", "e/f.rst"):
        write(tmp_path, name, "text")
    assert [passage.doc_id for passage in corpus(tmp_path).passages()] == ["a.md#1", "b.txt#1", "c.rst#1", "e/f.rst#1"]
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
        assert read.left_out == [EmptyPassage("a.md", 1)]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"one\ntwo\xff", "not UTF-8"), (b"one\ntw\0o", "not a text file"), (b"\n\xff\0", "text file")],
)
def test_a_file_that_is_no_text_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path, "bad.txt", content)
    with pytest.raises(DataError, match=message) as caught:
        list(corpus(tmp_path).passages())
    assert (caught.value.where, caught.value.line) == (str(path), 2)
    assert "corpus.exclude" in (caught.value.remedy or "")


def test_no_folder_no_fitting_file(tmp_path: Path) -> None:
    path = write(tmp_path, "data.csv", "a,b")
    for method in (lambda read: read.source_hash(), lambda read: list(read.passages())):
        with pytest.raises(NotFoundError, match="no such folder"):
            method(corpus(tmp_path / "none"))
        with pytest.raises(NotFoundError, match="is a file, not a folder"):
            method(corpus(path))
        with pytest.raises(
            DataError, match=r"no file of the folder matches .*\*\.html .*1 \.csv \(no reader: data\.csv\)"
        ) as caught:
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

HTML = "<title>T</title><h1>Guide</h1><p>Welcome.</p><h2>Install</h2><p>Type it.</p><h1>Reference</h1><p>Words.</p>"


def test_plain_text_without_a_chunker_has_the_causes_and_passages_of_before(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", LONG)
    read = corpus(tmp_path)
    assert read.causes() == {
        "type": "folder",
        "patterns": ["*.txt", "*.md"],
        "max_words": 200,
        "version": 1,
        "packages": {},
    }
    assert read.source_hash() == hash_value([["a.txt", hash_file(path)]])
    (found,) = read.passages()
    assert (found.doc_id, found.title, found.text) == ("a.txt#1", "a.txt", LONG)


@pytest.mark.parametrize("line", ["# a comment", "## 7", "Total\n=====", "a\tb\n-----"])
def test_plain_text_has_no_headings(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, "a.txt", f"First.\n\n{line}\n\nLast.")
    write(tmp_path, "b.log", f"{line}\n")
    found = list(corpus(tmp_path, patterns=["*.txt", "*.log"]).passages())
    assert [passage.title for passage in found] == ["a.txt", "b.log"]
    assert corpus(tmp_path).source_hash() == hash_value([["a.txt", hash_file(path), "no headings"]]), "once a title"
    assert corpus(tmp_path, breadcrumb="title").source_hash() == hash_value([["a.txt", hash_file(path)]])


def test_only_files_with_long_runs_changed_their_hash(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "x" * 500)
    for settings in ({}, {"chunker": {"type": "paragraphs"}}):
        assert corpus(tmp_path, **settings).source_hash() == hash_value([["a.txt", hash_file(path), "long runs cut"]])
    assert corpus(tmp_path, chunker={"type": "token"}).source_hash() == hash_value([["a.txt", hash_file(path)]])


def test_without_a_chunker_headings_cut_and_name_passages(tmp_path: Path) -> None:
    write(tmp_path, "a.md", GUIDE)
    write(tmp_path, "b.html", HTML)
    write(tmp_path, "c.rst", "Guide\n=====\n\nWelcome.\n\nInstall\n-------\n\nType it.")
    found = {(passage.doc_id, passage.title) for passage in corpus(tmp_path).passages()}
    assert found == {
        *(("a.md#1", "Guide"), ("a.md#2", "Guide > Install"), ("a.md#3", "Reference")),
        *(("b.html#1", "Guide"), ("b.html#2", "Guide > Install"), ("b.html#3", "Reference")),
        *(("c.rst#1", "Guide"), ("c.rst#2", "Guide > Install")),
    }
    by_name = corpus(tmp_path, chunker={"type": "markdown", "size": 267})
    assert [each.doc_id for each in by_name.passages()] == [each.doc_id for each in corpus(tmp_path).passages()]
    causes = corpus(tmp_path, max_words=60).causes()
    assert (causes["chunker by headings"]["type"], causes["chunker by headings"]["size"]) == ("markdown", 80)


def test_titles_are_bounded_and_the_files_are_told(tmp_path: Path) -> None:
    write(tmp_path, "a.md", f"# {'long ' * 15_000}\n\n{LONG}\n\n## Short\n\n{LONG}")
    write(tmp_path, "b.md", "# Fine\n\nwords")
    deep = "\n\n".join(f"{'#' * level} {'x' * 190}{level}\n\nwords" for level in range(1, 7))
    write(tmp_path, "c.md", f"---\ntitle: {'t' * 300}\n---\n{deep}")
    read = corpus(tmp_path, max_words=20)
    titles = {passage.span.source: passage.title for passage in read.passages() if passage.span}
    assert max(map(len, titles.values())) <= 1_010
    assert titles["a.md"].startswith("long long")
    assert titles["a.md"].endswith("long… > Short")
    assert titles["b.md"] == "Fine"
    assert titles["c.md"].startswith("ttt")
    assert titles["c.md"].endswith("xx6")
    assert read.notes() == [
        "headings of 2 files truncated or omitted in titles (200 characters per heading, 1,000 per path): a.md, c.md"
    ]


@pytest.mark.parametrize(
    ("settings", "titles"),
    [
        ({"chunker": {"type": "markdown"}}, ["Guide", "Guide > Install", "Reference"]),
        ({"chunker": {"type": "markdown"}, "breadcrumb": "none"}, ["", "", ""]),
        ({"chunker": {"type": "paragraphs", "max_words": 20}, "breadcrumb": "title"}, ["a.md"]),
        ({"breadcrumb": "title"}, ["Guide", "Guide > Install", "Reference"]),
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
    with pytest.raises(ValidationError, match="set it in the chunker"):
        corpus(tmp_path, max_words=50, chunker={"type": "paragraphs"})
    with pytest.raises(ValidationError, match="unknown type 'markdwon'"):
        corpus(tmp_path, chunker={"type": "markdwon"})


MATTER = "---\ntitle: The guide\ntags: [a, b]\n---\n"


def test_front_matter_gives_title_and_metadata_and_is_in_no_passage(tmp_path: Path) -> None:
    write(tmp_path, "a.md", MATTER + GUIDE)
    (found,) = corpus(tmp_path, chunker={"type": "paragraphs"}).passages()
    assert (found.title, found.text, found.metadata) == ("The guide", GUIDE, {"tags": ["a", "b"]})
    assert found.span is not None
    assert (MATTER + GUIDE)[found.span.start : found.span.end] == found.text
    cut = list(corpus(tmp_path, chunker={"type": "markdown"}).passages())
    assert [passage.title for passage in cut] == [
        "The guide > Guide",
        "The guide > Guide > Install",
        "The guide > Reference",
    ]
    assert all((MATTER + GUIDE)[each.span.start : each.span.end] == each.text for each in cut if each.span)


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("name", ["paragraphs", "markdown", "recursive", "token", "sentence", "semantic", "cluster"])
def test_no_chunker_cuts_into_front_matter(tmp_path: Path, name: str) -> None:
    write(tmp_path, "a.md", MATTER + GUIDE)
    read = corpus(tmp_path, chunker={"type": name})
    workspace = Workspace(tmp_path / "runs")
    read.context = workspace.cutting
    spans = [passage.span for passage in read.passages() if passage.span]
    workspace.close()
    assert spans
    assert min(span.start for span in spans) >= len(MATTER)


def test_a_title_that_the_first_heading_repeats_stands_once(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "---\ntitle: Guide\n---\nFirst.\n\n" + GUIDE)
    titles = [passage.title for passage in corpus(tmp_path, chunker={"type": "markdown"}).passages()]
    assert titles == ["Guide", "Guide", "Guide > Install", "Guide > Reference"]


def test_front_matter_that_is_broken_is_told_and_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "---\ntitle: A: b\n---\n# B\n\nwords")
    read = corpus(tmp_path)
    (found,) = read.passages()
    assert (found.title, found.text) == ("B", "# B\n\nwords")
    (note,) = read.notes()
    assert note.startswith("unparsed front matter skipped: a.md:2: not valid YAML")


def test_only_files_that_may_have_front_matter_changed_their_hash(tmp_path: Path) -> None:
    path = write(tmp_path, "a.md", "words")
    assert corpus(tmp_path).source_hash() == hash_value([["a.md", hash_file(path)]])
    path.write_text("---\nx: 1\n---\n")
    assert corpus(tmp_path).source_hash() == hash_value([["a.md", hash_file(path), "front matter"]])


def test_html_and_rst_have_breadcrumbs_too(tmp_path: Path) -> None:
    write(tmp_path, "a.html", HTML)
    parts = ("Guide\n=====", "Welcome.", "Install\n-------", "Type it.", "Reference\n=========", "Words.")
    write(tmp_path, "b.rst", "\n\n".join(parts))
    write(tmp_path, "c.HTM", "<title>T</title><p>Alone.")
    read = corpus(tmp_path, chunker={"type": "markdown"})
    found = list(read.passages())
    sections = ["Guide", "Guide > Install", "Reference"]
    assert [passage.title for passage in found] == [*sections, *sections, "T"]
    texts = {each.source: each.text for each in read.documents()}
    assert all(texts[each.span.source][each.span.start : each.span.end] == each.text for each in found if each.span)


def test_headings_of_html_stay_with_what_follows_them(tmp_path: Path) -> None:
    words = "word " * 19
    write(tmp_path, "a.html", f"<p>{words}</p><h2>Install</h2><p>{words}</p>")
    read = corpus(tmp_path, chunker={"type": "paragraphs", "max_words": 20})
    texts = [passage.text for passage in read.passages()]
    assert texts == [words.strip(), f"Install\n\n{words.strip()}"]


def test_pages_of_a_pdf_are_metadata(tmp_path: Path) -> None:
    write(tmp_path, "a.pdf", make_pdf("word " * 30, "other " * 30))
    found = list(corpus(tmp_path, max_words=30).passages())
    assert [passage.metadata for passage in found] == [{"page": 1}, {"page": 2}]
    assert [passage.title for passage in found] == ["a.pdf", "a.pdf"]


def test_readers_whose_versions_change_texts_are_causes_where_such_files_are(tmp_path: Path) -> None:
    write(tmp_path, "a.rst", "A\n=\n\nwords")
    assert list(corpus(tmp_path).causes()["readers"]) == ["rst"]
    assert list(corpus(tmp_path, chunker={"type": "markdown"}).causes()["readers"]) == ["rst"]
    write(tmp_path, "a.html", HTML)
    assert corpus(tmp_path).causes()["readers"] | {"rst": None} == {
        "rst": None,
        "html": {"version": 1, "packages": {"selectolax": version("selectolax")}},
    }


def test_what_is_left_out_is_counted_by_reason_and_named(tmp_path: Path) -> None:
    names = ("a.md", "x.docx", "sub/y.docx", "sub/z.docx", "sub/w.docx", "p.png", ".env", ".git/config", "Makefile")
    for name in names:
        write(tmp_path, name, "text")
    write(tmp_path, "empty.md", " \n")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    read = corpus(tmp_path)
    assert [passage.doc_id for passage in read.passages()] == ["a.md#1"]
    assert [*read.outside(), *read.notes()] == [
        "skipped 7 files and 2 folders: 4 .docx (no reader: sub/w.docx, sub/y.docx, sub/z.docx, …), "
        "2 hidden (.env, .git/), "
        "1 .png (no reader: p.png), 1 folder (symlink: link/), 1 without suffix (no reader: Makefile); "
        "to follow symlinks, set corpus.follow_symlinks: true",
        "1 file without text skipped: empty.md",
    ]


def test_what_is_excluded_is_left_out_and_told(tmp_path: Path) -> None:
    for name in ("a.md", "draft.md", "old/b.md", "old/deep/c.md"):
        write(tmp_path, name, "text")
    read = corpus(tmp_path, exclude=["old", "draft.*"])
    assert [passage.doc_id for passage in read.passages()] == ["a.md#1"]
    assert read.outside() == ["skipped 3 files: 3 .md (excluded: draft.md, old/b.md, old/deep/c.md)"]
    read = corpus(tmp_path, patterns=["*.md"], exclude=["deep/*.md"])
    assert [passage.doc_id for passage in read.passages()] == ["a.md#1", "draft.md#1", "old/b.md#1"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("**/drafts", ["a.md", "old/b.md", "old/deep/c.md"]),
        ("old/**/*.md", ["a.md", "drafts/d.md"]),
        ("old/**/c.md", ["a.md", "drafts/d.md", "old/b.md", "old/drafts/e.md"]),
        ("old/**", ["a.md", "drafts/d.md"]),
        ("**/old/**/drafts/**", ["a.md", "drafts/d.md", "old/b.md", "old/deep/c.md"]),
    ],
)
def test_two_stars_in_exclude_stand_for_any_number_of_folders(tmp_path: Path, pattern: str, left: list[str]) -> None:
    for name in ("a.md", "drafts/d.md", "old/b.md", "old/deep/c.md", "old/drafts/e.md"):
        write(tmp_path, name, "text")
    assert [passage.doc_id for passage in corpus(tmp_path, exclude=[pattern]).passages()] == [f"{x}#1" for x in left]


def test_ten_thousand_files_that_nobody_reads_are_one_line(tmp_path: Path) -> None:
    skipped = [SkippedFile(f"{number}.x{number % 20}", "no reader") for number in range(10_000)]
    told = describe_skipped(skipped)
    assert told.startswith("skipped 10,000 files: 500 .x0 (no reader: 0.x0, 20.x0, 40.x0, …), ")
    assert told.endswith("6,000 others")
    assert len(told) < 500


def test_pdf_files_without_their_package_are_left_out_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raggs.parts.documents.pdf.find_spec", lambda name: None)
    write(tmp_path, "a.md", "text")
    write(tmp_path, "b.pdf", make_pdf("text"))
    read = corpus(tmp_path)
    assert [passage.doc_id for passage in read.passages()] == ["a.md#1"]
    assert read.outside() == ['skipped 1 file: 1 .pdf (pip install ".[pdf]" in a clone of raggs: b.pdf)']
    with pytest.raises(PrerequisiteError, match=r"b\.pdf"):
        list(corpus(tmp_path, patterns=["*.pdf"]).passages())


NUMBERED = st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=12)


def _sources(levels: list[tuple[int, bool]]) -> dict[str, str]:
    """A document whose headings and words are numbered, in three formats; rst knows levels by their marks."""
    found: dict[str, list[str]] = {"a.md": [], "a.html": []}
    for number, (level, words) in enumerate(levels):
        found["a.md"] += [f"{'#' * level} T{number}", *([f"```\n# no\n```\n\nw{number} " + "x " * 30] if words else [])]
        found["a.html"] += [f"<h{level}>T{number}</h{level}>", *([f"<p>w{number} " + "x " * 30] if words else [])]
    return {name: "\n\n".join(["w", *parts]) for name, parts in found.items()}


@given(
    NUMBERED, st.sampled_from([{"type": "markdown", "size": 20}, {"type": "token", "size": 30}, {"type": "sentence"}])
)
def test_a_breadcrumb_is_never_the_title_of_another_part(
    levels: list[tuple[int, bool]], chunker: dict[str, Any]
) -> None:
    """Each title of a passage's path stands above all of its words, with none of the same rank or higher between."""
    for name, source in _sources(levels).items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), name, source)
            passages = list(corpus(Path(folder), chunker=chunker).passages())
        for passage in passages:
            inside = [int(each) for each in re.findall(r"\bw(\d+)", passage.text)]
            for number in inside:
                above = _path(levels, number)
                titles = [] if passage.title == name else [int(each[1:]) for each in passage.title.split(" > ")]
                assert titles == above[: len(titles)], f"{passage.title} over {passage.text!r}"


def _path(levels: list[tuple[int, bool]], number: int) -> list[int]:
    path: list[int] = []
    for each in range(number + 1):
        path = [*(other for other in path if levels[other][0] < levels[each][0]), each]
    return path


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.html", "<p>{0}</p><pre>a = 1\n\n# b\n\nc = 3. D = 4. E = 5.</pre><p>{0}</p>"),
        ("a.rst", "{0}\n\nCode::\n\n   a = 1\n\n   # b\n\n   c = 3. D = 4. E = 5.\n\n{0}"),
        ("a.md", "{0}\n\n```\na = 1\n\n# b\n\nc = 3. D = 4. E = 5.\n```\n\n{0}"),
        ("a.html", "<p>{0}</p><table><tr><td>a = 1<td>x.<tr><td># b<td>Y.<tr><td>E = 5.</table><p>{0}</p>"),
        ("a.html", "<p>{0}</p><ul><li>a = 1. X.<li># b. Y.<li>c = 3. Z.<li>E = 5.</ul><p>{0}</p>"),
    ],
)
def test_code_tables_and_lists_are_not_torn(tmp_path: Path, name: str, source: str) -> None:
    write(tmp_path, name, source.format("Words. " * 12))
    chunker = {"type": "markdown", "size": 16, "whole": 3}
    texts = [passage.text for passage in corpus(tmp_path, chunker=chunker).passages()]
    assert len(texts) > 2
    assert [text for text in texts if "a = 1" in text] == [text for text in texts if "E = 5." in text]


BAD = {"bad.txt": b"one\ntwo\xff", "sub/bin.md": b"a\0b", "z.pdf": b"not a PDF"}


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    for name, content in {**BAD, "a.txt": b"fine", "m.md": b"# Fine\n\nwords"}.items():
        write(tmp_path / "docs", name, content)
    return tmp_path / "docs"


def test_all_files_that_cannot_be_read_are_named_at_once(damaged: Path) -> None:
    with pytest.raises(DataError, match=r"3 files cannot be read: bad\.txt:2 \(not UTF-8\), sub/bin\.md:1 ") as caught:
        list(corpus(damaged).passages())
    assert "z.pdf (not a readable PDF" in caught.value.message
    assert "corpus.unreadable: skip" in (caught.value.remedy or "")
    for number in range(30):
        write(damaged, f"more{number:02}.txt", b"\xff")
    with pytest.raises(DataError, match=r"33 files cannot be read.*, and 23 more — repair"):
        list(corpus(damaged).documents())


def test_files_that_cannot_be_read_are_skipped_and_counted_if_you_say_so(damaged: Path) -> None:
    read = corpus(damaged, unreadable="skip")
    for _ in range(2):
        assert [passage.doc_id for passage in read.passages()] == ["a.txt#1", "m.md#1"]
        assert read.unreadable == sorted(BAD)
        (note,) = read.notes()
        assert note.startswith("3 unreadable files skipped: bad.txt:2 (not UTF-8), ")
    before = read.source_hash()
    write(damaged, "bad.txt", "mended")
    assert read.source_hash() != before
    assert [passage.doc_id for passage in read.passages()] == ["a.txt#1", "bad.txt#1", "m.md#1"]


def test_what_the_system_refuses_is_unreadable_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "closed.txt", "locked/b.txt"):
        write(tmp_path, name, "text")
    opened, listed = Path.open, os.scandir

    def refuse(path: Path, *rest: Any, **named: Any) -> Any:
        if path.name == "closed.txt":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *rest, **named)

    def close(path: Any) -> Any:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(os, "scandir", close)
    with pytest.raises(DataError, match=r"2 files cannot be read: locked/ \(Permission denied\), closed\.txt \(cannot"):
        corpus(tmp_path).source_hash()
    read = corpus(tmp_path, unreadable="skip")
    before = read.source_hash()
    assert [passage.doc_id for passage in read.passages()] == ["a.txt#1"]
    assert read.unreadable == ["locked/", "closed.txt"]
    monkeypatch.undo()
    assert read.source_hash() != before


def test_symlinks_are_left_out_and_told_unless_you_say_so(tmp_path: Path) -> None:
    docs, outside = tmp_path / "docs", tmp_path / "outside"
    write(docs, "a.md", "text")
    write(docs, "sub/b.md", "text")
    write(outside, "c.md", "text")
    (docs / "file.md").symlink_to(outside / "c.md")
    (docs / "folder").symlink_to(outside)
    (docs / "inside").symlink_to(docs / "sub")
    (docs / "broken.md").symlink_to(docs / "nothing.md")
    (docs / "sub/up").symlink_to(docs)
    (outside / "back").symlink_to(docs / "sub")
    read = corpus(docs)
    assert [passage.doc_id for passage in read.passages()] == ["a.md#1", "sub/b.md#1"]
    assert [passage.doc_id for passage in corpus(docs, patterns=["*.md"]).passages()] == ["a.md#1", "sub/b.md#1"]
    (told,) = read.outside()
    assert "3 folders (symlink: folder/, inside/, sub/up/)" in told
    assert "2 .md (symlink: broken.md, file.md)" in told
    assert told.endswith("; to follow symlinks, set corpus.follow_symlinks: true")
    followed = corpus(docs, follow_symlinks=True)
    assert [passage.doc_id for passage in followed.passages()] == [
        *("a.md#1", "file.md#1", "folder/back/b.md#1", "folder/c.md#1", "inside/b.md#1", "sub/b.md#1"),
    ]
    (told,) = followed.outside()
    assert "3 folders (symlink to a folder above it: folder/back/up/, inside/up/, sub/up/)" in told
    assert "1 .md (broken symlink: broken.md)" in told


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.md", ["a.md", "sub/b.md", "sub/deep/c.md"]),
        ("sub/*.md", ["sub/b.md"]),
        ("sub/**/*.md", ["sub/b.md", "sub/deep/c.md"]),
        ("deep/**", ["sub/deep/c.md", "sub/deep/d.txt"]),
        ("a.md", ["a.md"]),
    ],
)
def test_patterns_fit_at_any_depth(tmp_path: Path, pattern: str, names: list[str]) -> None:
    for name in ("a.md", "sub/b.md", "sub/deep/c.md", "sub/deep/d.txt"):
        write(tmp_path, name, "text")
    assert [passage.doc_id for passage in corpus(tmp_path, patterns=[pattern]).passages()] == [f"{n}#1" for n in names]
