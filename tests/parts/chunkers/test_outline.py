"""What is a heading in Markdown and what is not, and whose section a place belongs to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.parts.chunkers import Document
from raggs.parts.chunkers.markdown import Outline, blocks_of

GUIDE = """\
Before all.

# Guide

Welcome.

## Install

### *Linux* and `apt`

Type this:

```sh
# no heading
apt install it
```

### Windows

> # nor this

- # nor that

# Reference

Words.
"""


def path(text: str, start: str, end: str | None = None) -> tuple[str, ...]:
    first = text.index(start)
    return Outline(blocks_of(Document(text))).path(first, text.index(end or start) + len(end or start))


@pytest.mark.parametrize(
    ("start", "end", "sections"),
    [
        ("Before all.", None, ()),
        ("Welcome.", None, ("Guide",)),
        ("apt install", None, ("Guide", "Install", "Linux and apt")),
        ("# no heading", None, ("Guide", "Install", "Linux and apt")),
        ("> # nor this", None, ("Guide", "Install", "Windows")),
        ("- # nor that", None, ("Guide", "Install", "Windows")),
        ("Words.", None, ("Reference",)),
        (
            "## Install",
            "apt install it",
            ("Guide", "Install", "Linux and apt"),
        ),  # headings at the top, and what follows
        ("apt install", "nor this", ("Guide", "Install")),
        ("Welcome.", "nor this", ("Guide",)),
        ("Welcome.", "Words.", ()),
        ("Before all.", "Welcome.", ()),
        ("# Reference", None, ("Reference",)),
    ],
)
def test_a_place_belongs_to_the_deepest_section_that_holds_it(start, end, sections):
    assert path(GUIDE, start, end) == sections


def test_underlined_headings_count_and_line_ends_do_not():
    text = GUIDE.replace("# Guide\n", "Guide\n=====\n", 1).replace("\n", "\r\n")
    assert path(text, "Welcome.") == ("Guide",)
    assert path(text, "apt install") == ("Guide", "Install", "Linux and apt")


def test_rules_around_words_are_no_front_matter():
    assert path("---\n\n# A\n\nwords\n\n---\n", "words") == ("A",)


@pytest.mark.parametrize("unit", ["[", "*a", "`", "<a", "![", "_a_"])
def test_a_heading_of_marks_without_end_is_read(unit):
    assert path(f"# {unit * 10_000}\n\nwords", "words") == (unit * 10_000,)


def test_a_heading_without_words_is_no_name():
    assert path("# A\n\n##\n\nwords", "words") == ("A",)


LINES = ["# A", "## B ##", "#", "```", "~~~~", "| a | b |\n|---|---|\n| 1 | 2 |", "- x", "  - y", "1. z", "> q", "---"]
LINES += ["Title\n===", "word word", "", " ", "\t", "    code", "[l]: http://x", "<div>", "</div>", "\r\n", "\u2028"]
UGLY = st.lists(st.sampled_from([*LINES, "\x00"]), max_size=25).map("\n".join)


@given(st.one_of(UGLY, st.text(max_size=80), UGLY.map(lambda text: text.replace("\n", "\r"))))
def test_blocks_come_in_order_and_hold_every_word(text):
    end = 0
    for block in blocks_of(Document(text)):
        assert end <= block.start < block.end <= len(text)
        assert not text[end : block.start].strip()
        assert list(block.items) == sorted(set(block.items)), "items of a list begin one after another"
        assert all(block.start <= item < block.end for item in block.items)
        end = block.end
    assert not text[end:].strip()


def test_sections_are_what_stands_below_each_heading_and_no_other() -> None:
    text = "before\n\n# A\n\none\n\n## B\n\n```\n# no heading\n```\n\n# C\n"
    found = [(path, text[start:end].strip()) for path, start, end in Outline(text).sections()]
    assert found == [((), "before"), (("A",), "one"), (("A", "B"), "```\n# no heading\n```"), (("C",), "")]
    assert list(Outline("").sections()) == []
