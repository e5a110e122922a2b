"""Golden sets for tools with one entry per question: the question, the answer, and the relevant passages.

Such entries only say which passages are relevant. The labels are therefore stored next to the entries as TREC qrels,
and the systems' lists as TREC runs. `raggs eval` and `raggs import` read these files. The texts of a `QuestionCase` are
unchanged, so each exporter must escape characters that its tool would interpret as syntax.

When an export of raggs is imported, the labels next to the entries supply every grade. In files of other tools, listed
passages get label 1, and all other passages are unjudged. Passages and questions without an id get an id derived from
their text.

`CorpusExporter` is the base for tools that load a corpus, queries and labels as three files, with the lists next to
them. These formats differ in the form of the rows, and in the files that describe the data for the tool.

This module contains the formats of DeepEval (goldens as one JSON list), LangSmith (examples as JSON lines) and Ragas
(single-turn samples as JSON lines).
"""

from __future__ import annotations

import json
import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import ClassVar

from raggs.base.artifacts import Passage, Query
from raggs.base.errors import DataError
from raggs.base.files import disk, read_whole
from raggs.base.hashing import hash_bytes
from raggs.base.jsonl import decode_json, read_objects
from raggs.base.tables import ROLE_MEANINGS, ColumnNames, object_id
from raggs.base.text import id_problem, replace_surrogates, shorten
from raggs.base.trec import SeenPairs
from raggs.base.types import as_object, as_text
from raggs.golden.base import ASKED_AND_READ, GoldenContent, GoldenQuery, GoldenSet
from raggs.golden.files import PACKED_COLUMN, grades_of
from raggs.golden.formats import (
    Exporter,
    ExportOptions,
    ImportedSet,
    Importer,
    remove_other_split,
    write_list,
    write_objects,
)
from raggs.golden.formats.labelled_files import SetPieces, first_of, missing_file_error, runs_beside
from raggs.golden.formats.trec import passage_object, write_lists, write_passages, write_qrels
from raggs.parts.file_shapes import sidecar, stated_labels
from raggs.parts.queries.fields import made_id, query_of
from raggs.parts.queries.writing import query_facts, query_object, write_queries


@dataclass(frozen=True)
class QuestionCase:
    """A question with its relevant passages.

    Attributes:
        query: the question.
        passages: relevant passages, best first, including near-duplicates of each other.
        grades: grades of these passages, 1 to 5.
        same: maps each passage to the representative of its near-duplicates, or to itself if it has no near-duplicates.
    """

    query: Query
    passages: tuple[Passage, ...]
    grades: tuple[int, ...]
    same: Mapping[str, str]

    @property
    def ids(self) -> list[str]:
        """Ids of the passages."""
        return [passage.doc_id for passage in self.passages]

    @property
    def texts(self) -> list[str]:
        """The passages as they were judged: title (if any) and text."""
        return [passage.raw for passage in self.passages]

    @property
    def facts(self) -> dict[str, object]:
        """Additional data of the question except the answer, for which tools have a field."""
        return {name: value for name, value in query_facts(self.query).items() if name != "answer"}


