"""White-space columns of large files, a chunk of bytes at a time and without a Python object a line.

Only what is sure is taken: plain ASCII, the same number of columns in each line, no comment. At the first oddity
`OddError` is raised, and the caller reads the file line by line instead, which either names the fault or knows how to
read it. So a fast way and a slow one give the same columns, and an error always has its line.

Judgments in the formats of the field, into columns: TREC qrels, BEIR tables, CSV with a header, ranx JSON.

TREC qrels into columns: the fast way. It has no slow way of its own; see `read_labels`.

Runs in the formats of the field, into columns: TREC, CSV with a header, ranx JSON; plain or ``.gz``.

TREC runs into columns: the fast way, and `raggs.base.trec` where that is not sure.

Judgments and lists that are in memory already: mappings, rows, and tables of whatever library, into columns.

No library of tables is imported: a table is asked for its rows (``to_dicts``, ``to_pylist``, ``to_dict("records")``).
Columns are called as in files, and numbers are checked as there, so that the same content gives the same columns. An id
may be a whole number, as tables make them of digits; it stands for its digits.
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
from raggs.base.files import MIN_UNPACK_LIMIT_BYTES, RATIO, regular_file
from raggs.base.tables import LABEL_ROLES, NO_COLUMNS, RUN_ROLES, ColumnNames, require_columns, resolve_columns
from raggs.base.text import shorten
from raggs.base.trec import INTEGER, Label, RankOrder, as_number, read_qrels, read_scored
from raggs.metrics.columns import HASH_WORD_BYTES, GradeScale, IdColumn, Qrels, Run, usual_scale
from raggs.parts.file_shapes import NumberCell, Shape, line_cells, nested_cells, replayable, shape_of, table_cells

CHUNK = 1 << 22  # bytes; its arrays stay in the processor's cache
QUERY, DOC = 0, 2  # columns, in qrels as in runs
MAX_TOKEN_BYTES = 256  # bytes of an id or number; wider ones are odd
EXACT = 2**53  # integers up to here, divided by an exact power of ten, give the nearest double (Clinger 1990)
DIGITS = 18  # more may overflow

TENS: Floats = np.array([float(10**power) for power in range(DIGITS + 3)])  # exact; a vectorised power need not be


N = TypeVar("N", np.int64, np.float64)


class OddError(Exception):
    """The fast way is not sure."""


class RunFileTable(NamedTuple, Generic[N]):
    """The rows of a file: its queries in the order of their first sight; each row's query, passage and number.

    `rank`: of each row; empty if it was not asked for, NaN if a rank of the same chunk is no number.
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
    """A file of `columns` columns (or a ``.gz`` of one), read `size` bytes at a time.

    Its numbers stand in column `place`, its ranks in column `rank`.

    Raises:
        OddError: it is odd, holds nothing, or is an archive that swells beyond measure.
        DataError: it is no file.
        OSError, EOFError, zlib.error: it cannot be read.
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
    """The file in chunks of whole lines, of about `size` bytes each; it is best when their arrays fit into a cache."""
    rest = b""
    while block := file.read(size):
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest += block
            if len(rest) > CHUNK:  # no line of ids is as long
                raise OddError
            continue
        yield rest + block[:cut]
        rest = block[cut:]
    if rest.strip():
        yield rest + b"\n"


def tokens(chunk: bytes, columns: int) -> tuple[Buffer, Ints, Ints]:
    """The bytes, and where each column begins and ends: two arrays of shape (lines, columns)."""
    if not chunk.isascii():
        raise OddError
    buffer = np.frombuffer(chunk + b"\n" * MAX_TOKEN_BYTES, dtype=np.uint8)
    text = buffer[: len(chunk)]
    starts, ends = _columns_by_single_blanks(text, columns) or _columns_by_white_space(text, columns)
    if (text[starts[:, 0]] == ord("#")).any():  # a comment
        raise OddError
    return buffer, starts, ends


def _columns_by_single_blanks(text: Buffer, columns: int) -> tuple[Ints, Ints] | None:
    """Where columns begin and end, where one blank or tab stands between two; None where it does not."""
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
    """Where columns begin and end, whatever white space stands between them.

    Raises:
        OddError: a line has other columns, or there is another control character.
    """
    lines = np.flatnonzero(text == ord("\n"))
    usual = len(lines) + np.count_nonzero(text == ord("\t")) + np.count_nonzero(text == ord("\r"))
    if usual != np.count_nonzero(text < ord(" ")):  # another control character
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
    """The texts between `starts` and `ends`, padded with NUL to a multiple of a word."""
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
    """Row n keeps the first n bytes of a text of `width` bytes."""
    kept = np.tri(width + 1, width, -1, dtype=np.uint8) * np.uint8(255)
    return kept.view(np.uint64)


def number_ids(ids: ByteTexts, numbers: dict[bytes, int]) -> Ints:
    """A number for each id, new ones in the order of their first sight; quick where equal ids stand together."""
    changed = np.ones(len(ids), dtype=bool)
    words = ids.view(np.uint64).reshape(len(ids), -1)
    changed[1:] = (words[1:] != words[:-1]).any(axis=1)
    firsts = np.flatnonzero(changed)
    seen = [numbers.setdefault(name, len(numbers)) for name in ids[firsts].tolist()]
    return np.repeat(np.array(seen, dtype=np.int64), np.diff(np.append(firsts, len(ids))))


def parse_numbers(texts: ByteTexts) -> Floats:
    """Decimal texts as the nearest doubles."""
    columns = np.ascontiguousarray(texts.view(np.uint8).reshape(len(texts), -1).T)
    value = np.zeros(len(texts), dtype=np.int64)
    digits, decimals, dots = (np.zeros(len(texts), dtype=np.int8) for _ in range(3))
    good = np.ones(len(texts), dtype=bool)
    for place, column in enumerate(columns):
        if not column.any():
            break
        figure = column - np.uint8(ord("0"))  # wraps around below "0", so one comparison is enough
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
EXACT_DIGITS = 9  # more are no grade


class LabelColumns(NamedTuple):
    """Labels as columns: the sorted queries; each label's query among them, non-decreasing; its grade; its passage."""

    qids: tuple[str, ...]
    query: Ints
    grade: Ints
    docs: IdColumn


