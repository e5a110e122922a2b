"""Goldens of DeepEval as one list of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.base.errors import DataError
from raggs.base.inputs import read_whole
from raggs.base.jsonl import decode_json
from raggs.base.jsontypes import as_object
from raggs.golden.importers.cases import CaseImporter, Entry, without


class DeepEvalImporter(CaseImporter):
    """DeepEval goldens: a file of JSON, or a folder with goldens.json.

    `context` holds the passages that count, `context_ids` in `additional_metadata` their ids.
    """

    FORMAT = "deepeval"
    FILE: ClassVar[str] = "goldens.json"

    def entries(self, path: Path) -> Iterator[tuple[int, Entry]]:
        """See `CaseImporter.entries`; goldens are counted from 1."""
        for number, golden in enumerate(map(as_object, _list(path)), start=1):
            known = as_object(golden.get("additional_metadata"))
            yield (
                number,
                Entry(
                    golden.get("input"),
                    known.get("qid"),
                    golden.get("expected_output"),
                    golden.get("context"),
                    known.get("context_ids"),
                    without(known, "qid", "context_ids", "context_grades"),
                ),
            )


def _list(path: Path) -> list[object]:
    try:
        found = decode_json(read_whole(path).decode("utf-8-sig"))
    except ValueError as error:
        raise DataError(f"not valid JSON ({error})", where=path, remedy="it should be a list of goldens") from error
    if not isinstance(found, list):
        raise DataError("not a list", where=path, remedy="it should be a list of goldens")
    return found
