"""From the comparison of chunkers to its document: scores, chunks, by corpus, against the baseline.

The plots of a comparison of chunkers, as SVG files: recall over what is read for it, and IoU with its intervals.

From the report alone. A plot without anything to show is left out.

A comparison of chunkers as files: chunks.json for programs, chunks.csv for spreadsheets, chunks.md and plots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from raggs.base.document import Cell, Legend, ReportDocument, Row, Section, Table, csv_text, interval, markdown
from raggs.base.files import write_texts
from raggs.base.text import plural
from raggs.base.types import Number
from raggs.chunking.models import ChunkComparisonPart, ChunkMeanPart, ChunkReport, ChunkSystemPart
from raggs.evaluation.svg import LINE, WIDTH, AxisScale, Drawing, ForestRow, forest, shortened, spread
from raggs.metrics.spans import MEASURES, MIN

TITLES = {"recall": "recall", "precision": "precision", "iou": "IoU", "f1": "F1", "precision_omega": "precision_Ω"}
SHOWN = ("recall", "precision", "precision_omega", "iou")  # on the screen
COMPARED = ("recall", "precision", "iou")  # the same of differences


def lay_out(report: ChunkReport, *, full: bool = False) -> ReportDocument:
    """The document; `full` with all measures."""
    sections = (_chunkers(report), _against(report, full), _by_corpus(report))
    return ReportDocument("Chunkers compared", _scores(report, full), tuple(filter(None, sections)), report.notes)


def _scores(report: ChunkReport, full: bool) -> Section:
    measures = MEASURES if full else SHOWN
    best = {
        (part.cutoff, measure): max(
            (row.scores[measure].mean or 0.0) for row in report.systems if row.cutoff == part.cutoff
        )
        for part in report.systems
        for measure in measures
    }
    rows = tuple(
        (
            Cell(part.system),
            Cell(part.cutoff),
            *(_score(part, measure, best[part.cutoff, measure]) for measure in measures),
        )
        for part in sorted(report.systems, key=lambda part: _place(report, part.cutoff))
    )
    embedders = ", ".join(dict.fromkeys(part.embedder for part in report.systems))
    how = ", as the report's code computes it" if report.compat else ""
    sentence = (
        f"{plural(len(report.questions), 'question')} on {plural(len(report.documents), 'document')}, which are "
        f"searched together by {embedders}; {report.unit} in %{how}"
    )
    legend = (
        Legend("k", "chunks retrieved; min: as many as hold something of an excerpt"),
        Legend("recall", "how much of what answers was retrieved"),
        Legend("precision", "how much of what was retrieved answers"),
        Legend("IoU", "what both share, of both together"),
        Legend("±", "standard deviation over the questions"),
        Legend(
            "precision_Ω", "precision if all chunks that hold something of an excerpt, and no others, were retrieved"
        ),
    )
    return Section("Scores", (sentence,), Table(("chunker", "k", *(TITLES[name] for name in measures)), rows), legend)


def _place(report: ChunkReport, cutoff: str) -> int:
    """Of a cutoff among those of the report: rows of one cutoff stand together."""
    return list(dict.fromkeys(part.cutoff for part in report.systems)).index(cutoff)


def _score(part: ChunkSystemPart, measure: str, best: float) -> Cell:
    found = part.scores[measure]
    return Cell(_plus_minus(found), best=found.mean == best)


def _plus_minus(found: ChunkMeanPart) -> str | None:
    return None if found.mean is None or found.sd is None else f"{found.mean:.1%} ± {found.sd:.1%}".replace("%", "")


def _chunkers(report: ChunkReport) -> Section:
    rows: tuple[Row, ...] = tuple(
        (
            Cell(part.chunker),
            Cell(f"{part.chunks:,}"),
            Cell(f"{part.mean_length:,.0f}"),
            Cell(f"{part.median_length:,.0f}"),
            Cell(f"{part.longest:,.0f}"),
            Cell(f"{part.seconds:,.2f}"),
            Cell(f"{part.megabytes / max(part.seconds, 1e-9):,.1f}"),
        )
        for part in report.chunkers
    )
    sentences = tuple(
        f"{part.chunker}: {plural(part.chunks, 'chunk')} of {part.mean_length:,.0f} {report.unit} in the mean, cut in "
        f"{part.seconds:,.2f} s"
        for part in report.chunkers
    )
    head = ("chunker", "chunks", f"mean {report.unit}", "median", "longest", "seconds", "MB/s")
    return Section("Chunks", sentences, Table(head, rows))


def _against(report: ChunkReport, full: bool) -> Section | None:
    if not report.comparisons:
        return None
    rows = tuple(
        (
            Cell(part.system),
            Cell(part.cutoff),
            Cell(TITLES[part.measure]),
            Cell(_points(part.difference), ranges=interval(part.low, part.high)),
            Cell(None if part.p is None else f"{part.p:.4f}"),
            Cell(f"{part.wins}/{part.ties}/{part.losses}"),
            Cell(part.verdict),
        )
        for part in report.comparisons
        if full or part.measure in COMPARED
    )
    head = ("system", "k", "measure", "difference in points", "p", "wins/ties/losses", "verdict")
    legend = (Legend("[ ]", "95% interval, as a share"), Legend("p", "of a randomisation test, corrected by Holm"))
    return Section(f"Against {report.baseline}", tuple(_sentences(report)), Table(head, rows), legend)


def _sentences(report: ChunkReport) -> Iterator[str]:
    grouped: dict[tuple[str, str], list[ChunkComparisonPart]] = {}
    for part in report.comparisons:
        if part.measure not in COMPARED:
            continue
        grouped.setdefault((part.system, part.cutoff), []).append(part)
    if any(part.verdict == "unresolvable" for parts in grouped.values() for part in parts):
        yield "win and loss are sure to 95%; unresolvable: so many questions cannot tell"
    for (system, cutoff), parts in grouped.items():
        told = ", ".join(f"{TITLES[part.measure]} {_points(part.difference)} ({part.verdict})" for part in parts)
        yield f"{system} against {report.baseline}, k {cutoff}, in points: {told}"


def _points(value: Number) -> str | None:
    return None if value is None else f"{100 * value:+z.1f}"


def _by_corpus(report: ChunkReport) -> Section | None:
    """Files alone have it: no sentence stands for it on the screen."""
    if len(set(report.corpora)) < 2:
        return None
    rows = tuple(
        (Cell(part.system), Cell(part.cutoff), Cell(corpus), *_means(scores))
        for part in report.systems
        for corpus, scores in part.by_corpus.items()
    )
    return Section("By document", (), Table(("chunker", "k", "document", *(TITLES[name] for name in MEASURES)), rows))


def _means(scores: Mapping[str, ChunkMeanPart]) -> Row:
    return tuple(Cell(_plus_minus(scores[measure])) for measure in MEASURES)


LEFT, RIGHT, TOP, HIGH = 66, WIDTH - 24, 66, 300  # of a plot
SERIES = 12  # systems in it
ROWS = 24
WIDE = 85  # letters of a line of text
APART = ("win", "loss")  # verdicts that tell a system from the baseline

Point = tuple[float, float, ChunkSystemPart]


def plots(report: ChunkReport) -> dict[str, tuple[str, str]]:
    """By file name, what a plot shows in words, and its SVG."""
    found = {
        "recall-over-length.svg": (f"recall over the {report.unit} that are retrieved for it", _recall(report)),
        "iou.svg": ("IoU of each chunker", _iou(report)),
    }
    return {name: (words, svg) for name, (words, svg) in found.items() if svg is not None}


def _recall(report: ChunkReport) -> str | None:
    """A line for each system through its cutoffs, each with the interval of its mean."""
    lines = {name: points for name in _names(report)[:SERIES] if (points := _plots_points(report, name))}
    if not lines:
        return None
    every = [point for points in lines.values() for point in points]
    heights = [value for _, y, part in every for value in (y, *_ends(part, "recall"))]
    foot = TOP + HIGH
    across, up = AxisScale.of([x for x, _, _ in every], LEFT, RIGHT - 26, log=True), AxisScale.of(heights, foot, TOP)
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


def _series(drawing: Drawing, points: Sequence[Point], scales: tuple[AxisScale, AxisScale]) -> None:
    across, up = scales
    drawing.path([(across.at(x), up.at(y)) for x, y, _ in points], "series")
    for x, y, part in points:
        if ends := _ends(part, "recall"):
            drawing.line(across.at(x), up.at(ends[0]), across.at(x), up.at(ends[-1]), "doubt")
        drawing.dot(across.at(x), up.at(y), "front", f"{part.system}, k {part.cutoff}", 3.5)


def _plots_points(report: ChunkReport, name: str) -> list[Point]:
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


def _ends(part: ChunkSystemPart, measure: str) -> tuple[float, ...]:
    found = part.scores[measure]
    return () if found.low is None or found.high is None else (found.low, found.high)


def write_files(report: ChunkReport, folder: Path) -> list[Path]:
    """Write all files into `folder`, made if missing; each appears whole or not at all.

    Raises:
        ProviderError: the folder cannot be written.
    """
    drawn = plots(report)
    shown = "".join(f"\n![{words}]({name})\n" for name, (words, _) in drawn.items())
    texts = {
        "chunks.json": report.model_dump_json(indent=2) + "\n",
        "chunks.csv": per_question_csv(report),
        "chunks.md": markdown(lay_out(report, full=True)) + (f"\n## Plots\n{shown}" if drawn else ""),
        **{name: svg for name, (_, svg) in drawn.items()},
    }
    return write_texts(folder, texts)


def per_question_csv(report: ChunkReport) -> str:
    """A row for each system, cutoff and question, a column for each measure; an empty cell is "not defined"."""
    rows = (
        (part.system, part.cutoff, *row)
        for part in report.systems
        for row in zip(
            report.questions, report.corpora, *(part.per_question[measure] for measure in MEASURES), strict=True
        )
    )
    return csv_text(("system", "k", "qid", "document", *MEASURES), rows)
