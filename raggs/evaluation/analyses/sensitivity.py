"""Sensitivity: does the order of the systems depend on the parameters of RA-nWG?"""

from __future__ import annotations

from collections.abc import Sequence

from raggs.base.types import number
from raggs.evaluation.analyses.base import Finding, PartAnalysis
from raggs.evaluation.document import Cell, Row
from raggs.evaluation.models import Report, SettingPart
from raggs.evaluation.study import Study
from raggs.metrics.robustness import sensitivity


class Sensitivity(PartAnalysis[SettingPart]):
    """Whether the order of the systems depends on the parameters of RA-nWG; needs grades 1 to 5."""

    NAME = "sensitivity"
    TITLE = "Sensitivity of RA-nWG"
    HEAD = ("alpha", "cap4", "cap3", "order that changes")
    PART = SettingPart

    def compute(self, study: Study) -> Sequence[Finding[SettingPart]]:
        """All points of the grid, at the largest cutoff."""
        if not study.graded:
            return ()
        return [
            Finding(
                "",
                SettingPart(
                    alpha=point.alpha,
                    cap4=point.cap4,
                    cap3=point.cap3,
                    means={name: number(value) for name, value in point.means.items()},
                    order=point.order,
                    swapped=point.swapped,
                ),
            )
            for point in sensitivity(study.hits, k=study.cutoff)
        ]

    def put(self, report: Report, found: Sequence[Finding[SettingPart]]) -> Report:
        """Into `sensitivity`."""
        return report.model_copy(update={"sensitivity": tuple(part for _, part in found)})

    def found(self, report: Report) -> Sequence[Finding[SettingPart]]:
        """From `sensitivity`."""
        return [Finding("", part) for part in report.sensitivity]

    def rows(self, found: Sequence[Finding[SettingPart]]) -> Sequence[Row]:
        """A row for each point where the order is another one."""
        return [
            (*(Cell(f"{value:g}") for value in (part.alpha, part.cap4, part.cap3)), Cell(" > ".join(part.order)))
            for _, part in found
            if part.swapped
        ]

    def sentences(self, found: Sequence[Finding[SettingPart]]) -> Sequence[str]:
        """At how many points it is."""
        moved = sum(bool(part.swapped) for _, part in found)
        return [f"RA-nWG's parameters: the order of the systems changes at {moved} of {len(found)} points of the grid"]