class CaseExporter(Exporter):
    """Base of exporters whose files have one entry per question.

    `--binary-at` is the lowest relevant grade. It does not depend on the numeric format of the labels.
    """

    LABELS: ClassVar[str] = "qrels.txt"
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = frozenset({"grades", "order", "lists", "questions", "facts"})
    # whether entries contain the texts of relevant passages, so that an import can restore these texts
    TEXTS: ClassVar[bool] = True

    def __init__(self, options: ExportOptions | None = None) -> None:
        super().__init__(options)
        self._shown: set[str] = set()

    @property
    def kept(self) -> Mapping[GoldenContent, int]:
        """Number of exported texts; see `Exporter.kept`."""
        return {"texts": len(self._shown)} if self.TEXTS else {}

    @abstractmethod
    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """Write the tool's own files, and return the number of entries by file name.

        Raises:
            ProviderError: the folder is not writable.
        """

    def cases(self, golden: GoldenSet) -> Iterator[QuestionCase]:
        """Yield each question whose text is known, sorted by id, including those without relevant passages."""
        for query in golden.by_query():
            if query.query is not None:
                case = _case(query, query.query, self.options.scale.binary_at)
                self._shown.update(case.ids)
                yield case

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files; see `Exporter.write`.

        Raises:
            ProviderError: the folder is not writable.
        """
        own = self.write_cases(golden, folder)
        rows = {**own, self.labels: write_qrels(golden, folder / self.labels, self.options.scale)}
        lists = write_lists(golden, folder, folder / self.labels)
        files = {**{name: {"rows": count} for name, count in rows.items()}, **lists}
        counts = f"passages of grade {self.options.scale.binary_at} or more of 5, best first"
        return [*(folder / name for name in files), self.write_sidecar(golden, folder, files, references=counts)]


def _case(query: GoldenQuery, asked: Query, least: int) -> QuestionCase:
    ranks = {record.doc_id: record.rank for record in query.order}
    texts = {passage.doc_id: passage for passage in query.pool}
    found = [
        (ranks.get(graded.doc_id, len(query.grades) + 1), -graded.grade, place, graded)
        for place, graded in enumerate(query.grades)
        if graded.grade is not None and graded.grade >= least and graded.doc_id in texts
    ]
    best = [graded for *_, graded in sorted(found, key=lambda each: each[:3])]
    return QuestionCase(
        asked,
        tuple(texts[graded.doc_id] for graded in best),
        tuple(graded.grade for graded in best if graded.grade is not None),
        {graded.doc_id: graded.duplicate_of or graded.doc_id for graded in best},
    )


MAX_SHOWN_CHARS = 40  # maximum number of characters of an invalid value in a message


@dataclass(frozen=True)
class RawCase:
    """One question as read from a file, before any check.

    Attributes:
        contexts, ids: texts and ids of the relevant passages, in the same order. The texts or the ids may be missing.
        facts: additional data of the question.
    """

    text: object
    qid: object = None
    answer: object = None
    contexts: object = None
    ids: object = None
    facts: Mapping[str, object] = field(default_factory=dict)


class CaseContents:
    """Contents of a file's entries or rows, each item once. All entries with the same id must agree.

    Args:
        path: path of the file, for messages.
        unit: name of a part of the file in messages.

    Attributes:
        texts: maps each passage to its title and text.
        labels: maps each pair of query and passage to the number of its entry.
    """

    def __init__(self, path: Path, unit: str = "entry") -> None:
        self._path, self._unit = path, unit
        # maps kind, id and field to the value and the entry it is from
        self._facts: dict[tuple[str, str, str], tuple[object, int]] = {}
        self._queries: dict[str, dict[str, object]] = {}
        self._looks = SeenPairs(path)
        self.texts: dict[str, tuple[str, str]] = {}
        self.labels: dict[tuple[str, str], int] = {}

    @property
    def queries(self) -> Iterator[Query]:
        """The queries whose text is known."""
        return (Query.model_validate(found) for found in self._queries.values() if "text" in found)

    def add_query(self, qid: str, facts: Mapping[str, object], number: int) -> None:
        """Store the facts about a query from an entry.

        Raises:
            DataError: an earlier entry contradicts these facts.
        """
        self._look(qid, number)
        for name, value in facts.items():
            self._agree("query", qid, name, value, number)
        self._queries.setdefault(qid, {"qid": qid}).update(facts)

    def add_text(self, doc_id: str, title: str, text: str, number: int) -> None:
        """Store the text of a passage.

        Raises:
            DataError: an earlier entry has another title or text for the passage.
        """
        self._agree("passage", doc_id, "title", title, number)
        self._agree("passage", doc_id, "text", text, number)
        self.texts[doc_id] = title, text

    def add_label(self, qid: str, doc_id: str, number: int) -> bool:
        """Record that a passage is judged for a query, and return whether this was not known before."""
        self._look(doc_id, number)
        return self.labels.setdefault((qid, doc_id), number) == number

    def _look(self, name: str, number: int) -> None:
        if not name.isascii():
            self._looks.note_form(name, number)

    def _agree(self, kind: str, name: str, field: str, value: object, number: int) -> None:
        known, first = self._facts.setdefault((kind, name, field), (value, number))
        if known != value:
            said = f"{kind} {name} has a different {field} in {self._unit} {first}"
            remedy = f"correct one of them, or give each {kind} a unique id"
            raise DataError(said, where=self._path, line=number, remedy=remedy)


class CaseImporter(Importer):
    """Base of importers of files with one entry per question.

    Attributes:
        FILE: usual name of the file in a folder.
        ALSO: other names of the file.
    """

    ROLES: ClassVar[tuple[str, ...]] = ()
    FILE: ClassVar[str]
    ALSO: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def entries(self, path: Path) -> Iterator[tuple[int, RawCase]]:
        """Yield the entries of a file, each with its line or number.

        Raises:
            NotFoundError, DataError: the file cannot be read.
        """

    def passages(self, path: Path) -> Iterator[Mapping[str, object]]:
        """Yield passages in a separate file, as rows of `corpus: {type: jsonl}`, if the format has one."""
        return iter(())

    def read(self, path: Path) -> ImportedSet:
        """Read the set; see `Importer.read`."""
        file = first_of(path, self.FILE, *self.ALSO) if path.is_dir() else path
        if file is None:
            raise missing_file_error(path, self.FORMAT, self.FILE)
        labels = stated_labels(file.parent) if sidecar(file) else None
        read = self._read(file, ours=labels is not None)
        kept = tempfile.TemporaryDirectory(prefix="raggs-")
        questions, corpus = write_json_lines(read, Path(kept.name), self.passages(file))
        if labels is None:
            made = Path(kept.name) / f"{file.name}.qrels"
            _write(made, (f"{qid} 0 {doc_id} 1" for qid, doc_id in read.labels))
            return SetPieces(made, grades_of(made), {}, False, questions, corpus, (), kept).put_together()
        grades = grades_of(labels)
        orders, lists = runs_beside(file.parent, labels, grades)
        return SetPieces(labels, grades, orders, False, questions, corpus, lists, kept).put_together()

    def _read(self, file: Path, *, ours: bool) -> CaseContents:
        read = CaseContents(file)
        for number, entry in self.entries(file):
            query = _query(entry, file, number, ours=ours)
            facts = query.model_dump(include={"text", "answer", "language", "references", "nuggets", "metadata"})
            read.add_query(query.qid, facts, number)
            for doc_id, text in _passages(entry, file, number):
                read.add_label(query.qid, doc_id, number)
                if text is not None:
                    read.add_text(doc_id, "", text, number)
        return read


def _query(entry: RawCase, file: Path, number: int, *, ours: bool) -> Query:
    """Return the query of an entry. Additional data becomes fields of the query if raggs wrote the file, otherwise
    metadata.
    """
    if not isinstance(entry.text, str) or not entry.text.strip():
        raise DataError(
            "the entry has no question",
            where=file,
            line=number,
            remedy="add a question as a text, not as a list",
        )
    if entry.answer is None or isinstance(entry.answer, str):
        answer, facts = {"answer": entry.answer} if entry.answer else {}, entry.facts
    else:  # for example an object, which is stored unchanged in the metadata
        answer, facts = {}, {**entry.facts, "answer": entry.answer}
    qid = made_id(replace_surrogates(entry.text)) if entry.qid in (None, "") else given_id(entry.qid, file, number)
    return query_of(
        {"_id": qid, "text": entry.text, **answer, **(facts if ours else {"metadata": facts})}, file, number
    )


def _passages(entry: RawCase, file: Path, number: int) -> Iterator[tuple[str, str | None]]:
    """Yield the relevant passages, each with its text if known.

    Raises:
        DataError: a passage has neither a text nor an id, or an id is invalid.
    """
    texts = list(_list_entries(entry.contexts, "contexts", file, number))
    ids = list(_list_entries(entry.ids, "ids of contexts", file, number))
    if ids and texts and len(ids) != len(texts):
        said = f"{len(texts)} contexts and {len(ids)} ids of contexts"
        raise DataError(said, where=file, line=number, remedy="give each context an id, or omit all ids")
    for place in range(max(len(ids), len(texts))):
        text = texts[place] if texts else None
        if text is not None and not isinstance(text, str):
            said = f"context {place + 1} is {shorten(repr(text), MAX_SHOWN_CHARS)}, not a text"
            raise DataError(said, where=file, line=number, remedy="write contexts as a list of texts")
        text = replace_surrogates(text) if text and text.strip() else None
        if ids:
            yield given_id(ids[place], file, number), text
        elif text is not None:
            yield sound_id(made_passage_id(text), file, number), text
        else:
            said = f"context {place + 1} has neither a text nor an id"
            raise DataError(said, where=file, line=number, remedy="add a text or an id, or remove it")


def _list_entries(found: object, what: str, file: Path, number: int) -> Iterator[object]:
    """Yield the entries of a list. A single text counts as a list with one entry."""
    if isinstance(found, str):
        yield from [found] if found.strip() else []
    elif isinstance(found, list):
        yield from found
    elif found is not None:
        said = f"{what}: {shorten(repr(found), MAX_SHOWN_CHARS)} is not a list"
        raise DataError(said, where=file, line=number, remedy="write a list of texts")


def given_id(value: object, file: Path, number: int) -> str:
    """Return the id in an entry: a text, or the digits of an integer.

    Raises:
        DataError: the id is neither, or is not allowed in files.
    """
    return sound_id(object_id(value, file, number), file, number)


def made_passage_id(text: str) -> str:
    """Return an id derived from the text of a passage, for a passage without an id."""
    return f"p-{hash_bytes(replace_surrogates(text).encode())[:12]}"


def sound_id(name: str, file: Path, number: int) -> str:
    """Return an id if it is allowed in files.

    Raises:
        DataError: the id is not allowed.
    """
    fault = id_problem(name) if name else "is empty"
    if fault:
        raise DataError(f"the id {name!r} {fault}", where=file, line=number, remedy="choose another id")
    return name


def write_json_lines(read: CaseContents, folder: Path, more: Iterable[Mapping[str, object]] = ()) -> tuple[Path, Path]:
    """Write queries and passages as JSON lines into a folder, and return the paths.

    Raises:
        ProviderError: the folder is not writable.
    """
    questions, corpus = folder / "queries.jsonl", folder / "corpus.jsonl"
    write_queries(read.queries, questions)
    rows = ({"_id": doc_id, "title": title, "text": text} for doc_id, (title, text) in read.texts.items())
    _write(corpus, (json.dumps(row, default=str) for row in chain(rows, more)))
    return questions, corpus


def _write(path: Path, lines: Iterator[str]) -> None:
    with disk(path, "set TMPDIR to another folder for temporary files"), path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def only_named(
    found: Mapping[str, object], role: str, names: Sequence[str], columns: ColumnNames, file: Path, number: int
) -> tuple[str | None, object]:
    """Return name and value of the field that an object has, out of several possible names. Both are None if the
    object has none of these fields.

    Args:
        found: the object.
        role: role of the field, as in `--column`.
        names: possible names of the field.
        columns: names given with `--column`. If the object has the field that is given for the role, only this counts.
        file: path of the file, for messages.
        number: line or number of the entry.

    Raises:
        DataError: the object has two of these fields.
    """
    names = (columns[role],) if columns.get(role) in found else names
    there = [name for name in names if found.get(name) is not None]
    if len(there) > 1:
        said = f"{there[0]!r} and {there[1]!r} both mean {ROLE_MEANINGS[role]}"
        remedy = f"choose one: --column {role}={there[0]} or --column {role}={there[1]}"
        raise DataError(said, where=file, line=number, remedy=remedy)
    return (there[0], found[there[0]]) if there else (None, None)


def without_fields(found: object, *names: str) -> dict[str, object]:
    """Return the fields of an object, without the named fields."""
    return {name: value for name, value in as_object(found).items() if name not in names}


def unpacked(found: object) -> dict[str, object]:
    """Return the data that an export packed into a text as JSON. The mapping is empty for other values."""
    try:
        return dict(as_object(decode_json(as_text(found) or "{}")))
    except ValueError:
        return {}


CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


@dataclass(frozen=True)
class ToolGuide:
    """Files and facts that describe an export for a tool.

    Attributes:
        files: written files.
        facts: entries of the sidecar about these files.
    """

    files: Sequence[Path] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


class CorpusExporter(Exporter):
    """Base of exporters with a corpus, its queries and their labels.

    `corpus.jsonl` contains the whole corpus in its own order if available, otherwise every pooled passage once, sorted
    by id. `queries.jsonl` contains the queries in their authors' words, sorted by id.
    """

    HOLDS: ClassVar[frozenset[GoldenContent] | None] = ASKED_AND_READ | {"grades", "order", "lists"}
    WHOLE_CORPUS: ClassVar[bool] = True

    @abstractmethod
    def write_labels(self, golden: GoldenSet, path: Path) -> int:
        """Write all grades, and return their number.

        Raises:
            ProviderError: the disk failed.
        """

    def passage(self, passage: Passage) -> Mapping[str, object]:
        """Return a passage as a row."""
        return passage_object(passage)

    def query(self, query: Query) -> Mapping[str, object]:
        """Return a query as a row."""
        return query_object(query)

    def guide(self, golden: GoldenSet, folder: Path) -> ToolGuide:
        """Write the files that describe corpus, queries and labels for the tool. Corpus, queries and labels are already
        written.

        Raises:
            ProviderError: the disk failed.
        """
        return ToolGuide()

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files; see `Exporter.write`.

        Raises:
            ProviderError: the folder is not writable.
        """
        whole, labels = self.options.corpus, folder / self.labels
        rows = {
            CORPUS: write_passages(golden, folder / CORPUS, whole, self.passage),
            QUERIES: write_objects(folder / QUERIES, map(self.query, golden.queries())),
            self.labels: self.write_labels(golden, labels),
        }
        remove_other_split(folder, type(self), self.labels)
        lists = write_lists(golden, folder, labels)
        files = {**{name: {"rows": count} for name, count in rows.items()}, **lists}
        guide, held = self.guide(golden, folder), "pool" if whole is None else "all"
        sidecar = self.write_sidecar(golden, folder, files, corpus=held, **guide.facts)
        return [*(folder / name for name in files), *guide.files, sidecar]


