"""The plots of a comparison of chunkers: valid files from the report alone, that tell what the tables tell."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from raggs.chunking.layout import plots
from raggs.chunking.models import ChunkComparisonPart, ChunkerPart, ChunkMeanPart, ChunkReport, ChunkSystemPart
from raggs.evaluation.models import Verdict
from raggs.metrics.spans import MEASURES

HOSTILE = "</text><script>alert(1)</script>\x1b[31m\u202e"


def system(name: str, cutoff: str, recall: float | None, length: float, iou: float = 0.1) -> ChunkSystemPart:
    means = {name: ChunkMeanPart(mean=iou, sd=0.1, low=iou / 2, high=iou * 2) for name in MEASURES}
    low, high = (None, None) if recall is None else (recall - 0.05, recall + 0.05)
    means["recall"] = ChunkMeanPart(mean=recall, sd=0.1, low=low, high=high)
    return ChunkSystemPart(
        system=name,
        chunker=name,
        embedder="e",
        cutoff=cutoff,
        retrieved=5,
        retrieved_length=length,
        scores=means,
        by_corpus={},
        per_question={},
    )


def against(name: str, verdict: Verdict) -> ChunkComparisonPart:
    return ChunkComparisonPart(
        system=name,
        cutoff="5",
        measure="iou",
        difference=0.1,
        low=0.0,
        high=0.2,
        p=0.5,
        verdict=verdict,
        wins=1,
        ties=0,
        losses=0,
    )


def report(*systems: ChunkSystemPart, comparisons: tuple[ChunkComparisonPart, ...] = ()) -> ChunkReport:
    return ChunkReport(
        unit="characters",
        compat=False,
        seed=0,
        baseline="small" if comparisons else None,
        documents={"a.md": 10},
        questions=("q",),
        corpora=("a.md",),
        chunkers=tuple[ChunkerPart, ...](),
        systems=systems,
        comparisons=comparisons,
        notes=(),
    )


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter() if element.tag.endswith("text")]


def marks(svg: str, kind: str) -> list[ET.Element]:
    return [element for element in ET.fromstring(svg).iter() if element.get("class") == kind]


def test_recall_is_drawn_over_what_is_read_through_the_cutoffs_with_intervals() -> None:
    drawn = plots(
        report(
            system("small", "10", 0.8, 2000),
            system("small", "5", 0.6, 1000),
            system("large", "5", 0.9, 4000),
            system("large", "10", 0.95, 8000),
        )
    )["recall-over-length.svg"][1]
    small = marks(drawn, "series s0")
    assert [each.get("d", "").count("L") for each in (*small, *marks(drawn, "series s1"))] == [1, 1]
    assert len(marks(drawn, "mark s0")) == 3 and len(marks(drawn, "span s0")) == 2, "two points and the label"
    first = [float(place.split()[0]) for place in small[0].get("d", "").removeprefix("M").split("L")]
    assert first == sorted(first), "the least first, however the report has them"
    assert {"small", "large"} <= set(texts(drawn))
    assert "mean characters retrieved per query" in texts(drawn)


def test_what_cannot_be_told_from_the_baseline_is_grey() -> None:
    rows = (system("small", "5", 0.6, 9, 0.1), system("same", "5", 0.6, 9, 0.11), system("best", "5", 0.6, 9, 0.2))
    told = (against("same", "inconclusive"), against("best", "better"))
    drawn = plots(report(*rows, comparisons=told))["iou.svg"][1]
    assert len(marks(drawn, "bar")) == 3 and len(marks(drawn, "unclear")) == 2, "rows and the legend"
    assert "IoU at k = 5" in " ".join(texts(drawn)[:2])
    assert [text for text in texts(drawn) if text in ("small", "same", "best")] == ["best", "same", "small"]
    assert "not significantly different from small" in texts(drawn)


def test_without_a_value_there_is_no_line() -> None:
    assert "recall-over-length.svg" not in plots(report(system("small", "min", None, 0)))
    assert "recall-over-length.svg" in plots(report(system("small", "min", None, 0), system("b", "min", 0.5, 9)))


def test_names_cannot_act() -> None:
    for _, svg in plots(report(system(HOSTILE, "5", 0.5, 10))).values():
        assert "<script" not in svg and "\x1b" not in svg
        ET.fromstring(svg)


def test_the_same_report_gives_the_same_bytes() -> None:
    given = report(system("small", "5", 0.5, 10), system("large", "min", 0.6, 40))
    assert plots(given) == plots(given)
