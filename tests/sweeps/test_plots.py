"""Plots of a sweep: valid files from the report alone, with names that cannot act, marks where the numbers say."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest
from support.sweeping import make_sweep

from raggs.evaluation.label_positions import Box, free_height, place_label, spread
from raggs.evaluation.svg import AxisScale, ChartAxis, Point, chart, clean
from raggs.sweeps.models import LatencyPart, LatencySpread, SweepReport, SystemRow
from raggs.sweeps.plots import plots, report_files

HOSTILE = "</text><script>alert(1)</script>&\"'\x1b[31m\x00\ufffe\u202e"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> SweepReport:
    return make_sweep(tmp_path_factory.mktemp("sweep")).sweep().report


def priced(report: SweepReport, prices: Sequence[float]) -> SweepReport:
    """With a price for each system, and waits that grow with it."""
    rows: list[SystemRow] = []
    for row, price in zip(report.systems, prices, strict=True):
        assert row.cost is not None
        waits = LatencySpread(
            p50=price * 100,
            p95=price * 200,
            low=None,
            high=None,
            searches=3,
            p95_of_medians=price * 150,
            calls=3,
        )
        changed = {"cost": row.cost.model_copy(update={"total": price}), "latency": LatencyPart(total=waits)}
        rows.append(row.model_copy(update=changed))
    return report.model_copy(update={"systems": tuple(rows)})


def test_every_plot_is_a_file_that_sweep_md_shows(report: SweepReport) -> None:
    files = report_files(report)
    drawn = [name for name in files if name.endswith(".svg")]
    assert drawn == ["front.svg", "quality-over-k.svg", "latency-over-k.svg", "effects.svg"]
    for name in drawn:
        assert ET.fromstring(files[name]).tag == f"{SVG}svg"
        assert f"]({name})" in files["sweep.md"]


def test_the_same_report_gives_the_same_bytes(report: SweepReport) -> None:
    again = SweepReport.model_validate_json(report.model_dump_json())
    assert report_files(again) == report_files(report)


def test_names_cannot_act(report: SweepReport) -> None:
    rows = tuple(
        row.model_copy(update={"name": f"{HOSTILE}{at}", "levels": {**row.levels, "mode": HOSTILE}})
        for at, row in enumerate(report.systems)
    )
    effects = tuple(part.model_copy(update={"level": HOSTILE}) for part in report.effects)
    changes = {"systems": rows, "front": (rows[0].name,), "effects": effects}
    for _, svg in plots(report.model_copy(update=changes)).values():
        tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
        assert tags <= {"svg", "style", "rect", "text", "path", "circle", "title"}
        assert "\x1b" not in svg


def test_a_price_is_plotted_only_where_it_differs(report: SweepReport) -> None:
    assert "front-cost.svg" not in plots(report)
    assert "front-cost.svg" in plots(priced(report, [0.1, 0.2, 1, 2, 3, 4]))


def test_the_choice_is_ringed_and_limits_are_drawn(report: SweepReport) -> None:
    limits = {"latency_ms": 250.0, "usd_per_1k": 2.5, "quality": 0.1}
    told = priced(report, [0.1, 0.2, 1, 2, 3, 4])
    told = told.model_copy(update={"choice": told.choice.model_copy(update={"limits": limits})})
    for name in ("front.svg", "front-cost.svg"):
        root = ET.fromstring(plots(told)[name][1])
        kinds = [element.get("class") for element in root.iter()]
        assert kinds.count("chosen") == 2, "the point and its entry of the legend"
        names = " ".join(element.text or "" for element in root.iter() if element.tag == f"{SVG}text")
        assert all(name in names for name in told.front[:6])
        assert kinds.count("limit") == 1, "the required quality is far below all systems, so an arrow shows it"
        texts = [element.text for element in root.iter() if element.tag == f"{SVG}text"]
        assert "↓ required quality 0.1" in texts
        assert ("limit 250 ms" if name == "front.svg" else "limit $2.50") in texts
        ring = next(element for element in root.iter() if element.get("class") == "chosen")
        assert (ring.findtext(f"{SVG}title") or "").startswith(f"{told.choice.winner}: ")


def test_nothing_measured_draws_nothing(report: SweepReport) -> None:
    blank = tuple(row.model_copy(update={"latency": LatencyPart(), "cost": None}) for row in report.systems)
    assert set(plots(report.model_copy(update={"systems": blank}))) == {"quality-over-k.svg", "effects.svg"}


@pytest.mark.parametrize("values", [[0.3], [5, 5], [0, 0], [0.001, 1000], [-2, 3], [1e-9, 2e-9], [0.43, 0.44, 3.6]])
def test_a_scale_holds_its_values_and_has_ticks_inside(values: list[float]) -> None:
    for log in (False, True):
        scale = AxisScale.of(values, 10, 200, log=log)
        assert all(10 <= scale.at(value) <= 200 for value in values)
        ticks = scale.ticks()
        assert 1 <= len(ticks) <= 40
        assert all(scale.low <= tick <= scale.high for tick in ticks)


def test_labels_do_not_overlap_and_stay_inside() -> None:
    inside, taken = Box(0, 0, 300, 200), list[Box]()
    placed = [place_label(150, 100, str(number), taken, inside) for number in range(15)]
    assert sum(place is not None for place in placed) >= 8
    assert not any(one.meets(other) for at, one in enumerate(taken) for other in taken[at + 1 :])
    assert all(box.left >= 0 and box.right <= 300 for box in taken)


def test_points_that_cover_each_other_share_a_label() -> None:
    apart = [Point(0, 0, "alone", "alone tip"), Point(1, 1, "one", "one tip"), Point(1, 1, "two", "two tip")]
    axes = (ChartAxis("x"), ChartAxis("y"))
    assert "one, two" in (drawn := chart("Two?", axes, points=apart)) and ">alone<" in drawn
    drawn = chart("Three?", axes, points=[*apart, Point(1, 1, "three", "three tip")])
    assert "one and 2 more" in drawn and "one tip; two tip; three tip" in drawn


def test_labels_are_clear_of_lines_and_marks() -> None:
    line = Box.of_line((10, 50), (90, 50))
    taken = [line]
    left, base = place_label(50, 50, "name", taken, Box(0, 0, 300, 300)) or (0, 0)
    assert not line.meets(taken[1]) and taken[1].bottom == base + 4 and left >= 50
    assert free_height(0, 100, 80, 20, [Box.around(40, 98, 6)]) == 80
    assert free_height(0, 100, 80, 90, [Box.around(40, 98, 6)]) == 100, "nothing is free"


def test_places_are_spread_in_their_order() -> None:
    assert spread([10, 11, 50], 13, 0, 100) == [10, 23, 50]
    assert spread([99, 98], 13, 0, 100) == [100, 87]


def test_characters_that_xml_forbids_are_replaced() -> None:
    assert ET.fromstring(f"<a>{clean(HOSTILE)}</a>").text is not None
