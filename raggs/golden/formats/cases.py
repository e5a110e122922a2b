"""Golden sets for tools that want an entry a question: what was asked, the answer, and the passages that count.

Such entries know yes and no only. So the labels lie beside them as TREC qrels, with the lists as TREC runs: what `raggs
eval` and `raggs import` read again. Texts go into files as data; what a tool would take for its own syntax is the
matter of the exporter that writes it.

Sets of tools that have an entry a question, with the passages that count listed in it.

Of an export of raggs the labels beside it say every grade; of another's file a listed passage is labelled 1, and
nothing is known of any other. Passages without an id get one that is made of their text, questions as everywhere.

Golden sets for tools that load a corpus, its queries and the labels as three files, with the lists beside them.

The folders of such formats differ in how a row is written, and in what tells the tool of the files.

What DeepEval reads: goldens as one list of JSON.

Goldens of DeepEval as one list of JSON.

What LangSmith takes: examples as JSON lines.

Examples of LangSmith as JSON lines.

What Ragas reads: JSON lines of single-turn samples.

Samples of Ragas as JSON lines.
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
    """A question with the passages that count for it.

    Attributes:
        passages: the relevant ones, best first; near-duplicates of each other are all there.
        grades: theirs, 1 to 5.
        same: by passage, the representative of its near-duplicates, itself where it has none.
    """

    query: Query
    passages: tuple[Passage, ...]
    grades: tuple[int, ...]
    same: Mapping[str, str]

    @property
    def ids(self) -> list[str]:
        """The ids of the passages."""
        return [passage.doc_id for passage in self.passages]

    @property
    def texts(self) -> list[str]:
        """The passages as they were judged: title, if any, and text."""
        return [passage.raw for passage in self.passages]

    @property
    def facts(self) -> dict[str, object]:
        """What came with the question besides the answer, which tools have a place for."""
        return {name: value for name, value in query_facts(self.query).items() if name != "answer"}


class CaseExporter(Exporter):
    """Base of exporters whose files have an entry for each question.

    `--binary-at` says from which grade on a passage counts, on whatever numbers the labels beside stand.
    """

    LABELS: ClassVar[str] = "qrels.txt"
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = frozenset({"grades", "order", "lists", "questions", "facts"})
    TEXTS: ClassVar[bool] = True  # whether entries hold the texts of the passages that count, so that they come back

    def __init__(self, options: ExportOptions | None = None) -> None:
        super().__init__(options)
        self._shown: set[str] = set()

    @property
    def kept(self) -> Mapping[GoldenContent, int]:
        """See `Exporter.kept`: the texts of what counts."""
        return {"texts": len(self._shown)} if self.TEXTS else {}

    @abstractmethod
    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """Write the tool's own files; by name, how many entries each holds.

        Raises:
            ProviderError: the folder cannot be written.
        """

    def cases(self, golden: GoldenSet) -> Iterator[QuestionCase]:
        """Each question of the set, sorted by id, also those for which nothing counts."""
        for query in golden.by_query():
            if query.query is not None:
                case = _case(query, query.query, self.options.scale.binary_at)
                self._shown.update(case.ids)
                yield case

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
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


MAX_SHOWN_CHARS = 40  # characters of a wrong value


@dataclass(frozen=True)
class RawCase:
    """One question as its file has it; nothing of it is checked yet.

    Attributes:
        contexts, ids: the texts and ids of the passages that count, in the same order; either may be missing.
        facts: what else came with the question.
    """

    text: object
    qid: object = None
    answer: object = None
    contexts: object = None
    ids: object = None
    facts: Mapping[str, object] = field(default_factory=dict)


class CaseContents:
    """What entries or rows hold, each thing once; what they say of one id must be the same everywhere.

    Args:
        path: of the file, for messages.
        unit: what its parts are called.

    Attributes:
        texts: by passage, title and text.
        labels: by query and passage, the entry.
    """

    def __init__(self, path: Path, unit: str = "entry") -> None:
        self._path, self._unit = path, unit
        self._facts: dict[tuple[str, str, str], tuple[object, int]] = {}  # by kind, id and field, and the entry
        self._queries: dict[str, dict[str, object]] = {}
        self._looks = SeenPairs(path)
        self.texts: dict[str, tuple[str, str]] = {}
        self.labels: dict[tuple[str, str], int] = {}

    @property
    def queries(self) -> Iterator[Query]:
        """The queries of which the text is known."""
        return (Query.model_validate(found) for found in self._queries.values() if "text" in found)

    def add_query(self, qid: str, facts: Mapping[str, object], number: int) -> None:
        """Take in what an entry says of a query.

        Raises:
            DataError: an earlier entry says otherwise.
        """
        self._look(qid, number)
        for name, value in facts.items():
            self._agree("query", qid, name, value, number)
        self._queries.setdefault(qid, {"qid": qid}).update(facts)

    def add_text(self, doc_id: str, title: str, text: str, number: int) -> None:
        """Take in the text of a passage.

        Raises:
            DataError: an earlier entry says otherwise.
        """
        self._agree("passage", doc_id, "title", title, number)
        self._agree("passage", doc_id, "text", text, number)
        self.texts[doc_id] = title, text

    def add_label(self, qid: str, doc_id: str, number: int) -> bool:
        """Take in that a passage is judged for a query; whether that is new."""
        self._look(doc_id, number)
        return self.labels.setdefault((qid, doc_id), number) == number

    def _look(self, name: str, number: int) -> None:
        if not name.isascii():
            self._looks.note_form(name, number)

    def _agree(self, kind: str, name: str, field: str, value: object, number: int) -> None:
        known, first = self._facts.setdefault((kind, name, field), (value, number))
        if known != value:
            said = f"{kind} {name} has another {field} than in {self._unit} {first}"
            remedy = f"correct one of them, or give each {kind} an id of its own"
            raise DataError(said, where=self._path, line=number, remedy=remedy)


class CaseImporter(Importer):
    """Base of importers whose file has an entry for each question.

    Attributes:
        FILE, ALSO: its usual name in a folder, and others.
    """

    ROLES: ClassVar[tuple[str, ...]] = ()
    FILE: ClassVar[str]
    ALSO: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def entries(self, path: Path) -> Iterator[tuple[int, RawCase]]:
        """The entries of a file, each with its line or number.

        Raises:
            NotFoundError, DataError: it cannot be read.
        """

    def passages(self, path: Path) -> Iterator[Mapping[str, object]]:
        """Passages that lie beside a file, as rows of `corpus: {type: jsonl}`, where the format has them apart."""
        return iter(())

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
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
    """The question; what raggs wrote beside it are its fields, what another wrote is metadata."""
    if not isinstance(entry.text, str) or not entry.text.strip():
        raise DataError("an entry without a question", where=file, line=number, remedy="give it a text, not a list")
    if entry.answer is None or isinstance(entry.answer, str):
        answer, facts = {"answer": entry.answer} if entry.answer else {}, entry.facts
    else:  # an object, say, is kept as it is
        answer, facts = {}, {**entry.facts, "answer": entry.answer}
    qid = made_id(replace_surrogates(entry.text)) if entry.qid in (None, "") else given_id(entry.qid, file, number)
    return query_of(
        {"_id": qid, "text": entry.text, **answer, **(facts if ours else {"metadata": facts})}, file, number
    )


def _passages(entry: RawCase, file: Path, number: int) -> Iterator[tuple[str, str | None]]:
    """The passages that count, each with its text where that is known.

    Raises:
        DataError: a passage is neither a text nor has an id, or one id stands for two texts.
    """
    texts = list(_list_entries(entry.contexts, "contexts", file, number))
    ids = list(_list_entries(entry.ids, "ids of contexts", file, number))
    if ids and texts and len(ids) != len(texts):
        said = f"{len(texts)} contexts and {len(ids)} ids of contexts"
        raise DataError(said, where=file, line=number, remedy="give each context its id, or leave the ids out")
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
            raise DataError(said, where=file, line=number, remedy="give it one, or take it out")


def _list_entries(found: object, what: str, file: Path, number: int) -> Iterator[object]:
    """The entries of a list; a text alone is a list of one."""
    if isinstance(found, str):
        yield from [found] if found.strip() else []
    elif isinstance(found, list):
        yield from found
    elif found is not None:
        said = f"{what}: {shorten(repr(found), MAX_SHOWN_CHARS)} is not a list"
        raise DataError(said, where=file, line=number, remedy="write a list of texts")


def given_id(value: object, file: Path, number: int) -> str:
    """An id that an entry gives: a text, or a whole number, which stands for its digits.

    Raises:
        DataError: it is neither, or files cannot carry it.
    """
    return sound_id(object_id(value, file, number), file, number)


def made_passage_id(text: str) -> str:
    """The id of a passage that has none: of its text alone."""
    return f"p-{hash_bytes(replace_surrogates(text).encode())[:12]}"


def sound_id(name: str, file: Path, number: int) -> str:
    """An id that files can carry.

    Raises:
        DataError: it is none.
    """
    fault = id_problem(name) if name else "is empty"
    if fault:
        raise DataError(f"the id {name!r} {fault}", where=file, line=number, remedy="give it another")
    return name


def write_json_lines(read: CaseContents, folder: Path, more: Iterable[Mapping[str, object]] = ()) -> tuple[Path, Path]:
    """Questions and passages as JSON lines in a folder.

    Raises:
        ProviderError: it cannot be written.
    """
    questions, corpus = folder / "queries.jsonl", folder / "corpus.jsonl"
    write_queries(read.queries, questions)
    rows = ({"_id": doc_id, "title": title, "text": text} for doc_id, (title, text) in read.texts.items())
    _write(corpus, (json.dumps(row, default=str) for row in chain(rows, more)))
    return questions, corpus


def _write(path: Path, lines: Iterator[str]) -> None:
    with disk(path, "name another place for temporary files by TMPDIR"), path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def only_named(
    found: Mapping[str, object], role: str, names: Sequence[str], columns: ColumnNames, file: Path, number: int
) -> tuple[str | None, object]:
    """The only one of some fields that an object has, and its value; None where it has none of them.

    Args:
        role: of the field, by which `--column` names it.
        columns: as `--column` says.

    Raises:
        DataError: it has two of them.
    """
    names = (columns[role],) if columns.get(role) in found else names
    there = [name for name in names if found.get(name) is not None]
    if len(there) > 1:
        said = f"{there[0]!r} and {there[1]!r} both mean {ROLE_MEANINGS[role]}"
        remedy = f"choose one: --column {role}={there[0]} or --column {role}={there[1]}"
        raise DataError(said, where=file, line=number, remedy=remedy)
    return (there[0], found[there[0]]) if there else (None, None)


def without_fields(found: object, *names: str) -> dict[str, object]:
    """The fields of an object but these."""
    return {name: value for name, value in as_object(found).items() if name not in names}


def unpacked(found: object) -> dict[str, object]:
    """What an export packed into a text; nothing of any other."""
    try:
        return dict(as_object(decode_json(as_text(found) or "{}")))
    except ValueError:
        return {}


CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


@dataclass(frozen=True)
class ToolGuide:
    """What tells a tool of the files.

    Attributes:
        files: that were written for it.
        facts: what the sidecar says of them.
    """

    files: Sequence[Path] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


class CorpusExporter(Exporter):
    """Base of exporters with a corpus, its queries and their labels.

    `corpus.jsonl` holds the whole corpus in its own order where it is at hand, else every passage of any query's pool
    once, sorted by id; `queries.jsonl` the questions in their authors' words, sorted by id.
    """

    HOLDS: ClassVar[frozenset[GoldenContent] | None] = ASKED_AND_READ | {"grades", "order", "lists"}
    WHOLE_CORPUS: ClassVar[bool] = True

    @abstractmethod
    def write_labels(self, golden: GoldenSet, path: Path) -> int:
        """Write all grades, and count them.

        Raises:
            ProviderError: the disk refuses.
        """

    def passage(self, passage: Passage) -> Mapping[str, object]:
        """A passage as a row."""
        return passage_object(passage)

    def query(self, query: Query) -> Mapping[str, object]:
        """A question as a row."""
        return query_object(query)

    def guide(self, golden: GoldenSet, folder: Path) -> ToolGuide:
        """Write what tells the tool of the corpus, the queries and the labels, which are there.

        Raises:
            ProviderError: the disk refuses.
        """
        return ToolGuide()

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
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
    """DeepEval: a golden a question, for add_goldens_from_json_file.

    `goldens.json` holds `input`, `expected_output` where the question has an answer, the relevant passages as
    `context`, the documents that they stand in as `source_file` if they all stand in one, and as `additional_metadata`
    the question's id, theirs, their grades, and what else came with the question.
    """

    FORMAT: ClassVar[str] = "deepeval"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """See `CaseExporter.write_cases`."""
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
    """DeepEval goldens: a file of JSON, or a folder with goldens.json.

    `context` holds the passages that count, `context_ids` in `additional_metadata` their ids.
    """

    FORMAT = "deepeval"
    FILE: ClassVar[str] = "goldens.json"

    def entries(self, path: Path) -> Iterator[tuple[int, RawCase]]:
        """See `CaseImporter.entries`; goldens are counted from 1."""
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
        raise DataError("not a list", where=path, remedy="it should be a list of goldens")
    return found


EXAMPLES = "examples.jsonl"


class LangSmithExporter(CaseExporter):
    """LangSmith: an example a question, for Client.create_examples.

    `examples.jsonl` holds `inputs` with the question, `outputs` with the answer, where there is one, and with the
    relevant passages and their ids, `metadata` with the question's id, their grades, and what else came with the
    question.
    """

    FORMAT: ClassVar[str] = "langsmith"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """See `CaseExporter.write_cases`."""
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
    """LangSmith examples: a file of JSON lines, or a folder with examples.jsonl.

    The question stands in `inputs`, the answer and the passages that count in `outputs`, under usual names.
    """

    FORMAT = "langsmith"
    FILE: ClassVar[str] = "examples.jsonl"
    ROLES: ClassVar[tuple[str, ...]] = ("question", "answer", "passage", "doc_id")

    def entries(self, path: Path) -> Iterator[tuple[int, RawCase]]:
        """See `CaseImporter.entries`; other inputs and outputs are facts."""
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
    """Ragas: a single-turn sample a question, for EvaluationDataset.from_jsonl.

    `ragas.jsonl` holds `user_input`, `reference` where the question has an answer, and the relevant passages as
    `reference_contexts` and `reference_context_ids`. Its columns `qid` and `raggs`, which Ragas passes over, hold the
    question's id and, as JSON, what else came with it.
    """

    FORMAT: ClassVar[str] = "ragas"

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """See `CaseExporter.write_cases`."""
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
    """Ragas samples: a file of JSON lines, or a folder with ragas.jsonl.

    `reference_contexts` are the passages that count, `reference_context_ids` their ids.
    """

    FORMAT = "ragas"
    FILE: ClassVar[str] = "ragas.jsonl"

    def entries(self, path: Path) -> Iterator[tuple[int, RawCase]]:
        """See `CaseImporter.entries`."""
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
