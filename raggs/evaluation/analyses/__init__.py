"""Base class and registry of the analyses of an evaluation.

Each analysis is one class and one line of `REGISTRY`. Analyses may import the study, the report and lower-level
packages. The order of the registry is the order of the sections in a report. `raggs eval` always runs those in
`DEFAULT_ANALYSES`; some of them have no findings if they do not apply.

An analysis answers one question about the systems. It computes its findings from a `Study` and stores typed parts in
the report. Its section is built only from the report. A report that was read from a file can therefore be printed
without computing anything. Settings are fields of the class with defaults, so that the name is enough to request an
analysis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, ClassVar, Generic, NamedTuple, TypeVar

from raggs.base.document import Column, ColumnSpec, Legend, Section, table_of
from raggs.base.registry import Registry
from raggs.evaluation.models import EvalReport, FoundPart, ReportPart, SystemPart
from raggs.evaluation.study import Study
from raggs.golden.judgments import Judgments

P = TypeVar("P", bound=ReportPart)


class Analysis(ABC):
    """Base class of all analyses. The first line of a subclass's docstring states its question."""

    def check(self, judgments: Judgments, systems: Sequence[str]) -> None:  # noqa: B027 - most analyses need nothing
        """Check that the analysis can run on this input. This method is called before anything is scored.

        Args:
            judgments: the judgments that systems are scored against.
            systems: names of the systems.

        Raises:
            UsageError: a required input is missing.
        """

    @abstractmethod
    def extend(self, report: EvalReport, study: Study) -> EvalReport:
        """Return the report with the findings of the analysis added.

        Raises:
            DataError: the settings do not fit the judgments.
        """

    def section(self, report: EvalReport) -> Section | None:
        """Return the section of the report; None if there are no findings."""
        return None

    def legend(self, report: EvalReport) -> Legend | None:
        """Return the legend of marks that the analysis adds to the scores; None if it adds none."""
        return None


class AnalysisFinding(NamedTuple, Generic[P]):
    """A finding, and the name of the system that it is about; "" if it is about all systems."""

    system: Annotated[str, Column("system")]
    part: P


class PartAnalysis(Analysis, Generic[P]):
    """An analysis whose findings are a list of parts. They are printed as a table and as sentences.

    A subclass sets `NAME` (its name in the registry), `PART`, `TITLE` and `COLUMNS` (`system` and columns of the part),
    and implements `compute`. Parts are stored in the field `PLACE` of a system or of the report, otherwise in
    `analyses`.
    """

    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    COLUMNS: ClassVar[tuple[ColumnSpec, ...]]
    PLACE: ClassVar[str] = ""
    PART: type[P]

    @abstractmethod
    def compute(self, study: Study) -> Sequence[AnalysisFinding[P]]:
        """Return the findings; empty if the analysis does not apply to this input."""

    def tabled(self, found: Sequence[AnalysisFinding[P]]) -> Sequence[AnalysisFinding[P]]:
        """Return the findings that are rows of the table. By default, these are all findings."""
        return found

    def sentences(self, found: Sequence[AnalysisFinding[P]]) -> Sequence[str]:
        """Return the findings as sentences, usually one per system."""
        return ()

    def title(self, found: Sequence[AnalysisFinding[P]]) -> str:
        """Return the title of the section."""
        return self.TITLE

    def put(self, report: EvalReport, found: Sequence[AnalysisFinding[P]]) -> EvalReport:
        """Return the report with the parts of these findings stored in it."""
        if self.PLACE in SystemPart.model_fields:
            return report.with_systems({name: {self.PLACE: each} for name, each in by_system(report, found).items()})
        if self.PLACE:
            return report.model_copy(update={self.PLACE: tuple(part for _, part in found)})
        parts = tuple(FoundPart(system=system, part=part.model_dump(mode="json")) for system, part in found)
        return report.model_copy(update={"analyses": {**report.analyses, self.NAME: parts}})

    def found(self, report: EvalReport) -> Sequence[AnalysisFinding[P]]:
        """Return the parts that are stored in the report.

        Raises:
            ValidationError: they were written by an incompatible version of the analysis.
        """
        if self.PLACE in SystemPart.model_fields:
            return [AnalysisFinding(each.name, part) for each in report.systems for part in getattr(each, self.PLACE)]
        if self.PLACE:
            return [AnalysisFinding(getattr(part, "system", ""), part) for part in getattr(report, self.PLACE)]
        return [
            AnalysisFinding(each.system, self.PART.model_validate(each.part))
            for each in report.analyses.get(self.NAME, ())
        ]

    def extend(self, report: EvalReport, study: Study) -> EvalReport:
        """Compute the findings, and return the report with their parts."""
        found = self.compute(study)
        return self.put(report, found) if found else report

    def shown(self, report: EvalReport) -> Sequence[AnalysisFinding[P]]:
        """Return the findings that are printed for the measures of the report. By default, these are all findings."""
        return self.found(report)

    def section(self, report: EvalReport) -> Section | None:
        """Return the section with title, sentences and table of the findings; None if there are no findings."""
        if not (found := self.shown(report)):
            return None
        table = table_of([(each, each.part) for each in self.tabled(found)], *self.COLUMNS)
        return Section(self.title(found), tuple(self.sentences(found)), table)


def by_system(report: EvalReport, found: Sequence[AnalysisFinding[P]]) -> dict[str, tuple[P, ...]]:
    """Return the parts by name of system, in their order."""
    return {name: tuple(part for system, part in found if system == name) for name in report.per_query}


REGISTRY: Registry[Analysis] = Registry(
    "analysis",
    "analyses",
    "raggs.evaluation.analyses:Analysis",
    {
        "comparisons": "raggs.evaluation.analyses.comparisons:Comparisons",
        "corrected": "raggs.evaluation.analyses.corrected:PeopleCorrection",
        "bottleneck": "raggs.evaluation.analyses.losses:BottleneckAnalysis",
        "waterfall": "raggs.evaluation.analyses.losses:Waterfall",
        "depths": "raggs.evaluation.analyses.robustness:DepthAnalysis",
        "pooling": "raggs.evaluation.analyses.unjudged:Pooling",
        "leave_one_out": "raggs.evaluation.analyses.leave_one_out:LeaveOneOut",
        "answers": "raggs.evaluation.analyses.answers:GivenAnswers",
        "ties": "raggs.evaluation.analyses.ties:TieRanges",
        "robustness": "raggs.evaluation.analyses.robustness:RobustnessAnalysis",
        "sensitivity": "raggs.evaluation.analyses.robustness:Sensitivity",
        "bounds": "raggs.evaluation.analyses.unjudged:UnjudgedBoundsAnalysis",
        "uncertainty": "raggs.evaluation.analyses.unjudged:LabelUncertaintyAnalysis",
    },
)
DEFAULT_ANALYSES = ("comparisons", "bottleneck", "pooling", "answers", "ties")
