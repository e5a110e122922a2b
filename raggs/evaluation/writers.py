"""A report as files: eval.json for programs, eval.csv for spreadsheets, eval.md for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from raggs.base.atomic import write_texts
from raggs.base.jsontypes import Number
from raggs.base.text import spreadsheet_cell
from raggs.evaluation.document import Cell, Document, Section, Table
from raggs.evaluation.layout import lay_out
from raggs.evaluation.models import Report
from raggs.evaluation.words import GLOSSARY

RESULT = "eval.json"


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write all files into `folder`, made if missing; each appears whole or not at all.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {
        RESULT: report_json(report) + "\n",
        "eval.csv": per_query_csv(report),
        "eval.md": markdown(lay_out(report)),
    }
    return write_texts(folder, texts)


def report_json(report: Report) -> str:
    """All that is known, as `raggs schema eval` describes it."""
    return report.model_dump_json(indent=2)


def per_query_head(report: Report) -> list[str]:
    """The titles of `per_query_rows`."""
    return ["system", "qid", *report.measures]


def per_query_rows(report: Report) -> Iterator[tuple[str, str, list[Number]]]:
    """System, query and a value for each measure, None where it is not defined; queries sorted."""
    for system, by_measure in report.per_query.items():
        for qid in sorted({qid for values in by_measure.values() for qid in values}):
            yield system, qid, [by_measure[measure].get(qid) for measure in report.measures]


def per_query_csv(report: Report) -> str:
    """A row for each system and query, a column for each measure; an empty cell is "not defined".

    No cell is one that a spreadsheet would run; `raggs.base.text.of_spreadsheet_cell` gives names back as they were.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(per_query_head(report))
    for system, qid, values in per_query_rows(report):
        names = map(spreadsheet_cell, (system, qid))
        writer.writerow([*names, *("" if value is None else repr(value) for value in values)])
    return text.getvalue()


def markdown(document: Document, *, glossary: bool = True) -> str:
    """The document for people and for pull requests.

    Args:
        glossary: whether its last line names the glossary; an audit derives some pages again, which must stay.
    """
    lines = [f"# {document.title}", ""]
    for warning in document.warnings:
        lines += [f"> **Warning:** {warning}", ""]
    lines += _section(document.scores)
    for section in document.sections:
        lines += ["", f"## {section.title}", "", *_section(section)]
    if document.notes:
        lines += ["", "## Notes", "", *_items(document.notes)]
    return "\n".join([*lines, *(["", f"{GLOSSARY}, or docs/glossary.md"] if glossary else [])]) + "\n"


def _section(section: Section) -> Iterator[str]:
    """Blocks with an empty line between them."""
    said = section.sentences
    blocks = [
        list(said) if len(said) == 1 else _items(said),
        [] if section.table is None else list(_table(section.table)),
        ["; ".join(each.line for each in section.legend)] if section.legend else [],
        [f"- `{term.sign}`: {term.text}" for term in section.terms],
    ]
    for number, block in enumerate(filter(None, blocks)):
        yield from ([""] if number else [])
        yield from block


def _items(sentences: Iterable[str]) -> list[str]:
    return [f"- {sentence}" for sentence in sentences]


def _table(table: Table) -> Iterator[str]:
    yield _line(table.head)
    yield "|" + "---|" * len(table.head)
    for row in table.rows:
        yield _line([_cell(cell) for cell in row])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    return " ".join([text + cell.mark, *(each.text for each in cell.ranges)])
