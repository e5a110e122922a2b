"""Readers of the pieces of a format: labels, queries, passages, an order, and systems' lists."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord, Passage, Query, RankRecord, RetrieveRecord
from raggs.base.errors import DataError, NotFoundError
from raggs.base.jsonl import read_objects
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.base.text import plural
from raggs.base.trec import SeenPairs, same_looks
from raggs.base.types import as_object
from raggs.golden.base import RUNS, GoldenQuery
from raggs.golden.files import grades_of, unpacked_passage, unpacked_query
from raggs.golden.formats import ImportedSet, stated_contents, stated_provenance
from raggs.golden.judgments import stated_lacks, stated_model_versions
from raggs.parts.corpora.jsonl import ID_FIELDS, JsonlConfig, JsonlCorpus
from raggs.parts.file_shapes import AS_GRADED, GradeFormat, sidecar, stated_scale
from raggs.parts.queries.fields import load_numbered
from raggs.parts.queries.formats import JsonlQueries, JsonlQueriesConfig

TEST = "test"  # split that is read by default
MAX_SHOWN_NAMES = 3  # maximum number of ids in a message
# texts that other tools write for missing values
MISSING_VALUES = frozenset({"nan", "NaN", "None", "null", "NULL", "<NA>", "undefined"})
PLURALS = {"query": "queries", "passage": "passages"}
TOP = "run.trec"  # the ranked top, in exports with an order

Grades = Mapping[str, Sequence[JudgeRecord]]  # keyed by query
Orders = Mapping[str, Sequence[RankRecord]]


@dataclass(frozen=True)
class SetPieces:
    """Locations of the files of a golden set. A missing file is None.

    Attributes:
        labels: the file of labels.
        grades, orders: grades and orders by query, already read.
        sure: whether the orders have confidences.
        questions: path of the file of queries.
        corpus: path of the file of passages.
        lists: paths of the systems' lists.
        kept: object that must exist as long as temporary files are needed.
        notes: sentences about data that was not read.
    """

    labels: Path
    grades: Grades
    orders: Orders = field(default_factory=dict)
    sure: bool = False
    questions: Path | None = None
    corpus: Path | None = None
    lists: Sequence[Path] = ()
    kept: object = None
    notes: tuple[str, ...] = ()

    def put_together(self) -> ImportedSet:
        """Return the golden set that these files contain.

        Raises:
            NotFoundError, DataError: queries or passages cannot be read, two passages have the same id, or labels have
                no id in common with the queries or passages.
        """
        meta, corpus = sidecar(self.labels), self.corpus
        asked = questions_of(self.questions) if self.questions else {}
        wanted = {graded.doc_id for found in self.grades.values() for graded in found}
        texts, notes = judged_texts(corpus, wanted, self.labels) if corpus else ({}, [])
        if self.questions and asked:
            notes = [*unmatched("query", {*self.grades}, asked, self.labels, self.questions), *notes]
        top, name = meta.get("top"), meta.get("name")
        return ImportedSet(
            name=name if isinstance(name, str) else self.labels.name,
            source=str(self.labels),
            given=tuple(self._query(qid, asked.get(qid), texts) for qid in sorted({*asked, *self.grades})),
            top=top if isinstance(top, int) and self.orders else 0,
            form=form_of(self.labels),
            sure=self.sure,
            provenance=stated_provenance(self.labels),
            lists=lambda: hits_of(self.lists),
            corpus=(lambda: passages_of(corpus)) if corpus else None,
            stated=stated_contents(self.labels),
            lacks=stated_lacks(self.labels),
            model_versions=stated_model_versions(self.labels),
            kept=self.kept,
            notes=(
                *self.notes,
                *notes,
                *missing_values({*self.grades}, wanted),
            ),
        )

    def _query(self, qid: str, query: Query | None, texts: Mapping[str, Passage]) -> GoldenQuery:
        grades = tuple(self.grades.get(qid, ()))
        pool = tuple(texts[graded.doc_id] for graded in grades if graded.doc_id in texts)
        return GoldenQuery(qid, query, pool, grades, tuple(self.orders.get(qid, ())))


def labels_alone(path: Path, columns: ColumnNames = NO_COLUMNS) -> ImportedSet:
    """Return the golden set of a file of labels, without queries, passages or lists.

    Raises:
        NotFoundError, DataError: the file cannot be read.
    """
    return SetPieces(path, grades_of(path, columns)).put_together()


def with_runs(
    folder: Path,
    labels: Path,
    questions: Path | None = None,
    corpus: Path | None = None,
    columns: ColumnNames = NO_COLUMNS,
) -> ImportedSet:
    """Return the golden set of a file of labels, with the run files in its folder.

    Raises:
        NotFoundError, DataError: a file cannot be read.
    """
    grades = grades_of(labels, columns)
    orders, lists = runs_beside(folder, labels, grades)
    return SetPieces(labels, grades, orders, questions=questions, corpus=corpus, lists=lists).put_together()


def form_of(labels: Path) -> GradeFormat | None:
    """Return the numeric format that the grades have after reading, which converts the gains of a raggs export back to
    grades. Return None if no sidecar states a format.
    """
    stated = stated_scale(labels)
    return AS_GRADED if stated and stated.offset else stated


def questions_of(path: Path) -> dict[str, Query]:
    """Return the queries of a file by id. The mapping is empty if the file is empty.

    Raises:
        NotFoundError, DataError: the file cannot be read.
    """
    if not path.stat().st_size:
        return {}
    reader = JsonlQueries(JsonlQueriesConfig(path=path))
    found, seen = load_numbered(reader, path), SeenPairs(path)
    for qid, (line, _) in found.items():
        if not qid.isascii():
            seen.note_form(qid, line)
    return {qid: unpacked_query(query) for qid, (_, query) in found.items()}


def passages_of(path: Path) -> Iterator[Passage]:
    """Return the passages of a file.

    Raises:
        NotFoundError, DataError: the file cannot be read.
    """
    return map(unpacked_passage, JsonlCorpus(JsonlConfig(path=path)).passages())


def judged_texts(corpus: Path, wanted: Set[str], labels: Path) -> tuple[dict[str, Passage], list[str]]:
    """Return the judged passages of a corpus by id, and sentences about inconsistencies.

    The corpus is read as a stream. For the other passages, only hashes of their ids are kept.

    Raises:
        NotFoundError, DataError: the corpus cannot be read, an id occurs twice, or no judged passage is in the corpus.
    """
    reader = JsonlCorpus(JsonlConfig(path=corpus))
    texts: dict[str, Passage] = {}
    hashes = array("q")
    for passage in reader.passages():
        hashes.append(hash(_comparable_name(passage.doc_id)))
        if passage.doc_id in wanted:
            texts[passage.doc_id] = unpacked_passage(passage)
    if len(set(hashes)) < len(hashes):
        _refuse_twice(corpus, {each for each, count in Counter(hashes).items() if count > 1})
    empty = {each.doc_id for each in reader.left_out}
    notes = [f"{plural(len(empty), 'passage')} without text omitted: {_shorten_names(empty)}"] if empty else []
    if hashes or empty:
        notes += unmatched("passage", wanted, {**texts, **dict.fromkeys(empty)}, labels, corpus)
    return texts, notes


def _refuse_twice(corpus: Path, hashes: Set[int]) -> None:
    """Raise an error that names an id that occurs twice, or two ids that look the same, and their lines."""
    lines: dict[str, tuple[int, str]] = {}
    for number, row in read_objects(corpus):
        doc_id = next((str(row[name]) for name in ID_FIELDS if name in row), "")
        if hash(_comparable_name(doc_id)) not in hashes:
            continue
        first, name = lines.setdefault(_comparable_name(doc_id), (number, doc_id))
        if first != number:
            said = f"passage id {doc_id} occurs twice (first in line {first})"
            if name != doc_id:
                said = f"passage ids {name!a} (line {first}) and {doc_id!a} look the same"
            raise DataError(said, where=corpus, line=number, remedy="give each passage a unique id")


def _comparable_name(name: str) -> str:
    return name if name.isascii() else same_looks(name)


def unmatched(what: str, judged: Set[str], known: Collection[str], labels: Path, other: Path) -> list[str]:
    """Return a sentence about judged ids that do not occur in another file.

    Args:
        what: "query" or "passage".
        judged: ids in the file of labels.
        known: ids in the other file, or at least those that are judged.
        labels: the file of labels.
        other: the other file.

    Raises:
        DataError: all ids are missing, or two ids look the same.
    """
    lost = judged - set(known)
    if not lost or not judged:
        return []
    forms = {_comparable_name(name): name for name in known if not name.isascii()} if known else {}
    for name in sorted(lost):
        if not name.isascii() and (near := forms.get(_comparable_name(name))):
            said = f"{what} {name!a} of {labels.name} and {near!a} of {other.name} look the same"
            raise DataError(said, where=labels, remedy="write both in the same Unicode form (NFC)")
    if len(lost) == len(judged):
        said = f"none of the judged {PLURALS[what]} ({_shorten_names(lost)}) is in {other.name}"
        found = f", which contains ids such as {_shorten_names(set(known))}" if known else ""
        raise DataError(f"{said}{found}", where=labels, remedy=f"write the ids in the same way, or remove {other.name}")
    return [f"{len(lost):,} of {len(judged):,} judged {PLURALS[what]} are not in {other.name}: {_shorten_names(lost)}"]


def missing_values(*ids: Set[str]) -> list[str]:
    """Return a sentence about ids that look like missing values in files of other tools, for example "nan"."""
    found = sorted({name for each in ids for name in each & MISSING_VALUES})
    return [f"ids such as {found[0]!r} often stand for a missing value"] if found else []


def _shorten_names(names: Set[str]) -> str:
    more = ", ..." if len(names) > MAX_SHOWN_NAMES else ""
    return ", ".join(sorted(names)[:MAX_SHOWN_NAMES]) + more


def orders_of(labels: Path, path: Path, grades: Grades) -> dict[str, list[RankRecord]]:
    """Return the order that an export of raggs wrote as a run file. The mapping is empty for files of other tools, and
    if the set has no order.

    The scores in the file state only the order, so the confidences of the records are meaningless.
    """
    facts = as_object(as_object(sidecar(labels).get("files")).get(path.name))
    if not is_ours(labels, path) or facts.get("rows") == 0 or facts.get("by_grade"):
        return {}
    known = {(qid, graded.doc_id): graded.grade for qid, found in grades.items() for graded in found}
    orders: dict[str, list[RankRecord]] = {}
    for hit in hits_of([path]):
        grade = known.get((hit.qid, hit.doc_id))
        if grade is not None:
            orders.setdefault(hit.qid, []).append(rank_record(hit, grade))
    return orders


def runs_beside(folder: Path, labels: Path, grades: Grades) -> tuple[dict[str, list[RankRecord]], list[Path]]:
    """Return the order that an export wrote as a TREC run, and the files of systems' lists in the folder and in runs/.

    Raises:
        NotFoundError, DataError: see `read_run`.
    """
    top, places = folder / TOP, (folder, folder / RUNS)
    found = [each for place in places for pattern in ("*.trec", "*.run") for each in place.glob(pattern)]
    lists = [each for each in found if each.stat().st_size and not (each == top and is_ours(labels, top))]
    return orders_of(labels, top, grades), sorted(lists)


def is_ours(labels: Path, path: Path) -> bool:
    """Return whether the sidecar of the labels lists this file, and the file exists and is not empty."""
    written = as_object(sidecar(labels).get("files"))
    return path.name in written and path.is_file() and path.stat().st_size > 0


def rank_record(hit: RetrieveRecord, grade: int) -> RankRecord:
    """Return the record of a passage in an order that has no confidences."""
    return RankRecord(
        qid=hit.qid,
        rank=hit.rank,
        doc_id=hit.doc_id,
        grade=min(max(grade, MIN_GRADE), MAX_GRADE),  # this limit affects only grades of other tools
        score=hit.score,
        sigma=0,
        confidence=0.5,
        rank_low=1,
        rank_high=hit.rank,
        membership=0.5,
        exposures=0,
    )


def hits_of(paths: Iterable[Path]) -> Iterator[RetrieveRecord]:
    """Yield the hits in the given files. Each file is named after its system. Ties are ordered as in trec_eval. Query
    ids descend within a file.

    Raises:
        NotFoundError, DataError: see `read_run`.
    """
    import numpy as np

    from raggs.parts.run_files import read_run  # imported lazily: needs numpy

    for path in paths:
        run, name = read_run(path), unquote(path.name.removesuffix(".gz").rpartition(".")[0])
        docs = [doc.decode() for doc in run.docs.take(np.arange(len(run.query))).tolist()]
        rows = sorted(
            zip(run.query.tolist(), run.score.tolist(), docs, strict=True),
            key=lambda row: (row[0], row[1], row[2]),
            reverse=True,
        )
        for number, hits in groupby(rows, key=lambda row: row[0]):
            for rank, (_, score, doc_id) in enumerate(hits, start=1):
                yield RetrieveRecord(qid=run.qids[number], retriever=name, rank=rank, doc_id=doc_id, score=score)


def first_of(folder: Path, *names: str) -> Path | None:
    """Return the path of the first named file that exists and is not empty, either plain or as ``.gz``.

    Raises:
        DataError: both the plain file and the ``.gz`` file exist, and they may differ.
    """
    for name in names:
        found = [folder / f"{name}{ending}" for ending in ("", ".gz")]
        found = [path for path in found if path.is_file() and path.stat().st_size]
        if len(found) > 1:
            raise DataError(f"contains {name} and {name}.gz", where=folder, remedy="remove one of them")
        if found:
            return found[0]
    return None


def missing_file_error(folder: Path, format_: str, wanted: str) -> NotFoundError:
    """Return the error to raise for a folder without files of a format."""
    return NotFoundError(f"contains no set in the format {format_}", where=folder, remedy=f"it must contain {wanted}")
