"""Data sets of Hugging Face's `datasets`, in the configurations that MTEB uses for retrieval tasks; and files of
AutoRAG.

The importer reads JSON lines, tables or parquet files. The header of README.md states their locations. Without it, the
usual names are tried.

AutoRAG reads queries and passages as parquet files. Writing parquet needs pyarrow, which AutoRAG installs and raggs
does not need. The exporter therefore writes JSON lines, and a script that converts them to parquet on a machine with
AutoRAG. If pyarrow is available, the exporter runs the script itself.
"""

from __future__ import annotations

import json
import re
import runpy
import tempfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import ClassVar, TextIO

import yaml

from raggs.base.artifacts import Passage, Query
from raggs.base.errors import DataError, PrerequisiteError, RaggsError
from raggs.base.files import disk, hash_file, read_text
from raggs.base.jsonl import read_objects
from raggs.base.plainyaml import load_plain
from raggs.base.tables import SPELLINGS, ColumnNames, fold_column_name, table_cells_of
from raggs.base.text import one_line
from raggs.base.trec import SeenPairs, as_number
from raggs.base.types import as_list, as_object
from raggs.golden.base import ASKED_AND_READ, GoldenContent, GoldenSet
from raggs.golden.files import PACKED_COLUMN, grades_of, pack_facts, passage_facts
from raggs.golden.formats import ImportedSet, Importer, write_lines, write_objects
from raggs.golden.formats.cases import CORPUS as cases_CORPUS
from raggs.golden.formats.cases import (
    QUERIES,
    CaseExporter,
    CaseImporter,
    CorpusExporter,
    QuestionCase,
    RawCase,
    ToolGuide,
    given_id,
    unpacked,
    without_fields,
)
from raggs.golden.formats.labelled_files import TEST, SetPieces, first_of, missing_file_error, runs_beside
from raggs.golden.formats.trec import write_passages
from raggs.parts.file_shapes import GradeFormat, stated_labels

CARD = "README.md"
CORPUS_COLUMNS = {"_id": "string", "title": "string", "text": "string", PACKED_COLUMN: "string"}
QUERY_COLUMNS = {"_id": "string", "text": "string", PACKED_COLUMN: "string"}
SCORES = {"query-id": "string", "corpus-id": "string", "score": "int32"}


class HfExporter(CorpusExporter):
    """Hugging Face data set with MTEB's configurations: corpus, queries, default.

    `README.md` declares the files and their types for `datasets.load_dataset`. All rows have the same columns.
    Additional data of queries and passages is stored as JSON in the column `raggs`.
    """

    FORMAT: ClassVar[str] = "hf"
    LABELS: ClassVar[str] = "qrels/{split}.jsonl"

    def passage(self, passage: Passage) -> Mapping[str, object]:
        """Return a passage as a row; see `CorpusExporter.passage`."""
        return {"_id": passage.doc_id, "title": passage.title, "text": passage.text, PACKED_COLUMN: pack_facts(passage)}

    def query(self, query: Query) -> Mapping[str, object]:
        """Return a query as a row; see `CorpusExporter.query`."""
        return {"_id": query.qid, "text": query.text, PACKED_COLUMN: pack_facts(query)}

    def write_labels(self, golden: GoldenSet, path: Path) -> int:
        """Write the labels; see `CorpusExporter.write_labels`."""
        return write_objects(path, _labels(golden, self.options.scale))

    def guide(self, golden: GoldenSet, folder: Path) -> ToolGuide:
        """Write the dataset card; see `CorpusExporter.guide`."""
        with disk(folder, "export to another folder", "cannot be read again"):
            content = {name: hash_file(folder / name) for name in (cases_CORPUS, QUERIES, self.labels)}
        write_lines(folder / CARD, self._card(golden, content))
        return ToolGuide((folder / CARD,))

    def _card(self, golden: GoldenSet, content: Mapping[str, str]) -> Iterator[str]:
        """Yield the lines of the dataset card, whose header configures `datasets`.

        `datasets` caches a folder until the header changes, so the header contains a hash of each file.
        """
        configs = [
            _config("corpus", "corpus", cases_CORPUS),
            _config("queries", "queries", QUERIES),
            {**_config("default", self.options.split, self.labels), "default": True},
        ]
        types = zip(
            ("corpus", "queries", "default"), (CORPUS_COLUMNS, QUERY_COLUMNS, SCORES), content.items(), strict=True
        )
        info = [
            {"config_name": name, "description": f"{file} sha256:{sha256}", "features": _features(columns)}
            for name, columns, (file, sha256) in types
        ]
        head = {"configs": configs, "dataset_info": info, "tags": ["mteb"], "task_categories": ["text-retrieval"]}
        yield "---"
        yield yaml.safe_dump(head, sort_keys=False, allow_unicode=True).rstrip("\n")
        yield "---"
        yield f"# {one_line(golden.name)}"
        yield ""
        yield f"A golden set for retrieval, made with raggs. Scores: {self.options.scale.described()['meaning']}."
        yield f"`{self.SIDECAR}` contains its provenance, and lists what these files do not contain."