GOLDENS = "goldens.json"


class DeepEvalExporter(CaseExporter):
    """DeepEval: one golden per question, for add_goldens_from_json_file.

    In `goldens.json`, `input` is the question, `expected_output` the answer (if any), and `context` the relevant
    passages. `source_file` is the document of the passages if all are from the same document. `additional_metadata`
    contains the ids of question and passages, the grades, and additional data of the question.
    """

    FORMAT: ClassVar[str] = "deepeval"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """Write the goldens; see `CaseExporter.write_cases`."""
        return {GOLDENS: write_list(folder / GOLDENS, map(_golden, self.cases(golden)))}


def _golden(case: QuestionCase) -> dict[str, object]:
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
    """DeepEval goldens: a JSON file, or a folder with goldens.json.

    `context` contains the relevant passages, and `context_ids` in `additional_metadata` their ids.
    """

    FORMAT = "deepeval"
    FILE: ClassVar[str] = "goldens.json"

    def entries(self, path: Path) -> Iterator[tuple[int, RawCase]]:
        """Yield the goldens, numbered from 1; see `CaseImporter.entries`."""
        for number, golden in enumerate(map(as_object, _list(path)), start=1):
            known = as_object(golden.get("additional_metadata"))
            yield (
                number,
                RawCase(
                    golden.get("input"),
                    known.get("qid"),
                    golden.get("expected_output"),
                    golden.get("context"),
                    known.get("context_ids"),
                    without_fields(known, "qid", "context_ids", "context_grades"),
                ),
            )


