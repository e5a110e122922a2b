"""Questions and passages of AutoRAG, as parquet or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import ClassVar

from raggs.golden.packed import PACKED
from raggs.importers.cases import CaseImporter, Entry, unpacked, without
from raggs.importers.hf import rows_of
from raggs.importers.pieces import first_of
from raggs.jsontypes import as_list, as_object

ENDINGS = (".jsonl", ".parquet")
QUESTION = ("qid", "query", "retrieval_gt", "generation_gt", PACKED)


class AutoRagImporter(CaseImporter):
    """AutoRAG's qa and corpus in a folder: JSON lines, or parquet (which needs pyarrow).

    All passages of `retrieval_gt` count; that any of a group will do is not kept.
    """

    FORMAT = "autorag"
    FILE: ClassVar[str] = "qa.jsonl"
    ALSO: ClassVar[tuple[str, ...]] = ("qa.parquet",)

    def entries(self, path: Path) -> Iterator[tuple[int, Entry]]:
        """See `CaseImporter.entries`."""
        for number, row in enumerate(rows_of(path), start=1):
            answers = [each for each in _flat(row.get("generation_gt")) if isinstance(each, str)]
            yield (
                number,
                Entry(
                    row.get("query"),
                    row.get("qid"),
                    answers[0] if answers else None,
                    None,
                    list(_flat(row.get("retrieval_gt"))),
                    {**unpacked(row.get(PACKED)), **without(dict(row), *QUESTION)},
                ),
            )

    def passages(self, path: Path) -> Iterator[Mapping[str, object]]:
        """See `CaseImporter.passages`."""
        corpus = first_of(path.parent, *(f"corpus{ending}" for ending in ENDINGS))
        for row in rows_of(corpus) if corpus else ():
            known = as_object(row.get("metadata"))
            title, text = unpacked(known.get(PACKED)).get("title"), row.get("contents")
            if isinstance(title, str) and isinstance(text, str):
                text = text.removeprefix(f"{title}\n")
            doc_id = row.get("doc_id")
            packed = {PACKED: known[PACKED]} if isinstance(known.get(PACKED), str) else {}
            yield {"_id": str(doc_id), "title": title or "", "text": text, **packed}


def _flat(found: object) -> Iterator[object]:
    """The texts of a list, of a list of lists, or the text itself."""
    if isinstance(found, list):
        yield from chain.from_iterable(map(_flat, as_list(found)))
    elif found not in (None, ""):
        yield found