def _config(name: str, split: str, path: str) -> dict[str, object]:
    return {"config_name": name, "data_files": [{"split": split, "path": path}]}


def _features(columns: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "dtype": dtype} for name, dtype in columns.items()]


def _labels(golden: GoldenSet, scale: GradeFormat) -> Iterator[dict[str, object]]:
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                score = scale.written(graded.grade)
                yield {"query-id": query.qid, "corpus-id": graded.doc_id, "score": score}


CONFIGS: Mapping[str, tuple[str, ...]] = {
    "corpus": ("corpus",),
    "queries": ("queries", "query"),
    "default": ("default", "qrels"),
}
IDS = ("id", *SPELLINGS["qid"], *SPELLINGS["doc_id"])
GRADES = SPELLINGS["grade"]
LINE = re.compile(r"\bline (\d+)")
DELIMITERS = {".csv": ",", ".tsv": "\t"}


class HfImporter(Importer):
    """Hugging Face data set in a folder, in MTEB's configurations.

    Rows may be JSON lines, tables with a header, or parquet (needs pyarrow). `README.md` states their location. Without
    it, they are searched for under the names of the configurations.
    """

    FORMAT = "hf"

    SPLITS = True

    def read(self, path: Path) -> ImportedSet:
        """Read the set; see `Importer.read`.

        Raises:
            PrerequisiteError: rows are parquet, and pyarrow is not installed.
        """
        files = {name: self._files(path, name) for name in CONFIGS} if path.is_dir() else {"default": [path]}
        labels = self._stated_labels(path)
        if not files["default"] and labels is None:
            raise missing_file_error(path, self.FORMAT, f"a configuration default with the split {self.split or TEST}")
        kept = tempfile.TemporaryDirectory(prefix="raggs-")
        made = {
            name: _ConvertedRows(found, Path(kept.name) / f"{name}.jsonl") for name, found in files.items() if found
        }
        with ExitStack() as stack:
            for rows in made.values():
                stack.enter_context(rows.named())
            places = {name: rows.path(self.columns) for name, rows in made.items()}
            file = labels or places["default"]
            grades = grades_of(file, self.columns)
            orders, lists = runs_beside(path, file, grades) if labels else ({}, [])
            pieces = SetPieces(
                file, grades, orders, False, places.get("queries"), places.get("corpus"), lists, (kept, made)
            )
            return pieces.put_together()

    def _stated_labels(self, path: Path) -> Path | None:
        """Return the labels that the sidecar of an export names, if they belong to the split."""
        found = stated_labels(path)
        if found is None or self.split is None or found.name.partition(".")[0] == self.split:
            return found
        return None

    def _files(self, folder: Path, config: str) -> list[Path]:
        """Return the files of a configuration."""
        stated = [files for name, files in _stated_files(folder) if name in CONFIGS[config]]
        patterns = self._patterns(config, stated[0]) if stated else self._usual(config)
        inside = folder.resolve()
        found = (each for pattern in patterns if not Path(pattern).is_absolute() for each in folder.glob(pattern))
        return sorted({each for each in found if each.is_file() and each.resolve().is_relative_to(inside)})

    def _patterns(self, config: str, stated: Sequence[tuple[str, list[str]]]) -> list[str]:
        """Return the patterns of a configuration's files in the dataset card. A split of the corpus or of the queries
        counts if it has no name, the name of the configuration, or that of the requested split.
        """
        if config == "default":
            return self._of_split(stated)
        splits = [files for split, files in stated if split in ("", config, self.split or TEST)]
        return [each for files in splits for each in files] or (stated[0][1] if len(stated) == 1 else [])

    def _usual(self, config: str) -> list[str]:
        """Return the default patterns of a configuration's files."""
        names = CONFIGS[config]
        if config == "default":
            return [f"{name}/{self.split or TEST}{rest}" for name in (*names, "data") for rest in ("[.-]*",)]
        return [f"{name}{rest}" for name in names for rest in (".jsonl", ".parquet", "/*.jsonl", "/*.parquet")]

    def _of_split(self, stated: Sequence[tuple[str, list[str]]]) -> list[str]:
        """Return the files of the requested split (default: test). If no split is requested and there is no test split,
        return those of the only split.
        """
        asked = [files for split, files in stated if split == (self.split or TEST)]
        return asked[0] if asked else stated[0][1] if len(stated) == 1 and self.split is None else []


