"""TREC and ranx files: qrels of all graded passages, and run files of the golden top, each retriever and their fusion.

When an export is repeated in the same folder, lists in `runs/` that only the earlier export wrote are deleted, unless
they were changed since. Files that are not from an export are kept.

ranx reads JSON objects ``{qid: {doc_id: number}}``. They are written with one query per line, so that memory use is
small.

`write_passages`, for other exporters, writes the whole corpus, or each pooled passage once. The default format
is that of `corpus: {type: jsonl}`.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import ClassVar
from urllib.parse import quote

from raggs.base.artifacts import Passage
from raggs.base.errors import DataError, RaggsError
from raggs.base.files import disk, read_lines, read_whole
from raggs.base.types import as_object
from raggs.golden.base import RUNS, GoldenContent, GoldenSet
from raggs.golden.files import grades_of, passage_facts
from raggs.golden.formats import (
    Exporter,
    ImportedSet,
    Importer,
    object_writer,
    write_lines,
    write_objects,
    write_routed_lines,
)
from raggs.golden.formats.labelled_files import (
    SetPieces,
    first_of,
    is_ours,
    labels_alone,
    missing_file_error,
    orders_of,
    with_runs,
)
from raggs.parts.file_shapes import GradeFormat, sidecar, stated_labels


@dataclass(frozen=True)
class QueryNumbers:
    """The values of one query that belong in one file."""

    path: Path
    qid: str
    numbers: Mapping[str, float]


def write_nested(rows: Iterable[QueryNumbers], *always: Path) -> dict[Path, int]:
    """Write the values of each query to its file, and return the number of values per file. Queries of different files
    may alternate.

    Args:
        rows: the queries with their values.
        always: files that are written even if they are empty.

    Raises:
        ProviderError: the disk failed.
    """
    counts: Counter[Path] = Counter(dict.fromkeys(always, 0))
    write_routed_lines(_lines(rows, counts))
    return dict(sorted(counts.items()))


def count_nested(path: Path) -> int | None:
    """Return the number of values in a file of this format, or None if the file cannot be read as JSON."""
    try:
        found = json.loads(read_whole(path))
    except (RaggsError, ValueError, RecursionError):
        return None
    return sum(len(as_object(numbers)) for numbers in as_object(found).values())


def _lines(rows: Iterable[QueryNumbers], counts: Counter[Path]) -> Iterator[tuple[Path, str]]:
    begun: set[Path] = set()
    for row in rows:
        sign = "," if row.path in begun else "{"
        begun.add(row.path)
        counts[row.path] += len(row.numbers)
        yield row.path, f"{sign}{_dump(row.qid)}: {_dump(row.numbers)}"
    for path in sorted(counts):
        yield path, "}" if path in begun else "{}"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


COLUMNS = "qid Q0 docid rank score tag"
TAG = "raggs-"
TOP = "run.trec"
BY_GRADE = "by_grade"  # marks lists that have no judged order and are sorted by grade, then by fused rank

Files = Mapping[str, Mapping[str, object]]  # maps the path of a file in the folder to its entry in the sidecar


def write_lists(golden: GoldenSet, folder: Path, labels: Path) -> Files:
    """Write the ranked top and the systems' lists; see `write_top` and `write_systems`.

    Raises:
        ProviderError: the folder is not writable.
    """
    return {**write_top(golden, folder), **write_systems(golden, folder, labels)}


def write_top(golden: GoldenSet, folder: Path) -> Files:
    """Write the ranked top as a run file, with decreasing scores that state only the order.

    If the set was made without an order (`rank: null`), all graded passages are written with their grades as scores, so
    that equal grades are tied.

    Raises:
        ProviderError: the folder is not writable.
    """
    rows = write_lines(folder / TOP, top_lines(golden))
    score = {"score": "grade", BY_GRADE: True} if golden.by_grade else {"score": "top + 1 - rank"}
    return {TOP: {"columns": COLUMNS, "rows": rows, **score}}


def write_systems(golden: GoldenSet, folder: Path, labels: Path) -> Files:
    """Write the lists of each retriever, and their fusion, as run files in `RUNS`.

    Args:
        golden: the golden set.
        folder: folder of the export.
        labels: file of labels, whose sidecar lists the files of the last export.

    Raises:
        ProviderError: the folder is not writable.
    """
    counts = write_routed_lines(_systems(golden, folder))
    remove_old(folder, labels, counts)
    return {path.relative_to(folder).as_posix(): {"columns": COLUMNS, "rows": rows} for path, rows in counts.items()}


def top_lines(golden: GoldenSet) -> Iterator[str]:
    """Yield the lines of the golden top. If the set was made without an order (`rank: null`), yield all graded
    passages, with their grades as scores.
    """
    tag = _tag(golden.name)
    for query in golden.by_query("grades") if golden.by_grade else ():
        for rank, each in enumerate(query.by_grade, start=1):
            yield f"{query.qid} Q0 {each.doc_id} {rank} {each.grade} {tag}-{BY_GRADE}"
    for record in (record for query in golden.by_query("order") for record in query.order):
        if record.rank <= golden.top:
            yield f"{record.qid} Q0 {record.doc_id} {record.rank} {golden.top + 1 - record.rank} {tag}"


def list_name(retriever: str) -> str:
    """Return a retriever's name as a file name, which `urllib.parse.unquote` decodes."""
    return quote(retriever, safe=" ")


