"""A report as files: eval.json for programs, eval.csv for spreadsheets, eval.md for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from raggs.atomic import disk, write_atomic
from raggs.evaluation.models import ComparisonPart, Number, Report, SystemPart, TiePart

MARKS = {"win": "▲", "loss": "▼", "tie": "=", "unresolvable": "?"}


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write all files into `folder`, made if missing; each appears whole or not at all.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {
        "eval.json": report.model_dump_json(indent=2) + "\n",
        "eval.csv": per_query_csv(report),
        "eval.md": markdown(report),
    }
    with disk(folder, "choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_atomic(folder / name, text.encode())
    return [folder / name for name in texts]


def per_query_csv(report: Report) -> str:
    """A row for each system and query, a column for each measure; an empty cell is "not defined"."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["system", "qid", *report.measures])
    for system, by_measure in report.per_query.items():
        for qid in sorted({qid for values in by_measure.values() for qid in values}):
            cells = (by_measure[measure].get(qid) for measure in report.measures)
            writer.writerow([system, qid, *("" if cell is None else repr(cell) for cell in cells)])
    return text.getvalue()


def markdown(report: Report) -> str:
    """The report for people."""
    golden = report.golden
    lines = [
        "# Evaluation",
        "",
        f"Judgments: {golden.source}, {golden.judgments:,} labels for {golden.queries:,} queries, grades "
        f"{golden.lowest} to {golden.highest}, relevant from {golden.relevant}. Intervals: {report.confidence:.0%}, "
        + ("bootstrap over queries and labels." if report.label_uncertainty else "bootstrap over queries."),
        "",
        *_table(["system", *report.measures], [_score_row(report, system) for system in report.systems]),
    ]
    if report.comparisons:
        baseline = report.comparisons[0].baseline
        head = ["system", "measure", "difference", "interval", "p (Holm)", "effect", "w/t/l", "verdict"]
        lines += ["", f"## Against {baseline}", "", *_table(head, map(_comparison_row, report.comparisons))]
    if any(system.bottleneck for system in report.systems):
        head = ["system", "measure", "actual", "ceiling", "retrieval could give", "ordering could give", "bottleneck"]
        rows = [
            [
                system.name, part.measure, _cell(part.actual), _cell(part.ceiling), _cell(part.retrieval),
                _cell(part.ordering), part.kind,
            ]
            for system in report.systems
            for part in system.bottleneck
        ]  # fmt: skip
        pool = report.systems[0].bottleneck[0].pool
        lines += ["", f"## Where they lose (pool of {pool})", "", *_table(head, rows)]
    if any(system.ties for system in report.systems):
        head = ["system", "measure", "expected", "least", "most", "range", "bias", "queries"]
        lines += ["", "## Ties", "", *_table(head, map(_tie_row, _with_ties(report)))]
    if any(system.robustness for system in report.systems):
        lines += ["", "## Robustness", "", *_robustness(report.systems)]
    if report.sensitivity:
        moved = [point for point in report.sensitivity if point.swapped]
        said = [
            f"- alpha {point.alpha:g}, cap4 {point.cap4:g}, cap3 {point.cap3:g}: {' > '.join(point.order)}"
            for point in moved
        ]
        head_line = f"The order of the systems changes at {len(moved)} of {len(report.sensitivity)} points of the grid."
        lines += ["", "## Sensitivity of RA-nWG", "", head_line, *([""] if said else []), *said]
    if report.notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in report.notes)]
    return "\n".join(lines) + "\n"


def _score_row(report: Report, system: SystemPart) -> list[str]:
    cells = [system.name]
    for measure in report.measures:
        score = system.scores[measure]
        text = _cell(score.mean)
        if score.low is not None and score.high is not None:
            text += f" [{score.low:.3f}, {score.high:.3f}]"
        if score.valid < report.golden.queries:
            text += f" ({score.valid} of {report.golden.queries})"
        if score.lowest is not None and score.highest is not None:
            text += f" {{{score.lowest:.3f}, {score.highest:.3f}}}"
        cells.append(text)
    return cells


def _with_ties(report: Report) -> list[tuple[str, TiePart]]:
    return [(system.name, part) for system in report.systems for part in system.ties]


def _tie_row(named: tuple[str, TiePart]) -> list[str]:
    name, part = named
    width = None if part.most is None or part.least is None else part.most - part.least
    cells = [_cell(value) for value in (part.expected, part.least, part.most, width)]
    return [name, part.measure, *cells, _cell(part.bias, signed=True), str(part.queries)]


def _comparison_row(part: ComparisonPart) -> list[str]:
    needed = (
        f", {part.queries_needed} queries would tell" if part.verdict == "unresolvable" and part.queries_needed else ""
    )
    return [
        part.system,
        part.measure,
        _cell(part.difference, signed=True),
        f"[{_cell(part.low, signed=True)}, {_cell(part.high, signed=True)}]",
        _cell(part.corrected.get("randomisation")),
        _cell(part.effect, signed=True),
        f"{part.wins}/{part.ties}/{part.losses}",
        f"{MARKS[part.verdict]} {part.verdict}{needed}",
    ]


def _robustness(systems: Sequence[SystemPart]) -> Iterator[str]:
    parts = [(system.name, part) for system in systems for part in system.robustness]
    head = ["system", "recall", "mean", "zero", *(f">= {delta}" for delta in parts[0][1].shares), "worst 5 %"]
    rows = [
        [
            name,
            part.measure,
            _cell(part.mean),
            _cell(part.zero),
            *map(_cell, part.shares.values()),
            _cell(part.percentiles["5"]),
        ]
        for name, part in parts
    ]
    yield from _table(head, rows)


def _table(head: Sequence[str], rows: Iterator[list[str]] | list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _cell(value: Number, signed: bool = False) -> str:
    if value is None:
        return "–"
    return f"{value:+.4f}" if signed else f"{value:.4f}"