def _stated_files(folder: Path) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """Yield the entries of the card's header: the patterns of files of each configuration and split."""
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


class _ConvertedRows:
    """The rows of several files, converted to one file of JSON lines. A single file in the right form is used directly.

    Args:
        files: files with the rows.
        made: path of the converted file.
    """

    def __init__(self, files: Sequence[Path], made: Path) -> None:
        self._files, self._made = files, made
        self._ends: list[int] = []  # for each file, the number of its last line in the converted file

    def path(self, columns: ColumnNames) -> Path:
        """Return the path of the JSON lines.

        Raises:
            NotFoundError, DataError: a file cannot be read.
        """
        first = self._files[0]
        if len(self._files) == 1 and first.name.endswith((".jsonl", ".jsonl.gz")) and _is_plain(first, columns):
            return first
        remedy = "set TMPDIR to another folder for temporary files"
        with disk(self._made, remedy), self._made.open("w", encoding="utf-8") as file:
            self._write(file, columns)
        return self._made

    def _write(self, file: TextIO, columns: ColumnNames) -> None:
        count = 0
        for path in self._files:
            for number, row in enumerate(rows_of(path), start=1):
                count += 1
                try:
                    line = json.dumps(_plain_row(row, columns), ensure_ascii=False, default=_text, allow_nan=False)
                except (ValueError, TypeError) as error:
                    said = f"row {number} cannot be written as JSON ({error})"
                    raise DataError(said, where=path, line=number, remedy="write it as JSON lines") from error
                file.write(f"{line}\n")
            self._ends.append(count)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Change errors about a line of the converted file, so that they refer to the original file and row."""
        try:
            yield
        except RaggsError as error:
            if error.where == str(self._made):
                error.message = LINE.sub(lambda found: "row " + self._origin(int(found[1])), error.message)
                if error.line is not None:
                    error.where, error.line = self._place(error.line)
                elif len(self._files) == 1:
                    error.where = str(self._files[0])
            raise

    def _origin(self, line: int) -> str:
        path, row = self._place(line)
        return str(row) if len(self._files) == 1 else f"{row} of {Path(path).name}"

    def _place(self, line: int) -> tuple[str, int]:
        """Return the original file and row of a line."""
        at = bisect_left(self._ends, line)
        return str(self._files[at]), line - (self._ends[at - 1] if at else 0)


def _is_plain(path: Path, columns: ColumnNames) -> bool:
    """Return whether the first row needs no conversion. The other rows then need none either, because each column of a
    data set has one type.
    """
    _, first = next(iter(read_objects(path)), (0, {}))
    return _plain_row(first, columns) == first and not any(isinstance(value, float) for value in first.values())


def _plain_row(row: Mapping[str, object], columns: ColumnNames) -> dict[str, object]:
    """Return a row in which ids are texts and integral grades are integers."""
    found = dict(row)
    ids = {*IDS, *(columns[role] for role in ("qid", "doc_id") if role in columns)}
    grades = {*GRADES, *(columns[role] for role in ("grade",) if role in columns)}
    for name, value in row.items():
        if fold_column_name(name) in ids or name in ids:
            found[name] = str(value) if type(value) is int else value
        elif fold_column_name(name) in grades or name in grades:
            number = as_number(value) if isinstance(value, str) else value
            whole = isinstance(number, float) and number.is_integer()
            found[name] = int(number) if whole and isinstance(number, float) else value
    return found


def _text(value: object) -> str:
    """Return the text of a value that has no JSON form, for example a time.

    Raises:
        TypeError: the value is bytes, whose text would be a Python expression.
    """
    if isinstance(value, bytes | bytearray):
        raise TypeError("bytes are not text")
    return str(value)


def rows_of(path: Path) -> Iterator[Mapping[str, object]]:
    """Yield the rows of one file.

    Raises:
        PrerequisiteError: the file is parquet, and pyarrow is not installed.
        DataError: the file cannot be read.
    """
    kind = path.suffix if path.suffix != ".gz" else Path(path.stem).suffix
    if kind in (".jsonl", ".json", ".ndjson"):
        yield from (row for _, row in read_objects(path))
    elif kind in DELIMITERS:
        yield from _table(path, DELIMITERS[kind])
    elif kind == ".parquet":
        yield from _parquet(path)
    else:
        raise DataError(f"raggs cannot read rows of {kind or 'this kind'}", where=path, remedy="write them as .jsonl")


def _table(path: Path, delimiter: str) -> Iterator[Mapping[str, object]]:
    """Yield the rows of a table, keyed by the names in its header.

    Raises:
        DataError: two columns have the same name, or a row has more or fewer cells than the header.
    """
    rows = table_cells_of(path, delimiter)
    line, names = next(rows, (1, []))
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DataError(f"column {twice!r} occurs twice", where=path, line=line, remedy="rename one of them")
    for number, row in rows:
        if len(row) != len(names):
            said = f"the row has {len(row)} columns, but the header has {len(names)}"
            raise DataError(
                said, where=path, line=number, remedy="give each row one cell per column; check the quotation marks"
            )
        yield dict(zip(names, row, strict=True))


def _parquet(path: Path) -> Iterator[Mapping[str, object]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise PrerequisiteError("reading parquet needs pyarrow", where=path, remedy="pip install pyarrow") from error
    try:
        for batch in ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except (OSError, ArrowException) as error:
        raise DataError(f"not valid parquet ({error})", where=path, remedy="write it again") from error


QA, CORPUS, SCRIPT = "qa.jsonl", "corpus.jsonl", "make_parquet.py"

SCRIPT_LINES = '''"""Written by raggs: converts the JSON lines in this folder to parquet. Needs pyarrow."""

import json
from datetime import datetime
from itertools import islice
from pathlib import Path

import pyarrow
from pyarrow.parquet import ParquetWriter

FOLDER, BATCH = Path(__file__).resolve().parent, 10_000
TEXT = pyarrow.string()
METADATA = [("last_modified_datetime", pyarrow.timestamp("us")), ("prev_id", TEXT), ("next_id", TEXT), ("raggs", TEXT)]
TABLES = {
    "qa": [
        ("qid", TEXT),
        ("query", TEXT),
        ("retrieval_gt", pyarrow.list_(pyarrow.list_(TEXT))),
        ("generation_gt", pyarrow.list_(TEXT)),
        ("raggs", TEXT),
    ],
    "corpus": [("doc_id", TEXT), ("contents", TEXT), ("metadata", pyarrow.struct(METADATA))],
}
NEVER = datetime(1970, 1, 1)  # AutoRAG requires a time for each passage


def rows(name):
    with open(FOLDER / f"{name}.jsonl", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if name == "corpus":
                row["metadata"]["last_modified_datetime"] = NEVER
            yield row


for name, columns in TABLES.items():
    schema, found = pyarrow.schema(columns), rows(name)
    with ParquetWriter(FOLDER / f"{name}.parquet", schema) as writer:
        while batch := list(islice(found, BATCH)):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))'''


class AutoRagExporter(CaseExporter):
    """AutoRAG: qa and corpus as JSON lines, with a script that writes parquet.

    `qa.jsonl` has one row per question: `qid`, `query`, `generation_gt` with the answer (if any), and `retrieval_gt`
    with the relevant passages, grouped by near-duplicates. `corpus.jsonl` has one row per passage: `doc_id`,
    `contents`, `metadata`. The columns `raggs` contain additional data as JSON. If pyarrow is installed, `qa.parquet`
    and `corpus.parquet` are written, too.
    """

    FORMAT: ClassVar[str] = "autorag"
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = ASKED_AND_READ | {"grades", "order", "lists"}
    WHOLE_CORPUS: ClassVar[bool] = True

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """Write the files; see `CaseExporter.write_cases`."""
        rows = {
            QA: write_objects(folder / QA, map(_question, self.cases(golden))),
            CORPUS: write_passages(golden, folder / CORPUS, self.options.corpus, _passage),
        }
        script = {SCRIPT: write_lines(folder / SCRIPT, SCRIPT_LINES.split("\n"))}
        tables = {name.replace(".jsonl", ".parquet"): count for name, count in rows.items()}
        return rows | script | (tables if _made_parquet(folder) else {})


def _made_parquet(folder: Path) -> bool:
    """Run the script if pyarrow is installed and can be imported. Return whether it ran."""
    try:
        with disk(folder, "choose another --out"):
            return find_spec("pyarrow") is not None and bool(runpy.run_path(str(folder / SCRIPT)))
    except ImportError:
        return False


def _question(case: QuestionCase) -> dict[str, object]:
    return {
        "qid": case.query.qid,
        "query": case.query.text,
        "retrieval_gt": list(_groups(case)) or [[]],
        "generation_gt": [] if case.query.answer is None else [case.query.answer],
        PACKED_COLUMN: _json(case.facts),
    }


def _groups(case: QuestionCase) -> Iterator[list[str]]:
    """Return the relevant passages in groups of near-duplicates. For AutoRAG, any passage of a group suffices."""
    groups: dict[str, list[str]] = {}
    for doc_id in case.ids:
        groups.setdefault(case.same[doc_id], []).append(doc_id)
    return iter(groups.values())


def _passage(passage: Passage) -> dict[str, object]:
    title: dict[str, object] = {"title": passage.title} if passage.title else {}
    facts = _json({**title, **passage_facts(passage)})
    return {"doc_id": passage.doc_id, "contents": passage.raw, "metadata": {PACKED_COLUMN: facts}}


def _json(facts: dict[str, object]) -> str:
    return json.dumps(facts, ensure_ascii=False) if facts else ""


TABLE_SUFFIXES = (".jsonl", ".parquet")
QUESTION = ("qid", "query", "retrieval_gt", "generation_gt", PACKED_COLUMN)


class AutoRagImporter(CaseImporter):
    """AutoRAG's qa and corpus in a folder: JSON lines, or parquet (needs pyarrow).

    All passages of `retrieval_gt` count as relevant. The groups of alternative passages are not imported.
    """

    FORMAT = "autorag"
    FILE: ClassVar[str] = "qa.jsonl"
    ALSO: ClassVar[tuple[str, ...]] = ("qa.parquet",)

    def entries(self, path: Path) -> Iterator[tuple[int, RawCase]]:
        """Yield the questions; see `CaseImporter.entries`."""
        for number, row in enumerate(rows_of(path), start=1):
            answers = [each for each in _flat(row.get("generation_gt")) if each not in (None, "")]
            more = {"generation_gt": answers} if len(answers) > 1 else {}
            yield (
                number,
                RawCase(
                    row.get("query"),
                    row.get("qid"),
                    answers[0] if answers else None,
                    None,
                    list(_flat(row.get("retrieval_gt") or [])),
                    {**unpacked(row.get(PACKED_COLUMN)), **without_fields(dict(row), *QUESTION), **more},
                ),
            )

    def passages(self, path: Path) -> Iterator[Mapping[str, object]]:
        """Yield the passages; see `CaseImporter.passages`."""
        corpus = first_of(path.parent, *(f"corpus{ending}" for ending in TABLE_SUFFIXES))
        if corpus is None:
            return
        looks, lines = SeenPairs(corpus), dict[str, int]()
        for number, row in enumerate(rows_of(corpus), start=1):
            known, text = as_object(row.get("metadata")), row.get("contents")
            doc_id = given_id(row.get("doc_id"), corpus, number)
            if not isinstance(text, str):
                raise DataError(f"contents of {doc_id} are not text", where=corpus, line=number, remedy="write a text")
            if lines.setdefault(doc_id, number) != number:
                said = f"passage id {doc_id} occurs twice (first in row {lines[doc_id]})"
                raise DataError(said, where=corpus, line=number, remedy="give each passage a unique id")
            if not doc_id.isascii():
                looks.note_form(doc_id, number)
            title = unpacked(known.get(PACKED_COLUMN)).get("title")
            if isinstance(title, str):
                text = text.removeprefix(f"{title}\n")
            ours = isinstance(known.get(PACKED_COLUMN), str)
            facts = {PACKED_COLUMN: known[PACKED_COLUMN]} if ours else {"metadata": known} if known else {}
            yield {"_id": doc_id, "title": title or "", "text": text, **facts}


def _flat(found: object) -> Iterator[object]:
    """Yield the entries of a list or of a list of lists, or the value itself."""
    if isinstance(found, list):
        yield from chain.from_iterable(map(_flat, as_list(found)))
    else:
        yield found
