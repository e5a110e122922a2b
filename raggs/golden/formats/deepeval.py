"""What DeepEval reads: goldens as one list of JSON.

Goldens of DeepEval as one list of JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.base.errors import DataError
from raggs.base.files import read_whole
from raggs.base.jsonl import decode_json
from raggs.base.types import as_object
from raggs.golden.base import GoldenSet
from raggs.golden.formats.base import write_list
from raggs.golden.formats.cases import Case, CaseExporter, CaseImporter, Entry, without

GOLDENS = "goldens.json"


class DeepEvalExporter(CaseExporter):
    """DeepEval: a golden a question, for add_goldens_from_json_file.

    `goldens.json` holds `input`, `expected_output` where the question has an answer, the relevant passages as
    `context`, the documents that they stand in as `source_file` if they all stand in one, and as `additional_metadata`
    the question's id, theirs, their grades, and what else came with the question.
    """

    FORMAT: ClassVar[str] = "deepeval"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """See `CaseExporter.write_cases`."""
        return {GOLDENS: write_list(folder / GOLDENS, map(_golden, self.cases(golden)))}


def _golden(case: Case) -> dict[str, object]:
    sources = {passage.span.source if passage.span else None for passage in case.passages}
    return {
        "input": case.query.text,
        "expected_output": case.query.answer,
        "context": case.texts,
        "source_file": sources.pop() if len(sources) == 1 else None,
        "additional_metadata": {
            "qid": case.query.qid,
            "context_ids": case.ids,
            "context_grades": list(case.grades),
            **case.facts,
        },
    }


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
