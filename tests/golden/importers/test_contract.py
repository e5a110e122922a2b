"""What holds for every registered importer, whoever wrote it: nothing is merged, renamed or dropped in silence.

Each test writes a set in the format of an importer, makes it a foreign one (no sidecar), changes one thing in one of
the files that the importer reads, and looks at what comes of it. A new importer needs no edit here.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.rich import rich_golden

from raggs import open_golden
from raggs.app.export import import_set
from raggs.base.errors import RaggsError, UsageError
from raggs.golden import formats

NAMES = sorted(formats.IMPORTERS)
NO_IDS = (None, True, 1.5, "", [], {})
Change = Callable[[Any], Iterator[Any]]


def foreign(name: str, folder: Path) -> Path:
    """A set as another tool would have written it."""
    formats.EXPORTERS.load(name)().write(rich_golden(), folder)
    for path in folder.glob("*meta.json"):
        path.unlink()
    return folder


def imported(folder: Path, name: str, out: Path, **more: Any) -> dict[str, Any] | RaggsError:
    """The ids and texts that came through, or the error."""
    try:
        done = import_set(folder, name, out, force=True, **more)
    except RaggsError as error:
        return error
    golden = open_golden(out)
    queries = list(golden.by_query())
    return {
        "qids": {query.qid for query in queries},
        "docs": {one.doc_id for query in queries for one in query.grades},
        "grades": {(query.qid, one.doc_id): one.grade for query in queries for one in query.grades},
        "bytes": "".join(path.read_text() for path in sorted(out.rglob("*")) if path.is_file()),
        "notes": " ".join(done.notes),
    }


def read_files(folder: Path, name: str) -> list[Path]:
    """The files that an importer reads."""
    return [folder / path for path in read_by(name)]


@cache
def read_by(name: str) -> list[str]:
    """Their places in a set of that format: what the importer gives changes if they do."""
    found = []
    with TemporaryDirectory() as made:
        folder, out = foreign(name, Path(made) / "theirs"), Path(made) / "out"
        usual = imported(folder, name, out)
        assert isinstance(usual, dict), usual
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix in (".jsonl", ".json", ".csv", ".tsv", ".txt", ".trec"):
                kept = path.read_bytes()
                path.write_bytes(b"\xff\xfe\n")
                if imported(folder, name, out) != usual:
                    found.append(str(path.relative_to(folder)))
                path.write_bytes(kept)
    return found


def rows_of(path: Path) -> list[Any]:
    """The rows of a file: objects, lists of cells, or the names and values of an object."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if path.suffix == ".json":
        found = json.loads(text)
        return found if isinstance(found, list) else [list(pair) for pair in found.items()]
    if path.suffix in (".csv", ".tsv"):
        return list(csv.reader(io.StringIO(text), delimiter="," if path.suffix == ".csv" else "\t"))
    return [line.split(" ") for line in text.splitlines()]


def put_rows(path: Path, rows: list[Any]) -> None:
    if path.suffix == ".json" and isinstance(rows[0], list):
        path.write_text(
            "{"
            + ",\n".join(
                f"{json.dumps(key if isinstance(key, str) else '')}: {json.dumps(value)}" for key, value in rows
            )
            + "}"
        )
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif path.suffix in (".csv", ".tsv"):
        text = io.StringIO()
        csv.writer(text, delimiter="," if path.suffix == ".csv" else "\t").writerows(rows)
        path.write_text(text.getvalue())
    else:
        path.write_text("".join(" ".join(row) + "\n" for row in rows))


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = list(inner)
    if not found:
        yield place, value
    for key, entry in found:
        yield from leaves(entry, (*place, key))


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = changed(value[place[0]], place[1:], new)
    return copy


