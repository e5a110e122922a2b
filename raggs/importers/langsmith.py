"""Examples of LangSmith as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.importers.cases import CaseImporter, Entry, first_named, without
from raggs.jsonl import read_objects
from raggs.jsontypes import as_object

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

    def entries(self, path: Path) -> Iterator[tuple[int, Entry]]:
        """See `CaseImporter.entries`."""
        for number, row in read_objects(path):
            asked, wanted, known = (as_object(row.get(name)) for name in ("inputs", "outputs", "metadata"))
            yield (
                number,
                Entry(
                    first_named(asked, QUESTION),
                    known.get("qid"),
                    first_named(wanted, ANSWER),
                    first_named(wanted, CONTEXTS),
                    first_named(wanted, IDS),
                    without(known, "qid", "context_grades"),
                ),
            )
