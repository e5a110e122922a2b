"""Small files that say something of passages or of queries: facets, and whether answers were right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raggs.base.errors import DataError
from raggs.base.jsonl import raw_lines, read_objects
from raggs.parts.readers.pipes import replayable

FACET = "doc_id<TAB>facet"
CORRECT = "qid<TAB>0|1"
ANSWERS = '{"system": "bm25", "qid": "q1", "correct": true}'
FLAGS = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}


def read_facets(path: Path) -> dict[str, str]:
    """The facet of each passage, ``doc_id<TAB>facet`` a line.

    Raises:
        NotFoundError, DataError: the file is missing, or a line cannot be right.
    """
    return {doc_id: facet for _, doc_id, facet in _pairs(path, FACET)}


def read_correct(path: Path) -> dict[str, dict[str, bool]]:
    """Whether the answer to each query was right, by system; "" stands for all systems.

    A file is lines of ``qid<TAB>0|1``, or JSON lines (``.jsonl``) of `system`, `qid` and `correct`. An answer whose
    `correct` is null is not known.

    Raises:
        NotFoundError, DataError: the file is missing, or a line cannot be right.
    """
    if path.suffix == ".jsonl":
        return _by_system(path)
    flags = {}
    for line, qid, text in _pairs(path, CORRECT):
        if text.lower() not in FLAGS:
            said = f"query {qid}: {text!r} is neither 0 nor 1"
            raise DataError(said, where=path, line=line, remedy="1 for a correct answer")
        flags[qid] = FLAGS[text.lower()]
    return {"": flags}


def _by_system(path: Path) -> dict[str, dict[str, bool]]:
    seen: set[tuple[str, str]] = set()
    flags: dict[str, dict[str, bool]] = {}
    for line, found in read_objects(path):
        system, qid, correct = found.get("system", ""), found.get("qid"), found.get("correct")
        if not isinstance(system, str) or not isinstance(qid, str) or "correct" not in found:
            raise DataError("has no qid or no correct", where=path, line=line, remedy=f"expected: {ANSWERS}")
        if correct is not None and correct not in (0, 1):
            said = f"query {qid}: {correct!r} is not true, false or null"
            raise DataError(said, where=path, line=line, remedy="true for a correct answer, null for an unknown one")
        if (system, qid) in seen:
            of = f" of {system}" if system else ""
            raise DataError(f"query {qid}{of} has two lines", where=path, line=line, remedy="keep one")
        seen.add((system, qid))
        if correct is not None:
            flags.setdefault(system, {})[qid] = bool(correct)
    return flags


def _pairs(path: Path, form: str) -> Iterator[tuple[int, str, str]]:
    """Number, key and value of each line."""
    seen = set()
    with replayable(path) as file:
        for line, text in raw_lines(file):
            cells = text.split("\t") if "\t" in text else text.split()
            if len(cells) != 2:
                raise DataError(f"{len(cells)} columns instead of 2", where=path, line=line, remedy=f"expected: {form}")
            key, value = (cell.strip() for cell in cells)
            if key in seen:
                raise DataError(f"{key} stands twice", where=path, line=line, remedy="keep one")
            seen.add(key)
            yield line, key, value
