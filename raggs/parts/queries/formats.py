"""Query files as CSV tables, JSON lines (as in BEIR) and YAML lists.

CSV: a cell cannot contain a list, so the columns `references`, `nuggets`, `depends_on`, `evidence`, `history` and
`metadata` are parsed as JSON. Empty cells are missing values, but an empty id is an error. If there is no id column,
ids are derived from the text. The module `writing` puts an apostrophe before cells that a spreadsheet could take for a
formula, and lists their columns in the column `guarded`.

YAML: convenient for writing nuggets by hand. Ids, texts and dates are read as strings, regardless of YAML types: the id
``007`` is "007".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import yaml
from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.errors import DataError
from raggs.base.files import read_text, table_rows
from raggs.base.jsonl import decode_json, read_objects
from raggs.base.plainyaml import PlainYaml
from raggs.base.settings import InputPath
from raggs.base.text import of_spreadsheet_cell
from raggs.parts.queries import QueryReader
from raggs.parts.queries.fields import ALIASES, query_of

GUARDED = "guarded"
LIST = 'write a list, for example ["..."]'
OBJECT = 'write an object, for example {"source": "..."}'
SETS = 'write a list of lists of passage ids, for example [["a", "b"], ["c"]]'
CSV_REMEDY = {
    **dict.fromkeys(("references", "nuggets", "depends_on", "history"), LIST),
    "evidence": SETS,
    "metadata": OBJECT,
}


class CsvQueriesConfig(AdapterConfig):
    type: Literal["csv"] = "csv"
    path: InputPath = Field(description="CSV file with a header")
    delimiter: str = Field(",", min_length=1, max_length=1, description="column separator")


class CsvQueries(QueryReader):
    """A CSV file with a header: question, and optionally id, language, answer, references and others.

    The column `references` contains a JSON list of excerpts. An excerpt is a string, or an object of `text` and
    optionally `doc_id` and `span`. An object of `content`, `start_index` and `end_index` is accepted, too, as in
    chunking benchmarks. The indices are character offsets in the document that the column `corpus_id` names. The
    column `metadata` contains a JSON object.
    """

    Config = CsvQueriesConfig
    config: CsvQueriesConfig

    def queries(self) -> Iterator[tuple[int, Query]]:
        """Yield the query of each row, with the number of the row's first line.

        Raises:
            DataError: the table is not valid CSV, or a row does not fit its header or is not a valid query.
        """
        rows = table_rows(read_text(self.config.path), self.config.path, self.config.delimiter)
        header = self._header(next(rows, (1, []))[1])
        for line, row in rows:
            yield line, query_of(self._cells(header, row, line), self.config.path, line)

    def _header(self, row: list[str]) -> list[str]:
        """Return the column names.

        Raises:
            DataError: a name is duplicate, or no column contains queries.
        """
        names = [name.strip() for name in row]
        problem, remedy = None, "use a unique name for each column"
        if len(set(names)) < len(names):
            problem = "duplicate column name"
        if not set(ALIASES["text"]) & set(names):
            problem = f"no column {' or '.join(ALIASES['text'])} in the header: {', '.join(names)}"
            remedy = "name the columns in the first line, or set queries.delimiter"
        if problem and names:
            raise DataError(problem, where=self.config.path, line=1, remedy=remedy)
        return names

    def _cells(self, header: list[str], row: list[str], line: int) -> dict[str, Any]:
        if len(row) != len(header):
            message = f"{len(row)} columns, the header has {len(header)}"
            raise DataError(message, where=self.config.path, line=line, remedy="quote texts that contain the delimiter")
        cells: dict[str, Any] = {
            name: cell for name, cell in zip(header, row, strict=True) if cell.strip() or name in ALIASES["qid"]
        }
        marked = str(cells.get(GUARDED, "")).split()
        if marked and all(name in cells for name in marked):
            del cells[GUARDED]
            cells.update({name: of_spreadsheet_cell(cells[name]) for name in marked})
        for name in CSV_REMEDY:
            if name in cells:
                cells[name] = self._json(name, cells[name], line)
        return cells

    def _json(self, name: str, cell: str, line: int) -> Any:
        try:
            return decode_json(cell)
        except ValueError as error:
            message = f"column {name} is not valid JSON ({error})"
            raise DataError(message, where=self.config.path, line=line, remedy=CSV_REMEDY[name]) from error


class JsonlQueriesConfig(AdapterConfig):
    type: Literal["jsonl"] = "jsonl"
    path: InputPath = Field(description="JSON-lines file, one query per line; may be gzipped")


class JsonlQueries(QueryReader):
    """One JSON object per line: text, and optionally _id, language, answer, references, evidence and more."""

    Config = JsonlQueriesConfig
    config: JsonlQueriesConfig

    def queries(self) -> Iterator[tuple[int, Query]]:
        """Yield the query of each line, with its line number.

        Raises:
            DataError: a line is not a JSON object, or not a valid query.
        """
        for number, row in read_objects(self.config.path):
            yield number, query_of(row, self.config.path, number)


TEXT_FIELDS = frozenset({*ALIASES["qid"], *ALIASES["text"]})
YAML_REMEDY = "start each query with `- _id: ...`"


class YamlQueriesConfig(AdapterConfig):
    type: Literal["yaml"] = "yaml"
    path: InputPath = Field(description="YAML file with a list of mappings")


class YamlQueries(QueryReader):
    """A YAML list of mappings with the keys of the JSON-lines format."""

    Config = YamlQueriesConfig
    config: YamlQueriesConfig

    def queries(self) -> Iterator[tuple[int, Query]]:
        """Yield the query of each entry, with the number of the entry's first line.

        Raises:
            DataError: the file is not plain YAML, or an entry is not a valid query.
        """
        document = PlainYaml(read_text(self.config.path), self.config.path)
        root = document.root
        if root is not None and not isinstance(root, yaml.SequenceNode):
            raise document.fault("not a list of queries", 0, YAML_REMEDY)
        for node in root.value if root is not None else ():
            line = node.start_mark.line + 1
            entry = document.value(node, TEXT_FIELDS, depth=1)
            if not isinstance(entry, dict):
                raise document.fault("not a mapping", line, YAML_REMEDY)
            yield line, query_of(entry, self.config.path, line)
