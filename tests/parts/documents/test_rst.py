"""What is a heading in reStructuredText and what is not, and that blocks hold every word."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.parts.documents import Block
from raggs.parts.documents.markdown import RstReader, rst_blocks

GUIDE = """\
=======
 Guide
=======

Welcome to it::

   Not a heading
   =============

Install ``it``
==============

.. note:: Mind this.

.. unknown:: x

   Inner
   -----

Linux
-----

=====  =====
A      B
=====  =====
1      2
=====  =====

1. Numbered
-----------

Reference
=========

Words.
"""


def headings(text: str) -> list[tuple[int, str, str]]:
    return [
        (block.level, block.title, text[block.start : block.end])
        for block in rst_blocks(text)
        if block.kind == "heading"
    ]


def test_headings_are_those_that_docutils_finds_with_their_lines() -> None:
    assert headings(GUIDE) == [
        (1, "Guide", "=======\n Guide\n=======\n"),
        (2, "Install it", "Install ``it``\n==============\n"),
        (3, "Linux", "Linux\n-----\n"),
        (3, "1. Numbered", "1. Numbered\n-----------\n"),
        (2, "Reference", "Reference\n=========\n"),
    ]


def test_code_and_tables_are_known_as_such() -> None:
    kinds = {GUIDE[block.start : block.end].strip()[:11]: block.kind for block in rst_blocks(GUIDE)}
    assert kinds["Welcome to "] == "code"
    assert kinds["=====  ===="] == "table"
    assert kinds["Words."] == "text"


def test_the_line_below_a_title_is_not_above_the_next() -> None:
    assert headings("One\n===\nTwo\n===") == [(1, "One", "One\n===\n"), (1, "Two", "Two\n===")]


def test_lines_that_only_python_ends_count_as_docutils_counts_them() -> None:
    text = "a\x0cb\x85c\u2028d\r\n\r\nTitle\r\n=====\r\n\r\nwords\u2029more\n\nNext\n====\n"
    assert [(title, part.strip()) for _, title, part in headings(text)] == [
        ("Title", "Title\r\n====="),
        ("Next", "Next\n===="),
    ]


def test_nothing_is_included_and_nothing_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret.txt").write_text("Secret\n======\n\nx\n")
    secret = tmp_path / "secret.txt"
    text = f".. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n\nA\n=\n\nb_ `\n"
    (tmp_path / "a.rst").write_text(text)
    read = RstReader().read(tmp_path / "a.rst")
    assert read.text == text
    assert read.blocks is not None
    assert [block.title for block in read.blocks() if block.kind == "heading"] == ["A"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["- " * 3000 + "x", "\n\n".join(" " * depth + "x" for depth in range(900))])
def test_what_the_parser_cannot_take_has_no_sections(text: str) -> None:
    assert headings(f"A\n===\n\n{text}") in ([], [(1, "A", "A\n===\n")])


LINES = [
    "Title",
    "=====",
    "-----",
    "~~~~",
    "",
    "",
    "text::",
    "   code",
    "- x",
    ".. note::",
    "+--+",
    "|a |",
    "\x0c",
    "é\u2028",
]


@given(st.one_of(st.lists(st.sampled_from(LINES), max_size=25).map("\n".join), st.text(max_size=60)))
def test_blocks_come_in_order_and_hold_every_word(text: str) -> None:
    holds_every_word(text, rst_blocks(text))


def holds_every_word(text: str, blocks: tuple[Block, ...]) -> None:
    end = 0
    for block in blocks:
        assert end <= block.start < block.end <= len(text)
        assert not text[end : block.start].strip()
        assert block.kind != "heading" or block.title
        end = block.end
    assert not text[end:].strip()
