"""docs/reference/recommendation.md: its examples are run, and its memory and prices are those of the code."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "recommendation.md"


def test_every_example_on_the_page_gives_what_it_says():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried > 15) == (0, True)
