"""The plots of a comparison of chunkers, as SVG files: recall over what is read for it, and IoU with its intervals.

From the report alone. A plot without anything to show is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from raggs.chunking.models import ChunkReport, SystemPart
from raggs.evaluation.forest import ForestRow, forest
from raggs.evaluation.svg import LINE, WIDTH, Drawing, Scale, shortened, spread
from raggs.metrics.spans import MIN

LEFT, RIGHT, TOP, HIGH = 66, WIDTH - 24, 66, 300  # of a plot
SERIES = 12  # systems in it
ROWS = 24
WIDE = 85  # letters of a line of text
APART = ("win", "loss")  # verdicts that tell a system from the baseline

Point = tuple[float, float, SystemPart]


def plots(report: ChunkReport) -> dict[str, tuple[str, str]]:
    """By file name, what a plot shows in words, and its SVG."""
    found = {
        "recall-over-length.svg": (f"recall over the {report.unit} that are retrieved for it", _recall(report)),
        "iou.svg": ("IoU of each chunker", _iou(report)),
    }
    return {name: (words, svg) for name, (words, svg) in found.items() if svg is not None}


def _recall(report: ChunkReport) -> str | None:
    """A line for each system through its cutoffs, each with the interval of its mean."""
    lines = {name: points for name in _names(report)[:SERIES] if (points := _points(report, name))}
    if not lines:
        return None
    every = [point for points in lines.values() for point in points]
    heights = [value for _, y, part in every for value in (y, *_ends(part, "recall"))]
    foot = TOP + HIGH
    across, up = Scale.of([x for x, _, _ in every], LEFT, RIGHT - 26, log=True), Scale.of(heights, foot, TOP)
    drawing = Drawing("Recall over what is retrieved", foot + 4.2 * LINE + len(lines) * LINE)
    scale = ", logarithmic" if across.log else ""
    drawing.frame(across, up, (f"{report.unit} retrieved for a question, in the mean{scale}", "recall"))
    ends = spread([up.at(points[-1][1]) + 4 for points in lines.values()], 13, TOP, foot)
    for number, ((name, points), end) in enumerate(zip(lines.items(), ends, strict=True), start=1):
        _series(drawing, points, (across, up))
        drawing.line(across.at(points[-1][0]) + 4, up.at(points[-1][1]), RIGHT - 14, end - 4, "link")
        drawing.text(RIGHT - 11, end, str(number), "strong")
        drawing.text(LEFT, foot + (2.4 + number) * LINE, f"{number}  {shortened(name, WIDE)}")
    told = f"dots: k = {', '.join(dict.fromkeys(part.cutoff for _, _, part in every))}; bars: 95% intervals of the mean"
    drawing.text(LEFT, foot + (3.5 + len(lines)) * LINE, told, "soft")
    return drawing.svg()


def _series(drawing: Drawing, points: Sequence[Point], scales: tuple[Scale, Scale]) -> None:
    across, up = scales
    drawing.path([(across.at(x), up.at(y)) for x, y, _ in points], "series")
    for x, y, part in points:
        if ends := _ends(part, "recall"):
            drawing.line(across.at(x), up.at(ends[0]), across.at(x), up.at(ends[-1]), "doubt")
        drawing.dot(across.at(x), up.at(y), "front", f"{part.system}, k {part.cutoff}", 3.5)


def _points(report: ChunkReport, name: str) -> list[Point]:
    """What a system reads and finds at each cutoff, the least first."""
    found = [
        (part.retrieved_length, mean, part)
        for part in report.systems
        if part.system == name and (mean := part.scores["recall"].mean) is not None and part.retrieved_length > 0
    ]
    return sorted(found, key=lambda point: point[:2])


def _iou(report: ChunkReport) -> str | None:
    """The systems at the first cutoff that is a number; grey those that cannot be told from the baseline."""
    cutoffs = list(dict.fromkeys(part.cutoff for part in report.systems))
    cutoff = next((each for each in cutoffs if each != MIN), cutoffs[0])
    alike = {
        part.system
        for part in report.comparisons
        if (part.cutoff, part.measure) == (cutoff, "iou") and part.verdict not in APART
    }
    rows = [
        ForestRow(part.system, mean, part.scores["iou"].low, part.scores["iou"].high, part.system not in alike)
        for part in report.systems
        if part.cutoff == cutoff and (mean := part.scores["iou"].mean) is not None
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: -row.value)
    grey = f"; grey: cannot be told from {shortened(report.baseline, 24)}" if report.baseline and alike else ""
    return forest(f"IoU at k = {cutoff}", rows[:ROWS], f"mean with 95% intervals{grey}", changes=False)


def _names(report: ChunkReport) -> list[str]:
    return list(dict.fromkeys(part.system for part in report.systems))


def _ends(part: SystemPart, measure: str) -> tuple[float, ...]:
    found = part.scores[measure]
    return () if found.low is None or found.high is None else (found.low, found.high)
