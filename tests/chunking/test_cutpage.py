"""The page of cuts: all of a text and nothing but it, shaded by chunk, and hostile text that stays text."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from raggs.chunking.cuts import cut_page, pieces_of, show_cuts
from raggs.chunking.models import ChunkRow
from raggs.parts.chunkers import Document
from raggs.parts.corpora.folder import FolderConfig, FolderCorpus

HOSTILE = """# <script>alert(1)</script> & "quoted" 'single' {{ 7 * 7 }} {% raw %}

</pre></body><img src=x onerror=alert(2)><style>*{display:none}</style> \u202eevil\u202c <!-- x
"""


def row(number: int, start: int, end: int, *, torn: bool = False) -> ChunkRow:
    return ChunkRow(number=number, start=start, end=end, tokens=1, first="", last="", torn=torn)


def page(folder: Path, **settings: object) -> str:
    return cut_page(show_cuts(FolderCorpus(FolderConfig.model_validate({"path": folder, **settings}))), "docs")


def test_pieces_are_shaded_by_chunk_and_say_what_is_torn_and_what_is_in_none() -> None:
    text = "mm\nOne two three. Four"
    rows = [row(1, 3, 6), row(2, 5, 10, torn=True), row(3, 18, 22)]
    found = [(each.text, each.kind, len(each.begins), each.torn) for each in pieces_of(Document(text, begin=3), rows)]
    assert found == [
        ("mm\n", "head", 0, False),
        ("On", "odd", 1, False),
        ("e", "twice", 1, False),
        (" two", "even", 0, True),
        (" three. ", "none", 0, False),
        ("Four", "odd", 1, False),
    ]


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=6))
def test_pieces_hold_the_whole_text_in_order(text: str, places: list[tuple[int, int]]) -> None:
    text = re.sub(r"[^\n -~]", "x", text)
    rows = [row(number, start, min(len(text), start + size)) for number, (start, size) in enumerate(sorted(places))]
    rows = [each for each in rows if each.start < each.end]
    found = list(pieces_of(Document(text), rows))
    assert "".join(each.text for each in found) == text
    assert sum(len(each.begins) for each in found) == len(rows)


def test_hostile_texts_titles_and_names_stay_text(tmp_path: Path) -> None:
    (tmp_path / "<b onclick=x>&.md").write_text(HOSTILE)
    html = page(tmp_path, chunker={"type": "markdown"})
    tree = LexborHTMLParser(html)
    assert tree.css("script, img, [onclick], [onerror], pre h1") == []
    assert len(tree.css("style")) == 1
    assert "{{ 7 * 7 }}" in tree.css_first("pre").text()
    assert "</pre></body><img src=x" in tree.css_first("pre").text()
    assert "\u202e" not in html
    assert r"\u202eevil" in tree.css_first("pre").text()


def test_the_page_forbids_itself_all_but_its_own_style(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("words")
    tree = LexborHTMLParser(page(tmp_path))
    policy = tree.css_first("meta[http-equiv=Content-Security-Policy]").attributes["content"]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]{44}'; base-uri 'none'; form-action 'none'", policy or ""
    )
    assert tree.css("[style], [src], link") == []
    assert all((each.attributes["href"] or "").startswith("#file") for each in tree.css("a"))


def test_its_colours_are_those_of_all_pages(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("words")
    style = LexborHTMLParser(page(tmp_path)).css_first("style").text()
    theme = (files("raggs.base") / "theme.css").read_text()
    own = style.removeprefix(theme.strip())
    assert len(own) < len(style) and not re.search(r"#[0-9a-f]{3,6}\b", own)
    assert {*re.findall(r"var\((--[\w-]+)\)", own)} <= {*re.findall(r"(--[\w-]+):", theme)}


def test_it_shows_what_the_report_says(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: T\n---\n# A\n\nwords\n")
    (tmp_path / "b.md").write_text("")
    (tmp_path / "c.docx").write_text("x")
    tree = LexborHTMLParser(page(tmp_path))
    words = tree.body.text() if tree.body else ""
    assert "1 chunk from 2 documents; none ends within a sentence" in words
    assert "skipped 1 file: 1 .docx (no reader: c.docx)" in words
    assert [each.text() for each in tree.css("pre .head")] == ["---\ntitle: T\n---\n"]
    assert (tree.css_first("pre b").attributes["title"] or "").endswith(", T > A")
    assert len(tree.css("svg rect")) > 0


def test_wrapped_lines_are_joined_and_long_paths_may_break_at_their_slashes(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    text = "Lines of this text were wrapped by an editor at a width\nthat is not that of the page, and are joined.\n"
    (tmp_path / "guide" / "a.md").write_text(text)
    html = page(tmp_path)
    assert text.replace("width\n", "width ") in LexborHTMLParser(html).css_first("pre").text()
    assert "guide/<wbr>a.md</a>" in html


def test_texts_beyond_a_pages_length_are_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.chunking.cuts.MAX_PAGE_CHARS", 9)
    (tmp_path / "a.md").write_text("words " * 9)
    (tmp_path / "b.md").write_text("words")
    tree = LexborHTMLParser(page(tmp_path))
    assert [each.text() for each in tree.css("summary")] == ["b.md 1 chunk"]
    assert "The text of 1 of these files is omitted" in (tree.body.text() if tree.body else "")


def test_only_the_document_with_the_most_split_sentences_is_open(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Dogs bark.")
    (tmp_path / "b.md").write_text("dogs bark at cats and cats run from dogs " * 9)
    (tmp_path / "c.md").write_text("Cats purr.")
    tree = LexborHTMLParser(page(tmp_path, chunker={"type": "token", "size": 20}))
    shown = {each.css_first("summary").text().split()[0]: "open" in each.attributes for each in tree.css("details")}
    assert shown == {"a.md": False, "b.md": True, "c.md": False}
    assert [each.text() for each in tree.css("th")] == ["document", "chunks", "median", "longest", "mid-sentence"]
    words = tree.body.text() if tree.body else ""
    assert "Next: read b.md, which splits the most sentences" in words
    assert "lost" not in words and tree.css_first("#file2").parent == tree.css("details")[1]
