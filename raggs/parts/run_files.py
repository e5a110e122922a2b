"""Reads labels and ranked lists into columns, from files (TREC, BEIR, CSV, ranx JSON; may be gzipped) and from memory.

TREC files have a fast parser, which reads columns in chunks of bytes, without a Python object per line. The fast
parser accepts only plain ASCII without comments, with columns separated by white space and the same number of columns
in each line. For any other input it raises `OddError`. The caller then uses the line-by-line parser, which handles the
input or reports the line of the error. Both parsers return the same columns.

In-memory inputs are mappings, rows, or tables of any library. Table libraries are not imported; rows are read through
``to_dicts``, ``to_pylist`` or ``to_dict("records")``. Column names and numbers are checked as in files, so that equal
content yields equal columns. Tables may turn ids of digits into integers; such ids are converted back to strings.
"""

from __future__ import annotations

import gzip
import math
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import BinaryIO, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from raggs.base.arrays import Buffer, ByteTexts, Floats, Ints, Keys, Vectors
from raggs.base.errors import DataError, UsageError
from raggs.base.files import MAX_FILE_BYTES, MIN_UNPACK_LIMIT_BYTES, RATIO, regular_file
from raggs.base.jsonl import raw_lines
from raggs.base.tables import LABEL_ROLES, NO_COLUMNS, RUN_ROLES, ColumnNames, require_columns, resolve_columns
from raggs.base.text import shorten
from raggs.base.trec import INTEGER, Label, RankOrder, as_number, read_qrels, read_scored
from raggs.metrics.columns import HASH_WORD_BYTES, GradeScale, IdColumn, Qrels, Run, SearchLatency, usual_scale
from raggs.parts.file_shapes import (
    LATENCY,
    NumberCell,
    Shape,
    line_cells,
    nested_cells,
    replayable,
    shape_of,
    table_cells,
)
from raggs.parts.trajectories import has_steps, is_trajectory, read_stepped_table, read_trajectories

CHUNK = 1 << 22  # bytes per chunk; the arrays of a chunk fit into the CPU cache
QUERY, DOC = 0, 2  # numbers of the query and passage columns, in both qrels and runs
MAX_TOKEN_BYTES = 256  # maximum length of an id or number in the fast parser
EXACT = 2**53  # integers up to this value, divided by an exact power of ten, yield the nearest double (Clinger 1990)
DIGITS = 18  # maximum digits of a number; more digits may overflow

# A table is used, because a vectorised power is not always exact.
TENS: Floats = np.array([float(10**power) for power in range(DIGITS + 3)])


N = TypeVar("N", np.int64, np.float64)


class OddError(Exception):
    """The fast parser cannot read the input; the caller uses the line-by-line parser instead."""


class RunFileTable(NamedTuple, Generic[N]):
    """Rows of a file: the queries in the order of first occurrence; and query, passage and number of each row.

    `rank` is empty if not requested, and NaN if any rank of the same chunk is not a number.
    """

    known: list[bytes]
    query: Ints
    docs: IdColumn
    number: NDArray[N]
    rank: Floats


def read_table(
    path: Path,
    columns: int,
    place: int,
    parse: Callable[[ByteTexts], NDArray[N]],
    size: int = CHUNK,
    rank: int | None = None,
) -> RunFileTable[N]:
    """Return the rows of a file with `columns` columns, optionally gzipped, read `size` bytes at a time.

    Numbers are in column `place`, ranks in column `rank`.

    Raises:
        OddError: the fast parser does not accept the input, the input is empty, or the archive expands beyond the
            limit.
        DataError: the path is not a file.
        OSError, EOFError, zlib.error: the file cannot be read.
    """
    known: dict[bytes, int] = {}
    queries, docs, found, ranks = [], [], [], []
    packed = path.suffix == ".gz"
    left = max(MIN_UNPACK_LIMIT_BYTES, RATIO * regular_file(path).stat().st_size) if packed else math.inf
    with gzip.open(path, "rb") if packed else regular_file(path).open("rb") as file:
        for chunk in chunks(file, size):
            left -= len(chunk)
            if left < 0:
                raise OddError
            buffer, starts, ends = tokens(chunk, columns)
            queries.append(number_ids(ids(buffer, starts[:, QUERY], ends[:, QUERY]), known))
            docs.append(ids(buffer, starts[:, DOC], ends[:, DOC]))
            found.append(parse(ids(buffer, starts[:, place], ends[:, place])))
            ranks.append(np.empty(0) if rank is None else _ranks(ids(buffer, starts[:, rank], ends[:, rank])))
    if not queries:
        raise OddError
    return RunFileTable(
        list(known), np.concatenate(queries), IdColumn(docs), np.concatenate(found), np.concatenate(ranks)
    )


