"""What Ragas reads: JSON lines of single-turn samples.

Samples of Ragas as JSON lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.base.jsonl import read_objects
from raggs.golden.base import GoldenSet
from raggs.golden.files import PACKED
from raggs.golden.formats.base import write_objects
from raggs.golden.formats.cases import Case, CaseExporter, CaseImporter, Entry, unpacked, without

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


TAKEN = ("user_input", "reference", "reference_contexts", "reference_context_ids", "qid", PACKED)


class RagasImporter(CaseImporter):
    """Ragas samples: a file of JSON lines, or a folder with ragas.jsonl.

    `reference_contexts` are the passages that count, `reference_context_ids` their ids.
    """

    FORMAT = "ragas"
    FILE: ClassVar[str] = "ragas.jsonl"

    def entries(self, path: Path) -> Iterator[tuple[int, Entry]]:
        """See `CaseImporter.entries`."""
        for number, row in read_objects(path):
            yield (
                number,
                Entry(
                    row.get("user_input"),
                    row.get("qid"),
                    row.get("reference"),
                    row.get("reference_contexts"),
                    row.get("reference_context_ids"),
                    {**unpacked(row.get(PACKED)), **without(row, *TAKEN)},
                ),
            )
