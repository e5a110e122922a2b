"""How much of the personal data in a labelled set is found, and how much of what is found is personal.

Each of its lines is a language, a tab, and a text with `{kind:characters}` around what is personal: half of them have
nothing of the kind, and look as if. A place counts as found where one of its kind covers it.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from raggs.stats.personal_data import KINDS, personal_data

HERE = Path(__file__).resolve()
LINES = (HERE.parents[2] / "fixtures" / "personal.txt").read_text(encoding="utf-8").splitlines()
PAGE = HERE.parents[3] / "docs" / "project" / "benchmarks-search-and-cost.md"
MARK = re.compile(r"\{(\w+):([^}]*)\}")
# Recall and precision of each kind: dotted numbers of versions and sections look like addresses.
LEAST = {"email": (0.9, 0.95), "phone": (0.95, 0.95), "ip": (1.0, 0.55), "name": (0.7, 0.9)}


def labelled(line: str) -> tuple[str, str, list[tuple[str, int, int]]]:
    language, marked = line.split("\t")
    text, places, at = "", [], 0
    for match in MARK.finditer(marked):
        text += marked[at : match.start()]
        places.append((match[1], len(text), len(text) + len(match[2])))
        text += match[2]
        at = match.end()
    return language, text + marked[at:], places


@cache
def measured() -> dict[str, tuple[int, int, int, int]]:
    """By kind: places, of which found; findings, of which right."""
    places, found, findings, right = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for line in LINES:
        language, text, wanted = labelled(line)
        given = personal_data(text, language)
        for kind, start, end in wanted:
            places[kind] += 1
            found[kind] += any(one.kind == kind and one.start <= start and end <= one.end for one in given)
        for one in given:
            findings[one.kind] += 1
            right[one.kind] += any(
                one.kind == kind and one.start < end and start < one.end for kind, start, end in wanted
            )
    return {kind: (places[kind], found[kind], findings[kind], right[kind]) for kind in KINDS}


def test_the_set_is_large_enough_and_half_of_it_is_clean() -> None:
    clean = sum(not MARK.search(line) for line in LINES)
    assert len(LINES) >= 200
    assert 0.4 < clean / len(LINES) < 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_of_each_kind(kind: str) -> None:
    places, found, findings, right = measured()[kind]
    assert places >= 5
    recall, precision = LEAST.get(kind, (1.0, 1.0))
    assert found / places >= recall
    assert right / findings >= precision


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_has_these_figures(kind: str) -> None:
    places, found, findings, right = measured()[kind]
    assert f"| {kind} | {places} | {found / places:.2f} | {right / findings:.2f} |" in PAGE.read_text(encoding="utf-8")
