"""A comparison of chunkers as files: chunks.json for programs, chunks.csv for spreadsheets, chunks.md and plots."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from raggs.base.atomic import write_texts
from raggs.base.text import spreadsheet_cell
from raggs.chunking.layout import lay_out
from raggs.chunking.models import ChunkReport
from raggs.chunking.plots import plots
from raggs.evaluation.writers import markdown
from raggs.metrics.spans import MEASURES


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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["system", "k", "qid", "document", *MEASURES])
    for part in report.systems:
        columns = zip(*(part.per_question[measure] for measure in MEASURES), strict=True)
        for qid, corpus, values in zip(report.questions, report.corpora, columns, strict=True):
            names = map(spreadsheet_cell, (part.system, part.cutoff, qid, corpus))
            writer.writerow([*names, *("" if value is None else repr(value) for value in values)])
    return text.getvalue()
