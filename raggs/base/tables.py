"""Read tables of labels or scores that other tools wrote, and determine the role of each column.

The column of a role is found in this order:

1. The column given by `--column ROLE=NAME`.
2. A column whose name has one meaning (`SPELLINGS`). Two columns with the same meaning are an error.
3. A column `query`: the id of the query if no other column has the id, and the first cell is a word without spaces or
the text is not needed. The text is not needed if another column has it or the command does not read it. In all other
cases, the column is the text of the query.
4. A column `document` or `passage`: by the same rule, the id or the text of the passage.
5. A column `text`: the text of the passage or of the query, if only one of them is read and has no other column. If
both are missing, it is the text whose id has no column either. If both are still possible, raggs raises an error.

Upper and lower case, `-`, `_` and spaces make no difference in a name. Columns without a role are not read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from raggs.base.errors import DataError, UsageError
from raggs.base.files import MAX_LINE_BYTES
from raggs.base.jsonl import raw_lines, read_objects, text_lines
from raggs.base.text import did_you_mean, of_spreadsheet_cell, one_line, shorten

ColumnNames = Mapping[str, str]  # role -> name of a column, as in --column

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "q_id", "question_id"),
    "doc_id": ("doc_id", "docid", "docno", "doc", "corpus_id", "passage_id", "document_id", "chunk_id"),
    "grade": ("grade", "relevance", "rel", "label", "score"),
    "score": ("score",),
    "rank": ("rank",),
    "question": ("question", "user_input"),
    "passage": ("context",),
    "title": ("title",),
    "answer": ("answer", "expected_answer", "reference_answer"),
    "language": ("language", "lang"),
    "who": ("who", "reviewer", "annotator"),
    "note": ("note", "comment"),
}
ROLE_MEANINGS: Mapping[str, str] = {
    "qid": "the id of the query",
    "doc_id": "the id of the passage",
    "grade": "the grade",
    "score": "the score",
    "rank": "the rank",
    "question": "the text of the query",
    "passage": "the text of the passage",
    "title": "the title of the passage",
    "answer": "the expected answer",
    "language": "the language of the query",
    "who": "the reviewer",
    "note": "the note",
}
ID_OR_TEXT_ROLES: Mapping[str, tuple[str, str]] = {
    "query": ("qid", "question"),
    "document": ("doc_id", "passage"),
    "passage": ("doc_id", "passage"),
}
TEXT = "text"
COMMA = ","
DELIMITERS = ("\t", COMMA, ";")
SEPARATORS = re.compile(r"[\W_]+")
MAX_SHOWN_CHARS = 60  # of a header in a message
NO_COLUMNS: ColumnNames = {}
LABEL_ROLES = ("qid", "doc_id", "grade")
RUN_ROLES = ("qid", "doc_id", "score")
EVAL_ROLES = (*LABEL_ROLES, "score", "rank")
IMPORT_ROLES = ("qid", "question", "doc_id", "passage", "grade", "title", "rank", "answer", "language")
REVIEW_ROLES = (*LABEL_ROLES, "who", "at", "note", "seconds", "settles", "blind", "prompt", "chance")


class TableRow(NamedTuple):
    """A row of a table.

    Attributes:
        line: number of its first line, from 1.
        cells: cells by role; roles without a column are omitted.
    """

    line: int
    cells: Mapping[str, str]


class OpenTable(NamedTuple):
    """A table with resolved columns.

    Attributes:
        places: position of the column, by role.
        unread: names of columns without a role.
        rows: the rows after the header.
    """

    places: Mapping[str, int]
    unread: tuple[str, ...]
    rows: Iterator[TableRow]


def parse_column_names(texts: Sequence[str], roles: Collection[str]) -> dict[str, str]:
    """Parse ``ROLE=NAME`` texts.

    Args:
        texts: values of `--column`.
        roles: roles that the command reads.

    Raises:
        UsageError: a text has another form, or a role is unknown or occurs twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        role, sign, name = (part.strip() for part in text.partition("="))
        if not sign or not name:
            raise UsageError(
                f"--column {text}: the name of a column is missing", remedy="write, for example, --column grade=score"
            )
        if role not in roles:
            known = did_you_mean(role, roles, listed=f"roles: {', '.join(roles)}")
            raise UsageError(f"--column {text}: unknown role {role!r}", remedy=known)
        if role in found:
            raise UsageError(f"--column names two columns for {role}: {found[role]} and {name}", remedy="give only one")
        found[role] = name
    return found


