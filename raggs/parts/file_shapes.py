"""File formats of labels and lists: detection by the first line, readers of non-TREC formats, pipes and sidecars.

Formats: a nested file is one JSON object ``{qid: {doc_id: number}}`` (ranx). A table has a header that names its
columns (BEIR's TSV, CSV). JSON lines contain one object per number; its keys are the same names as in a table's header.
`raggs.base.tables` finds the columns by these names. Ids must not contain white space, because TREC tools could not
read them.

Pipes: a shell pipe (``-r <(zcat run.gz)``) can be read only once, but its content is needed several times: to detect
the format, and for a fast and a careful parser. The pipe's content is therefore copied to a file first. Other pipes,
which may never end, are rejected (`raggs.base.files`).

Sidecars: a sidecar is a JSON file next to the labels; an export stores the scale of its grades there. Common tools
interpret a label as a gain, and any label above 0 as relevant. With plain grades 1 to 5, such tools would count "not
relevant" as relevant. By default, exports therefore contain gains, and `eval` restores the grades with the sidecar.
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

LATENCY = "latency_ms"  # optional column of run files, repeated in each row of a query
QRELS = ("qid", "0", "docid", "grade")
RUN = ("qid", "Q0", "docid", "rank", "score", "tag")
NESTED_REMEDY = "write {qid: {doc_id: number}}"
LINES_REMEDY = "pass labels (qid, doc_id, grade) or results (qid, doc_id, score)"


SURROGATE = re.compile("[\ud800-\udfff]")


class Shape(Enum):
    TREC = "trec"
    TABLE = "table"
    NESTED = "nested"
    LINES = "lines"


class NumberCell(NamedTuple):
    """A number for a query and a passage, as text; `line` is 0 for formats without lines.

    `rank` is the rank in the file, or empty. `latency` is the latency of the search in ms, or empty.
    """

    line: int
    qid: str
    doc_id: str
    value: str
    rank: str = ""
    latency: str = ""


def shape_of(path: Path, columns: ColumnNames = NO_COLUMNS) -> Shape:
    """Return the format of a file, detected by its first line.

    Args:
        columns: column names from `--column`.

    Raises:
        NotFoundError, DataError: see `raw_lines`.
    """
    first = next(raw_lines(path, MAX_FILE_BYTES), (0, ""))[1].strip()
    if _trec(first.split()):
        return Shape.TREC  # TREC is checked first, because an id may look like the start of another format
    if first.startswith("{"):
        return Shape.LINES if _keyed(first, columns) else Shape.NESTED
    return Shape.TABLE if _is_header(first, columns) else Shape.TREC


def table_cells(path: Path, columns: ColumnNames = NO_COLUMNS, *, graded: bool) -> Iterator[NumberCell]:
    """Yield the rows of a table with a header.

    Args:
        path: file to read.
        columns: column names from `--column`.
        graded: whether the numbers are grades; otherwise they are scores.

    Raises:
        DataError: a column is missing or ambiguous, a row does not fit the header, an id is invalid, or a passage of a
            query occurs twice.
    """
    required = LABEL_ROLES if graded else RUN_ROLES
    roles = required if graded else (*RUN_ROLES, "rank", LATENCY)
    seen = SeenPairs(path)
    for number, cells in open_table(path, roles, required, columns).rows:
        qid, doc_id, value = (cells[role].strip() for role in required)
        check_ids(path, number, qid, doc_id)
        seen.note(qid, doc_id, number)
        yield NumberCell(number, qid, doc_id, value, cells.get("rank", "").strip(), cells.get(LATENCY, "").strip())


def line_cells(path: Path, columns: ColumnNames = NO_COLUMNS, *, graded: bool) -> Iterator[NumberCell]:
    """Yield the numbers of JSON lines, each of which contains one object.

    Args:
        path: file to read.
        columns: key names from `--column`.
        graded: whether the numbers are grades; otherwise they are scores.

    Raises:
        DataError: a key is missing or ambiguous, an id is invalid, or a passage of a query occurs twice. Callers check
            the numbers.
    """
    required = LABEL_ROLES if graded else RUN_ROLES
    known = ObjectColumns(path, required if graded else (*RUN_ROLES, "rank", LATENCY), columns, required)
    seen = SeenPairs(path)
    for number, row in read_objects(path):
        cells = known.cells(row, number)
        qid, doc_id = (object_id(cells[role], path, number) for role in ("qid", "doc_id"))
        check_ids(path, number, qid, doc_id)
        seen.note(qid, doc_id, number)
        rank, latency = ("" if (value := cells.get(role)) is None else json.dumps(value) for role in ("rank", LATENCY))
        yield NumberCell(number, qid, doc_id, json.dumps(cells[required[-1]]), rank, latency)


def nested_cells(path: Path) -> Iterator[NumberCell]:
    """Yield the numbers of ``{qid: {doc_id: number}}``.

    Raises:
        DataError: the file has another form, contains a key twice, or an id is invalid.
    """
    seen = SeenPairs(path)
    for qid, inner in _read_object(path).items():
        if not isinstance(inner, dict):
            message = f"the value of query {qid} is not an object of passages"
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
        if error.msg == "Extra data" and text[error.pos] == "{":
            message = "JSON lines whose keys do not name the query and the passage"
            raise DataError(message, where=path, line=1, remedy=LINES_REMEDY) from error
        raise DataError(
            f"not valid JSON ({error.msg})", where=path, line=error.lineno, remedy="fix the syntax"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or a thousand nested brackets
        raise DataError(f"not valid JSON ({error})", where=path, remedy=NESTED_REMEDY) from error
    if not isinstance(found, dict):
        raise DataError("not a JSON object", where=path, remedy=NESTED_REMEDY)
    return found


def _unique_object(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"duplicate key {one_line(twice)!r}", where=path, remedy="remove one of them")
    return found


def _trec(columns: list[str]) -> bool:
    """Return whether a first line with these columns belongs to a TREC file and to no other format."""
    if len(columns) == len(QRELS):
        return INTEGER.fullmatch(columns[-1]) is not None
    return len(columns) == len(RUN) and columns[1] == RUN[1]


def _keyed(line: str, columns: ColumnNames) -> bool:
    """Return whether a line is an object whose keys are column names, not a nested object of queries and passages."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and names_a_pair([str(name) for name in found], columns)


