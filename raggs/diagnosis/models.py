"""Format of diagnose/<kind>.json: the findings, and what they depend on. Also: parts of findings that several kinds
share.
"""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Literal, Self

from pydantic import Field, JsonValue
from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue, models_json_schema

from raggs.base import __version__
from raggs.base.document import Cell, NumberForm, bounded
from raggs.base.hashing import hash_value
from raggs.base.types import Number, finite_or_none
from raggs.diagnosis import REGISTRY
from raggs.evaluation.models import ReportPart
from raggs.stats.intervals import Interval

MODE: JsonSchemaMode = "serialization"
REF = "#/$defs/{model}"


def report_schema() -> JsonSchemaValue:
    """Return the JSON Schema of a report. It includes the findings of every installed kind of diagnosis."""
    results = [(REGISTRY.load(name).Result, MODE) for name in REGISTRY]
    found, shared = models_json_schema(results, ref_template=REF)
    schema = DiagnosisReport.model_json_schema(mode=MODE, ref_template=REF)
    schema["properties"]["found"] = {"oneOf": [found[result] for result in results]}
    schema["$defs"] = {**schema.get("$defs", {}), **shared.get("$defs", {})}
    return schema


class DiagnosisReport(ReportPart):
    """The report of one diagnosis. It contains no time of day: the same findings, settings and inputs give the same
    bytes.
    """

    v: Literal[1] = 1
    kind: str = Field(description="name of the kind, as in `raggs list diagnoses`")
    title: str = Field(description="question that the diagnosis answers")
    raggs: str = __version__
    seed: int
    settings: Mapping[str, JsonValue] = Field(description="settings of the diagnosis")
    subject: Mapping[str, tuple[str, ...]] = Field(
        description="names of the embedders, the rerankers and the golden set that the diagnosis used"
    )
    golden: str | None = Field(description="sha256 of the judgments that the diagnosis used; null if it used none")
    causes: str = Field(description="hash of everything that the findings depend on")
    found: Mapping[str, JsonValue] = Field(description="findings of this kind of diagnosis, including its verdict")
    files: Mapping[str, str] = Field(description="sha256 of each other file of the diagnosis")
    seal: str = Field("", description="sha256 of the whole report except this field")

    def sealed(self) -> DiagnosisReport:
        """Return a copy of the report with its seal filled in."""
        return self.model_copy(update={"seal": self.own_hash()})

    def own_hash(self) -> str:
        """Return the hash of the whole report without its seal. A valid seal is equal to it."""
        return hash_value(self.model_dump(mode="json", exclude={"seal"}))


class MeanPart(ReportPart):
    """A mean with its 95% interval over resampled queries or pools. An undefined mean or bound is null."""

    mean: Number = None
    low: Number = Field(None, description="bound of the 95% interval (bootstrap)")
    high: Number = None

    @classmethod
    def of(cls, found: Interval) -> Self:
        """Convert a `raggs.stats` interval to this class."""
        return cls(mean=finite_or_none(found.mean), low=finite_or_none(found.low), high=finite_or_none(found.high))

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def cell(self, form: NumberForm = "score", mark: str = "") -> Cell:
        """Return the table cell."""
        return bounded(self.mean, self.low, self.high, form, mark)


class NextAction(ReportPart):
    """The most important action after a diagnosis.

    Attributes:
        text: the action, as an imperative without a full stop.
        tentative: whether the action may not help.
        in_details: whether the details of the report show what the action needs.
        kind: kind of diagnosis to run again; empty if none.
        options: options for it.
    """

    text: str
    tentative: bool = False
    in_details: bool = False
    kind: str = ""
    options: str = ""

    @property
    def sentence(self) -> str:
        """The action as a sentence of the verdict."""
        details, command = " (--details)" * self.in_details, ": " * bool(self.kind) + self.command_for("")
        return f"First {'try: ' * self.tentative}{self.text}{details}{command}."

    def command_for(self, golden: str) -> str:
        """Return the command with a golden set; an empty name leaves it out. The text is empty without a command."""
        named = f" --golden {quote(golden)}" if golden else ""
        return f"raggs diagnose {self.kind}{named} {self.options}" * bool(self.kind)


class KeyFigure(ReportPart):
    """The number that a verdict is based on, as text.

    Attributes:
        label: name of the measured quantity.
        value: the number with its unit.
        interval: its 95% interval; empty if there is none.
    """

    label: str
    value: str
    interval: str = ""

    @classmethod
    def of(
        cls, label: str, found: tuple[float | None, float | None, float | None], form: str, scale: float = 1
    ) -> Self | None:
        """Return the figure of a mean and its bounds in a Python format; None if the mean is not defined."""
        mean, low, high = (None if each is None else f"{scale * each:{form}}" for each in found)
        if mean is None:
            return None
        return cls(label=label, value=mean, interval="" if low is None or high is None else f"[{low}, {high}]")

    @classmethod
    def in_points(
        cls, label: str, found: tuple[float | None, float | None, float | None], form: str = "+z.1f"
    ) -> Self | None:
        """Return the figure of a difference between scores or shares, in points (hundredths)."""
        figure = cls.of(label, found, form, 100)
        return None if figure is None else figure.model_copy(update={"value": f"{figure.value} points"})
