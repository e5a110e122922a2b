"""What LangSmith takes: examples as JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from raggs.golden.base import GoldenSet
from raggs.golden.exporters.cases import Case, CaseExporter
from raggs.golden.exporters.files import write_objects

EXAMPLES = "examples.jsonl"


class LangSmithExporter(CaseExporter):
    """LangSmith: an example a question, for Client.create_examples.

    `examples.jsonl` holds `inputs` with the question, `outputs` with the answer, where there is one, and with the
    relevant passages and their ids, `metadata` with the question's id, their grades, and what else came with the
    question.
    """

    FORMAT: ClassVar[str] = "langsmith"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """See `CaseExporter.write_cases`."""
        return {EXAMPLES: write_objects(folder / EXAMPLES, map(_example, self.cases(golden)))}


def _example(case: Case) -> dict[str, object]:
    answer = {} if case.query.answer is None else {"answer": case.query.answer}
    return {
        "inputs": {"question": case.query.text},
        "outputs": {**answer, "contexts": case.texts, "context_ids": case.ids},
        "metadata": {"qid": case.query.qid, "context_grades": list(case.grades), **case.facts},
    }