@pytest.mark.parametrize("name", NAMES)
def test_a_value_of_the_wrong_kind_becomes_no_id(name: str, tmp_path: Path) -> None:
    folder = foreign(name, tmp_path / "theirs")
    usual = imported(folder, name, tmp_path / "out")
    assert isinstance(usual, dict), usual
    for path in read_files(folder, name):
        rows = rows_of(path)
        cells = path.suffix not in (".jsonl", ".json")
        at = min(len(rows) - 1, 1)
        for place, value in leaves(rows[at]):
            for wrong in ("", "a b") if cells else NO_IDS:
                put_rows(path, changed(rows, (at, *place), wrong))
                found = imported(folder, name, tmp_path / "out")
                if isinstance(found, RaggsError):
                    assert found.exit_code in (4, 5), f"{path.name} {place} {wrong!r}: {found}"
                    assert str(folder) in str(found.where), f"{path.name} {place} {wrong!r}: {found}"
                    continue
                for kind in ("qids", "docs"):
                    made = {each for each in found[kind] - usual[kind] if not each.startswith(("q-", "p-"))}
                    assert not made, f"{path.name}: {place} was {value!r}, is {wrong!r}, and makes {made}"
        put_rows(path, rows)


@pytest.mark.parametrize("name", NAMES)
def test_two_rows_that_contradict_each_other_are_refused_or_both_kept(name: str, tmp_path: Path) -> None:
    folder = foreign(name, tmp_path / "theirs")
    refused = 0
    for path in read_files(folder, name):
        rows = rows_of(path)
        if path.parent.name == "runs":
            continue
        at = min(len(rows) - 1, 1)
        for place, value in leaves(rows[at]):
            if place[-1] == "raggs" or (isinstance(place[-1], str) and place[-1] in ("gain", "Q0")):
                continue  # packed by raggs itself
            other = "4" if value == "3" else "3" if isinstance(value, str) and value.isdigit() else None
            other = f"{value}x" if isinstance(value, str) and other is None else other
            other = value + 1 if isinstance(value, int | float) and not isinstance(value, bool) else other
            if other is None:
                continue
            put_rows(path, [*rows, changed(rows[at], place, other)])
            found = imported(folder, name, tmp_path / "out")
            if isinstance(found, RaggsError):
                refused += 1
                assert str(folder) in str(found.where), f"{path.name} {place}: {found}"
                continue
            both = all(json.dumps(each)[1:-1] in found["bytes"] for each in (value, other))
            assert both or str(place[-1]) in found["notes"], f"{path.name}: {place} is {value!r} and {other!r}"
        put_rows(path, rows)
    assert refused


def renamed(value: Any, old: str, new: str) -> Any:
    """A value with another text in place of one."""
    if isinstance(value, dict):
        return {renamed(key, old, new): renamed(entry, old, new) for key, entry in value.items()}
    if isinstance(value, list):
        return [renamed(entry, old, new) for entry in value]
    return new if value == old else value


@pytest.mark.parametrize("name", NAMES)
def test_ids_that_look_the_same_are_refused(name: str, tmp_path: Path) -> None:
    folder = foreign(name, tmp_path / "theirs")
    refused = 0
    for path in read_files(folder, name):
        rows = rows_of(path)
        for old in ("q2", "d3"):
            more = [row for row in rows if renamed(row, old, "x") != row][:1]
            both = [renamed(row, old, form) for row in more for form in ("d\u00e9", "de\u0301")]
            put_rows(path, [*rows, *both])
            found = imported(folder, name, tmp_path / "out")
            if both and not (path.parent.name == "runs" and old == "q2"):
                assert isinstance(found, RaggsError), f"{path.name}: {old}"
                refused += "look the same" in str(found)
        put_rows(path, rows)
    assert refused


@pytest.mark.parametrize("name", NAMES)
def test_options_that_the_format_does_not_have_are_refused(name: str, tmp_path: Path) -> None:
    folder = foreign(name, tmp_path / "theirs")
    kind = formats.IMPORTERS.load(name)
    found = imported(folder, name, tmp_path / "out", split="none-such")
    assert isinstance(found, RaggsError if kind.SPLITS else UsageError), "a split that is not there"
    found = imported(folder, name, tmp_path / "out", columns={"shoe-size": "x"})
    assert isinstance(found, UsageError), "a role that is not there"


@pytest.mark.parametrize("name", NAMES)
def test_bytes_that_are_not_utf_8_are_named(name: str, tmp_path: Path) -> None:
    folder = foreign(name, tmp_path / "theirs")
    for path in read_files(folder, name):
        kept = path.read_bytes()
        path.write_bytes(kept.rstrip() + b"\xff\n")
        found = imported(folder, name, tmp_path / "out")
        assert isinstance(found, RaggsError), path.name
        assert path.name in str(found), found
        path.write_bytes(kept)
