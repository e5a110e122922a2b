"""HTML as text: what a reader would read and nothing else, headings as they are nested, and pages made to harm."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError
from raggs.parts.documents import DocumentContent
from raggs.parts.documents.html import HtmlReader

PAGE = """<!doctype html><html><head><title>Guide &amp; more</title><style>p{color:red}</style></head><body>
<nav><a href=/>Home</a></nav><header><h1>Guide<a class=headerlink href="#x">¶</a></h1></header>
<p>Caf&eacute; <b>bold</b>ly<br>next   line<script>alert("x < y")</script></p><!-- not this -->
<div hidden>secret</div><div aria-hidden="true">icon</div><div role=search>find</div><noscript>turn it on</noscript>
<h2>Install</h2><pre><code>
<span>if x &lt; 1:
</span>    go()

</code></pre><ul><li><p>one</p><li>two<ol><li>deep</ol></ul>
<table><tr><th><p>A</p><th>B<tr><td>1<td>2</table>
<article><p>mine</p><footer>by me</footer></article><footer>Imprint</footer></body></html>"""
TEXT = """Guide

Café boldly
next line

Install

if x < 1:
    go()

one
two
deep

A | B
1 | 2

mine

by me"""


def read(source: str | bytes) -> DocumentContent:
    with tempfile.NamedTemporaryFile(suffix=".html") as file:
        Path(file.name).write_bytes(source.encode() if isinstance(source, str) else source)
        return HtmlReader().read(Path(file.name))


def blocks(found: DocumentContent) -> list[tuple[str, str]]:
    assert found.blocks is not None
    return [(block.kind, found.text[block.start : block.end]) for block in found.blocks()]


def test_what_a_reader_reads_is_the_text() -> None:
    found = read(PAGE)
    assert found.text == TEXT
    assert (found.name, found.begin) == ("Guide & more", 0)


def test_headings_code_tables_and_lists_are_known_as_such() -> None:
    assert blocks(read(PAGE)) == [
        ("heading", "Guide"),
        ("text", "Café boldly\nnext line"),
        ("heading", "Install"),
        ("code", "if x < 1:\n    go()"),
        ("list", "one\ntwo\ndeep"),
        ("table", "A | B\n1 | 2"),
        ("text", "mine"),
        ("text", "by me"),
    ]
    found = read(PAGE)
    assert found.blocks is not None
    [items] = [block.items for block in found.blocks() if block.kind == "list"]
    assert [found.text[start:].split()[0] for start in items] == ["one", "two"]


def test_where_a_page_has_one_main_that_alone_is_read() -> None:
    assert read("<body><p>around</p><main><h1>A</h1>b</main></body>").text == "A\n\nb"
    assert read("<body><p>around</p><div role=main>b</div></body>").text == "b"
    assert read("<body><p>around</p><main>a</main><main>b</main></body>").text == "around\n\na\n\nb"
    assert read("<body><p>around</p><main> </main></body>").text == "around"


def test_a_table_with_headings_is_layout() -> None:
    assert blocks(read("<table><tr><td><h2>A</h2>b<td>c</table>")) == [("heading", "A"), ("text", "b"), ("text", "c")]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('<meta charset="iso-8859-1"><p>caf\xe9 \u20ac'.encode("cp1252"), "café €"),
        ("\ufeff<p>é".encode(), "é"),
        ("<p>é".encode("utf-16"), "é"),
        ("<meta charset=shift_jis><p>翼".encode("shift_jis"), "翼"),
        ("", ""),
        ("no tags & none &lt;", "no tags & none <"),
        ("<p>&#xD800;&#0;&#x110000;", "\ufffd\ufffd\ufffd"),
        ("<frameset><frame src=x></frameset>", ""),
    ],
)
def test_bytes_become_characters(source: str | bytes, text: str) -> None:
    assert read(source).text == text


@pytest.mark.parametrize("source", [b"<p>caf\xe9", b'<meta charset="zlib">caf\xe9', b"\0<p>", b"\x89PNG\0"])
def test_what_is_no_text_is_named(source: bytes) -> None:
    with pytest.raises(DataError, match="not"):
        read(source)


@pytest.mark.parametrize(
    "source",
    [
        "<div>" * 100_000,
        "".join(f"<b id=x{n}>" for n in range(5_000)) + "<p>x" * 5_000,
        "<font><p>" * 20_000,
    ],
)
def test_a_page_that_no_parser_could_take_is_refused_before(source: str) -> None:
    with pytest.raises(DataError, match="too many nested") as caught:
        read("\n" + source)
    assert caught.value.line == 2
    assert "corpus.exclude" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    "source", ["<p>x" * 30_000, "<li>x" * 30_000, "<div>" * 3_000 + "x", "<!--" * 9_000, "<a " * 1_500, "<pre>" * 3_000]
)
def test_careless_pages_are_read(source: str) -> None:
    assert isinstance(read(source).text, str)


TAGS = [
    "p",
    "div",
    "h1",
    "h3",
    "ul",
    "li",
    "ol",
    "table",
    "tr",
    "td",
    "pre",
    "b",
    "br",
    "footer",
    "article",
    "nav",
    "dl",
    "dt",
]
PARTS = st.one_of(
    st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS]),
    st.sampled_from(["word", " ", "\n", "\n\n", "  two words ", "&nbsp;", "&lt;p&gt;", "<!-- x", "<script>", "\u2028"]),
    st.text(max_size=5),
)


@given(st.lists(PARTS, max_size=30).map("".join))
def test_blocks_come_in_order_and_hold_every_word(source: str) -> None:
    found = read(source.replace("\0", "").encode("utf-8", "replace"))
    assert found.blocks is not None
    end = 0
    for block in found.blocks():
        assert end <= block.start < block.end <= len(found.text)
        assert not found.text[end : block.start].strip()
        assert list(block.items) == sorted(set(block.items))
        assert all(block.start <= item < block.end for item in block.items)
        assert not block.items or block.items[0] == block.start
        end = block.end
    assert not found.text[end:].strip()


def test_a_tag_keeps_its_first_attributes_and_is_read_in_linear_time(tmp_path):
    def read(count, after=""):
        attributes = " ".join(f'a{number}="> {number}"' for number in range(count))
        path = tmp_path / "page.html"
        path.write_text(f"<h1>Head</h1><p {attributes}{after}>First.</p><p hidden>Never.</p><p>Second.</p>")
        began = time.perf_counter()
        text = HtmlReader().read(path).text
        return text, time.perf_counter() - began

    text, seconds = read(100_000)
    assert text == "Head\n\nFirst.\n\nSecond."
    assert seconds < 3  # 17 s when the parser compares all of them
    assert read(255, after=" hidden")[0] == "Head\n\nSecond."
