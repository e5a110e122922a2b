"""Golden sets for tools that load a corpus, its queries and the labels as three files, with the lists beside them.

The folders of such formats differ in how a row is written, and in what tells the tool of the files.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from raggs.base.artifacts import Passage, Query
from raggs.golden.base import GoldenSet
from raggs.golden.exporters.base import Exporter
from raggs.golden.exporters.files import write_objects
from raggs.golden.exporters.folders import remove_other_split
from raggs.golden.exporters.lists import write_lists
from raggs.golden.exporters.passages import passage_object, write_passages
from raggs.golden.parts import ASKED_AND_READ, Part
from raggs.parts.queries.writing import query_object

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


@dataclass(frozen=True)
class Guide:
    """What tells a tool of the files.

    Attributes:
        files: that were written for it.
        facts: what the sidecar says of them.
    """

    files: Sequence[Path] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


class CorpusExporter(Exporter):
    """Base of exporters with a corpus, its queries and their labels.

    `corpus.jsonl` holds the whole corpus in its own order where it is at hand, else every passage of any query's pool
    once, sorted by id; `queries.jsonl` the questions in their authors' words, sorted by id.
    """

    HOLDS: ClassVar[frozenset[Part] | None] = ASKED_AND_READ | {"grades", "order", "lists"}
    WHOLE_CORPUS: ClassVar[bool] = True

    @abstractmethod
    def write_labels(self, golden: GoldenSet, path: Path) -> int:
        """Write all grades, and count them.

        Raises:
            ProviderError: the disk refuses.
        """

    def passage(self, passage: Passage) -> Mapping[str, object]:
        """A passage as a row."""
        return passage_object(passage)

    def query(self, query: Query) -> Mapping[str, object]:
        """A question as a row."""
        return query_object(query)

    def guide(self, golden: GoldenSet, folder: Path) -> Guide:
        """Write what tells the tool of the corpus, the queries and the labels, which are there.

        Raises:
            ProviderError: the disk refuses.
        """
        return Guide()

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        whole, labels = self.options.corpus, folder / self.labels
        rows = {
            CORPUS: write_passages(golden, folder / CORPUS, whole, self.passage),
            QUERIES: write_objects(folder / QUERIES, map(self.query, golden.queries())),
            self.labels: self.write_labels(golden, labels),
        }
        remove_other_split(folder, type(self), self.labels)
        lists = write_lists(golden, folder, labels)
        files = {**{name: {"rows": count} for name, count in rows.items()}, **lists}
        guide, held = self.guide(golden, folder), "pool" if whole is None else "all"
        sidecar = self.write_sidecar(golden, folder, files, corpus=held, **guide.facts)
        return [*(folder / name for name in files), *guide.files, sidecar]
