"""Questions and passages of AutoRAG, as parquet or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import ClassVar

from raggs.base.errors import DataError
from raggs.base.jsontypes import as_list, as_object
from raggs.base.trec import Seen
from raggs.golden.importers.cases import CaseImporter, Entry, given_id, unpacked, without
from raggs.golden.importers.hf import rows_of
from raggs.golden.importers.pieces import first_of
from raggs.golden.packed import PACKED

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
            answers = [each for each in _flat(row.get("generation_gt")) if each not in (None, "")]
            more = {"generation_gt": answers} if len(answers) > 1 else {}
            yield (
                number,
                Entry(
                    row.get("query"),
                    row.get("qid"),
                    answers[0] if answers else None,
                    None,
                    list(_flat(row.get("retrieval_gt") or [])),
                    {**unpacked(row.get(PACKED)), **without(dict(row), *QUESTION), **more},
                ),
            )

    def passages(self, path: Path) -> Iterator[Mapping[str, object]]:
        """See `CaseImporter.passages`."""
        corpus = first_of(path.parent, *(f"corpus{ending}" for ending in ENDINGS))
        if corpus is None:
            return
        looks, lines = Seen(corpus), dict[str, int]()
        for number, row in enumerate(rows_of(corpus), start=1):
            known, text = as_object(row.get("metadata")), row.get("contents")
            doc_id = given_id(row.get("doc_id"), corpus, number)
            if not isinstance(text, str):
                raise DataError(f"contents of {doc_id} are no text", where=corpus, line=number, remedy="write a text")
            if lines.setdefault(doc_id, number) != number:
                said = f"passage id {doc_id} occurs twice (first in row {lines[doc_id]})"
                raise DataError(said, where=corpus, line=number, remedy="give each passage an id of its own")
            if not doc_id.isascii():
                looks.note_form(doc_id, number)
            title = unpacked(known.get(PACKED)).get("title")
            if isinstance(title, str):
                text = text.removeprefix(f"{title}\n")
            ours = isinstance(known.get(PACKED), str)
            facts = {PACKED: known[PACKED]} if ours else {"metadata": known} if known else {}
            yield {"_id": doc_id, "title": title or "", "text": text, **facts}


def _flat(found: object) -> Iterator[object]:
    """The entries of a list, of a list of lists, or the value itself."""
    if isinstance(found, list):
        yield from chain.from_iterable(map(_flat, as_list(found)))
    else:
        yield found