def quick_labels(path: Path) -> LabelColumns | None:
    """The labels in a file, or in a ``.gz`` of one; None where it is odd, empty or cannot be read."""
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
    """Shape (queries,): the place of each query in the order of all."""
    places = np.empty(len(known), dtype=np.int64)
    places[np.argsort(np.array(known))] = np.arange(len(known))
    return places


NAME_IT = (
    "raggs eval and raggs sweep take --scale 0-{high} for labels that start from 0, --scale 1-5 to insist; for other "
    "commands, a label 0 says that they start from 0"
)


def read_labels(path: Path, columns: ColumnNames = NO_COLUMNS) -> Iterator[Label]:
    """The labels of a file in any known format; line 0 where the format has no lines.

    Args:
        path: the file.
        columns: which column of a table is which, as `--column` says.

    Raises:
        NotFoundError, DataError: the file cannot be read, or a line of it cannot be right.
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
    """The judgments in a file.

    Args:
        path: the file.
        scale: what the grades mean; if it is left out, `usual_scale` says.
        columns: which column of a table is which, as `--column` says.

    Raises:
        NotFoundError, DataError: as `read_labels`; a grade outside the scale; no label at all; labels from which
            the scale cannot be guessed.
    """
    with replayable(path) as file:
        return _judgments(file, scale, columns)


def _judgments(path: Path, scale: GradeScale | None, columns: ColumnNames) -> Qrels:
    if shape_of(path, columns) is Shape.TREC and (quick := quick_labels(path)) is not None:
        with suppress(DataError):  # the other way names the line
            return Qrels(*quick, scale or _guess_scale(quick.grade, path))
    labels = list(read_labels(path, columns))
    if not labels:
        raise DataError("holds no labels", where=path, remedy="one label a line: qid 0 docid grade")
    grades = np.array([label.grade for label in labels], dtype=np.int64)
    known = scale or _guess_scale(grades, path)
    outside = np.flatnonzero(~known.holds(grades))
    if len(outside):
        wrong = labels[int(outside[0])]
        raise DataError(
            f"query {wrong.qid}, passage {wrong.doc_id}: grade {wrong.grade} lies outside the scale "
            f"{known.low} to {known.high}",
            where=path,
            line=wrong.line or None,
            remedy="correct it, or name the scale, e.g. --scale 0-7",
        )
    return Qrels.from_columns([one.qid for one in labels], [one.doc_id for one in labels], grades, known)


def _guess_scale(grades: np.ndarray[tuple[int], np.dtype[np.int64]], path: Path) -> GradeScale:
    return usual_scale(np.unique(grades).tolist(), where=path, remedy=NAME_IT)


def _label(cell: NumberCell, path: Path) -> Label:
    value = cell.value.removesuffix(".0")  # as libraries of tables write whole numbers
    if not INTEGER.fullmatch(value):
        message = f"grade {cell.value!r} of query {cell.qid}, passage {cell.doc_id} is not an integer"
        raise DataError(message, where=path, line=cell.line or None, remedy="grades are whole numbers")
    return Label(cell.line, cell.qid, cell.doc_id, int(value))


RUN_COLUMNS, RANK, SCORE = 6, 3, 4


def read_trec_run(path: Path, size: int = CHUNK) -> Run:
    """The run in a file, or in a ``.gz`` of one.

    Raises:
        NotFoundError, DataError: as `raggs.base.trec.read_scored`.
    """
    run = quick_run(path, size)
    return _read_run_by_line(path) if run is None else run


def quick_run(path: Path, size: int = CHUNK) -> Run | None:
    """The run in a file, read `size` bytes at a time; None where it is odd, empty, wrong or cannot be read.

    Raises:
        DataError: its scores rise with the rank.
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
    """What `RankOrder` finds in the rows of a file, all at once."""
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
    """The run in a file.

    Args:
        path: the file.
        columns: which column of a table is which, as `--column` says.

    Raises:
        NotFoundError, DataError: the file cannot be read, or a line of it cannot be right; it holds no rows; its
            scores rise with the rank.
    """
    with replayable(path) as file:
        return _read(file, columns)


