"""Data sets of Hugging Face in a folder: rows of JSON lines, tables or parquet, as the head of README.md says."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from raggs.atomic import disk
from raggs.errors import DataError, PrerequisiteError, RaggsError
from raggs.golden.scales import stated_labels
from raggs.importers.base import ImportedSet, Importer
from raggs.importers.pieces import Pieces, grades_of, missing, runs_beside
from raggs.inputs import read_text, table_rows
from raggs.jsonl import read_objects
from raggs.jsontypes import as_list, as_object
from raggs.plainyaml import load_plain
from raggs.trec import as_number

CARD = "README.md"
CONFIGS: Mapping[str, tuple[str, ...]] = {
    "corpus": ("corpus",),
    "queries": ("queries", "query"),
    "default": ("default", "qrels"),
}
IDS = ("_id", "id", "query-id", "corpus-id")
SCORE = "score"
DELIMITERS = {".csv": ",", ".tsv": "\t"}


class HfImporter(Importer):
    """Hugging Face data set in a folder, in MTEB's configurations.

    Rows may be JSON lines, tables with a header, or parquet (which needs pyarrow). `README.md` says where they are;
    else they are looked for under the names of the configurations.
    """

    FORMAT = "hf"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`.

        Raises:
            PrerequisiteError: rows are parquet, and pyarrow is not there.
        """
        files = {name: self._files(path, name) for name in CONFIGS} if path.is_dir() else {"default": [path]}
        labels = stated_labels(path)
        if not files["default"] and labels is None:
            raise missing(path, self.FORMAT, f"a configuration default with the split {self.split}")
        kept = tempfile.TemporaryDirectory(prefix="raggs-")
        made = {name: _lines(found, Path(kept.name) / f"{name}.jsonl") for name, found in files.items() if found}
        file = labels or made["default"]
        questions, corpus = made.get("queries"), made.get("corpus")
        grades = grades_of(file)
        orders, lists = runs_beside(path, file, grades) if labels else ({}, [])
        return Pieces(file, grades, orders, False, questions, corpus, lists, kept).put_together()

    def _files(self, folder: Path, config: str) -> list[Path]:
        """The files of a configuration."""
        stated = [files for name, files in _stated(folder) if name in CONFIGS[config]]
        patterns = self._of_split(stated[0]) if stated else self._usual(config)
        inside = folder.resolve()
        found = (each for pattern in patterns if not Path(pattern).is_absolute() for each in folder.glob(pattern))
        return sorted({each for each in found if each.is_file() and each.resolve().is_relative_to(inside)})

    def _usual(self, config: str) -> list[str]:
        """Where the files of a configuration lie if nobody says."""
        names = CONFIGS[config]
        if config == "default":
            return [f"{name}/{self.split}{rest}" for name in (*names, "data") for rest in ("[.-]*",)]
        return [f"{name}{rest}" for name in names for rest in (".jsonl", ".parquet", "/*.jsonl", "/*.parquet")]

    def _of_split(self, stated: Sequence[tuple[str, list[str]]]) -> list[str]:
        """The files of the split that is asked for, or of the only one."""
        asked = [files for split, files in stated if split == self.split]
        return asked[0] if asked else stated[0][1] if len(stated) == 1 else []


def _stated(folder: Path) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """What the head of the card says: by configuration, by split, patterns of files."""
    try:
        head = load_plain(read_text(folder / CARD).replace("\r\n", "\n").split("---\n")[1])
    except (RaggsError, ValueError, IndexError):
        return
    for config in map(as_object, as_list(as_object(head).get("configs"))):
        files = config.get("data_files")
        splits = [as_object(each) for each in as_list(files)] or [{"split": "", "path": files}]
        yield str(config.get("config_name")), [(str(each.get("split")), _paths(each.get("path"))) for each in splits]


def _paths(found: object) -> list[str]:
    return [each for each in [*as_list(found), found] if isinstance(each, str)]


def _lines(files: Sequence[Path], made: Path) -> Path:
    """The rows of some files as JSON lines in one; a file that has them as they are read stays where it is."""
    if len(files) == 1 and files[0].name.endswith((".jsonl", ".jsonl.gz")) and _is_plain(files[0]):
        return files[0]
    with disk(made, "name another place for temporary files by TMPDIR"), made.open("w", encoding="utf-8") as file:
        for row in chain.from_iterable(map(rows_of, files)):
            file.write(json.dumps(_plain(row), ensure_ascii=False, default=str) + "\n")
    return made


def _is_plain(path: Path) -> bool:
    """Whether the first row is as it is read; columns have one type."""
    _, first = next(iter(read_objects(path)), (0, {}))
    return _plain(first) == first and not isinstance(first.get(SCORE), float)


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    """A row with texts for ids, and a whole score as a whole number."""
    found = dict(row)
    for name in IDS:
        if type(found.get(name)) is int:
            found[name] = str(found[name])
    score = found.get(SCORE)
    number = as_number(score) if isinstance(score, str) else score
    if isinstance(number, float) and number.is_integer():
        found[SCORE] = int(number)
    return found


def rows_of(path: Path) -> Iterator[Mapping[str, object]]:
    """The rows of one file.

    Raises:
        PrerequisiteError: they are parquet, and pyarrow is not there.
        DataError: they cannot be read.
    """
    kind = path.suffix if path.suffix != ".gz" else Path(path.stem).suffix
    if kind in (".jsonl", ".json", ".ndjson"):
        yield from (row for _, row in read_objects(path))
    elif kind in DELIMITERS:
        table = table_rows(read_text(path), path, DELIMITERS[kind])
        _, names = next(table, (0, []))
        yield from (dict(zip(names, row, strict=False)) for _, row in table)
    elif kind == ".parquet":
        yield from _parquet(path)
    else:
        raise DataError(f"rows of {kind or 'no known kind'} are not read", where=path, remedy="write them as .jsonl")


def _parquet(path: Path) -> Iterator[Mapping[str, object]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise PrerequisiteError("parquet is read with pyarrow", where=path, remedy="pip install pyarrow") from error
    try:
        for batch in ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except (OSError, ArrowException) as error:
        raise DataError(f"not valid parquet ({error})", where=path, remedy="write it again") from error
