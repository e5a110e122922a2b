"""Pooling: whether the golden set was made from the very systems under test, and how much only one of them found.

What nobody found was not judged. So a ceiling by such a set flatters its makers, and a new system looks worse than it
is; the more passages only one maker found, the more there may be that none did (Zobel 1998).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raggs.base.text import plural
from raggs.evaluation.analyses.base import Finding, PartAnalysis
from raggs.evaluation.analyses.bottleneck import Bottleneck
from raggs.evaluation.document import Cell, Row, Section
from raggs.evaluation.models import PoolPart, Report
from raggs.evaluation.study import Study


class Pooling(PartAnalysis[PoolPart]):
    """Whether the set was pooled from the systems under test; said beside the ceilings of their pools."""

    NAME = "pooling"
    TITLE = "The pool"
    HEAD = ("pooled from", "relevant passages", "found by one alone", "share")
    PART = PoolPart

    def compute(self, study: Study) -> Sequence[Finding[PoolPart]]:
        """The makers among the systems, and of the relevant passages those that a single maker found."""
        makers = tuple(name for name in study.hits if name in study.makers)
        if not makers or not study.graded:
            return ()
        single = [name for name in makers if name not in study.derived]
        relevant = study.judgments.qrels.grade >= study.judgments.qrels.scale.relevant
        found = np.zeros(len(relevant), dtype=np.int64)
        for name in single:
            found[study.hits[name].item] += 1
        alone = int((relevant & (found == 1)).sum()) if len(single) > 1 else None
        known = any(study.makers[name] for name in makers)
        part = PoolPart(makers=makers, stated=known, relevant=int((relevant & (found > 0)).sum()), alone=alone)
        return [Finding("", part)]

    def rows(self, found: Sequence[Finding[PoolPart]]) -> Sequence[Row]:
        """One row."""
        return [
            (
                Cell(", ".join(part.makers)),
                Cell(part.relevant),
                Cell(part.alone),
                Cell(None if part.share is None else f"{part.share:.0%}"),
            )
            for _, part in found
        ]

    def sentences(self, found: Sequence[Finding[PoolPart]]) -> Sequence[str]:
        """What such a set cannot show."""
        return [
            f"{_whence(part)}: a pool cannot show what its makers missed, so the ceilings flatter them"
            + ("" if part.share is None else f"; {part.share:.0%} of {_theirs(part)} one alone found")
            for _, part in found
        ]

    def section(self, report: Report) -> Section | None:
        """Beside the ceilings alone."""
        return super().section(report) if Bottleneck().shown(report) else None


def _whence(part: PoolPart) -> str:
    names = ", ".join(part.makers)
    if part.stated:
        return f"the set was pooled from {names}"
    return f"all that {names} show at the top is judged, as where a set is pooled from the systems under test"


def _theirs(part: PoolPart) -> str:
    return f"the {plural(part.relevant, 'relevant passage')} they found"