def _list(path: Path) -> list[object]:
    try:
        found = decode_json(read_whole(path).decode("utf-8-sig"))
    except ValueError as error:
        raise DataError(f"not valid JSON ({error})", where=path, remedy="it should be a list of goldens") from error
    if not isinstance(found, list):
        raise DataError("expected a list", where=path, remedy="it must be a list of goldens")
    return found


EXAMPLES = "examples.jsonl"


class LangSmithExporter(CaseExporter):
    """LangSmith: one example per question, for Client.create_examples.

    In `examples.jsonl`, `inputs` contains the question. `outputs` contains the answer (if any), the relevant passages
    and their ids. `metadata` contains the id of the question, the grades, and additional data of the question.
    """

    FORMAT: ClassVar[str] = "langsmith"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """Write the examples; see `CaseExporter.write_cases`."""
        return {EXAMPLES: write_objects(folder / EXAMPLES, map(_example, self.cases(golden)))}


def _example(case: QuestionCase) -> dict[str, object]:
    answer = {} if case.query.answer is None else {"answer": case.query.answer}
    return {
        "inputs": {"question": case.query.text},
        "outputs": {**answer, "contexts": case.texts, "context_ids": case.ids},
        "metadata": {"qid": case.query.qid, "context_grades": list(case.grades), **case.facts},
    }


