"""Judgments and lists that are in memory already: mappings, rows, and tables of whatever library, into columns.

No library of tables is imported: a table is asked for its rows (``to_dicts``, ``to_pylist``, ``to_dict("records")``).
Columns are called as in files, and numbers are checked as there, so that the same content gives the same columns. An id
may be a whole number, as tables make them of digits; it stands for its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import TypeVar

from raggs.base.errors import DataError, UsageError
from raggs.base.tables import LABEL_ROLES, NO_COLUMNS, RUN_ROLES, require_columns, resolve_columns
from raggs.base.text import shorten
from raggs.metrics.columns import Qrels, Run, Scale

T = TypeVar("T")
Triple = tuple[str, str, object]
SHOWN = 60  # letters of a wrong value
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
        said = f"{what}: {shown(given)} holds no rows"
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
        raise DataError(f"{what}: {shown(value)} is no id", remedy=ID)
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
        raise DataError(f"{what}: {shown(value)} is not a finite number", remedy="remove or repair it")
    return found


def shown(value: object) -> str:
    """A value as a message may hold it, with its type where that says more."""
    return f"{shorten(repr(value), SHOWN)} ({type(value).__name__})"


def qrels_of(given: object, scale: Scale | None = None) -> Qrels:
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
        given = {qid: _scored(found) for qid, found in given.items()}
    found = _columns(given, f"run {name}", RUN_ROLES, as_real)
    if not found[0]:
        raise DataError(f"run {name} holds no rows", remedy="give {qid: [doc_id, ...]}")
    return Run.from_columns(*found)


def _scored(found: object) -> object:
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
            raise DataError(f"{what}: query {qid} has no passages but {shown(inner)}", remedy="give {qid: {doc_id: 1}}")
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
                places[names] = _named(names, roles, at)
            if places[names] != next(iter(places.values())):
                first = " or ".join(next(iter(places.values())))
                raise DataError(f"{at}: other names than in the first row ({first})", remedy="name all rows alike")
            qid, doc_id, value = (row[name] for name in places[names])
        else:
            raise DataError(f"{at}: {shown(row)} is no row", remedy="a row names a query, a passage and a number")
        yield as_id(qid, at), as_id(doc_id, at), value


def _named(names: tuple[str, ...], roles: tuple[str, ...], at: str) -> tuple[str, ...]:
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
