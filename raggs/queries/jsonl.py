"""Questions in a JSON-lines file, as BEIR has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from raggs.artifacts import Query
from raggs.jsonl import read_objects
from raggs.queries.fields import query_of
from raggs.registry import Adapter
from raggs.settings import InputPath, Settings


class JsonlQueriesConfig(Settings):
    type: Literal["jsonl"] = "jsonl"
    path: InputPath


class JsonlQueries(Adapter):
    """One JSON object a line: _id, text, and optionally language, answer, references, nuggets."""

    Config = JsonlQueriesConfig

    def __init__(self, config: JsonlQueriesConfig) -> None:
        self.path = config.path

    def queries(self) -> Iterator[tuple[int, Query]]:
        for number, row in read_objects(self.path):
            yield number, query_of(row, self.path, number)