def fold_column_name(name: str) -> str:
    """Return a column's name in a normalised form for comparisons."""
    return SEPARATORS.sub("_", name.strip().lower()).strip("_")


def resolve_columns(
    names: Sequence[str],
    roles: Collection[str],
    chosen: ColumnNames,
    first: Sequence[object] = (),
    *,
    where: Path | None = None,
    line: int | None = 1,
) -> dict[str, int]:
    """Return the position of the column of each role.

    Args:
        names: names of the columns.
        roles: roles to read.
        chosen: names from `--column`; unknown names are ignored.
        first: cells of the first row.
        where, line: location of the names, for messages.

    Returns:
        The position of the column by role; roles without a column are omitted.

    Raises:
        DataError: two columns have the same meaning, or a column `text` may have the query's or the passage's text.
    """
    keys = [fold_column_name(name) for name in names]
    found: dict[str, int] = {}
    for role, name in chosen.items():
        places = [at for at, each in enumerate(names) if each.strip() == name] or _all_of(
            keys, (fold_column_name(name),)
        )
        if role in roles and places:
            found[role] = _single_column(role, places, names, where, line)
    free = [key if at not in found.values() else "" for at, key in enumerate(keys)]
    for role in roles:
        if role not in found and (places := _all_of(free, SPELLINGS.get(role, (role,)))):
            found[role] = _single_column(role, places, names, where, line)
    for key, (id_role, text_role) in ID_OR_TEXT_ROLES.items():
        for at in _all_of(free, (key,)):
            if taken := _role_of(id_role, text_role, roles, found, _is_word(first, at), free):
                known = [found[taken]] if taken in found else []
                found[taken] = _single_column(taken, [*known, at], names, where, line)
    for at in _all_of(free, (TEXT,)):
        wanted = _roles_of_text(roles, found)
        if len(wanted) > 1:
            said = f"column {one_line(names[at])!r} may be the text of the query or of the passage"
            remedy = "say which: " + " or ".join(f"--column {role}={names[at]}" for role in wanted)
            raise DataError(said, where=where, line=line, remedy=remedy)
        found.update(dict.fromkeys(wanted, at))
    return found


def require_columns(
    found: Mapping[str, int],
    required: Sequence[str],
    names: Sequence[str],
    where: Path | None = None,
    line: int | None = None,
) -> None:
    """Raise an error if a required role has no column.

    Raises:
        DataError: a role has no column.
    """
    for role in required:
        if role not in found:
            known = " or ".join(SPELLINGS[role])
            held = shorten(", ".join(map(one_line, names)), MAX_SHOWN_CHARS * 3)
            said = f"no column {known} in the header: {held}"
            raise DataError(said, where=where, line=line, remedy=f"name the column: --column {role}=NAME")


class ObjectColumns:
    """Columns of JSON objects. The name of a role must be the same in every object.

    Args:
        path: path of the file.
        roles: roles to read.
        chosen: names from `--column`.
        required: roles that every object must have (default: all roles).
    """

    def __init__(
        self, path: Path, roles: Collection[str], chosen: ColumnNames, required: Sequence[str] | None = None
    ) -> None:
        self._path, self._roles, self._chosen = path, roles, chosen
        self._required = tuple(roles if required is None else required)
        self._known: dict[tuple[str, ...], dict[str, str]] = {}
        self._seen: dict[str, tuple[str, int]] = {}  # by role: the first column name and its line

    def cells(self, row: Mapping[str, object], line: int) -> dict[str, object]:
        """Return the values of an object by role.

        Raises:
            DataError: a role is missing, has two names, or another name than in an earlier object.
        """
        names = tuple(row)
        known = self._known.get(names)
        if known is None:
            known = self._known[names] = self._resolve(names, list(row.values()), line)
        return {role: row[name] for role, name in known.items()}

    def _resolve(self, names: tuple[str, ...], first: Sequence[object], line: int) -> dict[str, str]:
        found = resolve_columns(names, self._roles, self._chosen, first, where=self._path, line=line)
        require_columns(found, self._required, names, self._path, line)
        known = {role: names[at] for role, at in found.items()}
        for role, name in known.items():
            before, at = self._seen.setdefault(role, (name, line))
            if before != name:
                said = f"{ROLE_MEANINGS.get(role, role)} is in {name!r} here and in {before!r} in line {at}"
                raise DataError(said, where=self._path, line=line, remedy="use the same name in every line")
        return known


