"""Examples of LangSmith as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.base.jsonl import read_objects
from raggs.base.jsontypes import as_object
from raggs.golden.importers.cases import CaseImporter, Entry, only_named, without

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
