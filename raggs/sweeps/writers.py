"""A sweep's report as files: sweep.json for programs, sweep.csv for spreadsheets, sweep.md and plots for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from raggs.base.jsontypes import Number
from raggs.base.text import spreadsheet_cell
from raggs.evaluation.models import ScorePart
from raggs.evaluation.words import GLOSSARY
from raggs.evaluation.writers import markdown
from raggs.sweeps.layout import lay_out
from raggs.sweeps.models import SweepReport, SystemRow
from raggs.sweeps.plots import plots

UNKNOWN = ScorePart(mean=None, low=None, high=None, valid=0)


def report_files(report: SweepReport) -> dict[str, str]:
    """By file name, its text."""
    drawn = plots(report)
    shown = "".join(f"\n![{words}]({name})\n" for name, (words, _) in drawn.items())
    return {
        "sweep.json": report.model_dump_json(indent=2) + "\n",
        "sweep.csv": table_csv(report),
        "sweep.md": _page(report, shown),
        **{name: svg for name, (_, svg) in drawn.items()},
    }


def _page(report: SweepReport, plots: str) -> str:
    """Return sweep.md, which an audit derives again."""
    parts = [markdown(lay_out(report, full=True), glossary=False)]
    parts += [f"\n## Plots\n{plots}"] if plots else []
    return "".join([*parts, f"\n{GLOSSARY}, or docs/glossary.md\n"])


def table_csv(report: SweepReport) -> str:
    """A row for each system: its levels, scores with intervals, waiting, money and memory; empty is "not known"."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head, *rows = table_rows(report)
    writer.writerow(head)
    for row in rows:
        writer.writerow(["" if each is None else _cell(each) for each in row])
    return text.getvalue()


def table_rows(report: SweepReport) -> Iterator[list[str | bool | Number]]:
    """The titles, then a row for each system; None is "not known"."""
    axes = sorted({axis for row in report.systems for axis in row.levels})
    yield ["system", *axes, "on_front", *(title for title, _ in _figures(report, report.systems[0]))]
    for row in report.systems:
        figures = [value for _, value in _figures(report, row)]
        yield [row.name, *(row.levels.get(axis) for axis in axes), row.name in report.front, *figures]


def _cell(value: str | bool | float) -> str:
    if isinstance(value, str):
        return spreadsheet_cell(value)
    return str(int(value)) if isinstance(value, bool) else repr(value)


def _figures(report: SweepReport, row: SystemRow) -> Iterator[tuple[str, Number]]:
    """Titles and numbers of a row."""
    for measure in report.measures:
        score = row.scores.get(measure, UNKNOWN)
        yield from ((measure, score.mean), (f"{measure} low", score.low), (f"{measure} high", score.high))
    for cutoff in report.cutoffs:
        for name in report.ceilings:
            yield f"realised {name}@{cutoff}", row.realised.get(f"{name}@{cutoff}")
    for cutoff in report.cutoffs if report.cuts else ():
        yield f"unjudged characters@{cutoff}", row.unjudged_characters.get(str(cutoff))
    for step, spread in row.latency:
        yield f"{step} p50 ms", None if spread is None else spread.p50
        yield f"{step} p95 ms", None if spread is None else spread.p95
        yield f"{step} p95 low", None if spread is None else spread.low
        yield f"{step} p95 high", None if spread is None else spread.high
        yield f"{step} p95 of medians ms", None if spread is None else spread.p95_of_medians
    cost, memory = row.cost, row.memory
    for name in ("embed", "rerank", "generate", "total"):
        yield f"{name} usd_per_1k", None if cost is None else cost.usd()[name]
    yield "candidate tokens", None if cost is None else cost.candidate_tokens
    yield "candidate tokens sd", None if cost is None else cost.candidate_tokens_sd
    yield "context tokens", None if cost is None else cost.context_tokens
    yield "memory bytes", None if memory is None else memory.bytes
    yield "memory bytes at 1M", None if memory is None else memory.million
    yield "efficiency", row.efficiency