def names_a_pair(names: Sequence[str], chosen: ColumnNames) -> bool:
    """Return whether there is a column for the query and a column for the passage."""
    keys = {*map(fold_column_name, names)}
    sides = (("qid", "question", "query"), ("doc_id", "passage", "document", TEXT))
    return all(
        any(keys & {role, *SPELLINGS.get(role, ()), fold_column_name(chosen.get(role, role))} for role in side)
        for side in sides
    )


def object_id(value: object, path: Path, line: int | None) -> str:
    """Return an id of a JSON object: a text, or the digits of an integer.

    Raises:
        DataError: the value is neither a text nor an integer.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    said = f"an id is {shorten(repr(value), MAX_SHOWN_CHARS)} ({type(value).__name__})"
    raise DataError(said, where=path, line=line, remedy="write ids as texts")


def header_of(path: Path) -> list[str]:
    """Return the column names of a table or the keys of the first JSON line; empty for other files.

    Raises:
        NotFoundError, DataError: the file cannot be read.
    """
    line, first = next(raw_lines(path), (0, ""))
    if first.lstrip().startswith("{"):
        return [str(name) for name in next(read_objects(path), (0, {}))[1]]
    delimiter = max(DELIMITERS, key=first.count)
    return _split_cells(first, delimiter, path, line) if delimiter in first else []


def check_column(role: str, name: str, paths: Sequence[Path]) -> None:
    """Raise an error for a column name that occurs in no file.

    Raises:
        UsageError: no file has such a column.
        NotFoundError, DataError: a file cannot be read.
    """
    headers = [header_of(path) for path in paths]
    if not any(fold_column_name(name) in map(fold_column_name, header) for header in headers):
        known = list(dict.fromkeys(each for header in headers for each in header))
        remedy = (
            did_you_mean(name, known)
            if known
            else "use a table with a header, or JSON lines: other files have no column names"
        )
        raise UsageError(f"--column {role}={name}: no file has a column {name!r}", remedy=remedy)


def open_table(
    path: Path, roles: Collection[str], required: Sequence[str], chosen: ColumnNames, delimiter: str | None = None
) -> OpenTable:
    """Open a table with a header. Its rows are read as a stream.

    Cells of comma-separated tables lose the apostrophe that protects against formulas in spreadsheets. Other cells are
    unchanged.

    Args:
        path: a file, which may be ``.gz``.
        roles: roles to read.
        required: roles that must have a column.
        chosen: names from `--column`.
        delimiter: column separator (default: the most frequent one in the header).

    Raises:
        NotFoundError, DataError: the file cannot be read, a required column is missing, or two columns have the same
            meaning. Reading the rows raises it if a row and the header have different numbers of cells.
    """
    between, rows = _split_rows(path, delimiter)
    line, names = next(rows, (1, []))
    first = next(rows, None)
    places = resolve_columns(names, roles, chosen, first[1] if first else (), where=path, line=line)
    require_columns(places, required, names, path, line)
    every = () if first is None else chain([first], rows)
    unread = tuple(one_line(name.strip()) for at, name in enumerate(names) if at not in places.values())
    return OpenTable(places, unread, _rows_by_role(path, every, places, len(names), guarded=between == COMMA))


def _rows_by_role(
    path: Path, rows: Iterable[tuple[int, list[str]]], places: Mapping[str, int], count: int, *, guarded: bool
) -> Iterator[TableRow]:
    for number, row in rows:
        if len(row) != count:
            said = f"{len(row)} columns, the header has {count}"
            raise DataError(said, where=path, line=number, remedy="give each row a cell for each column; check quotes")
        cells = {role: row[at] for role, at in places.items()}
        yield TableRow(number, {role: of_spreadsheet_cell(cell) for role, cell in cells.items()} if guarded else cells)


def table_cells_of(path: Path, delimiter: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Return the rows of a table, header first, each with the number of its first line. Blank rows are omitted.

    Raises:
        NotFoundError, DataError: the file cannot be read, or is not valid CSV.
    """
    return _split_rows(path, delimiter)[1]


