"""Telling file formats apart by their first line, and reading those that are no TREC file.

A nested file is one JSON object ``{qid: {doc_id: number}}`` (ranx); a table has a header that names its columns
(BEIR's TSV, CSV); JSON lines have an object with the same names for each number. `raggs.base.tables` says which column
is which. Ids hold no white space, as TREC
tools could not read them back.

Pipes of the shell (``-r <(zcat run.gz)``), which give their bytes once, where a reader wants them several times.

A file is read for its format, by a fast way, and where that is not sure by a careful one. So what such a pipe gives is
copied whole before anything is read. Other pipes, which may never give anything, are left to be refused
(`raggs.base.files`).

On which numbers an export writes grades, and how its sidecar says so to whoever reads it again.

The tools of the field take a label for a gain and any label above 0 for relevant, so grades 1 to 5 as they are would
count "not relevant" as relevant. Exports therefore hold gains, and `eval` gets the grades back by the sidecar.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, get_args

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE
from raggs.base.errors import DataError, RaggsError, UsageError
from raggs.base.files import MAX_FILE_BYTES, disk, read_whole
from raggs.base.jsonl import raw_lines, read_objects
from raggs.base.tables import (
    DELIMITERS,
    LABEL_ROLES,
    NO_COLUMNS,
    RUN_ROLES,
    ColumnNames,
    ObjectColumns,
    names_a_pair,
    object_id,
    open_table,
)
from raggs.base.text import one_line
from raggs.base.trec import INTEGER, SeenPairs
from raggs.base.types import as_object, as_text

if TYPE_CHECKING:
    from raggs.metrics.columns import GradeScale

QRELS = ("qid", "0", "docid", "grade")
RUN = ("qid", "Q0", "docid", "rank", "score", "tag")
NESTED_REMEDY = "write {qid: {doc_id: number}}"


SURROGATE = re.compile("[\ud800-\udfff]")


class Shape(Enum):
    TREC = "trec"
    TABLE = "table"
    NESTED = "nested"
    LINES = "lines"


class NumberCell(NamedTuple):
    """A number for a query and a passage, as text; line 0 where the format has no lines.

    `rank`: as the file has it, empty if it has none.
    """

    line: int
    qid: str
    doc_id: str
    value: str
    rank: str = ""


def shape_of(path: Path, columns: ColumnNames = NO_COLUMNS) -> Shape:
    """The format of a file, by its first line.

    Args:
        columns: names of columns that `--column` says.

    Raises:
        NotFoundError, DataError: as `raw_lines`.
    """
    first = next(raw_lines(path, MAX_FILE_BYTES), (0, ""))[1].strip()
    if _trec(first.split()):
        return Shape.TREC  # also where an id looks like the beginning of another format
    if first.startswith("{"):
        return Shape.LINES if _keyed(first, columns) else Shape.NESTED
    return Shape.TABLE if _is_header(first, columns) else Shape.TREC


def table_cells(path: Path, columns: ColumnNames = NO_COLUMNS, *, graded: bool) -> Iterator[NumberCell]:
    """The rows of a table with a header.

    Args:
        path: the file.
        columns: which column is which, as `--column` says.
        graded: whether the numbers are grades, else scores.

    Raises:
        DataError: the header lacks a column or has two with the same meaning, a row has other columns than it, or an
            id is wrong.
    """
    required = LABEL_ROLES if graded else RUN_ROLES
    roles = required if graded else (*RUN_ROLES, "rank")
    seen = SeenPairs(path)
    for number, cells in open_table(path, roles, required, columns).rows:
        qid, doc_id, value = (cells[role].strip() for role in required)
        check_ids(path, number, qid, doc_id)
        seen.note(qid, doc_id, number)
        yield NumberCell(number, qid, doc_id, value, cells.get("rank", "").strip())


def line_cells(path: Path, columns: ColumnNames = NO_COLUMNS, *, graded: bool) -> Iterator[NumberCell]:
    """The numbers of JSON lines, an object each.

    Args:
        path: the file.
        columns: which field is which, as `--column` says.
        graded: whether the numbers are grades, else scores.

    Raises:
        DataError: an object lacks a name or has two with the same meaning, or an id or number is wrong.
    """
    required = LABEL_ROLES if graded else RUN_ROLES
    known = ObjectColumns(path, required if graded else (*RUN_ROLES, "rank"), columns, required)
    seen = SeenPairs(path)
    for number, row in read_objects(path):
        cells = known.cells(row, number)
        qid, doc_id = (object_id(cells[role], path, number) for role in ("qid", "doc_id"))
        check_ids(path, number, qid, doc_id)
        seen.note(qid, doc_id, number)
        rank = cells.get("rank")
        yield NumberCell(number, qid, doc_id, json.dumps(cells[required[-1]]), "" if rank is None else json.dumps(rank))


def nested_cells(path: Path) -> Iterator[NumberCell]:
    """The numbers of ``{qid: {doc_id: number}}``.

    Raises:
        DataError: not such an object, or a key that stands twice.
    """
    seen = SeenPairs(path)
    for qid, inner in _read_object(path).items():
        if not isinstance(inner, dict):
            message = f"query {qid} has no object of passages"
            raise DataError(message, where=path, remedy=NESTED_REMEDY)
        for doc_id, value in inner.items():
            if not isinstance(value, int | float) or isinstance(value, bool):
                message = f"query {qid}, passage {doc_id}: {json.dumps(value)} is not a number"
                raise DataError(message, where=path, remedy=NESTED_REMEDY)
            check_ids(path, None, qid, doc_id)
            seen.note(qid, doc_id, 0)
            yield NumberCell(
                0, qid, doc_id, str(int(value) if isinstance(value, float) and value.is_integer() else value)
            )


def _read_object(path: Path) -> dict[str, Any]:
    text = "".join(line for _, line in raw_lines(path, MAX_FILE_BYTES))
    try:
        found = json.loads(text, object_pairs_hook=lambda pairs: _unique_object(pairs, path))
    except json.JSONDecodeError as error:
        raise DataError(f"not valid JSON ({error.msg})", where=path, line=error.lineno, remedy="mend it") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        raise DataError(f"not valid JSON ({error})", where=path, remedy=NESTED_REMEDY) from error
    if not isinstance(found, dict):
        raise DataError("not a JSON object", where=path, remedy=NESTED_REMEDY)
    return found


def _unique_object(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{one_line(twice)!r} stands twice", where=path, remedy="keep one")
    return found


def _trec(columns: list[str]) -> bool:
    """Whether the columns of a first line can only be those of a TREC file."""
    if len(columns) == len(QRELS):
        return INTEGER.fullmatch(columns[-1]) is not None
    return len(columns) == len(RUN) and columns[1] == RUN[1]


def _keyed(line: str, columns: ColumnNames) -> bool:
    """Whether a line is an object whose names are those of columns: not one whose values are objects of passages."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and names_a_pair([str(name) for name in found], columns)