QUESTION = ("question", "input", "query", "user_input")
ANSWER = ("answer", "output", "reference")
CONTEXTS = ("contexts", "reference_contexts", "context", "documents")
IDS = ("context_ids", "reference_context_ids")


class LangSmithImporter(CaseImporter):
    """LangSmith examples: a JSON lines file, or a folder with examples.jsonl.

    `inputs` contains the question, `outputs` the answer and the relevant passages, under common names.
    """

    FORMAT = "langsmith"
    FILE: ClassVar[str] = "examples.jsonl"
    ROLES: ClassVar[tuple[str, ...]] = ("question", "answer", "passage", "doc_id")

    def entries(self, path: Path) -> Iterator[tuple[int, RawCase]]:
        """Yield the examples; see `CaseImporter.entries`. Other fields of inputs and outputs become additional data."""
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
                "inputs": without_fields(asked, question[0] or ""),
                "outputs": without_fields(wanted, *(name or "" for name, _ in (answer, contexts, ids))),
            }
            facts = {
                **{name: found for name, found in more.items() if found},
                **without_fields(known, "qid", "context_grades"),
            }
            yield number, RawCase(question[1], known.get("qid"), answer[1], contexts[1], ids[1], facts)


SAMPLES = "ragas.jsonl"


class RagasExporter(CaseExporter):
    """Ragas: one single-turn sample per question, for EvaluationDataset.from_jsonl.

    In `ragas.jsonl`, `user_input` is the question, `reference` the answer (if any), and `reference_contexts` and
    `reference_context_ids` are the relevant passages. The columns `qid` and `raggs`, which Ragas ignores, contain the
    id of the question and, as JSON, its additional data.
    """

    FORMAT: ClassVar[str] = "ragas"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """Write the samples; see `CaseExporter.write_cases`."""
        return {SAMPLES: write_objects(folder / SAMPLES, map(_sample, self.cases(golden)))}


