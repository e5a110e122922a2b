"""The grades of a golden set as columns: all that measures need of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from raggs.base.arrays import Ints
from raggs.base.errors import DataError
from raggs.golden.origin import UNKNOWN, Origin
from raggs.metrics.columns import Qrels
from raggs.metrics.ids import pair_keys
from raggs.metrics.uncertainty import Doubt


@dataclass(frozen=True)
class Judgments:
    """Grades, and what is known of their doubt.

    Attributes:
        source: the file or run directory, for messages.
        qrels: the grades; passages without one are not in it.
        doubt: of each of them; None where nothing is known.
        origin: what is known of whence the judged passages are.
        warnings: sentences on a judge that fell below its gate.
        sources: where people gave grades, by who gave them, how many; near-duplicates left out.
        facets: groups of near-duplicates: by passage, the representative of its group.
    """

    source: str
    qrels: Qrels
    doubt: Doubt | None = None
    facets: Mapping[str, str] = field(default_factory=dict)
    origin: Origin = UNKNOWN
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)

    def facets_of(self, more: Mapping[str, str]) -> Ints | None:
        """Shape (m,): the number of each judged passage's facet, as `Qrels.facets`; None where no facet is known.

        Args:
            more: facets of passages that go before those of the set.
        """
        if not more:
            return self._own_facets
        return self.qrels.facets({**self.facets, **more})

    @cached_property
    def _own_facets(self) -> Ints | None:
        return self.qrels.facets(self.facets) if self.facets else None  # once, whatever number of systems is scored

    def unscorable(self) -> str:
        """Say that no passage is relevant, though some have a gain; empty if one is relevant.

        Raises:
            DataError: no passage has a gain above 0, so that every system scores 0.
        """
        qrels = self.qrels
        judged = qrels.grade[qrels.grade >= 0]
        highest = int(judged.max(initial=qrels.scale.low))
        if highest >= qrels.scale.relevant:
            return ""
        scale = f"{qrels.scale.low} to {qrels.scale.high}"
        if len(judged) and not max(qrels.scale.gains[: highest - qrels.scale.low + 1]):
            said = f"no passage is relevant: the highest grade is {highest} on the scale {scale}"
            raise DataError(said, where=self.source, remedy="check the labels; name another scale with --scale")
        return (
            f"{self.source}: no passage is relevant (grade {qrels.scale.relevant} or more on the scale {scale}): "
            "measures that count relevant passages are 0 or not defined"
        )

    @property
    def digest(self) -> str:
        """sha256 over the judgments, whatever file they came from."""
        qrels = self.qrels
        # By hashes, for any order will do that does not depend on the file.
        order = np.lexsort((pair_keys(qrels.query, qrels.docs.lasting_keys()), qrels.query))
        docs = qrels.docs.take(order).tolist()
        parts = ("\0".join(qrels.qids).encode(), qrels.query.astype("<i8").tobytes(), b"\0".join(docs))
        found = hashlib.sha256()
        for part in (*parts, qrels.grade[order].astype("<i8").tobytes()):
            found.update(len(part).to_bytes(8, "little") + part)
        return found.hexdigest()
