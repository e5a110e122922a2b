"""Dots with intervals, one below the other."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from raggs.evaluation.svg import ForestRow, forest

ROWS = [ForestRow("a", 0.5, 0.4, 0.6), ForestRow("b", 0.3, None, None, clear=False)]


def kinds(svg: str) -> list[str]:
    return [element.get("class", "") for element in ET.fromstring(svg).iter()]


def test_a_row_has_a_dot_and_where_it_is_known_an_interval() -> None:
    found = kinds(forest("Title", ROWS, "told", changes=False))
    kinds_of_rows = ("bar", "dot", "unclear", "unclear-dot")
    assert [found.count(kind) for kind in kinds_of_rows] == [2, 2, 1, 2], "each row and its entry of the legend"


def test_changes_have_signs_and_a_mark_at_zero() -> None:
    svg = forest("Title", ROWS, "told", changes=True)
    assert kinds(svg).count("axis") == 2
    assert ">+0.2<" in svg and ">0<" in svg
    assert ">0 = no change<" in svg and ">← worse<" in svg and ">better →<" in svg
    assert ">+0.500 [+0.400, +0.600]<" in svg and ">+0.300<" in svg


def test_one_row_alone_can_be_drawn() -> None:
    ET.fromstring(forest("T", [ForestRow("a", 0.0, 0.0, 0.0)], "told", changes=False))
