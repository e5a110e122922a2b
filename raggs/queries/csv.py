"""Questions in a table with a header."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from raggs.artifacts import Query
from raggs.errors import DataError
from raggs.jsonl import raw_lines
from raggs.queries.fields import query_of
from raggs.registry import Adapter
from raggs.settings import InputPath, Settings


class CsvQueriesConfig(Settings):
    type: Literal["csv"] = "csv"
    path: InputPath
    delimiter: str = Field(",", min_length=1, max_length=1)


class CsvQueries(Adapter):
    """A CSV file with a header: id, question, optionally language and answer; the rest is metadata."""

    Config = CsvQueriesConfig

    def __init__(self, config: CsvQueriesConfig) -> None:
        self.config = config

    def queries(self) -> Iterator[tuple[int, Query]]:
        path = self.config.path
        reader = csv.reader((text for _, text in raw_lines(path)), delimiter=self.config.delimiter, strict=True)
        try:
            header = next(reader, [])
            for row in reader:
                if len(row) != len(header):
                    raise DataError(f"{len(row)} columns, the header has {len(header)}", where=path, line=reader.line_num, remedy="quote texts that hold the delimiter")
                yield reader.line_num, query_of(dict(zip(header, row, strict=True)), path, reader.line_num)
        except csv.Error as error:
            raise DataError(f"not valid CSV ({error})", where=path, line=reader.line_num, remedy="check the quotes") from error
