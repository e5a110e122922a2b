"""Samples of Ragas as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.golden.packed import PACKED
from raggs.importers.cases import CaseImporter, Entry, without
from raggs.jsonl import decode_json, read_objects
from raggs.jsontypes import as_object, as_text

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
                    {**_unpacked(row.get(PACKED)), **without(row, *TAKEN)},
                ),
            )


def _unpacked(found: object) -> dict[str, object]:
    try:
        return dict(as_object(decode_json(as_text(found) or "{}")))
    except ValueError:
        return {}