def _sample(case: QuestionCase) -> dict[str, object]:
    return {
        "user_input": case.query.text,
        "reference": case.query.answer,
        "reference_contexts": case.texts,
        "reference_context_ids": case.ids,
        "qid": case.query.qid,
        PACKED_COLUMN: json.dumps(case.facts, ensure_ascii=False) if case.facts else "",
    }


RAGAS_FIELDS = ("user_input", "reference", "reference_contexts", "reference_context_ids", "qid", PACKED_COLUMN)


class RagasImporter(CaseImporter):
    """Ragas samples: a JSON lines file, or a folder with ragas.jsonl.

    `reference_contexts` contains the relevant passages, `reference_context_ids` their ids.
    """

    FORMAT = "ragas"
    FILE: ClassVar[str] = "ragas.jsonl"

    def entries(self, path: Path) -> Iterator[tuple[int, RawCase]]:
        """Yield the samples; see `CaseImporter.entries`."""
        for number, row in read_objects(path):
            yield (
                number,
                RawCase(
                    row.get("user_input"),
                    row.get("qid"),
                    row.get("reference"),
                    row.get("reference_contexts"),
                    row.get("reference_context_ids"),
                    {**unpacked(row.get(PACKED_COLUMN)), **without_fields(row, *RAGAS_FIELDS)},
                ),
            )
