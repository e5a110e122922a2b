"""Questions in a YAML list: the pleasant way to write nuggets by hand.

Ids, questions and dates are what their author wrote, whatever YAML takes them for: the id ``007`` is "007". A key that
stands twice in a query is an error, since the last one would win in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import yaml
from pydantic import Field

from raggs.adapter import AdapterConfig
from raggs.artifacts import Query
from raggs.errors import DataError
from raggs.queries.base import QueryReader, read_text
from raggs.queries.fields import ALIASES, query_of
from raggs.settings import InputPath

STR = "tag:yaml.org,2002:str"
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
            DataError: the file is not valid YAML, or an entry is no query.
        """
        loader = _Loader(read_text(self.config.path))
        try:
            for node in self._entries(loader.get_single_node()):
                line = node.start_mark.line + 1
                yield line, query_of(loader.construct_document(node), self.config.path, line)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or str(error)
            message, line = f"not valid YAML ({problem})", None if mark is None else mark.line + 1
            raise DataError(message, where=self.config.path, line=line, remedy="fix the syntax") from error
        finally:
            loader.dispose()

    def _entries(self, root: yaml.Node | None) -> Iterator[yaml.MappingNode]:
        """The list's entries, ids and questions marked as texts.

        Raises:
            DataError: not a list, an entry is not a mapping, or a key stands twice in one.
        """
        if root is not None and not isinstance(root, yaml.SequenceNode):
            raise DataError("not a list of queries", where=self.config.path, remedy=REMEDY)
        for node in root.value if root is not None else ():
            if not isinstance(node, yaml.MappingNode):
                raise DataError("not a mapping", where=self.config.path, line=node.start_mark.line + 1, remedy=REMEDY)
            seen: set[str] = set()
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue  # construction refuses it
                if key.value in seen:
                    message = f"key {key.value!r} stands twice"
                    raise DataError(
                        message, where=self.config.path, line=key.start_mark.line + 1, remedy="keep one of them"
                    )
                seen.add(key.value)
                if key.value in TEXTS and isinstance(value, yaml.ScalarNode):
                    value.tag = STR
            yield node


class _Loader(yaml.SafeLoader):
    """The safe loader, but a date is a text: JSON has no dates."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as the base class has it
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