def chunks(file: BinaryIO | gzip.GzipFile, size: int) -> Iterator[bytes]:
    """Yield the file in chunks of whole lines, of about `size` bytes each; fastest if a chunk's arrays fit into a
    CPU cache.
    """
    rest = b""
    while block := file.read(size):
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest += block
            if len(rest) > CHUNK:  # the line is longer than any valid line
                raise OddError
            continue
        yield rest + block[:cut]
        rest = block[cut:]
    if rest.strip():
        yield rest + b"\n"


def tokens(chunk: bytes, columns: int) -> tuple[Buffer, Ints, Ints]:
    """Return the bytes of a chunk, and the start and end of each column: two arrays of shape (lines, columns)."""
    if not chunk.isascii():
        raise OddError
    buffer = np.frombuffer(chunk + b"\n" * MAX_TOKEN_BYTES, dtype=np.uint8)
    text = buffer[: len(chunk)]
    starts, ends = _columns_by_single_blanks(text, columns) or _columns_by_white_space(text, columns)
    if (text[starts[:, 0]] == ord("#")).any():  # the chunk contains a comment line
        raise OddError
    return buffer, starts, ends


def _columns_by_single_blanks(text: Buffer, columns: int) -> tuple[Ints, Ints] | None:
    """Return start and end of each column if columns are separated by single blanks or tabs, otherwise None."""
    ends = np.flatnonzero(text <= ord(" "))
    lines, more = divmod(len(ends), columns)
    signs = text[ends]
    blanks = np.count_nonzero(signs == ord(" ")) + np.count_nonzero(signs == ord("\t"))
    if more or blanks != len(ends) - lines or (signs[columns - 1 :: columns] != ord("\n")).any():
        return None
    starts = np.empty_like(ends)
    starts[:1] = 0
    np.add(ends[:-1], 1, out=starts[1:])
    if (starts == ends).any():
        return None
    return starts.reshape(-1, columns), ends.reshape(-1, columns)


def _columns_by_white_space(text: Buffer, columns: int) -> tuple[Ints, Ints]:
    """Return start and end of each column, for any white space between columns.

    Raises:
        OddError: a line has another number of columns, or the text contains a control character other than white space.
    """
    lines = np.flatnonzero(text == ord("\n"))
    usual = len(lines) + np.count_nonzero(text == ord("\t")) + np.count_nonzero(text == ord("\r"))
    if usual != np.count_nonzero(text < ord(" ")):  # the text contains a control character other than white space
        raise OddError
    ink = text > ord(" ")
    turns = ink.copy()
    turns[1:] ^= ink[:-1]
    edges = np.flatnonzero(turns)
    if len(edges) != 2 * columns * len(lines):
        raise OddError
    table = edges.reshape(-1, 2 * columns)
    starts, ends = table[:, 0::2], table[:, 1::2]
    if (ends[:, -1] > lines).any() or (starts[1:, 0] < lines[:-1]).any():
        raise OddError
    return starts, ends


