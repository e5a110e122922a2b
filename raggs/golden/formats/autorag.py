"""What AutoRAG reads: questions and passages as parquet.

Parquet takes pyarrow to write, which AutoRAG brings and raggs does not need. So the rows are JSON lines, and a script
beside them makes parquet of them where AutoRAG is; where pyarrow is at hand, that is done at once.

Questions and passages of AutoRAG, as parquet or JSON lines.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import ClassVar

from raggs.base.artifacts import Passage
from raggs.base.errors import DataError
from raggs.base.files import disk
from raggs.base.trec import Seen
from raggs.base.types import as_list, as_object
from raggs.golden.base import GoldenSet
from raggs.golden.files import PACKED, passage_facts
from raggs.golden.formats.base import write_lines, write_objects
from raggs.golden.formats.cases import Case, CaseExporter, CaseImporter, Entry, given_id, unpacked, without
from raggs.golden.formats.hf import rows_of
from raggs.golden.formats.lists import write_passages
from raggs.golden.formats.pieces import first_of
from raggs.golden.parts import ASKED_AND_READ, Part

QA, CORPUS, SCRIPT = "qa.jsonl", "corpus.jsonl", "make_parquet.py"

SCRIPT_LINES = '''"""Written by raggs: makes qa.parquet and corpus.parquet of the JSON lines beside. Needs pyarrow."""

import json
from datetime import datetime
from itertools import islice
from pathlib import Path

import pyarrow
from pyarrow.parquet import ParquetWriter

FOLDER, BATCH = Path(__file__).resolve().parent, 10_000
TEXT = pyarrow.string()
METADATA = [("last_modified_datetime", pyarrow.timestamp("us")), ("prev_id", TEXT), ("next_id", TEXT), ("raggs", TEXT)]
TABLES = {
    "qa": [
        ("qid", TEXT),
        ("query", TEXT),
        ("retrieval_gt", pyarrow.list_(pyarrow.list_(TEXT))),
        ("generation_gt", pyarrow.list_(TEXT)),
        ("raggs", TEXT),
    ],
    "corpus": [("doc_id", TEXT), ("contents", TEXT), ("metadata", pyarrow.struct(METADATA))],
}
NEVER = datetime(1970, 1, 1)  # AutoRAG wants a time of each passage


def rows(name):
    with open(FOLDER / f"{name}.jsonl", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if name == "corpus":
                row["metadata"]["last_modified_datetime"] = NEVER
            yield row


for name, columns in TABLES.items():
    schema, found = pyarrow.schema(columns), rows(name)
    with ParquetWriter(FOLDER / f"{name}.parquet", schema) as writer:
        while batch := list(islice(found, BATCH)):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))'''


class AutoRagExporter(CaseExporter):
    """AutoRAG: qa and corpus as JSON lines, and a script that makes parquet of them.

    `qa.jsonl` has a row a question: `qid`, `query`, `generation_gt` with the answer, where there is one, and
    `retrieval_gt` with the passages that count, near-duplicates of each other in one list. `corpus.jsonl` has a row a
    passage: `doc_id`, `contents`, `metadata`. The columns `raggs` hold, as JSON, what else came with either.
    Where pyarrow is installed, `qa.parquet` and `corpus.parquet` are there already.
    """

    FORMAT: ClassVar[str] = "autorag"
    HOLDS: ClassVar[frozenset[Part] | None] = ASKED_AND_READ | {"grades", "order", "lists"}
    WHOLE_CORPUS: ClassVar[bool] = True

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """See `CaseExporter.write_cases`."""
        rows = {
            QA: write_objects(folder / QA, map(_question, self.cases(golden))),
            CORPUS: write_passages(golden, folder / CORPUS, self.options.corpus, _passage),
        }
        script = {SCRIPT: write_lines(folder / SCRIPT, SCRIPT_LINES.split("\n"))}
        tables = {name.replace(".jsonl", ".parquet"): count for name, count in rows.items()}
        return rows | script | (tables if _made_parquet(folder) else {})


def _made_parquet(folder: Path) -> bool:
    """Run the script where pyarrow is installed, and can be imported."""
    try:
        with disk(folder, "choose another --out"):
            return find_spec("pyarrow") is not None and bool(runpy.run_path(str(folder / SCRIPT)))
    except ImportError:
        return False


def _question(case: Case) -> dict[str, object]:
    return {
        "qid": case.query.qid,
        "query": case.query.text,
        "retrieval_gt": list(_groups(case)) or [[]],
        "generation_gt": [] if case.query.answer is None else [case.query.answer],
        PACKED: _json(case.facts),
    }


def _groups(case: Case) -> Iterator[list[str]]:
    """The passages that count, near-duplicates together, as any of them will do."""
    groups: dict[str, list[str]] = {}
    for doc_id in case.ids:
        groups.setdefault(case.same[doc_id], []).append(doc_id)
    return iter(groups.values())


def _passage(passage: Passage) -> dict[str, object]:
    title: dict[str, object] = {"title": passage.title} if passage.title else {}
    facts = _json({**title, **passage_facts(passage)})
    return {"doc_id": passage.doc_id, "contents": passage.raw, "metadata": {PACKED: facts}}


def _json(facts: dict[str, object]) -> str:
    return json.dumps(facts, ensure_ascii=False) if facts else ""


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
