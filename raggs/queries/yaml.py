"""Questions in a YAML list: the pleasant way to write nuggets by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from raggs.artifacts import Query
from raggs.errors import DataError, NotFoundError
from raggs.queries.fields import query_of
from raggs.registry import Adapter
from raggs.settings import InputPath, Settings


class YamlQueriesConfig(Settings):
    type: Literal["yaml"] = "yaml"
    path: InputPath


class YamlQueries(Adapter):
    """A YAML list of mappings with the fields of the JSON form."""

    Config = YamlQueriesConfig

    def __init__(self, config: YamlQueriesConfig) -> None:
        self.path = config.path

    def queries(self) -> Iterator[tuple[int, Query]]:
        import yaml

        try:
            text = self.path.read_text(encoding="utf-8-sig")
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            rows = yaml.safe_load(text)
        except UnicodeDecodeError as error:
            raise DataError("not UTF-8", where=self.path, remedy="save the file as UTF-8") from error
        except OSError as error:
            raise NotFoundError(f"cannot be read ({error.strerror})", where=self.path, remedy="check queries.path") from error
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            raise DataError(
                f"not valid YAML ({getattr(error, 'problem', error)})", where=self.path, line=mark.line + 1 if mark else None, remedy="fix the syntax"
            ) from error
        if rows is None:
            return
        if not isinstance(rows, list) or node is None:
            raise DataError("not a list of queries", where=self.path, remedy="start each with `- _id: ...`")
        for entry, row in zip(node.value, rows, strict=True):
            number = entry.start_mark.line + 1
            if not isinstance(row, dict):
                raise DataError("not a mapping", where=self.path, line=number, remedy="start each with `- _id: ...`")
            # An id that YAML reads as a number is still the text that its author wrote.
            yield number, query_of({key: str(value) if isinstance(value, int) else value for key, value in row.items()}, self.path, number)
