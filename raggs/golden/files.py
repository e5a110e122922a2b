"""Files of other tools as golden sets: labels in any format that `raggs.parts.run_files` reads, with their queries.

A folder in the BEIR layout contains `qrels/test.tsv` (or one other table in `qrels`) and `queries.jsonl`. In an export
of raggs, the sidecar (the metadata file) names the file of labels and states its numeric format. Gains are therefore
read as the grades of the exported run. `FileGolden` loads no passages, because the corpus may not fit into memory.

`GivenGolden` is a golden set of judgments in memory, optionally with the texts of the queries.

`RewordedGolden` replaces the queries of a golden set, because files of labels often have no texts of queries.

`pack_facts` stores all additional data of a query or passage as one text, for formats with fixed columns. Arrow and
parquet require one type per column, but authors add data of any type. The data is stored as JSON in the column
`PACKED_COLUMN`, which other tools ignore, and restored from this column.

`LinesGolden` reads JSON lines of raggs as a golden set: labels with near-duplicates and uncertainty, the order and the
texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from raggs.base.artifacts import (
    MAX_GRADE,
    MIN_GRADE,
    Groups,
    JudgeRecord,
    Passage,
    Query,
    RankRecord,
    RetrieveRecord,
    Validity,
)
from raggs.base.errors import DataError
from raggs.base.jsonl import decode_json, first_fault, mentions, read_objects
from raggs.base.tables import LABEL_ROLES, NO_COLUMNS, ColumnNames, ObjectColumns, object_id
from raggs.base.trec import SeenPairs
from raggs.base.types import as_list, as_object, as_text
from raggs.golden.base import CONFIDENCE_FIELDS, GoldenQuery, GoldenSet, LabelRecord, SetPart
from raggs.golden.judgments import (
    Judgments,
    stated_fall,
    stated_lacks,
    stated_model_versions,
    stated_origin,
    stated_sources,
    stated_version,
)
from raggs.metrics.columns import GradeScale, Qrels
from raggs.parts.file_shapes import check_ids, sidecar, stated_labels, stated_scale
from raggs.parts.queries.fields import query_of
from raggs.parts.queries.writing import query_facts
from raggs.parts.run_files import as_id, describe_value, qrels_of, rows_of

QUERIES_PLACE = Path("queries")  # replaces the file name in errors about queries that are not from a file


class GivenGolden(GoldenSet):
    """Golden set of judgments in memory, which has neither passages nor an order.

    Args:
        given: ``{qid: {doc_id: grade}}``, rows, or a table (see `raggs.parts.run_files`). An iterator is consumed
            by the constructor.
        questions: see `queries_of`.

    Raises:
        UsageError, DataError: the queries are invalid.
    """

    top = 0
    provenance = None
    form = None
    name = source = "judgments in memory"

    def __init__(self, given: object, questions: object = None) -> None:
        self._given = given if isinstance(given, Mapping) else list(rows_of(given, "judgments"))
        self._questions = queries_of(questions)

    def queries(self) -> Iterator[Query]:
        """Yield the queries; see `GoldenSet.queries`."""
        return iter(self._questions.values())

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """Yield the queries with labels, with their grades; see `GoldenSet.by_query`."""
        qrels = qrels_of(self._given)
        docs = (qrels.docs.text(row) for row in range(len(qrels.grade)))
        rows = zip(qrels.query.tolist(), docs, qrels.grade.tolist(), strict=True)
        for number, found in groupby(rows, key=lambda row: row[0]):
            qid = qrels.qids[number]
            grades = tuple(LabelRecord(qid=qid, doc_id=doc_id, grade=grade) for _, doc_id, grade in found)
            yield GoldenQuery(qid, self._questions.get(qid), grades=grades)

    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        """Return the grades; see `GoldenSet.judgments`."""
        qrels: Qrels = qrels_of(self._given, scale)
        return Judgments(self.source, qrels, evidence=self.evidence())


def queries_of(given: object) -> dict[str, Query]:
    """Return queries by id, sorted by id.

    Args:
        given: ``{qid: text}``, or an iterable of queries or rows, or a table. Rows and tables have the same columns as
            files of queries. None if there are no queries.

    Raises:
        UsageError: `given` is not a mapping, a table or an iterable.
        DataError: a row is not a query, or an id occurs twice.
    """
    found: dict[str, Query] = {}
    for place, query in enumerate(_queries(given), start=1):
        if query.qid in found:
            raise DataError(f"query id {query.qid} occurs twice", where=QUERIES_PLACE, line=place, remedy="keep one")
        found[query.qid] = query
    return dict(sorted(found.items()))


def _queries(given: object) -> Iterator[Query]:
    if given is None:
        return
    if isinstance(given, Mapping) and not hasattr(given, "to_dict"):
        for key, text in given.items():
            yield _query(text if isinstance(text, Query) else {"qid": key, "text": text}, 0)
        return
    for place, row in enumerate(rows_of(given, "queries"), start=1):
        yield _query(row, place)


def _query(row: object, place: int) -> Query:
    if isinstance(row, Query):
        fields = row.model_dump(include={*Query.model_fields})
        return query_of(fields, QUERIES_PLACE, place)  # so that the text is cleaned as in a file or a mapping
    if not isinstance(row, Mapping):
        raise DataError(
            f"{describe_value(row)} is not a query",
            where=QUERIES_PLACE,
            line=place,
            remedy='e.g. {"qid": "q1", "text": "..."}',
        )
    plain = {str(key): value for key, value in row.items() if value is not None and value == value}
    for name in {"qid", "_id", "id", "query_id", "query-id"} & plain.keys():
        plain[name] = as_id(plain[name], "queries")
    return query_of(plain, QUERIES_PLACE, place)


class RewordedGolden(GoldenSet):
    """A golden set in which some queries have other texts.

    Args:
        golden: the golden set.
        questions: new queries by id. All other queries are unchanged. Ids that the set does not have appear in
            `queries`, but not in `by_query`.
    """

    def __init__(self, golden: GoldenSet, questions: Mapping[str, Query]) -> None:
        self._golden, self._questions = golden, questions
        self.name, self.source, self.top, self.provenance = golden.name, golden.source, golden.top, golden.provenance
        self.lacks, self.form, self.sure, self.partial = golden.lacks, golden.form, golden.sure, golden.partial
        self.by_grade, self.model_versions = golden.by_grade, golden.model_versions

    @property
    def made(self) -> tuple[str, ...]:
        """Sentences about how the queries were generated; see `GoldenSet.made`."""
        return self._golden.made

    def queries(self) -> Iterator[Query]:
        """Yield the queries; see `GoldenSet.queries`."""
        known = {query.qid: query for query in self._golden.queries()} | dict(self._questions)
        return iter(known[qid] for qid in sorted(known))

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """Yield the queries with their parts; see `GoldenSet.by_query`."""
        for each in self._golden.by_query(*parts):
            yield replace(each, query=self._questions.get(each.qid, each.query))

    def hits(self) -> Iterator[RetrieveRecord]:
        """Yield the retrieved lists; see `GoldenSet.hits`."""
        return self._golden.hits()

    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        """Return the grades; see `GoldenSet.judgments`."""
        return replace(self._golden.judgments(scale), evidence=self.evidence())


PACKED_COLUMN = "raggs"


def passage_facts(passage: Passage) -> dict[str, object]:
    """Return the data of a passage that the columns of a format do not include: its position in the corpus and its
    metadata, if any.
    """
    found = passage.model_dump(mode="json", include={"span", "metadata"}, exclude_none=True)
    return {name: value for name, value in found.items() if value}


def pack_facts(found: Query | Passage) -> str:
    """Return all additional data of a query or passage as JSON. The text is empty if there is none."""
    facts = query_facts(found) if isinstance(found, Query) else passage_facts(found)
    return json.dumps(facts, ensure_ascii=False) if facts else ""


def unpacked_query(query: Query) -> Query:
    """Return a query with its packed data restored, or the query itself if no readable data is packed. Invalid packed
    data is removed and not restored.
    """
    rest, facts = _facts(query)
    if facts is None:
        return query
    try:
        return Query.model_validate({"qid": query.qid, "text": query.text, **facts})
    except ValidationError:
        return query.model_copy(update={"metadata": rest})


def unpacked_passage(passage: Passage) -> Passage:
    """Return a passage with its packed data restored, or the passage itself if no readable data is packed. Invalid
    packed data is removed and not restored.
    """
    rest, facts = _facts(passage)
    if facts is None:
        return passage
    try:
        return Passage.model_validate({**passage.model_dump(exclude={"span", "metadata"}), **facts})
    except ValidationError:
        return passage.model_copy(update={"metadata": rest})


def _facts(found: Query | Passage) -> tuple[dict[str, object], dict[str, object] | None]:
    """Return the metadata without the packed data, and the packed data. The packed data is None if there is none, or if
    it is not valid JSON.
    """
    text = found.metadata.get(PACKED_COLUMN)
    rest = {name: value for name, value in found.metadata.items() if name != PACKED_COLUMN}
    if not isinstance(text, str):
        return rest, None
    try:
        return rest, dict(as_object(decode_json(text or "{}")))
    except ValueError:
        return rest, None


LABELS = ("qrels/test.tsv", "qrels.txt", "judgments.jsonl")
QUERIES = "queries.jsonl"


class FileGolden(GoldenSet):
    """Golden set of a file of labels, which has neither passages nor an order.

    Args:
        labels: the file of labels.
        questions: path of the file of queries, in the format of `queries: {type: jsonl}`.
        name: name of the set (default: name of the file).
        columns: names of columns, as in `--column`.

    Attributes:
        labels: the file of labels.
        query_file: the file of queries; None if there is none.
    """

    top = 0
    provenance = None

    def __init__(
        self, labels: Path, questions: Path | None = None, name: str = "", columns: ColumnNames = NO_COLUMNS
    ) -> None:
        self.name = name or labels.name
        self.columns = columns
        self.source = str(labels)
        self.lacks, self.model_versions = stated_lacks(labels), stated_model_versions(labels)
        self.labels = labels
        self.query_file = questions

    def queries(self) -> Iterator[Query]:
        """Yield the queries; see `GoldenSet.queries`.

        Raises:
            NotFoundError, DataError: the queries cannot be read.
        """
        if self.query_file is None:
            return
        from raggs.parts.queries.fields import load_queries
        from raggs.parts.queries.formats import JsonlQueries, JsonlQueriesConfig

        reader = JsonlQueries(JsonlQueriesConfig(path=self.query_file))
        yield from map(unpacked_query, load_queries(reader, self.query_file).values())

    def evidence(self) -> dict[str, Groups]:
        """Return the evidence sets by query; see `GoldenSet.evidence`."""
        # a file of a set without evidence is not parsed
        return super().evidence() if self.query_file and mentions(self.query_file, ["evidence"]) else {}

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """Yield the queries with labels, with their grades; see `GoldenSet.by_query`."""
        known, grades = {query.qid: query for query in self.queries()}, grades_of(self.labels, self.columns)
        for qid in sorted(grades):
            yield GoldenQuery(qid, known.get(qid), grades=tuple(grades[qid]))

    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        """Return the grades; see `GoldenSet.judgments`."""
        import numpy as np

        from raggs.golden.judgments import Judgments
        from raggs.metrics.columns import GradeScale
        from raggs.parts.run_files import read_judgments

        stated = stated_scale(self.labels)
        if stated and scale and (scale.low, scale.high) != (MIN_GRADE, MAX_GRADE):
            stated = None  # the scale of the caller is that of the original numbers
        qrels = read_judgments(self.labels, stated.scale if stated else scale, self.columns)
        if stated and stated.offset:
            grade = np.where(qrels.grade < 0, qrels.grade, qrels.grade + stated.offset)
            qrels = replace(qrels, grade=grade, scale=GradeScale.of(MIN_GRADE, MAX_GRADE))
        labels = self.labels
        return Judgments(
            self.source,
            qrels,
            origin=stated_origin(labels),
            warnings=tuple(stated_fall(labels)),
            sources=stated_sources(labels),
            evidence=self.evidence(),
            version=stated_version(labels),
        )


def grades_of(labels: Path, columns: ColumnNames = NO_COLUMNS) -> dict[str, list[JudgeRecord]]:
    """Return the labels of a file by query. A negative label means that the passage is unjudged. Grades are shifted to
    1 to 5 if the sidecar states how.

    Args:
        labels: the file of labels.
        columns: names of columns, as in `--column`.

    Raises:
        NotFoundError, DataError: see `read_labels`.
    """
    from raggs.parts.run_files import read_labels  # imported lazily: needs numpy

    stated = stated_scale(labels)
    lift = stated.offset if stated else 0
    found: dict[str, list[JudgeRecord]] = {}
    for label in read_labels(labels, columns):
        grade = label.grade + lift if label.grade >= 0 else None
        found.setdefault(label.qid, []).append(LabelRecord(qid=label.qid, doc_id=label.doc_id, grade=grade))
    return found


def labels_in(folder: Path) -> tuple[Path, Path | None] | None:
    """Return the paths of the labels and of the queries in a folder with a known layout. Return None if the folder has
    no labels, or several tables of labels in `qrels` without `test.tsv`. The path of the queries is None if there are
    none.

    Raises:
        DataError: there are several files of labels with known names, and no sidecar selects one of them.
    """
    stated = stated_labels(folder)
    known = [stated] if stated else [folder / name for name in LABELS if (folder / name).is_file()]
    if len(known) > 1:
        names = " and ".join(path.relative_to(folder).as_posix() for path in known)
        raise DataError(
            f"contains several files of labels: {names}",
            where=folder,
            remedy=f"give the path of one, for example {known[0]}",
        )
    if not known:
        tables = sorted((folder / "qrels").glob("*.tsv"))
        known = tables[: len(tables) == 1]
    questions = folder / QUERIES
    asked = questions.is_file() and questions.stat().st_size
    return (known[0], questions if asked else None) if known else None


M = TypeVar("M", bound=BaseModel)
JUDGMENTS, UNJUDGED, ORDER, CORPUS = "judgments.jsonl", "unjudged.jsonl", "order.jsonl", "corpus.jsonl"
LABEL_FIELDS = frozenset(  # fields of a line that are read as parts of the label
    (
        *("qid", "doc_id", "grade", "judge", "reason", "samples", "votes", "duplicate_of", "skipped", "error"),
        *Validity.model_fields,
    )
)
UNKNOWN_CONFIDENCE: Mapping[str, object] = {
    "grade": MIN_GRADE,
    "score": 0.0,
    "sigma": 0.0,
    "confidence": 0.5,
    "rank_low": 1,
    "rank_high": 1,
    "membership": 0.5,
    "exposures": 0,
}


class _LabelRow(NamedTuple):
    qid: str
    doc_id: str
    samples: tuple[int, ...]
    facet: str


class LinesGolden(FileGolden):
    """Golden set of the JSON lines that raggs exports: `judgments.jsonl`, with the files next to it (ungraded
    passages, the order, the texts).
    """

    def __init__(
        self, labels: Path, questions: Path | None = None, name: str = "", columns: ColumnNames = NO_COLUMNS
    ) -> None:
        super().__init__(labels, questions or _if_not_empty(labels.parent / QUERIES), name, columns)
        order, top = _if_not_empty(labels.parent / ORDER), sidecar(labels).get("top")
        self.top = top if isinstance(top, int) and order else 0
        self.sure = order is None or next((row.keys() >= CONFIDENCE_FIELDS for _, row in read_objects(order)), True)

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """Yield the queries with their parts; see `GoldenSet.by_query`.

        Raises:
            DataError: a line is invalid.
        """
        wanted, folder = parts or get_args(SetPart), self.labels.parent
        asked = {query.qid: query for query in self.queries()}
        grades = words_of(filter(None, (self.labels, _if_not_empty(folder / UNJUDGED))), self.columns)
        orders = orders_of(_if_not_empty(folder / ORDER)) if "order" in wanted else {}
        texts = _texts(_if_not_empty(folder / CORPUS), grades) if "pool" in wanted else {}
        for qid in sorted({*asked, *grades}):
            found = grades.get(qid, [])
            yield GoldenQuery(
                qid,
                asked.get(qid),
                tuple(texts[each.doc_id] for each in found if each.doc_id in texts),
                tuple(found) if "grades" in wanted else (),
                tuple(orders.get(qid, ())),
            )

    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        """Return the grades; see `GoldenSet.judgments`."""
        import numpy as np

        from raggs.metrics.columns import belief_of
        from raggs.metrics.unjudged import LabelUncertainty

        found = super().judgments(scale)
        # a stable sort, which gives the order of the columns
        rows = sorted(_rows(self.labels), key=lambda row: row.qid)
        sigma = _sigma(self.labels.parent / ORDER)
        doubt = LabelUncertainty(
            np.array([sigma.get((row.qid, row.doc_id), 0.0) for row in rows]), tuple(row.samples for row in rows)
        )
        belief = belief_of([(row.qid, row.doc_id) for row in rows], _scores_and_errors(self.labels.parent / ORDER))
        found = replace(found, qrels=replace(found.qrels, belief=belief))
        return replace(found, doubt=doubt, facets={row.doc_id: row.facet for row in rows})


def _rows(labels: Path) -> Iterator[_LabelRow]:
    for _, row in read_objects(labels):
        qid, doc_id = str(row.get("qid")), str(row.get("doc_id"))
        samples = tuple(each for each in as_list(row.get("samples")) if isinstance(each, int))
        yield _LabelRow(qid, doc_id, samples if len(samples) > 1 else (), as_text(row.get("duplicate_of")) or doc_id)


def _sigma(order: Path) -> dict[tuple[str, str], float]:
    """Return the standard error of each ranked passage that was shown to the judge. The mapping is empty if there is
    no order.
    """
    if not order.is_file():
        return {}
    found = ((row, row.get("sigma")) for _, row in read_objects(order) if row.get("exposures"))
    return {(str(row.get("qid")), str(row.get("doc_id"))): sigma for row, sigma in found if isinstance(sigma, float)}


def _scores_and_errors(order: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Return score and standard error of each ranked passage, without those that only their grade orders. The mapping
    is empty if there is no order, or if no passage was shown to the judge.
    """
    if not order.is_file():
        return {}
    rows = [row for _, row in read_objects(order)]
    if not any(row.get("exposures") for row in rows):
        return {}
    said = ((row, row.get("score"), row.get("sigma")) for row in rows)
    return {
        (str(row.get("qid")), str(row.get("doc_id"))): (float(score), float(sigma))
        for row, score, sigma in said
        if isinstance(score, int | float) and isinstance(sigma, int | float) and not row.get("unordered")
    }


