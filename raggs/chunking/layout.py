"""Report of a comparison of chunkers: tables, plots, and files.

The sections contain scores, chunks, differences from the baseline, and scores by document. The plots (SVG) show recall
by the length of the retrieved text, and IoU with intervals. A plot without data is omitted. The files are chunks.json
for programs, chunks.csv for spreadsheets, chunks.md and the plots. Everything is derived from the `ChunkReport`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from raggs.base.document import (
    Cell,
    Column,
    Legend,
    ReportDocument,
    Section,
    Summary,
    Table,
    csv_text,
    markdown,
    table_of,
    terms_of,
)
from raggs.base.files import write_texts
from raggs.base.text import plural, shorten
from raggs.chunking.models import TITLES, ChunkComparisonPart, ChunkReport, ChunkSystemPart, points
from raggs.evaluation.messages import verdict_word
from raggs.evaluation.svg import POSITIVE, SHARE, ChartAxis, Curve, ForestRow, chart, forest
from raggs.metrics.spans import MEASURES, MIN
from raggs.stats.comparison import Comparison, compare_many
from raggs.stats.intervals import Interval

SHOWN_MEASURES = ("recall", "precision", "precision_omega", "iou")  # measures in the default table of scores
COMPARED_MEASURES = ("recall", "precision", "iou")  # measures in the default comparison with the baseline


def lay_out(report: ChunkReport, *, full: bool = False) -> ReportDocument:
    """Return the report document. With `full`, it contains all measures."""
    sections = (_chunkers(report), _baseline_section(report, full), _by_corpus(report))
    return ReportDocument("Chunkers compared", _scores(report, full), tuple(filter(None, sections)), report.notes)


DECIDING = "iou"  # measure of the headline: it is low both if chunks are too short and if they are too long
TEST = "randomisation"
MAX_SUMMARY_ROWS = 10  # maximum number of systems in the default output
MAX_NAMED = 2  # number of tied systems that the headline names if more than three are tied
MAX_NOTE = 160  # maximum characters of the note in the default output


def best_system(report: ChunkReport) -> ChunkSystemPart | None:
    """Return the system with the highest mean IoU at the first numeric cutoff, or at the first cutoff if none is
    numeric. Return None if IoU is undefined for all questions.
    """
    return next(iter(_by_iou(report)), None)


def _by_iou(report: ChunkReport) -> list[ChunkSystemPart]:
    """Return the systems with an IoU at the cutoff of `_main_cutoff`, sorted by mean IoU, the highest first."""
    cutoff = _main_cutoff(report)
    scored = [part for part in report.systems if part.cutoff == cutoff and part.scores[DECIDING].mean is not None]
    return sorted(scored, key=lambda part: -(part.scores[DECIDING].mean or 0.0))


def summarise_chunks(report: ChunkReport, folder: Path, command: str = "") -> Summary:
    """Return the default output of `raggs chunks eval`: the best chunker, and how much the others differ from it.

    Args:
        report: the comparison.
        folder: folder of the report's files.
        command: command to suggest next; empty if there is none.
    """
    ranked = _by_iou(report)
    details = f"details: {folder / 'chunks.md'} (all measures and cutoffs), or --details"
    if not ranked:
        return Summary(("No chunker is best: no question has a value for IoU.",), details=details)
    differences = _differences(ranked, report.seed)
    rows = [
        (
            part.system,
            _percent(part.scores[DECIDING].mean),
            _in_points(differences[part.system].difference) if part.system in differences else "",
            verdict_word(differences[part.system].verdict) if part.system in differences else "best",
            _percent(part.scores["recall"].mean),
            _percent(part.scores["precision"].mean),
        )
        for part in ranked[:MAX_SUMMARY_ROWS]
    ]
    left = len(ranked) - len(rows)
    legend = "Scores in %; difference: IoU minus the best IoU, in points, with 95% interval"
    embedders = ", ".join(dict.fromkeys(part.embedder for part in report.systems))
    basis = (
        f"{plural(len(report.questions), 'question')} on {plural(len(report.documents), 'document')}, "
        f"embedder {embedders}, by {report.unit}."
    )
    return Summary(
        (_headline(ranked, differences),),
        Table.of(("chunker", "IoU", "difference", "verdict", "recall", "precision"), rows),
        legend + (f"; {left:,} more systems with --details" if left else ""),
        (shorten(basis, MAX_NOTE), *(f"note: {shorten(note, MAX_NOTE)}" for note in report.notes[:1])),
        command,
        details,
    )


def _differences(ranked: Sequence[ChunkSystemPart], seed: int) -> dict[str, Comparison]:
    """Return the comparison of each system with the best system, by IoU."""
    values = {
        part.system: np.array([np.nan if each is None else each for each in part.per_question[DECIDING]])
        for part in ranked
    }
    best = values.pop(ranked[0].system)
    return compare_many(best, values, seed=seed, tests=[TEST], plan=False) if values else {}


def _in_points(found: Interval) -> str:
    return f"{100 * found.mean:+z.1f} [{100 * found.low:z.1f}, {100 * found.high:z.1f}]"


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.1f}"


def _headline(ranked: Sequence[ChunkSystemPart], differences: Mapping[str, Comparison]) -> str:
    """Return the headline: the best system, or those that are statistically tied with it."""
    first, score = ranked[0].system, ranked[0].scores[DECIDING]
    where = f"IoU at k = {ranked[0].cutoff}"
    if not differences:
        interval = (
            "" if score.low is None or score.high is None else f" [{100 * score.low:.1f}, {100 * score.high:.1f}]"
        )
        return f"{first}: {where} is {_percent(score.mean)}%{interval}; no other chunker to compare with."
    worse = [part.system for part in ranked[1:] if differences[part.system].verdict == "worse"]
    tied = [first, *(part.system for part in ranked[1:] if part.system not in worse)]
    if len(tied) == 1:
        return f"{first} is best on {where} ({_percent(score.mean)}%); {_next_worse(worse, differences)}."
    if len(tied) > MAX_NAMED + 1:
        names = f"{', '.join(tied[:MAX_NAMED])} and {len(tied) - MAX_NAMED} others"
    else:
        names = f"{', '.join(tied[:-1])} and {tied[-1]}"
    rest = f"; {_next_worse(worse, differences)}" if worse else ""
    return f"{names} are statistically tied on {where}{rest}."


def _next_worse(worse: Sequence[str], differences: Mapping[str, Comparison]) -> str:
    found = differences[worse[0]].difference
    interval = f"[{-100 * found.high:z.1f}, {-100 * found.low:z.1f}]"
    return f"{worse[0]} is worse by {-100 * found.mean:.1f} points {interval}"


def _main_cutoff(report: ChunkReport) -> str:
    """Return the first numeric cutoff; if no cutoff is numeric, the first cutoff."""
    cutoffs = list(dict.fromkeys(part.cutoff for part in report.systems))
    return next((each for each in cutoffs if each != MIN), cutoffs[0])


def _scores(report: ChunkReport, full: bool) -> Section:
    measures = MEASURES if full else SHOWN_MEASURES
    best = {
        (part.cutoff, measure): max(
            (row.scores[measure].mean or 0.0) for row in report.systems if row.cutoff == part.cutoff
        )
        for part in report.systems
        for measure in measures
    }
    rows = sorted(report.systems, key=lambda part: _place(report, part.cutoff))
    table = table_of(
        rows, "system", "cutoff", *((Column(TITLES[name]), partial(_score, name, best)) for name in measures)
    )
    embedders = ", ".join(dict.fromkeys(part.embedder for part in report.systems))
    how = ", computed as in the code of Chroma's report" if report.compat else ""
    sentence = (
        f"{plural(len(report.questions), 'question')} on {plural(len(report.documents), 'document')}, searched "
        f"together with {embedders}; scores in %, by {report.unit}{how}"
    )
    legend = (
        *terms_of(rows, "cutoff"),
        Legend("recall", "share of the reference excerpts that was retrieved"),
        Legend("precision", "share of the retrieved text that is in a reference excerpt"),
        Legend("IoU", "intersection over union of retrieved text and reference excerpts"),
        Legend("±", "standard deviation over the questions"),
        Legend("precision_Ω", "precision if exactly the chunks that overlap an excerpt were retrieved"),
    )
    return Section("Scores", (sentence,), table, legend)


def _place(report: ChunkReport, cutoff: str) -> int:
    """Return the index of a cutoff in the report; sorting by it groups the rows of each cutoff."""
    return list(dict.fromkeys(part.cutoff for part in report.systems)).index(cutoff)


def _score(measure: str, best: Mapping[tuple[str, str], float], part: ChunkSystemPart) -> Cell:
    found = part.scores[measure]
    return Cell(found.plus_minus, best=found.mean == best[part.cutoff, measure])


def _chunkers(report: ChunkReport) -> Section:
    sentences = tuple(
        f"{part.chunker}: {plural(part.chunks, 'chunk')}, {part.mean_length:,.0f} {report.unit} on average, created in "
        f"{part.seconds:,.2f} s"
        for part in report.chunkers
    )
    shown = ("chunker", "chunks", "mean_length", "median_length", "longest", "seconds", "speed")
    return Section("Chunks", sentences, table_of(report.chunkers, *shown, unit=report.unit))


def _baseline_section(report: ChunkReport, full: bool) -> Section | None:
    if not report.comparisons:
        return None
    shown = [part for part in report.comparisons if full or part.measure in COMPARED_MEASURES]
    table = table_of(shown, "system", "cutoff", "measure", "difference", "p", "turns", "verdict")
    legend = (
        Legend("[ ]", "95% interval of the difference; 0.01 is one point"),
        Legend("p", "p value of a randomisation test, with Holm's correction"),
    )
    return Section(f"Compared with {report.baseline}", tuple(_sentences(report)), table, legend)


def _sentences(report: ChunkReport) -> Iterator[str]:
    grouped: dict[tuple[str, str], list[ChunkComparisonPart]] = {}
    for part in report.comparisons:
        if part.measure not in COMPARED_MEASURES:
            continue
        grouped.setdefault((part.system, part.cutoff), []).append(part)
    if any(part.verdict == "inconclusive" for parts in grouped.values() for part in parts):
        yield "better and worse are significant at 95%; inconclusive: too few questions to decide"
    for (system, cutoff), parts in grouped.items():
        told = ", ".join(
            f"{TITLES[part.measure]} {points(part.difference)} ({verdict_word(part.verdict)})" for part in parts
        )
        yield f"{system} compared with {report.baseline}, k = {cutoff}, in points: {told}"


def _by_corpus(report: ChunkReport) -> Section | None:
    """Return the section with scores by document; None if all questions are about one document.

    The section has no sentence, so it appears only in the files and not on the screen.
    """
    if len(set(report.corpora)) < 2:
        return None
    rows = (
        (part.system, part.cutoff, corpus, *(scores[measure].plus_minus for measure in MEASURES))
        for part in report.systems
        for corpus, scores in part.by_corpus.items()
    )
    return Section(
        "By document", table=Table.of(("chunker", "k", "document", *(TITLES[name] for name in MEASURES)), rows)
    )


SERIES = 12  # maximum number of systems in a plot
MAX_ROWS = 24
SIGNIFICANT_VERDICTS = ("better", "worse")  # verdicts with a significant difference

Point = tuple[float, float, ChunkSystemPart]


def plots(report: ChunkReport) -> dict[str, tuple[str, str]]:
    """Return the description and the SVG of each plot, by file name."""
    found = {
        "recall-over-length.svg": (f"recall by retrieved {report.unit}", _recall(report)),
        "iou.svg": ("IoU of each chunker", _iou(report)),
    }
    return {name: (words, svg) for name, (words, svg) in found.items() if svg is not None}


def _recall(report: ChunkReport) -> str | None:
    """Return the plot of recall: one line per system through its cutoffs, with the interval of the mean at each
    cutoff.
    """
    lines = {name: points for name in _system_names(report)[:SERIES] if (points := _plots_points(report, name))}
    if not lines:
        return None
    drawn = [
        Curve((name,), tuple((x, y) for x, y, _ in points), tuple(_interval(part, "recall") for _, _, part in points))
        for name, points in lines.items()
    ]
    cutoffs = dict.fromkeys(part.cutoff for points in lines.values() for _, _, part in points)
    return chart(
        "How much text must be retrieved for a given recall?",
        (ChartAxis(f"mean {report.unit} retrieved per query", POSITIVE, log=True), ChartAxis("recall", SHARE)),
        lines=drawn,
        notes=(f"markers: k = {', '.join(cutoffs)}; bars: 95% intervals of the mean",),
    )


def _plots_points(report: ChunkReport, name: str) -> list[Point]:
    """Return retrieved length and recall of a system at each cutoff, sorted by length."""
    found = [
        (part.retrieved_length, mean, part)
        for part in report.systems
        if part.system == name and (mean := part.scores["recall"].mean) is not None and part.retrieved_length > 0
    ]
    return sorted(found, key=lambda point: point[:2])


def _iou(report: ChunkReport) -> str | None:
    """Return the plot of IoU at the cutoff of `_main_cutoff`.

    Systems without a significant difference from the baseline are grey.
    """
    cutoff = _main_cutoff(report)
    alike = {
        part.system
        for part in report.comparisons
        if (part.cutoff, part.measure) == (cutoff, "iou") and part.verdict not in SIGNIFICANT_VERDICTS
    }
    rows = [
        ForestRow(part.system, mean, part.scores["iou"].low, part.scores["iou"].high, part.system not in alike)
        for part in report.systems
        if part.cutoff == cutoff and (mean := part.scores["iou"].mean) is not None
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: -(row.value or 0.0))
    key = {"bar": "significantly different", "unclear": f"not significantly different from {report.baseline}"}
    return forest(
        f"Which chunks match the evidence best? IoU at k = {cutoff}",
        rows[:MAX_ROWS],
        "mean IoU with 95% interval",
        changes=False,
        within=SHARE,
        key=key,
    )


def _system_names(report: ChunkReport) -> list[str]:
    return list(dict.fromkeys(part.system for part in report.systems))


def _interval(part: ChunkSystemPart, measure: str) -> tuple[float, float] | None:
    found = part.scores[measure]
    return None if found.low is None or found.high is None else (found.low, found.high)


def write_files(report: ChunkReport, folder: Path) -> list[Path]:
    """Write each file atomically into `folder`, which is created if it does not exist. Return the paths of the files.

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
    """Return CSV with one row per system, cutoff and question, and one column per measure. An empty cell is
    undefined.
    """
    rows = (
        (part.system, part.cutoff, *row)
        for part in report.systems
        for row in zip(
            report.questions, report.corpora, *(part.per_question[measure] for measure in MEASURES), strict=True
        )
    )
    return csv_text(("system", "k", "qid", "document", *MEASURES), rows)