def ids(buffer: Buffer, starts: Ints, ends: Ints) -> ByteTexts:
    """Return the texts between `starts` and `ends`, padded with NUL to a multiple of the word size."""
    lengths = ends - starts
    width = -(-int(lengths.max()) // HASH_WORD_BYTES) * HASH_WORD_BYTES
    if width > MAX_TOKEN_BYTES:
        raise OddError
    every: ByteTexts = np.ndarray(len(buffer) - width + 1, dtype=f"S{width}", buffer=buffer, strides=(1,))
    taken = every[starts]
    words = taken.view(np.uint64).reshape(len(taken), width // HASH_WORD_BYTES)
    words &= _masks(width)[lengths]
    return taken


def _masks(width: int) -> Keys:
    """Return bit masks: row n selects the first n bytes of a text of `width` bytes."""
    kept = np.tri(width + 1, width, -1, dtype=np.uint8) * np.uint8(255)
    return kept.view(np.uint64)


def number_ids(ids: ByteTexts, numbers: dict[bytes, int]) -> Ints:
    """Return a number for each id; ids are numbered in the order of first occurrence. Fast if equal ids are
    adjacent.
    """
    changed = np.ones(len(ids), dtype=bool)
    words = ids.view(np.uint64).reshape(len(ids), -1)
    changed[1:] = (words[1:] != words[:-1]).any(axis=1)
    firsts = np.flatnonzero(changed)
    seen = [numbers.setdefault(name, len(numbers)) for name in ids[firsts].tolist()]
    return np.repeat(np.array(seen, dtype=np.int64), np.diff(np.append(firsts, len(ids))))


def parse_numbers(texts: ByteTexts) -> Floats:
    """Return decimal texts as the nearest doubles."""
    columns = np.ascontiguousarray(texts.view(np.uint8).reshape(len(texts), -1).T)
    value = np.zeros(len(texts), dtype=np.int64)
    digits, decimals, dots = (np.zeros(len(texts), dtype=np.int8) for _ in range(3))
    good = np.ones(len(texts), dtype=bool)
    for place, column in enumerate(columns):
        if not column.any():
            break
        figure = column - np.uint8(ord("0"))  # values below "0" wrap around, so that one comparison is enough
        digit, dot = figure < 10, column == ord(".")
        np.copyto(value, value * 10 + figure, where=digit)
        digits += digit
        dots += dot
        decimals += digit & (dots > 0)
        good &= digit | dot | (column == 0)
        if place == 0:
            good |= (column == ord("-")) | (column == ord("+"))
        elif place == DIGITS + 1:
            good &= (columns[place + 1 :] == 0).all(axis=0)
            break
    good &= (digits > 0) & (digits <= DIGITS) & (dots <= 1) & (value <= EXACT)
    found = np.where(columns[0] == ord("-"), -1.0, 1.0) * value / TENS[decimals]
    if not good.all():
        found[~good] = _parsed(texts[~good])
    return found


def _ranks(texts: ByteTexts) -> Floats:
    try:
        return parse_numbers(texts)
    except OddError:
        return np.full(len(texts), np.nan)


def _parsed(texts: ByteTexts) -> Floats:
    try:
        found = texts.astype(np.float64)
    except ValueError as error:
        raise OddError from error
    if not np.isfinite(found).all() or any(b"_" in text for text in texts.tolist()):
        raise OddError
    return found


LABEL_COLUMNS, GRADE = 4, 3
EXACT_DIGITS = 9  # a number with more digits cannot be a grade


class LabelColumns(NamedTuple):
    """Labels as columns: the sorted query ids; and for each label, the index of its query, its grade and its passage.

    The indices of queries are non-decreasing.
    """

    qids: tuple[str, ...]
    query: Ints
    grade: Ints
    docs: IdColumn


def quick_labels(path: Path) -> LabelColumns | None:
    """Return the labels of a file, optionally gzipped; None if the file is empty, or the fast parser cannot read it."""
    try:
        known, query, docs, grade, _ = read_table(path, LABEL_COLUMNS, GRADE, _grades)
    except (OddError, OSError, EOFError, zlib.error):
        return None
    query = _sorted_places(known)[query]
    order = np.argsort(query, kind="stable")
    return LabelColumns(
        tuple(name.decode() for name in sorted(known)), query[order], grade[order], IdColumn([docs.take(order)])
    )


def _grades(texts: ByteTexts) -> Ints:
    characters = texts.view(np.uint8).reshape(len(texts), -1)
    figures = (characters >= ord("0")) & (characters <= ord("9"))
    signs = (characters == ord("-")) | (characters == ord("+"))
    if not (figures | signs | (characters == 0)).all() or (figures.sum(axis=1) > EXACT_DIGITS).any():
        raise OddError
    return parse_numbers(texts).astype(np.int64)


def _sorted_places(known: list[bytes]) -> Ints:
    """Return the rank of each query in sorted order, shape (queries,)."""
    places = np.empty(len(known), dtype=np.int64)
    places[np.argsort(np.array(known))] = np.arange(len(known))
    return places


NAME_IT = (
    "set --scale 0-{high} if labels start at 0, otherwise --scale 1-5; commands without --scale need at least one "
    "label of 0, or of 4 or more"
)


def read_labels(path: Path, columns: ColumnNames = NO_COLUMNS) -> Iterator[Label]:
    """Yield the labels of a file in any supported format; the line is 0 for formats without lines.

    Args:
        path: file to read.
        columns: column names from `--column`.

    Raises:
        NotFoundError, DataError: the file cannot be read, or a line is invalid.
    """
    with replayable(path) as file:
        match shape_of(file, columns):
            case Shape.NESTED:
                yield from (_label(cell, file) for cell in nested_cells(file))
            case Shape.LINES:
                yield from (_label(cell, file) for cell in line_cells(file, columns, graded=True))
            case Shape.TABLE:
                yield from (_label(cell, file) for cell in table_cells(file, columns, graded=True))
            case Shape.TREC:
                yield from read_qrels(file)


def read_judgments(path: Path, scale: GradeScale | None = None, columns: ColumnNames = NO_COLUMNS) -> Qrels:
    """Return the judgments in a file.

    Args:
        path: file to read.
        scale: scale of the grades; None: `usual_scale` derives it from the grades.
        columns: column names from `--column`.

    Raises:
        NotFoundError, DataError: see `read_labels`; or a grade is outside the scale, there are no labels, or the scale
            is ambiguous.
    """
    with replayable(path) as file:
        return _judgments(file, scale, columns)


def _judgments(path: Path, scale: GradeScale | None, columns: ColumnNames) -> Qrels:
    if shape_of(path, columns) is Shape.TREC and (quick := quick_labels(path)) is not None:
        with suppress(DataError):  # the line-by-line parser reports the line of the error
            return Qrels(*quick, scale or _guess_scale(quick.grade, path))
    labels = list(read_labels(path, columns))
    if not labels:
        raise DataError("contains no labels", where=path, remedy="write one label per line: qid 0 docid grade")
    grades = np.array([label.grade for label in labels], dtype=np.int64)
    known = scale or _guess_scale(grades, path)
    outside = np.flatnonzero(~known.holds(grades))
    if len(outside):
        wrong = labels[int(outside[0])]
        raise DataError(
            f"query {wrong.qid}, passage {wrong.doc_id}: grade {wrong.grade} is outside the scale "
            f"{known.low} to {known.high}",
            where=path,
            line=wrong.line or None,
            remedy="correct the grade, or set the scale, e.g. --scale 0-7",
        )
    return Qrels.from_columns([one.qid for one in labels], [one.doc_id for one in labels], grades, known)


def _guess_scale(grades: np.ndarray[tuple[int], np.dtype[np.int64]], path: Path) -> GradeScale:
    return usual_scale(np.unique(grades).tolist(), where=path, remedy=NAME_IT)


def _label(cell: NumberCell, path: Path) -> Label:
    value = cell.value.removesuffix(".0")  # table libraries write integers in this form
    if not INTEGER.fullmatch(value):
        message = f"grade {cell.value!r} of query {cell.qid}, passage {cell.doc_id} is not an integer"
        raise DataError(message, where=path, line=cell.line or None, remedy="use whole numbers as grades")
    return Label(cell.line, cell.qid, cell.doc_id, int(value))


RUN_COLUMNS, RANK, SCORE = 6, 3, 4


def read_trec_run(path: Path, size: int = CHUNK) -> Run:
    """Return the run of a TREC file, optionally gzipped.

    Raises:
        NotFoundError, DataError: see `raggs.base.trec.read_scored`.
    """
    run = quick_run(path, size)
    return _read_run_by_line(path) if run is None else run


def quick_run(path: Path, size: int = CHUNK) -> Run | None:
    """Return the run of a file, read `size` bytes at a time.

    The result is None if the fast parser cannot read the file, the file is empty, or it repeats a passage of a query.

    Raises:
        DataError: most scores rise with the rank.
    """
    try:
        found = read_table(path, RUN_COLUMNS, SCORE, parse_numbers, size, RANK)
    except (OddError, OSError, EOFError, zlib.error):
        return None
    run = Run(tuple(name.decode() for name in found.known), found.query, found.number, found.docs)
    if run.twice() is not None:
        return None
    return replace(run, note=rank_order(found.query, found.rank, found.number).checked(path))


def rank_order(query: Ints, rank: Floats, score: Floats) -> RankOrder:
    """Return the `RankOrder` of all rows of a file in one vectorised step."""
    found = RankOrder()
    turn = np.sign(np.diff(rank)) * np.sign(np.diff(score))
    turn[query[1:] != query[:-1]] = 0
    found.disagree, found.agree = int(np.count_nonzero(turn > 0)), int(np.count_nonzero(turn < 0))
    return found


def _read_run_by_line(path: Path) -> Run:
    qids, docs, scores = [], [], array("d")
    order = RankOrder()
    for row in read_scored(path, order):
        qids.append(row.qid)
        docs.append(row.doc_id)
        scores.append(row.score)
    run = Run.from_columns(qids, docs, np.frombuffer(scores) if scores else np.empty(0))
    return replace(run, note=order.checked(path))


def read_run(path: Path, columns: ColumnNames = NO_COLUMNS) -> Run:
    """Return the run of a file in any supported format.

    Args:
        path: file to read.
        columns: column names from `--column`.

    Raises:
        NotFoundError, DataError: the file cannot be read, a line is invalid, there are no rows, or most scores rise
            with the rank.
    """
    with replayable(path) as file:
        return _read(file, columns)


def read_two_logits(path: Path) -> tuple[Run, Vectors]:
    """Return the run of a table or JSON-lines file with two logits per passage: `logit_no` and `logit_yes`.

    Returns:
        The run, whose scores are logit_yes - logit_no, and the logits (no, yes), shape (rows, 2), float32.

    Raises:
        NotFoundError, DataError: see `read_run`; or the file has another format, or lacks one of the columns.
    """
    with replayable(path) as file:
        shape = shape_of(file, {"score": "logit_yes"})
        remedy = "use a table or JSON lines with qid, doc_id, logit_no and logit_yes"
        if shape not in (Shape.LINES, Shape.TABLE):
            raise DataError("does not contain two logits per passage", where=path, remedy=remedy)
        cells = line_cells if shape is Shape.LINES else table_cells
        try:
            no, yes = (list(cells(file, {"score": name}, graded=False)) for name in ("logit_no", "logit_yes"))
        except DataError as error:
            error.remedy = remedy
            raise
    pairs = np.array([[_score(a, path), _score(b, path)] for a, b in zip(no, yes, strict=True)], dtype=np.float64)
    if not len(pairs):
        raise DataError("contains no rows", where=path, remedy="write one passage per line")
    run = Run.from_columns([cell.qid for cell in yes], [cell.doc_id for cell in yes], pairs[:, 1] - pairs[:, 0])
    return run, pairs.astype(np.float32)


def _read(path: Path, columns: ColumnNames) -> Run:
    if is_trajectory(next(raw_lines(path, MAX_FILE_BYTES), (0, ""))[1]):
        return read_trajectories(path)
    match shape_of(path, columns):
        case Shape.NESTED:
            run = _run(nested_cells(path), path)
        case Shape.LINES:
            run = _run(line_cells(path, columns, graded=False), path)
        case Shape.TABLE if has_steps(path):
            return read_stepped_table(path, columns)
        case Shape.TABLE:
            run = _run(table_cells(path, columns, graded=False), path)
        case Shape.TREC:
            run = read_trec_run(path)
    if not len(run.query):
        raise DataError(
            "contains no rows", where=path, remedy="write one passage per line: qid Q0 docid rank score tag"
        )
    return run


def _run(cells: Iterable[NumberCell], path: Path) -> Run:
    rows, order = list(cells), RankOrder()
    scores = [_score(cell, path) for cell in rows]
    for cell, score in zip(rows, scores, strict=True):
        order.note(cell.qid, cell.rank, score)
    run = Run.from_columns([cell.qid for cell in rows], [cell.doc_id for cell in rows], scores)
    return replace(run, note=order.checked(path), latency=_search_latency(rows, path))


def _search_latency(rows: Iterable[NumberCell], path: Path) -> SearchLatency | None:
    """Return the latency of the queries that state one; None if no query does.

    Raises:
        DataError: a latency is not a number of at least 0, or rows of a query state different ones.
    """
    found: dict[str, float] = {}
    for cell in rows:
        if not cell.latency:
            continue
        ms, where = as_number(cell.latency), f"query {cell.qid}: {LATENCY} {cell.latency}"
        if not 0 <= ms < math.inf:
            said = f"{where} is not a number of at least 0"
            raise DataError(said, where=path, line=cell.line or None, remedy="correct the value, or remove it")
        if found.setdefault(cell.qid, ms) != ms:
            said = f"{where} differs from another row of the query"
            raise DataError(said, where=path, line=cell.line or None, remedy="write one latency per query")
    if not found:
        return None
    p50, p95 = np.quantile([*found.values()], [0.5, 0.95]).tolist()
    return SearchLatency(len(found), p50, p95)


def _score(cell: NumberCell, path: Path) -> float:
    score = as_number(cell.value)
    if not math.isfinite(score):
        message = f"score {cell.value!r} of query {cell.qid}, passage {cell.doc_id} is not a finite number"
        raise DataError(message, where=path, line=cell.line or None, remedy="correct the value, or remove the row")
    return score


T = TypeVar("T")
Triple = tuple[str, str, object]
MAX_SHOWN_CHARS = 60  # maximum characters of a wrong value in a message
ID = "use strings or whole numbers as ids"


def rows_of(given: object, what: str) -> Iterator[object]:
    """Return an iterator over the rows of a table, or of any iterable.

    Args:
        what: content of the table, for the error.

    Raises:
        UsageError: `given` is neither a table nor an iterable, or is a text.
    """
    for way, arguments in (("to_dicts", ()), ("to_pylist", ()), ("to_dict", ("records",))):
        method = getattr(given, way, None)
        if callable(method):
            return iter(method(*arguments))
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        said = f"{what}: {describe_value(given)} does not contain rows"
        raise UsageError(said, remedy="pass a mapping, a table, or an iterable of mappings")
    return iter(given)


def as_id(value: object, what: str) -> str:
    """Return an id in the form that files use.

    Raises:
        DataError: the value is not an id.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{what}: {describe_value(value)} is not an id", remedy=ID)
    return str(value)


def as_real(value: object, what: str) -> float:
    """Return the value as a finite float.

    Raises:
        DataError: the value is not a finite number.
    """
    try:
        found = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:  # raised for an integer with hundreds of digits
        found = math.inf
    if not math.isfinite(found):
        raise DataError(
            f"{what}: {describe_value(value)} is not a finite number", remedy="correct the value, or remove the row"
        )
    return found


def describe_value(value: object) -> str:
    """Return a description of a value and its type, for a message."""
    return f"{shorten(repr(value), MAX_SHOWN_CHARS)} ({type(value).__name__})"


def qrels_of(given: object, scale: GradeScale | None = None) -> Qrels:
    """Return the judgments of ``{qid: {doc_id: grade}}``, or of rows or a table with query, passage and grade.

    Args:
        scale: scale of the grades; None: derived from the grades, as for files.

    Raises:
        UsageError: `given` is not a mapping, a table or an iterable.
        DataError: a row lacks a column or has an invalid value, or there are no labels.
    """
    found = _columns(given, "judgments", LABEL_ROLES, as_real)
    if not found[0]:
        raise DataError("the judgments contain no label", remedy="pass {qid: {doc_id: grade}}")
    return Qrels.from_columns(*found, scale)


def run_of(given: object, name: str) -> Run:
    """Return the lists of ``{qid: {doc_id: score}}``, ``{qid: [doc_id, ...]}`` (best first), or of rows or a table.

    Args:
        name: name of the system, for messages.

    Raises:
        UsageError, DataError: see `qrels_of`.
    """
    if isinstance(given, Mapping) and not _table(given):
        given = {qid: _score_by_position(found) for qid, found in given.items()}
    found = _columns(given, f"run {name}", RUN_ROLES, as_real)
    if not found[0]:
        raise DataError(f"run {name} contains no rows", remedy="pass {qid: [doc_id, ...]}")
    return Run.from_columns(*found)


def _score_by_position(found: object) -> object:
    """Return a list of ids as pairs of id and score, with decreasing scores; a mapping is returned unchanged.

    Raises:
        UsageError: `found` is neither a mapping nor a list.
    """
    if isinstance(found, Mapping):
        return found
    return [(each, -place) for place, each in enumerate(rows_of(found, "a list"))]


def _columns(
    given: object, what: str, roles: tuple[str, ...], number: Callable[[object, str], T]
) -> tuple[list[str], list[str], list[T]]:
    triples = _nested(given, what) if isinstance(given, Mapping) and not _table(given) else _flat(given, what, roles)
    qids: list[str] = []
    doc_ids: list[str] = []
    values: list[T] = []
    for qid, doc_id, value in triples:
        qids.append(qid)
        doc_ids.append(doc_id)
        values.append(number(value, f"{what}, query {qid}, passage {doc_id}"))
    return qids, doc_ids, values


def _table(given: object) -> bool:
    return any(callable(getattr(given, way, None)) for way in ("to_dicts", "to_pylist", "to_dict"))


def _nested(given: Mapping[object, object], what: str) -> Iterator[Triple]:
    for key, inner in given.items():
        qid = as_id(key, what)
        pairs = inner.items() if isinstance(inner, Mapping) else inner
        if not isinstance(pairs, Iterable) or isinstance(pairs, str | bytes):
            raise DataError(
                f"{what}: query {qid} has {describe_value(inner)} instead of passages", remedy="pass {qid: {doc_id: 1}}"
            )
        for doc_id, value in pairs:
            yield qid, as_id(doc_id, f"{what}, query {qid}"), value


def _flat(given: object, what: str, roles: tuple[str, ...]) -> Iterator[Triple]:
    # for each set of row keys, its keys of query, passage and number
    places: dict[tuple[str, ...], tuple[str, ...]] = {}
    for place, row in enumerate(rows_of(given, what)):
        at = f"{what}, row {place}"
        if isinstance(row, tuple | list) and len(row) == 3:
            qid, doc_id, value = row
        elif isinstance(row, Mapping):
            names = tuple(row)
            if names not in places:
                places[names] = _role_names(names, roles, at)
            if places[names] != next(iter(places.values())):
                first = " or ".join(next(iter(places.values())))
                raise DataError(
                    f"{at}: the keys differ from those of the first row ({first})",
                    remedy="use the same keys in all rows",
                )
            qid, doc_id, value = (row[name] for name in places[names])
        else:
            raise DataError(f"{at}: {describe_value(row)} is not a row", remedy="use rows of query, passage and number")
        yield as_id(qid, at), as_id(doc_id, at), value


def _role_names(names: tuple[str, ...], roles: tuple[str, ...], at: str) -> tuple[str, ...]:
    """Return the keys of a row for query, passage and number.

    Raises:
        DataError: a key is missing, or two keys have the same meaning.
    """
    texts = [str(name) for name in names]
    try:
        found = resolve_columns(texts, roles, NO_COLUMNS)
        require_columns(found, roles, texts)
    except DataError as error:
        raise DataError(f"{at}: {error.message}", remedy="rename or drop columns of the table") from error
    return tuple(names[found[role]] for role in roles)
