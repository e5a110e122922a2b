"""JSON lines of raggs as a golden set: labels with what they say of near-duplicates and of doubt.

So whatever is computed of a run's grades is computed of its export, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from raggs.golden.files import FileGolden
from raggs.jsonl import read_objects
from raggs.jsontypes import as_list, as_text

if TYPE_CHECKING:
    from raggs.golden.judgments import Judgments
    from raggs.metrics.columns import Scale

ORDER = "order.jsonl"


class _Row(NamedTuple):
    qid: str
    doc_id: str
    samples: tuple[int, ...]
    facet: str


class LinesGolden(FileGolden):
    """`judgments.jsonl` of an export, and the order beside it."""

    def judgments(self, scale: Scale | None = None) -> Judgments:
        """See `GoldenSet.judgments`."""
        import numpy as np

        from raggs.metrics.uncertainty import Doubt

        found = super().judgments(scale)
        rows = sorted(_rows(self.labels), key=lambda row: row.qid)  # stable: as the columns have them
        sigma = _sigma(self.labels.parent / ORDER)
        doubt = Doubt(
            np.array([sigma.get((row.qid, row.doc_id), 0.0) for row in rows]), tuple(row.samples for row in rows)
        )
        return replace(found, doubt=doubt, facets={row.doc_id: row.facet for row in rows})


def _rows(labels: Path) -> Iterator[_Row]:
    for _, row in read_objects(labels):
        qid, doc_id = str(row.get("qid")), str(row.get("doc_id"))
        samples = tuple(each for each in as_list(row.get("samples")) if isinstance(each, int))
        yield _Row(qid, doc_id, samples if len(samples) > 1 else (), as_text(row.get("duplicate_of")) or doc_id)


def _sigma(order: Path) -> dict[tuple[str, str], float]:
    """The standard error of each ranked passage that was shown to the judge; none where it is not said."""
    if not order.is_file():
        return {}
    found = ((row, row.get("sigma")) for _, row in read_objects(order) if row.get("exposures"))
    return {(str(row.get("qid")), str(row.get("doc_id"))): sigma for row, sigma in found if isinstance(sigma, float)}
