"""Markdown cut by its headings: what stays whole, what stays together, and what a part is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raggs.parts.chunkers import Document
from raggs.parts.chunkers.markdown import MarkdownChunker

FENCE = "```python\n# no heading\n\n" + "\n\n".join(f"line {number}" for number in range(8)) + "\n```"
TABLE = "| a | b |\n|---|---|\n" + "\n".join(f"| {number} | x. y |" for number in range(8))
LIST = "\n".join(f"- item {number}. More\n  of it." for number in range(8))


def cut(text: str, size: int, **settings: Any) -> list[str]:
    chunker = MarkdownChunker(MarkdownChunker.Config(size=size, unit="characters", **settings))
    return [chunk.text for chunk in chunker.chunk(Document(text))]


def test_a_section_is_a_chunk_and_an_empty_one_goes_with_the_next():
    assert cut("intro\n\n# A\n\none\n\n## B\n\n### C\n\ntwo\n\nthree\n", 100) == [
        "intro",
        "# A\n\none",
        "## B\n\n### C\n\ntwo\n\nthree",
    ]


@pytest.mark.parametrize("block", [FENCE, TABLE, LIST], ids=["fence", "table", "list"])
def test_fences_tables_and_lists_are_not_torn(block):
    text = f"# A\n\nSome words. And more of them.\n\n{block}\n\nThe end of it all."
    found = cut(text, 60)
    assert any(block in chunk for chunk in found)
    assert found[0].startswith("# A\n\nSome words.")


def test_what_is_far_too_long_is_cut_at_lines_and_items():
    found = cut(LIST, 30, whole=1)
    assert all(chunk.startswith("- item") for chunk in found)
    assert len(found) == 8
    for block in (FENCE, TABLE):
        lines = block.splitlines()
        for chunk in cut(block, 30, whole=1):
            assert set(chunk.splitlines()) <= set(lines)
            assert len(chunk) <= 30


def test_a_heading_stays_with_the_first_words_below_it():
    text = "# A heading\n\n" + "A sentence of some words. " * 6 + "\n\n" + "Another paragraph. " * 3
    found = cut(text, 70)
    assert found[0].startswith("# A heading\n\nA sentence")
    assert all(len(chunk) <= 70 for chunk in found)
    assert all(chunk.endswith(".") for chunk in found)


def test_a_heading_counts_with_a_table_that_is_cut_below_it():
    assert all(len(chunk) <= 25 for chunk in cut("## B ##\n| a | b |\n|---|---|\n| 1 | 2 |", 25, whole=1))


def test_a_heading_that_fills_a_chunk_stands_alone_and_is_cut():
    assert all(len(chunk) <= 20 for chunk in cut("# A heading of very many words\n\ntext here", 20))


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


CONTRACT_VARIANTS = [{"size": 40}, {"size": 25, "unit": "characters", "whole": 1}]
