"""What an importer is: files of a format in, a golden set out, with no more in it than they say.

What was read is held in memory: labels, the questions, the texts of judged passages. Lists and the corpus are read when
they are written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, get_args

from pydantic import ValidationError

from raggs.base.artifacts import Passage, Query, RetrieveRecord
from raggs.base.jsontypes import as_object
from raggs.base.tables import LABEL_ROLES, NO_COLUMNS, ColumnNames
from raggs.golden.base import GoldenQuery, GoldenSet, Provenance, SetPart
from raggs.golden.parts import PARTS, Part, Stock
from raggs.parts.readers.scales import GradeScale, sidecar

if TYPE_CHECKING:
    from raggs.golden.judgments import Judgments
    from raggs.metrics.columns import Scale


@dataclass
class ImportedSet(GoldenSet):
    """What was read.

    Attributes:
        name, source, top, form, sure, provenance, partial, lacks: see `GoldenSet`.
        given: its queries, sorted by id.
        lists: gives what systems returned, each time anew.
        corpus: gives all passages, each time anew; None where there are none.
        stated: what its sidecar says that it held before it was written; empty where none does.
        kept: keeps files alive that were made for reading.
        notes: sentences about what does not fit together, or was not read.
    """

    name: str
    source: str
    given: tuple[GoldenQuery, ...]
    top: int = 0
    form: GradeScale | None = None
    sure: bool = True
    provenance: Provenance | None = None
    lists: Callable[[], Iterable[RetrieveRecord]] = field(default=tuple)
    corpus: Callable[[], Iterable[Passage]] | None = None
    stated: Mapping[Part, Stock] = field(default_factory=dict)
    partial: bool = True
    lacks: str = ""
    kept: object = None
    notes: tuple[str, ...] = ()

    def queries(self) -> Iterator[Query]:
        """See `GoldenSet.queries`."""
        return (query.query for query in self.given if query.query is not None)

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """See `GoldenSet.by_query`."""
        wanted = parts or get_args(SetPart)
        for query in self.given:
            yield GoldenQuery(
                query.qid,
                query.query,
                query.pool if "pool" in wanted else (),
                query.grades if "grades" in wanted else (),
                query.order if "order" in wanted else (),
            )

    def hits(self) -> Iterator[RetrieveRecord]:
        """See `GoldenSet.hits`."""
        return iter(self.lists())

    def judgments(self, scale: Scale | None = None) -> Judgments:
        """See `GoldenSet.judgments`."""
        from raggs.golden.judgments import Judgments  # late: it needs numpy
        from raggs.metrics.columns import Qrels

        labels = {
            query.qid: {one.doc_id: one.grade for one in query.grades if one.grade is not None} for query in self.given
        }
        return Judgments(self.source, Qrels.of(labels, scale or (self.form.scale if self.form else None)))


class Importer(ABC):
    """Reads a golden set.

    Args:
        split: the part of the data to read, in formats with parts; if left out, `test`, or the only one.
        columns: by role, the name of its column or field, as `--column` says.

    Attributes:
        FORMAT: its name in the registry.
        ROLES: the roles that `--column` can name.
        SPLITS: whether the format has splits.
    """

    FORMAT = ""
    ROLES: ClassVar[tuple[str, ...]] = LABEL_ROLES
    SPLITS: ClassVar[bool] = False

    def __init__(self, split: str | None = None, columns: ColumnNames = NO_COLUMNS) -> None:
        self.split, self.columns = split, columns

    @abstractmethod
    def read(self, path: Path) -> ImportedSet:
        """The set in a folder, or in a file of labels.

        Raises:
            NotFoundError: nothing of the format is there.
            DataError: a line of a file cannot be right.
        """


def stated_contents(labels: Path) -> dict[Part, Stock]:
    """What the sidecar of an export says that the set held before; empty where none speaks of the file."""
    stated = as_object(sidecar(labels).get("contents"))
    found = {part: as_object(stated.get(part)) for part in PARTS}
    stocks = {part: (facts.get("count"), facts.get("digest")) for part, facts in found.items()}
    return {
        part: Stock(count, digest)
        for part, (count, digest) in stocks.items()
        if isinstance(count, int) and isinstance(digest, str)
    }


def stated_provenance(labels: Path) -> Provenance | None:
    """Whence the sidecar says that the grades are; None where none does."""
    try:
        return Provenance.model_validate(sidecar(labels).get("provenance"))
    except ValidationError:
        return None