def words_of(files: Iterable[Path], columns: ColumnNames = NO_COLUMNS) -> dict[str, list[JudgeRecord]]:
    """Return the labels in the given files by query.

    Args:
        files: the file of labels first, then files of passages without a grade.
        columns: names of fields, as in `--column`.

    Raises:
        NotFoundError, DataError: a file is missing, a line is invalid, or a query has the same passage twice.
    """
    grades: dict[str, list[JudgeRecord]] = {}
    places: dict[tuple[str, str], str] = {}
    for place, path in enumerate(files):
        seen = SeenPairs(path)
        for number, row in _named_rows(path, columns, LABEL_ROLES if place == 0 else LABEL_ROLES[:2]):
            if isinstance(row.get("grade"), bool):
                raise DataError(
                    "a grade is true or false, not a number", where=path, line=number, remedy="write a whole number"
                )
            word = _record(path, number, {name: row[name] for name in LABEL_FIELDS & row.keys()}, LabelRecord)
            check_ids(path, number, word.qid, word.doc_id)
            seen.note(word.qid, word.doc_id, number)
            first = places.setdefault((word.qid, word.doc_id), f"{path.name}:{number}")
            if first != f"{path.name}:{number}":
                said = f"query {word.qid} and passage {word.doc_id} occur twice (first in {first})"
                raise DataError(said, where=path, line=number, remedy="keep one")
            grades.setdefault(word.qid, []).append(word)
    return grades


