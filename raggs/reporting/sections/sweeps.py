"""Sweeps over the set: the choice, the front, what each axis buys and what the data cannot tell."""

from __future__ import annotations

from raggs.evaluation.document import Document
from raggs.evaluation.models import Part
from raggs.evaluation.svg import inlined
from raggs.reporting.base import Facts, ReportSection
from raggs.reporting.figures import Figure
from raggs.sweeps.models import SweepReport


class SweepPart(Part):
    """One sweep, as its sweep.md has it."""

    document: Document
    figures: tuple[Figure, ...]


class SweepsPart(Part):
    """All sweeps."""

    sweeps: tuple[SweepPart, ...]


class Sweeps(ReportSection):
    """Which stack do the sweeps choose, and what would change the choice?"""

    NAME = "sweeps"
    TITLE = "Sweeps"

    def data(self, facts: Facts) -> SweepsPart | None:
        """None where no sweep was named."""
        return SweepsPart(sweeps=tuple(map(_sweep, facts.sweeps))) if facts.sweeps else None


def _sweep(report: SweepReport) -> SweepPart:
    from raggs.sweeps.layout import lay_out  # late: most reports are of no sweep
    from raggs.sweeps.plots import plots

    drawn = tuple(Figure(words=words, svg=inlined(svg)) for words, svg in plots(report).values())
    return SweepPart(document=lay_out(report, full=True), figures=drawn)