def _systems(golden: GoldenSet, folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each line of each retriever's run file, with the path of the file."""
    for hit in golden.hits():
        path = folder / RUNS / f"{list_name(hit.retriever)}.trec"
        yield path, f"{hit.qid} Q0 {hit.doc_id} {hit.rank} {hit.score!r} {_tag(hit.retriever)}"


def remove_old(folder: Path, labels: Path, systems: Collection[Path]) -> None:
    """Delete the lists of the last export, according to its sidecar, that this export did not write.

    Args:
        folder: folder of the export.
        labels: file of labels that the sidecar belongs to.
        systems: the lists that this export wrote.

    Raises:
        ProviderError: a file cannot be deleted.
    """
    for name, facts in as_object(sidecar(labels).get("files")).items():
        path = folder / name
        known = PurePosixPath(name).parts[:-1] == (RUNS,) and path not in systems
        if known and _is_ours(path, as_object(facts).get("rows")):
            with disk(path, "export to another folder", "cannot be removed"):
                path.unlink()


def _is_ours(path: Path, rows: object) -> bool:
    """Return whether a file is unchanged since the export. A run file must have the stated number of lines, each
    with a tag of raggs. A JSON file must have the stated number of values.
    """
    if path.is_symlink() or not path.is_file():
        return False
    if path.suffix == ".json":
        return count_nested(path) == rows
    count = 0
    for count, line in enumerate(read_lines(path), start=1):  # noqa: B007 - counts the lines
        if not b"".join(line.split()[-1:]).startswith(TAG.encode()):
            return False
    return count == rows


def _tag(name: str) -> str:
    return TAG + re.sub(r"\s+", "-", name.strip())


PassageForm = Callable[[Passage], Mapping[str, object]]


def passage_object(passage: Passage) -> dict[str, object]:
    """Return a passage in the format of `corpus: {type: jsonl}`."""
    return {"_id": passage.doc_id, "title": passage.title, "text": passage.text, **passage_facts(passage)}


def write_passages(
    golden: GoldenSet, path: Path, whole: Iterable[Passage] | None, form: PassageForm = passage_object
) -> int:
    """Write the corpus in its original order, or every pooled passage once, sorted by id. Return the number of
    passages.

    Args:
        golden: the golden set.
        path: path of the file.
        whole: all passages, if requested and available.
        form: converts a passage to a row.

    Raises:
        ProviderError: the disk failed.
    """
    if whole is not None:
        return write_objects(path, map(form, whole))
    return write_lines(path, _pooled_passage_lines(golden, form))


def _pooled_passage_lines(golden: GoldenSet, form: PassageForm) -> Iterator[str]:
    """Yield each passage once, sorted by id. Texts are buffered in a temporary file, so memory holds only ids and
    offsets.
    """
    places: dict[str, int] = {}
    with tempfile.TemporaryFile() as spill, object_writer(spill) as writer:
        for passage in (passage for query in golden.by_query("pool") for passage in query.pool):
            if passage.doc_id not in places:
                places[passage.doc_id] = spill.tell()
                writer.write(form(passage))
        for doc_id in sorted(places):
            spill.seek(places[doc_id])
            yield spill.readline()[:-1].decode()


class TrecExporter(Exporter):
    """TREC qrels with gains, and run files of the ranked top and each retriever.

    `qrels.txt` contains `qid 0 docid gain` for each graded passage, including near-duplicates. Passages without a grade
    are omitted. `run.trec` contains `qid Q0 docid rank score tag`. Readers ignore ranks, sort by score and break ties
    by docid. The score is therefore top + 1 - rank: an integer, positive, and decreasing with every rank. This score
    states only the order. The ranker's scores are in the run's artifacts and in the `jsonl` export. In a set without an
    order (`rank: null`), the scores are the grades, equal grades are tied, and the tag ends in `-by_grade`. `runs/`
    contains the lists of each retriever, and their fusion, with their own scores.
    """

    FORMAT: ClassVar[str] = "trec"
    SIDECAR: ClassVar[str] = "qrels.txt.meta.json"
    LABELS: ClassVar[str] = "qrels.txt"
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = frozenset({"grades", "order", "lists"})

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files; see `Exporter.write`.

        Raises:
            ProviderError: the folder is not writable.
        """
        qrels, scale = folder / self.labels, self.options.scale
        judged = {self.labels: {"columns": f"qid 0 docid {scale.form}", "rows": write_qrels(golden, qrels, scale)}}
        files = {**judged, **write_lists(golden, folder, qrels)}
        sidecar = self.write_sidecar(golden, folder, files)
        return [*(folder / name for name in files), sidecar]


def write_qrels(golden: GoldenSet, path: Path, scale: GradeFormat) -> int:
    """Write all grades as TREC qrels, and return their number.

    Raises:
        ProviderError: the disk failed.
    """
    return write_lines(path, _qrels(golden, scale))


def _qrels(golden: GoldenSet, scale: GradeFormat) -> Iterator[str]:
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                yield f"{query.qid} 0 {graded.doc_id} {scale.written(graded.grade)}"


class TrecImporter(Importer):
    """TREC qrels, and run files next to them or in runs/.

    The path is a file of qrels, or a folder with `qrels.txt` or one file `*.qrels`. Files `*.trec` and `*.run` are run
    files.
    """

    FORMAT = "trec"

    def read(self, path: Path) -> ImportedSet:
        """Read the set; see `Importer.read`."""
        if not path.is_dir():
            return labels_alone(path, self.columns)
        labels = stated_labels(path) or self._only(path)
        if labels is None:
            raise missing_file_error(path, self.FORMAT, "qrels.txt, or one file *.qrels")
        return with_runs(path, labels, columns=self.columns)

    def _only(self, path: Path) -> Path | None:
        """Return the only file of qrels in a folder. Return None if there is none.

        Raises:
            DataError: the folder contains several files of qrels.
        """
        usual = [first_of(path, name) for name in ("qrels.txt", "qrels")]
        found = [*filter(None, usual), *sorted([*path.glob("*.qrels"), *path.glob("*.qrels.gz")])]
        if len(found) > 1:
            names = " and ".join(each.name for each in found[:3])
            raise DataError(
                f"contains several files of qrels: {names}", where=path, remedy=f"give the path of one: {found[0]}"
            )
        return found[0] if found else None


class RanxExporter(Exporter):
    """ranx: qrels with gains, the ranked top and each retriever's list as JSON.

    `qrels.json` contains each graded passage with its gain. `run.json` contains the ranked top with decreasing scores
    that state only the order. In a set without an order (`rank: null`), it contains all graded passages with their
    grades. `runs/` contains the lists of each retriever, and their fusion, with their own scores.
    """

    FORMAT: ClassVar[str] = "ranx"
    SIDECAR: ClassVar[str] = "qrels.json.meta.json"
    LABELS: ClassVar[str] = "qrels.json"
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = frozenset({"grades", "order", "lists"})

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files; see `Exporter.write`.

        Raises:
            ProviderError: the folder is not writable.
        """
        qrels, run = folder / self.labels, folder / "run.json"
        counts = write_nested(self._qrels(golden, qrels), qrels) | write_nested(_top(golden, run), run)
        lists = write_nested(_ranx_systems(golden, folder))
        remove_old(folder, qrels, lists)
        counts |= lists
        marked = {run: {BY_GRADE: True}} if golden.by_grade else {}
        files = {
            path.relative_to(folder).as_posix(): {"rows": rows, **marked.get(path, {})} for path, rows in counts.items()
        }
        return [*counts, self.write_sidecar(golden, folder, files)]

    def _qrels(self, golden: GoldenSet, path: Path) -> Iterator[QueryNumbers]:
        scale = self.options.scale
        for query in golden.by_query("grades"):
            found = {one.doc_id: scale.written(one.grade) for one in query.grades if one.grade is not None}
            if found:
                yield QueryNumbers(path, query.qid, found)


def _top(golden: GoldenSet, path: Path) -> Iterator[QueryNumbers]:
    for query in golden.by_query("grades" if golden.by_grade else "order"):
        found = {one.doc_id: golden.top + 1 - one.rank for one in query.order if one.rank <= golden.top}
        found |= {one.doc_id: one.grade for one in query.by_grade if one.grade is not None}
        if found:
            yield QueryNumbers(path, query.qid, found)


def _ranx_systems(golden: GoldenSet, folder: Path) -> Iterator[QueryNumbers]:
    for (retriever, qid), hits in groupby(golden.hits(), key=lambda hit: (hit.retriever, hit.qid)):
        path = folder / RUNS / f"{list_name(retriever)}.json"
        yield QueryNumbers(path, qid, {hit.doc_id: hit.score for hit in hits})


RANX_TOP = "run.json"


class RanxImporter(Importer):
    """ranx qrels, and run files in runs/: JSON objects {query: {passage: number}}.

    The path is a file of qrels, or a folder with `qrels.json`.
    """

    FORMAT = "ranx"

    def read(self, path: Path) -> ImportedSet:
        """Read the set; see `Importer.read`."""
        if not path.is_dir():
            return labels_alone(path, self.columns)
        labels = stated_labels(path) or first_of(path, "qrels.json")
        if labels is None:
            raise missing_file_error(path, self.FORMAT, "qrels.json")
        grades = grades_of(labels, self.columns)
        orders = orders_of(labels, path / RANX_TOP, grades)
        top = [each for each in path.glob(RANX_TOP) if each.stat().st_size and not is_ours(labels, each)]
        return SetPieces(labels, grades, orders, lists=[*top, *sorted((path / RUNS).glob("*.json"))]).put_together()
