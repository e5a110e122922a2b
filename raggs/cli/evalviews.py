"""An evaluation on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from raggs.cli.screen import open_console
from raggs.evaluation.models import Number, Report, SystemPart
from raggs.evaluation.writers import MARKS

INTERVAL_WIDTH = 24  # of a score with its interval

BOTTLENECKS = {
    "retrieval": "retrieve better: more of what is useful must enter its pool",
    "ordering": "order better: the pool holds what the top lacks",
    "none": "neither retrieval nor ordering loses much",
}


def show(report: Report, *, per_query: bool, files: Sequence[Path]) -> None:
    """Print the report; nothing is computed here."""
    screen = open_console()
    if per_query:
        _per_query(report)
    golden = report.golden
    screen.print(
        Text(
            f"{golden.source}: {golden.judgments:,} labels for {golden.queries:,} queries, grades {golden.lowest} to "
            f"{golden.highest}, relevant from {golden.relevant}"
        )
    )
    screen.print(_scores(report, screen.width))
    _legend(report, screen)
    for system in report.systems:
        _details(system, screen)
    if report.sensitivity:
        moved = sum(bool(point.swapped) for point in report.sensitivity)
        screen.print(
            Text(
                f"RA-nWG's parameters: the order of the systems changes at {moved} of {len(report.sensitivity)} points"
            )
        )
    for note in report.notes:
        screen.print(Text(f"note: {note}"), soft_wrap=True)
    for file in files:
        typer.echo(str(file))


def _scores(report: Report, width: int) -> Table:
    """A row for each measure, a column for each system; intervals where there is room for them."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column("measure", no_wrap=True)
    for system in report.systems:
        made.add_column(system.name, no_wrap=True)
    partial = any(score.valid < report.golden.queries for system in report.systems for score in system.scores.values())
    if partial:
        made.add_column("valid queries", justify="right")
    roomy = 20 + len(report.systems) * INTERVAL_WIDTH <= width
    for measure in report.measures:
        cells = [_cell(report, system, measure, roomy) for system in report.systems]
        valid = sorted({system.scores[measure].valid for system in report.systems})
        made.add_row(measure, *cells, *(["-".join(map(str, valid))] if partial else []))
    return made


def _cell(report: Report, system: SystemPart, measure: str, roomy: bool) -> Text:
    score = system.scores[measure]
    best = len(report.systems) > 1 and score.mean is not None and score.mean == _best(report, measure)
    text = Text("–" if score.mean is None else f"{score.mean:.4f}", style="bold" if best else "")
    text.append(_mark(report, system, measure) or " ")
    if roomy:
        text.append(_range(score.low, score.high))
    if score.lowest is not None:
        text.append(_range(score.lowest, score.highest, "{}"))
    return text


def _best(report: Report, measure: str) -> Number:
    means = [mean for system in report.systems if (mean := system.scores[measure].mean) is not None]
    return (max if report.higher_is_better[measure] else min)(means, default=None)


def _mark(report: Report, system: SystemPart, measure: str) -> str:
    for part in report.comparisons:
        if (part.system, part.measure) == (system.name, measure):
            return MARKS[part.verdict]
    return ""


def _range(low: Number, high: Number, brackets: str = "[]") -> Text:
    if low is None or high is None:
        return Text("")
    return Text(f" {brackets[0]}{low:.3f} {high:.3f}{brackets[1]}", style="dim")


def _legend(report: Report, screen: Console) -> None:
    over = "queries and labels" if report.label_uncertainty else "queries"
    text = f"[ ] {report.confidence:.0%} interval over {over}"
    if report.comparisons:
        text += f"; against {report.comparisons[0].baseline}: ▲ better, ▼ worse, = no difference that matters, ? open"
    if any(score.lowest is not None for system in report.systems for score in system.scores.values()):
        text += "; { } with every unjudged passage at the lowest and the highest grade"
    screen.print(Text(text, style="dim"))


def _details(system: SystemPart, screen: Console) -> None:
    for part in system.bottleneck[:1]:
        if part.retrieval is None or part.ordering is None:
            continue
        screen.print(
            Text(
                f"{system.name}: {part.measure} {part.actual:.4f} of a ceiling of {part.ceiling:.4f} with its top "
                f"{part.pool}; better retrieval could give {part.retrieval:.4f}, a perfect order {part.ordering:.4f} "
                f"— {BOTTLENECKS[part.kind]}"
            ),
            soft_wrap=True,
        )
    for robust in system.robustness:
        shares = "  ".join(f"{delta}:{share:.0%}" for delta, share in robust.shares.items())
        said = f"mean {robust.mean:.4f}, none at all {robust.zero:.0%}; at least {shares}"
        screen.print(Text(f"{system.name}: {robust.measure} {said}"))
    if (answers := system.answers) is not None and answers.accuracy is not None:
        screen.print(
            Text(
                f"{system.name}: Acc|{answers.measure} {answers.accuracy:.4f} [{answers.low:.3f}, {answers.high:.3f}], "
                f"{answers.correct} of {answers.hits} queries with all evidence"
            )
        )


def _per_query(report: Report) -> None:
    typer.echo("\t".join(["system", "qid", *report.measures]))
    for name, by_measure in report.per_query.items():
        for qid in sorted({qid for values in by_measure.values() for qid in values}):
            cells = (by_measure[measure].get(qid) for measure in report.measures)
            typer.echo("\t".join([name, qid, *("" if cell is None else f"{cell:.4f}" for cell in cells)]))
