"""Dots with intervals, one below the other."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from importlib.resources import files

from raggs.base.text import text_width
from raggs.evaluation.svg import MAX_LINES, WIDTH, ChartAxis, Curve, ForestRow, chart, forest, style

ROWS = [ForestRow("a", 0.5, 0.4, 0.6), ForestRow("b", 0.3, None, None, clear=False)]


def kinds(svg: str) -> list[str]:
    return [element.get("class", "") for element in ET.fromstring(svg).iter()]


def test_a_row_has_a_dot_and_where_it_is_known_an_interval() -> None:
    found = kinds(forest("Title", ROWS, "told", changes=False))
    kinds_of_rows = ("bar", "dot", "unclear", "unclear-dot")
    assert [found.count(kind) for kind in kinds_of_rows] == [2, 2, 1, 2], "each row and its entry of the legend"


def test_changes_have_signs_and_a_mark_at_zero() -> None:
    svg = forest("Title", ROWS, "told", changes=True)
    assert kinds(svg).count("axis") == 3
    assert ">+0.2<" in svg and ">0<" in svg
    assert ">0 = no change<" in svg and ">← worse<" in svg and ">better →<" in svg
    assert ">+0.500 [+0.400, +0.600]<" in svg and ">+0.300<" in svg


def test_no_line_crosses_a_name_or_a_value() -> None:
    svg = forest("T", [ForestRow("a", -0.3, -0.5, 0.02), ForestRow("b", -0.2, -0.4, 0.03)], "told", changes=True)
    lines = re.findall(r'd="M([\d.]+) ([\d.]+)L\1 ([\d.]+)" class="(?:axis|grid)"', svg)
    values = re.findall(r'y="([\d.]+)" text-anchor="end">-0[^<]+<', svg)
    names = re.findall(r'y="([\d.]+)">[ab]<', svg)
    assert len(values) == len(names) == 2 and len(lines) > 2
    assert not any(float(top) < float(y) + 4 and float(y) - 13 < float(foot) for _, foot, top in lines for y in values)
    assert values == names, "a value is beside its name if both fit"


def test_a_long_name_is_above_its_value_and_is_not_shortened() -> None:
    name = "lexical-without-stopwords-2026"
    svg = forest("T", [ForestRow(name, -0.3, -0.5, 0.02)], "told", changes=True)
    (name_y,) = re.findall(rf'y="([\d.]+)">{name}<', svg)
    (value_y,) = re.findall(r'y="([\d.]+)" text-anchor="end">-0.300', svg)
    assert float(value_y) > float(name_y) + 13


def test_a_row_that_excludes_zero_but_is_not_significant_is_explained() -> None:
    row = ForestRow("a", 0.3, 0.1, 0.5, clear=False)
    assert "correction" in forest("T", [row], "told", changes=True)
    assert "correction" not in forest("T", [ForestRow("a", 0.3, -0.1, 0.5, clear=False)], "told", changes=True)


def test_a_series_keeps_its_mark_in_every_chart() -> None:
    axes, line = (ChartAxis("k"), ChartAxis("y")), Curve(("b",), ((1.0, 0.1), (2.0, 0.2)), mark=3)
    other, grey = Curve(("a",), ((1.0, 0.3), (2.0, 0.3)), mark=0), Curve(("c",), ((1.0, 0.5),), mark=MAX_LINES)
    for lines in ([line], [other, line], [grey, line]):
        found = kinds(chart("T", axes, lines=lines))
        assert "series s3" in found and "series s1" not in found
        assert ("rest" in found) == (grey in lines)
    merged = chart("T", axes, lines=[other, Curve(("d",), other.points, mark=2)])
    assert "a = d" in merged and "series s2" not in merged


def test_one_row_alone_can_be_drawn() -> None:
    ET.fromstring(forest("T", [ForestRow("a", 0.0, 0.0, 0.0)], "told", changes=False))


def test_texts_stay_inside_and_long_names_keep_their_full_text() -> None:
    name = "hybrid+" + "a-very-long-model-name" * 6
    root = ET.fromstring(forest("Which system is better?", [ForestRow(name, -0.1, -0.2, 0.1)], "told", changes=True))
    texts = [element for element in root.iter() if element.tag.endswith("text")]
    for each in texts:
        x, wide = float(each.get("x", "")), text_width(each.text or "", 15.6)
        left = {None: x, "middle": x - wide / 2, "end": x - wide}[each.get("text-anchor")]
        assert left >= 0 and left + wide <= WIDTH
    assert any(title.text == name for each in texts for title in each)


def test_a_file_has_the_colours_of_the_theme_and_a_dark_variant() -> None:
    theme = (files("raggs.base") / "theme.css").read_text(encoding="utf-8")
    light, dark = style().split("@media (prefers-color-scheme: dark)")
    assert "var(" not in style()
    for number in range(6):
        colours = re.findall(rf"--s{number}: (#\w+);", theme)
        assert f".series.s{number}, .plot .span.s{number} {{ stroke: {colours[0]}; }}" in light
        assert f".series.s{number}, .plot .span.s{number} {{ stroke: {colours[1]}; }}" in dark
