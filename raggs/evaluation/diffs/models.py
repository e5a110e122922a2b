"""What a comparison of two golden sets, or of two runs, found. A number that is not defined is null.

The form is versioned by `v`; fields are added, not renamed. OLD comes first everywhere.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from raggs.base.artifacts import Frozen
from raggs.base.types import Number
from raggs.base.version import __version__
from raggs.stats.comparison import Verdict


class SidePart(Frozen):
    """One of the two sets."""

    source: str = Field(description="the run directory or file")
    name: str
    queries: int = Field(description="with a grade")
    judgments: int
    lowest: int = Field(description="lowest grade of the scale")
    highest: int
    relevant: int = Field(description="lowest relevant grade")
    digest: str = Field(description="sha256 over all judgments, as eval.json has it")
    corpus: str | None = Field(description="hash of the passages' content, where it is known")
    lacks: str = Field(description="what is not finished, as a clause; empty where nothing is missing")


class ChangedPart(Frozen):
    """Something that both sets name alike, with another content."""

    id: str
    fields: tuple[str, ...] = Field(description="what differs")


class RenamedPart(Frozen):
    """The same content under another id."""

    old: str
    new: str


class ContentPart(Frozen):
    """Questions, or the passages of the pools."""

    known: bool = Field(description="whether both sets hold the texts; else ids alone were compared")
    same: int = Field(description="in both, and not changed as far as is known")
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ChangedPart, ...]
    renamed: tuple[RenamedPart, ...]


class EstimatePart(Frozen):
    """A figure with the ends of its interval; null ends where there is too little for one."""

    value: Number
    low: Number = None
    high: Number = None


class GradesPart(Frozen):
    """Grades of passages that both sets judged for the same question."""

    compared: int
    up: int = Field(description="with a higher grade in the new set")
    down: int
    far: int = Field(description="moved by two grades or more")
    to_relevant: int = Field(description="not relevant in the old set, relevant in the new one")
    from_relevant: int
    added: int = Field(description="judged in the new set alone, of questions that both judge")
    removed: int
    labels: tuple[int, ...]
    table: tuple[tuple[int, ...], ...] = Field(description="a row for each old grade, a column for each new one")
    kappa: EstimatePart = Field(description="Cohen's with quadratic weights; the interval resamples questions")


class OrdersPart(Frozen):
    """Orders of questions that both sets rank; means over these."""

    compared: int = Field(description="questions with an order of two or more shared passages")
    k: int = Field(description="how many ranks both sets mean to be sure of, at most 20")
    tau_ap: Number = Field(description="AP correlation of the new order with the old one, over shared passages")
    rbo: Number = Field(description="rank-biased overlap of all passages, p = 0.9, extrapolated")
    overlap: Number = Field(description="share of the two heads of k that is the same, over all passages")
    shared: Number = Field(
        description="the same over the passages that both rank, of the questions that were tested; where these are k or"
        " fewer, of their upper half"
    )
    expected: Number = Field(description="what the stated confidence of both lets expect of it if nothing had changed")
    tested: int = Field(description="questions with four or more shared passages and stated doubt")
    beyond: int = Field(description="those whose shared head changed more than the stated doubt explains")
    by_chance: float = Field(description="how many of them that would be at most if nothing had changed")


class QuestionPart(Frozen):
    """One question that both sets judge."""

    qid: str = Field(description="in the old set")
    compared: int = Field(description="grades")
    moved: int
    shift: Number = Field(description="mean of the new grade less the old one")
    tau_ap: Number = None
    rbo: Number = None
    overlap: Number = None
    expected: Number = None
    change: Literal["within", "beyond"] | None = Field(
        None, description="whether the stated doubt explains the other head; null where it cannot be told"
    )


class ScorePart(Frozen):
    """One measure of one system under both sets."""

    system: str
    measure: str
    old: Number
    new: Number
    old_queries: int = Field(description="where the measure is defined")
    new_queries: int


class MovePart(Frozen):
    """What one question says of two systems."""

    qid: str
    old: float = Field(description="value of the first less that of the second, in the old set")
    new: float


class VerdictPart(Frozen):
    """Two systems on one measure: what each set says of them, from the side of `first`."""

    first: str
    second: str
    measure: str
    old: Verdict
    new: Verdict
    old_difference: EstimatePart
    new_difference: EstimatePart
    flipped: bool = Field(description="whether the verdicts differ")
    reversed: bool = Field(description="whether the better one of the old set is the worse one of the new")
    old_unjudged: str | None = Field(
        None, description="of a verdict that unjudged passages could reverse, how much of the tops is unjudged"
    )
    new_unjudged: str | None = Field(None, description="the same in the new set")
    moved_by: tuple[MovePart, ...] = Field(
        (), description="of a verdict that flips, the questions of both sets that moved the difference most"
    )


class DecisionsPart(Frozen):
    """Systems scored under both sets."""

    measures: tuple[str, ...]
    systems: tuple[str, ...]
    scores: tuple[ScorePart, ...]
    verdicts: tuple[VerdictPart, ...] = Field(description="of all pairs; those that flip come first")
    confidence: float
    notes: tuple[str, ...] = Field((), description="what the lists are that were scored")

    @property
    def flips(self) -> tuple[VerdictPart, ...]:
        """Verdicts that differ."""
        return tuple(each for each in self.verdicts if each.flipped)


class FigurePart(Frozen):
    """A figure of both sets; null where one has none."""

    name: str
    old: Number
    new: Number


class SettingPart(Frozen):
    """A value in a tree that differs."""

    name: str = Field(description="its place, with dots")
    change: Literal["changed", "added", "removed"]
    old: JsonValue = None
    new: JsonValue = None


class MadePart(SettingPart):
    """Something that a stage's result was made from, other than its settings."""

    stage: str


class DiffReport(Frozen):
    """diff.json: two golden sets."""

    v: Literal[1] = 1
    raggs: str = __version__
    old: SidePart
    new: SidePart
    decisions: DecisionsPart | None = Field(description="null where no system was named and no run holds one")
    questions: ContentPart
    passages: ContentPart
    grades: GradesPart | None = Field(description="null where the sets share no judgment, or use other scales")
    orders: OrdersPart | None = Field(description="null where one of them ranks nothing")
    by_question: tuple[QuestionPart, ...] = Field(description="those that both judge, the most moved first")
    coverage: tuple[FigurePart, ...]
    cost: tuple[FigurePart, ...]
    health: tuple[FigurePart, ...]
    settings: tuple[SettingPart, ...]
    made: tuple[MadePart, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether both hold the same judgments."""
        return self.old.digest == self.new.digest
