"""Golden sets for tools that want an entry a question: what was asked, the answer, and the passages that count.

Such entries know yes and no only. So the labels lie beside them as TREC qrels, with the lists as TREC runs: what `raggs
eval` and `raggs import` read again. Texts go into files as data; what a tool would take for its own syntax is the
matter of the exporter that writes it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from raggs.base.artifacts import Passage, Query
from raggs.golden.base import GoldenQuery, GoldenSet
from raggs.golden.exporters.base import Exporter, ExportOptions
from raggs.golden.exporters.lists import write_lists
from raggs.golden.exporters.trec import write_qrels
from raggs.golden.parts import Part
from raggs.parts.queries.writing import query_facts


@dataclass(frozen=True)
class Case:
    """A question with the passages that count for it.

    Attributes:
        passages: the relevant ones, best first; near-duplicates of each other are all there.
        grades: theirs, 1 to 5.
        same: by passage, the representative of its near-duplicates, itself where it has none.
    """

    query: Query
    passages: tuple[Passage, ...]
    grades: tuple[int, ...]
    same: Mapping[str, str]

    @property
    def ids(self) -> list[str]:
        """The ids of the passages."""
        return [passage.doc_id for passage in self.passages]

    @property
    def texts(self) -> list[str]:
        """The passages as they were judged: title, if any, and text."""
        return [passage.raw for passage in self.passages]

    @property
    def facts(self) -> dict[str, object]:
        """What came with the question besides the answer, which tools have a place for."""
        return {name: value for name, value in query_facts(self.query).items() if name != "answer"}


class CaseExporter(Exporter):
    """Base of exporters whose files have an entry for each question.

    `--binary-at` says from which grade on a passage counts, on whatever numbers the labels beside stand.
    """

    LABELS: ClassVar[str] = "qrels.txt"
    HOLDS: ClassVar[frozenset[Part] | None] = frozenset({"grades", "order", "lists", "questions", "facts"})
    TEXTS: ClassVar[bool] = True  # whether entries hold the texts of the passages that count, so that they come back

    def __init__(self, options: ExportOptions | None = None) -> None:
        super().__init__(options)
        self._shown: set[str] = set()

    @property
    def kept(self) -> Mapping[Part, int]:
        """See `Exporter.kept`: the texts of what counts."""
        return {"texts": len(self._shown)} if self.TEXTS else {}

    @abstractmethod
    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """Write the tool's own files; by name, how many entries each holds.

        Raises:
            ProviderError: the folder cannot be written.
        """

    def cases(self, golden: GoldenSet) -> Iterator[Case]:
        """Each question of the set, sorted by id, also those for which nothing counts."""
        for query in golden.by_query():
            if query.query is not None:
                case = _case(query, query.query, self.options.scale.binary_at)
                self._shown.update(case.ids)
                yield case

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        own = self.write_cases(golden, folder)
        rows = {**own, self.labels: write_qrels(golden, folder / self.labels, self.options.scale)}
        lists = write_lists(golden, folder, folder / self.labels)
        files = {**{name: {"rows": count} for name, count in rows.items()}, **lists}
        counts = f"passages of grade {self.options.scale.binary_at} or more of 5, best first"
        return [*(folder / name for name in files), self.write_sidecar(golden, folder, files, references=counts)]


def _case(query: GoldenQuery, asked: Query, least: int) -> Case:
    ranks = {record.doc_id: record.rank for record in query.order}
    texts = {passage.doc_id: passage for passage in query.pool}
    found = [
        (ranks.get(graded.doc_id, len(query.grades) + 1), -graded.grade, place, graded)
        for place, graded in enumerate(query.grades)
        if graded.grade is not None and graded.grade >= least and graded.doc_id in texts
    ]
    best = [graded for *_, graded in sorted(found, key=lambda each: each[:3])]
    return Case(
        asked,
        tuple(texts[graded.doc_id] for graded in best),
        tuple(graded.grade for graded in best if graded.grade is not None),
        {graded.doc_id: graded.duplicate_of or graded.doc_id for graded in best},
    )
