"""Analyses of an evaluation: one file each, one line here. They may import the study, the report and the libraries.

The order here is the order of a report's sections. Those of `DEFAULT_ANALYSES` are done unasked, where their question
arises.

What an analysis is: one question about the systems, its answer as typed parts of the report, and its words.

An analysis is one file and one line of the registry beside it. It computes from a `Study` and leaves what it found in
the report; its section is drawn from the report alone, also from one that was read from a file, so drawing never
computes. Its settings are the fields of its class; each has a default, so that its name is enough to ask for it.
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
    """A question about the systems. The first line of its docstring says which."""

    def check(self, judgments: Judgments, systems: Sequence[str]) -> None:  # noqa: B027 - most analyses need nothing
        """Refuse what the analysis cannot be done on, before anything is scored.

        Args:
            judgments: what is scored against.
            systems: their names.

        Raises:
            UsageError: something that it needs is not there.
        """

    @abstractmethod
    def extend(self, report: EvalReport, study: Study) -> EvalReport:
        """The report with what the analysis found.

        Raises:
            DataError: what it was given does not fit the judgments.
        """

    def section(self, report: EvalReport) -> Section | None:
        """What a report says of the question; None where nothing was found."""
        return None

    def legend(self, report: EvalReport) -> Legend | None:
        """What the analysis put beside the scores, if anything."""
        return None


class AnalysisFinding(NamedTuple, Generic[P]):
    """A part and the system that it is about; "" where it is about all of them."""

    system: Annotated[str, Column("system")]
    part: P


class PartAnalysis(Analysis, Generic[P]):
    """An analysis whose answer is a list of parts, shown as a table and in sentences.

    A subclass names `NAME` (its name in the registry), `PART`, `TITLE` and `COLUMNS` (`system` and those of the parts),
    and says `compute`. Its parts stand in the field `PLACE` of a system or of the report, else under `analyses`.
    """

    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    COLUMNS: ClassVar[tuple[ColumnSpec, ...]]
    PLACE: ClassVar[str] = ""
    PART: type[P]

    @abstractmethod
    def compute(self, study: Study) -> Sequence[AnalysisFinding[P]]:
        """The answer; nothing where the question does not arise."""

    def tabled(self, found: Sequence[AnalysisFinding[P]]) -> Sequence[AnalysisFinding[P]]:
        """Those that are rows of the table."""
        return found

    def sentences(self, found: Sequence[AnalysisFinding[P]]) -> Sequence[str]:
        """The answer for people, most often one sentence a system."""
        return ()

    def title(self, found: Sequence[AnalysisFinding[P]]) -> str:
        """Of the section."""
        return self.TITLE

    def put(self, report: EvalReport, found: Sequence[AnalysisFinding[P]]) -> EvalReport:
        """The report with the parts in their place."""
        if self.PLACE in SystemPart.model_fields:
            return report.with_systems({name: {self.PLACE: each} for name, each in by_system(report, found).items()})
        if self.PLACE:
            return report.model_copy(update={self.PLACE: tuple(part for _, part in found)})
        parts = tuple(FoundPart(system=system, part=part.model_dump(mode="json")) for system, part in found)
        return report.model_copy(update={"analyses": {**report.analyses, self.NAME: parts}})

    def found(self, report: EvalReport) -> Sequence[AnalysisFinding[P]]:
        """The parts from their place in the report.

        Raises:
            ValidationError: another version of the analysis wrote them.
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
        """Compute, and put what was found into the report."""
        found = self.compute(study)
        return self.put(report, found) if found else report

    def shown(self, report: EvalReport) -> Sequence[AnalysisFinding[P]]:
        """Those of the parts that are shown beside the measures that were asked for: all, most often."""
        return self.found(report)

    def section(self, report: EvalReport) -> Section | None:
        """Title, sentences and table of what was found."""
        if not (found := self.shown(report)):
            return None
        table = table_of([(each, each.part) for each in self.tabled(found)], *self.COLUMNS)
        return Section(self.title(found), tuple(self.sentences(found)), table)


def by_system(report: EvalReport, found: Sequence[AnalysisFinding[P]]) -> dict[str, tuple[P, ...]]:
    """The parts of each system of the report, in their order."""
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
