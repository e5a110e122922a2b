"""What LangSmith takes: examples as JSON lines.

Examples of LangSmith as JSON lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.base.jsonl import read_objects
from raggs.base.types import as_object
from raggs.golden.base import GoldenSet
from raggs.golden.formats.base import write_objects
from raggs.golden.formats.cases import Case, CaseExporter, CaseImporter, Entry, only_named, without

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


QUESTION = ("question", "input", "query", "user_input")
ANSWER = ("answer", "output", "reference")
CONTEXTS = ("contexts", "reference_contexts", "context", "documents")
IDS = ("context_ids", "reference_context_ids")


class LangSmithImporter(CaseImporter):
    """LangSmith examples: a file of JSON lines, or a folder with examples.jsonl.

    The question stands in `inputs`, the answer and the passages that count in `outputs`, under usual names.
    """

    FORMAT = "langsmith"
    FILE: ClassVar[str] = "examples.jsonl"
    ROLES: ClassVar[tuple[str, ...]] = ("question", "answer", "passage", "doc_id")

    def entries(self, path: Path) -> Iterator[tuple[int, Entry]]:
        """See `CaseImporter.entries`; other inputs and outputs are facts."""
        for number, row in read_objects(path):
            asked, wanted, known = (as_object(row.get(name)) for name in ("inputs", "outputs", "metadata"))
            question, answer, contexts, ids = (
                only_named(found, role, names, self.columns, path, number)
                for found, role, names in (
                    (asked, "question", QUESTION),
                    (wanted, "answer", ANSWER),
                    (wanted, "passage", CONTEXTS),
                    (wanted, "doc_id", IDS),
                )
            )
            more = {
                "inputs": without(asked, question[0] or ""),
                "outputs": without(wanted, *(name or "" for name, _ in (answer, contexts, ids))),
            }
            facts = {
                **{name: found for name, found in more.items() if found},
                **without(known, "qid", "context_grades"),
            }
            yield number, Entry(question[1], known.get("qid"), answer[1], contexts[1], ids[1], facts)
