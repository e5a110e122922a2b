"""From the comparison of chunkers to its document: scores, chunks, by corpus, against the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from raggs.base.jsontypes import Number
from raggs.base.text import plural
from raggs.chunking.models import ChunkReport, ComparisonPart, Mean, SystemPart
from raggs.evaluation.document import Cell, Document, Legend, Row, Section, Table, interval
from raggs.metrics.spans import MEASURES

TITLES = {"recall": "recall", "precision": "precision", "iou": "IoU", "f1": "F1", "precision_omega": "precision_Ω"}
SHOWN = ("recall", "precision", "precision_omega", "iou")  # on the screen
COMPARED = ("recall", "precision", "iou")  # the same of differences


def lay_out(report: ChunkReport, *, full: bool = False) -> Document:
    """The document; `full` with all measures."""
    sections = (_chunkers(report), _against(report, full), _by_corpus(report))
    return Document("Chunkers compared", _scores(report, full), tuple(filter(None, sections)), report.notes)


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


def _score(part: SystemPart, measure: str, best: float) -> Cell:
    found = part.scores[measure]
    return Cell(_plus_minus(found), best=found.mean == best)


def _plus_minus(found: Mean) -> str | None:
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
    grouped: dict[tuple[str, str], list[ComparisonPart]] = {}
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


def _means(scores: Mapping[str, Mean]) -> Row:
    return tuple(Cell(_plus_minus(scores[measure])) for measure in MEASURES)
