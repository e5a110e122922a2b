"""Compare: two runs' configurations, setting by setting, and what each cost. Only their own directories are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raggs.app.difflayout import settings_section, written
from raggs.base.errors import UsageError
from raggs.base.text import plural
from raggs.evaluation.diffs.models import SettingPart
from raggs.evaluation.diffs.runs import RunsReport, SpentPart, StagePart, runs_report
from raggs.evaluation.document import UNDEFINED, Cell, Document, Row, Section, Table
from raggs.runs.manifests.costs import costs
from raggs.runs.manifests.opened import open_run

MOST = 6  # reasons of a stage in a sentence; all of them are in the JSON


def compare_runs(first: Path, second: Path) -> RunsReport:
    """Compare two runs.

    Raises:
        UsageError: both are the same, or of other pipelines.
        NotFoundError: there is no such run.
        DataError: a manifest or a ledger is damaged.
    """
    if first.exists() and first.resolve() == second.resolve():
        raise UsageError(f"{first} and {second} are one and the same", remedy="raggs compare RUN_A RUN_B")
    one, two = open_run(first), open_run(second)
    if one.manifest.pipeline != two.manifest.pipeline:
        said = f"{first} is a run of {one.manifest.pipeline}, {second} one of {two.manifest.pipeline}"
        raise UsageError(said, remedy="compare runs of one pipeline")
    spent = (costs(one.store), costs(two.store))
    return runs_report((str(first), str(second)), (one.manifest, two.manifest), spent)


def lay_out_runs(report: RunsReport) -> Document:
    """The document of a comparison of runs; nothing is computed here."""
    sections = (
        Section("Stages", table=_stages(report)),
        Section("Why", tuple(_why(report))),
        settings_section("What else results were made from", report.made, ("A", "B")),
    )
    held = tuple(section for section in sections if section.sentences or section.table)
    return Document("Two runs: A and B", _settings(report), held, ())


def _settings(report: RunsReport) -> Section:
    counting = sum(part.counts for part in report.settings)
    differ = plural(len(report.settings), "setting")
    said = (
        f"A: {report.first}, {_money(report.total[0])}",
        f"B: {report.second}, {_money(report.total[1])}",
        f"{differ} of which {counting} can change results" if report.settings else "no setting differs",
    )
    rows = tuple(_setting(part) for part in sorted(report.settings, key=lambda part: not part.counts))
    head = ("setting", "A", "B", "can change results")
    return Section("Settings", said, Table(head, rows) if rows else None)


def _setting(part: SettingPart) -> Row:
    old = UNDEFINED if part.change == "added" else written(part.old)
    new = UNDEFINED if part.change == "removed" else written(part.new)
    return Cell(part.name), Cell(old), Cell(new), Cell("yes" if getattr(part, "counts", False) else "no")


def _stages(report: RunsReport) -> Table:
    head = ("stage", "result", "calls, A", "calls, B", "USD, A", "USD, B")
    return Table(head, tuple(_stage(part) for part in report.stages))


def _stage(part: StagePart) -> Row:
    sides = (part.first, part.second)
    calls, usd = (Cell(f"{side.calls:,}") for side in sides), (Cell(f"{side.usd:.4f}") for side in sides)
    return (Cell(part.stage), Cell(part.result), *calls, *usd)


def _why(report: RunsReport) -> Iterator[str]:
    """As `raggs why` says it: of each stage whose result differs, what it was made from that does."""
    for part in report.stages:
        if part.result == "other":
            more = f"; and {len(part.reasons) - MOST} more" if len(part.reasons) > MOST else ""
            yield f"{part.stage}: {'; '.join(part.reasons[:MOST]) or 'made from the same, and yet other bytes'}{more}"


def _money(spent: SpentPart) -> str:
    return f"{plural(spent.calls, 'call')}, {spent.usd:.4f} USD"
