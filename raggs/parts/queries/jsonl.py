"""Questions in a JSON-lines file, as BEIR has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.jsonl import read_objects
from raggs.base.settings import InputPath
from raggs.parts.queries.base import QueryReader
from raggs.parts.queries.fields import query_of


class JsonlQueriesConfig(AdapterConfig):
    type: Literal["jsonl"] = "jsonl"
    path: InputPath = Field(description="one JSON object a line; may be .gz")


class JsonlQueries(QueryReader):
    """One JSON object a line: text, and optionally _id, language, answer, references, nuggets."""

    Config = JsonlQueriesConfig
    config: JsonlQueriesConfig

    def queries(self) -> Iterator[tuple[int, Query]]:
        """Line by line, each with its number.

        Raises:
            DataError: a line is no JSON object, or no query.
        """
        for number, row in read_objects(self.config.path):
            yield number, query_of(row, self.config.path, number)
