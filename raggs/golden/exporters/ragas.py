"""What Ragas reads: JSON lines of single-turn samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from raggs.golden.base import GoldenSet
from raggs.golden.exporters.cases import Case, CaseExporter
from raggs.golden.exporters.files import write_objects
from raggs.golden.packed import PACKED

SAMPLES = "ragas.jsonl"


class RagasExporter(CaseExporter):
    """Ragas: a single-turn sample a question, for EvaluationDataset.from_jsonl.

    `ragas.jsonl` holds `user_input`, `reference` where the question has an answer, and the relevant passages as
    `reference_contexts` and `reference_context_ids`. Its columns `qid` and `raggs`, which Ragas passes over, hold the
    question's id and, as JSON, what else came with it.
    """

    FORMAT: ClassVar[str] = "ragas"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """See `CaseExporter.write_cases`."""
        return {SAMPLES: write_objects(folder / SAMPLES, map(_sample, self.cases(golden)))}


def _sample(case: Case) -> dict[str, object]:
    return {
        "user_input": case.query.text,
        "reference": case.query.answer,
        "reference_contexts": case.texts,
        "reference_context_ids": case.ids,
        "qid": case.query.qid,
        PACKED: json.dumps(case.facts, ensure_ascii=False) if case.facts else "",
    }