def read_two_logits(path: Path) -> tuple[Run, Vectors]:
    """Return the run in a table or JSON lines with two logits a passage: `logit_no` and `logit_yes`.

    Returns:
        The run, whose scores are logit_yes - logit_no, and the logits, shape (rows, 2), no before yes, float32.

    Raises:
        NotFoundError, DataError: as `read_run`; the file is of another form, or lacks one of the columns.
    """
    with replayable(path) as file:
        shape = shape_of(file, {"score": "logit_yes"})
        remedy = "give a table or JSON lines with qid, doc_id, logit_no and logit_yes"
        if shape not in (Shape.LINES, Shape.TABLE):
            raise DataError("holds no two logits a passage", where=path, remedy=remedy)
        cells = line_cells if shape is Shape.LINES else table_cells
        try:
            no, yes = (list(cells(file, {"score": name}, graded=False)) for name in ("logit_no", "logit_yes"))
        except DataError as error:
            error.remedy = remedy
            raise
    pairs = np.array([[_score(a, path), _score(b, path)] for a, b in zip(no, yes, strict=True)], dtype=np.float64)
    if not len(pairs):
        raise DataError("holds no rows", where=path, remedy="one passage a line")
    run = Run.from_columns([cell.qid for cell in yes], [cell.doc_id for cell in yes], pairs[:, 1] - pairs[:, 0])
    return run, pairs.astype(np.float32)


def _read(path: Path, columns: ColumnNames) -> Run:
    match shape_of(path, columns):
        case Shape.NESTED:
            run = _run(nested_cells(path), path)
        case Shape.LINES:
            run = _run(line_cells(path, columns, graded=False), path)
        case Shape.TABLE:
            run = _run(table_cells(path, columns, graded=False), path)
        case Shape.TREC:
            run = read_trec_run(path)
    if not len(run.query):
        raise DataError("holds no rows", where=path, remedy="one passage a line: qid Q0 docid rank score tag")
    return run


def _run(cells: Iterable[NumberCell], path: Path) -> Run:
    rows, order = list(cells), RankOrder()
    scores = [_score(cell, path) for cell in rows]
    for cell, score in zip(rows, scores, strict=True):
        order.note(cell.qid, cell.rank, score)
    run = Run.from_columns([cell.qid for cell in rows], [cell.doc_id for cell in rows], scores)
    return replace(run, note=order.checked(path))


def _score(cell: NumberCell, path: Path) -> float:
    score = as_number(cell.value)
    if not math.isfinite(score):
        message = f"score {cell.value!r} of query {cell.qid}, passage {cell.doc_id} is not a finite number"
        raise DataError(message, where=path, line=cell.line or None, remedy="remove or repair it")
    return score