def _is_header(line: str, columns: ColumnNames) -> bool:
    """Whether a line names at least three columns, a query and a passage among them."""
    for delimiter in DELIMITERS:
        names = [name.strip().strip('"') for name in line.split(delimiter)]
        if len(names) > 2 and names_a_pair(names, columns):
            return True
    return False


def check_ids(path: Path, line: int | None, *ids: str) -> None:
    """Refuse ids that files cannot hold.

    Raises:
        DataError: one is empty, or holds white space, NUL, or half of a surrogate pair.
    """
    for name in ids:
        if name.split() != [name]:
            said = f"id {one_line(name)!r} holds white space" if name.strip() else "an id is empty"
            raise DataError(said, where=path, line=line, remedy="ids are words without spaces")
        if "\0" in name or SURROGATE.search(name):
            raise DataError(f"id {name!a} is no text", where=path, line=line, remedy="write ids in Unicode")


MAX_PIPE_BYTES = 1 << 33  # bytes
COPY_BLOCK_BYTES = 1 << 20
SHELL = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")  # where a shell puts them
WRITE_IT = "write what it gives into a file first"


@contextmanager
def replayable(path: Path) -> Iterator[Path]:
    """A path that can be read several times: the same, or for a pipe of the shell a copy of all that it gives.

    Errors that name the copy are made to name the pipe.

    Raises:
        DataError: the pipe gives nothing, or more than `MAX_PIPE_BYTES` bytes.
        ProviderError: the disk has no room for the copy.
    """
    if not _of_the_shell(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="raggs-") as folder:
        copy = Path(folder) / path.name
        _spool(path, copy)
        try:
            yield copy
        except RaggsError as error:
            error.where = str(path) if error.where == str(copy) else error.where
            raise


def _of_the_shell(path: Path) -> bool:
    try:
        return str(path).startswith(SHELL) and stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _spool(path: Path, copy: Path) -> None:
    with disk(path, WRITE_IT, "cannot be copied"), path.open("rb") as pipe, copy.open("wb") as target:
        shutil.copyfileobj(_Limited(pipe, path), target, COPY_BLOCK_BYTES)
    if not copy.stat().st_size:
        raise DataError("gives nothing; a pipe gives its content only once", where=path, remedy=WRITE_IT)


class _Limited:
    """A pipe up to `MAX_PIPE_BYTES` bytes."""

    def __init__(self, pipe: BinaryIO, path: Path) -> None:
        self._pipe, self._path, self._left = pipe, path, MAX_PIPE_BYTES

    def read(self, size: int = COPY_BLOCK_BYTES) -> bytes:
        block = self._pipe.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise DataError(f"gives more than {MAX_PIPE_BYTES >> 30} GiB", where=self._path, remedy=WRITE_IT)
        return block


