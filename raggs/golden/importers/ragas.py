"""Samples of Ragas as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.base.jsonl import read_objects
from raggs.golden.importers.cases import CaseImporter, Entry, unpacked, without
from raggs.golden.packed import PACKED

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