T = TypeVar("T")
Triple = tuple[str, str, object]
MAX_SHOWN_CHARS = 60  # letters of a wrong value
ID = "ids are texts, or whole numbers"


def rows_of(given: object, what: str) -> Iterator[object]:
    """The rows of a table, or of any iterable.

    Args:
        what: what it holds, for the error.

    Raises:
        UsageError: it has no rows.
    """
    for way, arguments in (("to_dicts", ()), ("to_pylist", ()), ("to_dict", ("records",))):
        method = getattr(given, way, None)
        if callable(method):
            return iter(method(*arguments))
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        said = f"{what}: {describe_value(given)} holds no rows"
        raise UsageError(said, remedy="give a mapping, a table, or an iterable of mappings")
    return iter(given)


def as_id(value: object, what: str) -> str:
    """An id as the files have it.

    Raises:
        DataError: it is none.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{what}: {describe_value(value)} is no id", remedy=ID)
    return str(value)


def as_real(value: object, what: str) -> float:
    """A finite number.

    Raises:
        DataError: it is none.
    """
    try:
        found = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:  # a whole number of hundreds of digits
        found = math.inf
    if not math.isfinite(found):
        raise DataError(f"{what}: {describe_value(value)} is not a finite number", remedy="remove or repair it")
    return found


def describe_value(value: object) -> str:
    """A value as a message may hold it, with its type where that says more."""
    return f"{shorten(repr(value), MAX_SHOWN_CHARS)} ({type(value).__name__})"


def qrels_of(given: object, scale: GradeScale | None = None) -> Qrels:
    """The judgments of ``{qid: {doc_id: grade}}``, or of rows or a table with a query, a passage and a grade each.

    Args:
        scale: what the grades mean; where it is left out, what files with such grades would mean.

    Raises:
        UsageError: it holds no rows.
        DataError: a row lacks a column or holds what cannot be right; no label at all.
    """
    found = _columns(given, "judgments", LABEL_ROLES, as_real)
    if not found[0]:
        raise DataError("the judgments hold no label", remedy="give {qid: {doc_id: grade}}")
    return Qrels.from_columns(*found, scale)


def run_of(given: object, name: str) -> Run:
    """The lists of ``{qid: {doc_id: score}}``, ``{qid: [doc_id, ...]}`` (best first), or of rows or a table.

    Args:
        name: of the system, for messages.

    Raises:
        UsageError, DataError: as `qrels_of`.
    """
    if isinstance(given, Mapping) and not _table(given):
        given = {qid: _score_by_position(found) for qid, found in given.items()}
    found = _columns(given, f"run {name}", RUN_ROLES, as_real)
    if not found[0]:
        raise DataError(f"run {name} holds no rows", remedy="give {qid: [doc_id, ...]}")
    return Run.from_columns(*found)


def _score_by_position(found: object) -> object:
    """A list of ids as scores that fall."""
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
                f"{what}: query {qid} has no passages but {describe_value(inner)}", remedy="give {qid: {doc_id: 1}}"
            )
        for doc_id, value in pairs:
            yield qid, as_id(doc_id, f"{what}, query {qid}"), value


def _flat(given: object, what: str, roles: tuple[str, ...]) -> Iterator[Triple]:
    places: dict[tuple[str, ...], tuple[str, ...]] = {}  # by the names of a row, those of its query, passage and number
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
                raise DataError(f"{at}: other names than in the first row ({first})", remedy="name all rows alike")
            qid, doc_id, value = (row[name] for name in places[names])
        else:
            raise DataError(
                f"{at}: {describe_value(row)} is no row", remedy="a row names a query, a passage and a number"
            )
        yield as_id(qid, at), as_id(doc_id, at), value


def _role_names(names: tuple[str, ...], roles: tuple[str, ...], at: str) -> tuple[str, ...]:
    """The names of a row that hold its query, passage and number.

    Raises:
        DataError: one is missing, or two mean the same.
    """
    texts = [str(name) for name in names]
    try:
        found = resolve_columns(texts, roles, NO_COLUMNS)
        require_columns(found, roles, texts)
    except DataError as error:
        raise DataError(f"{at}: {error.message}", remedy="rename or drop columns of the table") from error
    return tuple(names[found[role]] for role in roles)
