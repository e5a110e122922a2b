"""Questions in a YAML list: the pleasant way to write nuggets by hand.

Ids, questions and dates are what their author wrote, whatever YAML takes them for: the id ``007`` is "007".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import yaml
from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.files import read_text
from raggs.base.plainyaml import PlainYaml
from raggs.base.settings import InputPath
from raggs.parts.queries.base import QueryReader
from raggs.parts.queries.fields import ALIASES, query_of

TEXTS = frozenset({*ALIASES["qid"], *ALIASES["text"]})
REMEDY = "start each query with `- _id: ...`"


class YamlQueriesConfig(AdapterConfig):
    type: Literal["yaml"] = "yaml"
    path: InputPath = Field(description="a YAML list of mappings")


class YamlQueries(QueryReader):
    """A YAML list of mappings with the fields of the JSON form."""

    Config = YamlQueriesConfig
    config: YamlQueriesConfig

    def queries(self) -> Iterator[tuple[int, Query]]:
        """Entry by entry, each with the number of its first line.

        Raises:
            DataError: the file is not plain YAML, or an entry is no query.
        """
        document = PlainYaml(read_text(self.config.path), self.config.path)
        root = document.root
        if root is not None and not isinstance(root, yaml.SequenceNode):
            raise document.fault("not a list of queries", 0, REMEDY)
        for node in root.value if root is not None else ():
            line = node.start_mark.line + 1
            entry = document.value(node, TEXTS, depth=1)
            if not isinstance(entry, dict):
                raise document.fault("not a mapping", line, REMEDY)
            yield line, query_of(entry, self.config.path, line)