def _named_rows(path: Path, columns: ColumnNames, required: tuple[str, ...]) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the objects of a file with raggs' field names. The objects of an export already have these names."""
    if sidecar(path):
        yield from read_objects(path)
        return
    known = ObjectColumns(path, LABEL_ROLES, columns, required)
    for number, row in read_objects(path):
        cells = known.cells(row, number)
        ids = {role: object_id(cells[role], path, number) for role in ("qid", "doc_id")}
        yield number, {**row, **cells, **ids}


def orders_of(path: Path | None) -> dict[str, list[RankRecord]]:
    """Return the order of each query. A missing grade is read as 1, and missing confidences get neutral values.

    Raises:
        DataError: a line is invalid, or a query has the same passage or rank twice.
    """
    orders: dict[str, list[RankRecord]] = {}
    places: dict[tuple[str, object], int] = {}
    for number, row in read_objects(path) if path else ():
        record = _record(path, number, {**UNKNOWN_CONFIDENCE, **row}, RankRecord)
        for what, value in (("passage", record.doc_id), ("rank", record.rank)):
            first = places.setdefault((record.qid, value), number)
            if first != number:
                said = f"{what} {value} of query {record.qid} occurs twice (first in line {first})"
                raise DataError(said, where=path, line=number, remedy="keep one")
        orders.setdefault(record.qid, []).append(record)
    return orders


def _record(path: Path | None, number: int, row: Mapping[str, object], model: type[M]) -> M:
    try:
        return model.model_validate(row)
    except ValidationError as error:
        said = first_fault(error)
        raise DataError(said, where=path, line=number, remedy="export it again, or correct the line") from error


def _if_not_empty(path: Path) -> Path | None:
    return path if path.is_file() and path.stat().st_size else None


def _texts(path: Path | None, grades: Mapping[str, Iterable[JudgeRecord]]) -> dict[str, Passage]:
    """Return the passages in a corpus file that are in `grades`, by id."""
    if path is None:
        return {}
    from raggs.parts.corpora.jsonl import JsonlConfig, JsonlCorpus  # imported lazily: scoring needs no texts

    wanted = {graded.doc_id for found in grades.values() for graded in found}
    passages = map(unpacked_passage, JsonlCorpus(JsonlConfig(path=path)).passages())
    return {passage.doc_id: passage for passage in passages if passage.doc_id in wanted}
