"""What DeepEval reads: goldens as one list of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from raggs.golden.base import GoldenSet
from raggs.golden.exporters.cases import Case, CaseExporter
from raggs.golden.exporters.files import write_list

GOLDENS = "goldens.json"


class DeepEvalExporter(CaseExporter):
    """DeepEval: a golden a question, for add_goldens_from_json_file.

    `goldens.json` holds `input`, `expected_output` where the question has an answer, the relevant passages as
    `context`, the documents that they stand in as `source_file` if they all stand in one, and as `additional_metadata`
    the question's id, theirs, their grades, and what else came with the question.
    """

    FORMAT: ClassVar[str] = "deepeval"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """See `CaseExporter.write_cases`."""
        return {GOLDENS: write_list(folder / GOLDENS, map(_golden, self.cases(golden)))}


def _golden(case: Case) -> dict[str, object]:
    sources = {passage.span.source if passage.span else None for passage in case.passages}
    return {
        "input": case.query.text,
        "expected_output": case.query.answer,
        "context": case.texts,
        "source_file": sources.pop() if len(sources) == 1 else None,
        "additional_metadata": {
            "qid": case.query.qid,
            "context_ids": case.ids,
            "context_grades": list(case.grades),
            **case.facts,
        },
    }
