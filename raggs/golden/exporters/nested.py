"""Files of one JSON object ``{qid: {doc_id: number}}``, a query a line, so that none waits in memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from raggs.base.errors import RaggsError
from raggs.base.inputs import read_whole
from raggs.base.jsontypes import as_object
from raggs.golden.exporters.files import write_routed_lines


@dataclass(frozen=True)
class Row:
    """The numbers of one query in one file."""

    path: Path
    qid: str
    numbers: Mapping[str, float]


def write_nested(rows: Iterable[Row], *always: Path) -> dict[Path, int]:
    """Write each query to its file, and count the numbers of each; rows of one file come one after another or not.

    Args:
        always: files that are written even where nothing is in them.

    Raises:
        ProviderError: the disk refuses.
    """
    counts: Counter[Path] = Counter(dict.fromkeys(always, 0))
    write_routed_lines(_lines(rows, counts))
    return dict(sorted(counts.items()))


def count_nested(path: Path) -> int | None:
    """How many numbers such a file holds; None where it is none."""
    try:
        found = json.loads(read_whole(path))
    except (RaggsError, ValueError, RecursionError):
        return None
    return sum(len(as_object(numbers)) for numbers in as_object(found).values())


def _lines(rows: Iterable[Row], counts: Counter[Path]) -> Iterator[tuple[Path, str]]:
    begun: set[Path] = set()
    for row in rows:
        sign = "," if row.path in begun else "{"
        begun.add(row.path)
        counts[row.path] += len(row.numbers)
        yield row.path, f"{sign}{_dump(row.qid)}: {_dump(row.numbers)}"
    for path in sorted(counts):
        yield path, "}" if path in begun else "{}"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