def _is_header(line: str, columns: ColumnNames) -> bool:
    """Return whether a line has at least three column names, of which one names the query and one the passage."""
    for delimiter in DELIMITERS:
        names = [name.strip().strip('"') for name in line.split(delimiter)]
        if len(names) > 2 and names_a_pair(names, columns):
            return True
    return False


def check_ids(path: Path, line: int | None, *ids: str) -> None:
    """Raise an error if a file format cannot represent one of the ids.

    Raises:
        DataError: an id is empty, or contains white space, NUL or a lone surrogate.
    """
    for name in ids:
        if name.split() != [name]:
            said = f"id {one_line(name)!r} contains white space" if name.strip() else "an id is empty"
            raise DataError(said, where=path, line=line, remedy="use ids without spaces")
        if "\0" in name or SURROGATE.search(name):
            raise DataError(f"id {name!a} is not valid Unicode text", where=path, line=line, remedy="change the id")


MAX_PIPE_BYTES = 1 << 33
COPY_BLOCK_BYTES = 1 << 20
SHELL = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")  # beginnings of the paths of shell pipes
WRITE_IT = "write its content to a file first"


@contextmanager
def replayable(path: Path) -> Iterator[Path]:
    """Yield a path that can be read several times: `path`, or a temporary copy of a shell pipe.

    In error messages, the name of the copy is replaced by the name of the pipe.

    Raises:
        DataError: the pipe is empty, or has more than `MAX_PIPE_BYTES` bytes.
        ProviderError: the copy cannot be written.
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
        raise DataError("is empty; the content of a pipe can be read only once", where=path, remedy=WRITE_IT)


class _Limited:
    """A pipe that raises an error if more than `MAX_PIPE_BYTES` bytes are read."""

    def __init__(self, pipe: BinaryIO, path: Path) -> None:
        self._pipe, self._path, self._left = pipe, path, MAX_PIPE_BYTES

    def read(self, size: int = COPY_BLOCK_BYTES) -> bytes:
        block = self._pipe.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise DataError(f"contains more than {MAX_PIPE_BYTES >> 30} GiB", where=self._path, remedy=WRITE_IT)
        return block


GradeForm = Literal["gain", "raw", "binary"]
RELEVANT = 4  # lowest grade that counts as relevant by default


@dataclass(frozen=True)
class GradeFormat:
    """Number format of grades in a file.

    Attributes:
        form: gain (grade - 1, so 0 to 4), raw (the grade, 1 to 5), or binary (1 for grades from `binary_at`, otherwise
            0).
        binary_at: lowest grade that becomes 1, from 2 to 5.

    Raises:
        UsageError: `binary_at` is out of range.
    """

    form: GradeForm = "gain"
    binary_at: int = RELEVANT

    def __post_init__(self) -> None:
        if not MIN_GRADE < self.binary_at <= MAX_GRADE:
            said = f"a relevance threshold of grade {self.binary_at} does not separate any grades"
            raise UsageError(said, remedy=f"set --binary-at to {MIN_GRADE + 1}..{MAX_GRADE}")

    @property
    def offset(self) -> int:
        """Grade minus its number in the file if the numbers are gains; otherwise 0."""
        return MIN_GRADE if self.form == "gain" else 0

    def written(self, grade: int) -> int:
        """Return the number that represents `grade` in the file."""
        return int(grade >= self.binary_at) if self.form == "binary" else grade - self.offset

    @property
    def ends(self) -> tuple[int, int]:
        """Lowest and highest number in the format."""
        return self.written(MIN_GRADE), self.written(MAX_GRADE)

    @property
    def scale(self) -> GradeScale:
        """Scale of the numbers, for metrics."""
        from raggs.metrics.columns import GradeScale  # imported lazily, because exports do not need this module

        return GradeScale.of(*self.ends)

    def described(self) -> dict[str, object]:
        """Return the description of the numbers that a sidecar contains."""
        low, high = self.ends
        relevant = self.written(RELEVANT) or 1
        known: dict[str, object] = {"scale": self.form, "minimum": low, "maximum": high}
        if self.form == "binary":
            return {
                **known,
                "binary_at": self.binary_at,
                "meaning": f"1: grade {self.binary_at} or higher; 0: lower",
            }
        what = "gain = grade - 1" if self.form == "gain" else "grade"
        threshold = f"set a threshold for binary metrics: P(rel={relevant})@10 counts grades {RELEVANT} and {MAX_GRADE}"
        note = threshold if self.form == "gain" else f"tools read labels as gains, and {low} as relevant; {threshold}"
        meaning = f"{what}: utility for answering the query; {low} = not relevant, {high} = answers it"
        return {**known, "relevant": relevant, "meaning": meaning, "note": note}


AS_GRADED = GradeFormat("raw")  # format of labels that are read as grades, and of a raggs run


def stated_scale(labels: Path) -> GradeFormat | None:
    """Return the grade format of a file of labels according to its sidecar; None if no sidecar gives a valid format."""
    return _scale(as_object(sidecar(labels).get("grades")))


def sidecar(labels: Path) -> Mapping[str, object]:
    """Return the sidecar whose `files` contain these labels; empty if there is none."""
    for path in _sidecars(labels):
        meta = read_sidecar(path)
        if labels.relative_to(path.parent).as_posix() in as_object(meta.get("files")):
            return meta
    return {}


def stated_labels(folder: Path) -> Path | None:
    """Return the labels file that a sidecar in the folder names; None if no sidecar names a file in the folder."""
    for path in sorted(folder.glob("*meta.json")):
        name = as_text(read_sidecar(path).get("labels"))
        parts = PurePosixPath(name or "..").parts
        if ".." not in parts and not PurePosixPath(*parts).is_absolute() and (folder / Path(*parts)).is_file():
            return folder / Path(*parts)
    return None


def stated_name(labels: Path) -> str | None:
    """Return the export format of a file of labels according to its sidecar; None if no sidecar gives it."""
    return as_text(sidecar(labels).get("format"))


def stated_format(path: Path) -> str | None:
    """Return the export format in a sidecar, or "" if it is missing; None if the file is not a sidecar."""
    meta = read_sidecar(path)
    return (as_text(meta.get("format")) or "") if as_object(meta.get("files")) else None


def read_sidecar(path: Path) -> Mapping[str, object]:
    """Return the content of a sidecar; empty if it is missing or not a JSON object."""
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