GradeForm = Literal["gain", "raw", "binary"]
RELEVANT = 4  # the lowest grade that counts where relevance is yes or no


@dataclass(frozen=True)
class GradeFormat:
    """How a grade is written.

    Attributes:
        form: gain: grade - 1, so 0 to 4; raw: the grade, 1 to 5; binary: 1 for grades from `binary_at` on, else 0.
        binary_at: 2 to 5.

    Raises:
        UsageError: `binary_at` divides nothing.
    """

    form: GradeForm = "gain"
    binary_at: int = RELEVANT

    def __post_init__(self) -> None:
        if not MIN_GRADE < self.binary_at <= MAX_GRADE:
            said = f"relevance from grade {self.binary_at} on divides nothing"
            raise UsageError(said, remedy=f"--binary-at {MIN_GRADE + 1} to {MAX_GRADE}")

    @property
    def offset(self) -> int:
        """What a written number lacks to its grade; 0 for numbers that are no grades."""
        return MIN_GRADE if self.form == "gain" else 0

    def written(self, grade: int) -> int:
        """The number that stands for `grade`."""
        return int(grade >= self.binary_at) if self.form == "binary" else grade - self.offset

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest number."""
        return self.written(MIN_GRADE), self.written(MAX_GRADE)

    @property
    def scale(self) -> GradeScale:
        """What the numbers in a file mean to measures."""
        from raggs.metrics.columns import GradeScale  # late: an export needs no columns

        return GradeScale.of(*self.ends)

    def described(self) -> dict[str, object]:
        """What a sidecar says of the numbers."""
        low, high = self.ends
        relevant = self.written(RELEVANT) or 1
        known: dict[str, object] = {"scale": self.form, "minimum": low, "maximum": high}
        if self.form == "binary":
            return {**known, "binary_at": self.binary_at, "meaning": f"1: grade {self.binary_at} or more of 5; 0: less"}
        what = "gain = grade - 1" if self.form == "gain" else "grade"
        threshold = f"give binary measures a threshold: P(rel={relevant})@10 counts grades {RELEVANT} and {MAX_GRADE}"
        note = (
            threshold if self.form == "gain" else f"tools take a label for a gain, and {low} for relevant; {threshold}"
        )
        meaning = f"{what}: utility for answering the query; {low} = not relevant, {high} = answers it"
        return {**known, "relevant": relevant, "meaning": meaning, "note": note}


AS_GRADED = GradeFormat("raw")  # of a run, and of labels that are read as its grades


def stated_scale(labels: Path) -> GradeFormat | None:
    """The scale that an export's sidecar states for a file of labels; None where none speaks of it."""
    return _scale(as_object(sidecar(labels).get("grades")))


def sidecar(labels: Path) -> Mapping[str, object]:
    """What an export's sidecar says of a file of labels; empty where none speaks of it."""
    for path in _sidecars(labels):
        meta = read_sidecar(path)
        if labels.relative_to(path.parent).as_posix() in as_object(meta.get("files")):
            return meta
    return {}


def stated_labels(folder: Path) -> Path | None:
    """The file of labels that the sidecar of an export names in its folder; None where none does."""
    for path in sorted(folder.glob("*meta.json")):
        name = as_text(read_sidecar(path).get("labels"))
        parts = PurePosixPath(name or "..").parts
        if ".." not in parts and not PurePosixPath(*parts).is_absolute() and (folder / Path(*parts)).is_file():
            return folder / Path(*parts)
    return None


def stated_name(labels: Path) -> str | None:
    """The format of the export that a file of labels is of; None where no sidecar says."""
    return as_text(sidecar(labels).get("format"))


def stated_format(path: Path) -> str | None:
    """The format of the export that a sidecar is of, empty where it does not say; None where it is no sidecar."""
    meta = read_sidecar(path)
    return (as_text(meta.get("format")) or "") if as_object(meta.get("files")) else None


def read_sidecar(path: Path) -> Mapping[str, object]:
    """What a sidecar says; nothing where it is missing, or no object of JSON."""
    try:
        return as_object(json.loads(read_whole(path)))
    except (RaggsError, ValueError, RecursionError):
        return {}


def _sidecars(labels: Path) -> tuple[Path, ...]:
    folder = labels.parent
    return (
        folder / f"{labels.name}.meta.json",
        folder / "golden.jsonl.meta.json",
        folder / "meta.json",
        folder.parent / "meta.json",
    )


def _scale(stated: object) -> GradeFormat | None:
    found = as_object(stated)
    at = found.get("binary_at", RELEVANT)
    for form in get_args(GradeForm):
        if found.get("scale") == form and isinstance(at, int) and MIN_GRADE < at <= MAX_GRADE:
            return GradeFormat(form, at)
    return None