def _split_rows(path: Path, delimiter: str | None) -> tuple[str, Iterator[tuple[int, list[str]]]]:
    """Return the delimiter of a table, and its rows as in `table_cells_of`."""
    source = text_lines(path)
    head = next((each for each in source if each[1].strip()), None)
    between = delimiter or (COMMA if head is None else max(DELIMITERS, key=head[1].count))
    return between, iter(()) if head is None else _rows_of(path, chain([head], source), between)


def _rows_of(path: Path, lines: Iterable[tuple[int, str]], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    first: int | None = None

    def texts() -> Iterator[str]:
        nonlocal first
        for number, text in lines:
            first = number if first is None else first
            yield text  # csv accepts all line endings, and keeps those in quoted cells

    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    usual = csv.field_size_limit()  # a global setting that other code relies on
    try:
        while True:
            csv.field_size_limit(MAX_LINE_BYTES)
            row = next(reader, None)
            csv.field_size_limit(usual)
            if row is None:
                return
            if any(cell.strip() for cell in row):
                yield first or 1, row
            first = None
    except csv.Error as error:
        raise DataError(f"not valid CSV ({error})", where=path, line=first, remedy="check the quotes") from error
    finally:
        csv.field_size_limit(usual)


def _split_cells(text: str, delimiter: str, path: Path, line: int) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([text.rstrip("\r\n")], delimiter=delimiter), [])]
    except csv.Error as error:
        raise DataError(f"not valid CSV ({error})", where=path, line=line, remedy="check the quotes") from error


def _all_of(keys: Sequence[str], wanted: Collection[str]) -> list[int]:
    return [at for at, key in enumerate(keys) if key in wanted]


def _single_column(role: str, places: Sequence[int], names: Sequence[str], where: Path | None, line: int | None) -> int:
    """Return the only position of a role.

    Raises:
        DataError: there are several.
    """
    if len(places) == 1:
        return places[0]
    one, other = (one_line(names[at].strip()) for at in sorted(places)[:2])
    meaning = ROLE_MEANINGS.get(role, f"the {role}")
    if one == other:
        said, remedy = f"column {one!r} occurs twice", "remove or rename one of them"
    else:
        said = f"columns {one!r} and {other!r} both mean {meaning}"
        remedy = f"choose one: --column {role}={one} or --column {role}={other}"
    raise DataError(said, where=where, line=line, remedy=remedy)


def _role_of(
    id_role: str, text_role: str, roles: Collection[str], found: Mapping[str, int], word: bool, keys: Sequence[str]
) -> str | None:
    """Return the role of a column named in `ID_OR_TEXT_ROLES`, or None if the column is not read."""
    if id_role in roles and id_role not in found:
        return id_role if word or text_role not in roles or text_role in found else text_role
    if word and id_role in found and keys[found[id_role]] in ID_OR_TEXT_ROLES and keys[found[id_role]] != "query":
        return id_role  # an error later: two columns, with ids of documents and of passages, have the same meaning
    return text_role if text_role in roles else None


def _is_word(first: Sequence[object], at: int) -> bool:
    cell = first[at] if at < len(first) else ""
    return not isinstance(cell, str) or len(cell.split()) == 1


def _roles_of_text(roles: Collection[str], found: Mapping[str, int]) -> list[str]:
    """Return the possible roles of a column `text`: preferably roles whose id has no column, otherwise all roles whose
    text has no column.
    """
    texts = [role for role in ("question", "passage") if role in roles and role not in found]
    identities = {"question": "qid", "passage": "doc_id"}
    needed = [role for role in texts if identities[role] not in found]
    return needed or texts
