"""What the diagnosis of names is told and what it finds. A number that is not defined is null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from raggs.base.adapter import OneOf
from raggs.base.text import did_you_mean
from raggs.base.types import Number
from raggs.chunking.specs import parse_spec
from raggs.diagnosis.base import DiagnosisConfig, Found
from raggs.evaluation.models import Part
from raggs.parts import perturbers
from raggs.parts.perturbers.base import Family, PerturberConfig

MOST_QUESTIONS = 5000
MOST_RUNS = 200


def _spec(value: object) -> object:
    """A word of the command line is the settings that it stands for."""
    return parse_spec(value, perturbers.REGISTRY, PerturberConfig) if isinstance(value, str) else value


PerturberSpec = Annotated[PerturberConfig, OneOf(perturbers.REGISTRY), BeforeValidator(_spec)]
ALL = tuple(perturbers.REGISTRY.builtin)


class NamesConfig(DiagnosisConfig):
    """Settings of the diagnosis of names."""

    type: Literal["names"] = "names"
    languages: tuple[str, ...] = Field(("en", "fr"), min_length=1, description="of the probes")
    questions: int = Field(100, ge=2, le=MOST_QUESTIONS, description="a language, the same in all runs")
    runs: int = Field(15, ge=1, le=MOST_RUNS, description="with impostors and wordings drawn anew")
    reranker_runs: int = Field(
        3, ge=1, le=MOST_RUNS, description="runs that rerankers score, which read each text anew"
    )
    perturbers: tuple[PerturberSpec, ...] = Field(ALL, validate_default=True, description="what is done to the texts")
    raw: bool = Field(False, description="whether texts are read as they stand, without Unicode hygiene")
    name_field: str | None = Field(None, min_length=1, description="of the passages' metadata, that holds names")
    topic_field: str | None = Field(None, min_length=1, description="of the passages, that says what they are about")
    least_loss: float = Field(50.0, ge=0, le=100, description="percent that a destroyed identity must cost the margin")
    most_loss: float = Field(20.0, ge=0, le=100, description="percent that another form or layout may cost it")
    end_to_end: bool = Field(True, description="whether a golden set's questions that hold names are perturbed, too")
    cutoff: int = Field(10, ge=1, le=1000, description="of N-Recall4+ over the golden set")
    most_passages: int = Field(
        20_000, ge=100, description="of the corpus, in which they are looked for; judged ones are always there"
    )

    @field_validator("languages")
    @classmethod
    def _know_the_languages(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        from raggs.diagnosis.names.drawing import WORDINGS

        for language in languages:
            if language not in WORDINGS:
                raise ValueError(f"there are no probes in {language!r}: {did_you_mean(language, WORDINGS)}")
        return tuple(dict.fromkeys(languages))

    @model_validator(mode="after")
    def _take_both_fields_or_none(self) -> NamesConfig:
        if (self.name_field is None) != (self.topic_field is None):
            raise ValueError("--name-field and --topic-field go together")
        if len({each.type for each in self.perturbers}) < len(self.perturbers):
            raise ValueError("a perturber is named twice")
        return self


class MarginPart(Part):
    """A mean of margins, or of their changes, over questions and runs."""

    value: Number = Field(description="mean of the runs' means")
    sd: Number = Field(description="between the runs' means")
    run_low: Number = Field(description="95% interval over runs")
    run_high: Number
    low: Number = Field(description="95% interval over resampled questions")
    high: Number
    count: int = Field(description="bundles with a value")


class AblationPart(Part):
    """What one perturber did to the name margins of one scorer in one language."""

    perturber: str
    family: Family = Field(description="whether it takes the identity away, only the form, or only the layout")
    percent: MarginPart = Field(description="mean of the bundles' changes in percent, bases under .02 left out")
    of_means: Number = Field(description="change of the mean margin in percent")
    of_means_low: Number
    of_means_high: Number
    absolute: MarginPart = Field(description="mean change, in the unit of the scores")
    left_out: int = Field(description="bundles whose base margin is under .02")
    holds: bool | None = Field(description="whether the change is within its limit beyond doubt; null: in doubt")


class SubjectPart(Part):
    """One embedder or reranker in one language."""

    scorer: str
    what: Literal["embedder", "reranker"]
    language: str
    questions: int
    runs: int
    name: MarginPart = Field(description="margin of the right name over the better of two impostors")
    topic: MarginPart = Field(description="margin of the right topic over another one")
    both: MarginPart
    ratio: Number = Field(description="name margin by topic margin, of their means")
    ratio_low: Number
    ratio_high: Number
    small: float = Field(description="share of bundles whose name margin is under .02")
    ablations: tuple[AblationPart, ...]


class EndPart(Part):
    """What one perturber did to a golden set's questions that hold names, by dense search with one embedder."""

    embedder: str
    perturber: str
    before: Number = Field(description="mean over the questions")
    after: Number
    difference: Number
    low: Number = Field(description="95% interval of the paired difference")
    high: Number
    passages: int = Field(description="passages that it changed")
    margin: Number = Field(description="change of the mean name margin in percent, as the probes have it")


class PredictionPart(Part):
    """How well the cheap margin says what happens to recall."""

    spearman: Number = Field(description="rank correlation of both changes over perturbers and embedders, in -1 to 1")
    low: Number = Field(description="95% interval over resampled questions of the golden set")
    high: Number
    points: int


class EndToEnd(Part):
    """The golden set's share."""

    measure: str
    questions: int = Field(description="that hold names which stand in the corpus")
    judged: int
    passages: int = Field(description="that were searched")
    language: str = Field(description="of most of these questions")
    changes: tuple[EndPart, ...] = ()
    prediction: PredictionPart | None = None
    note: str | None = Field(None, description="why there is nothing to tell")


class NamesFound(Found):
    """Name margins, what destroys them, and what that does to recall."""

    source: str = Field(description="where names and topics are from")
    names: Mapping[str, int] = Field(description="different names to draw from, by language")
    cleaned: bool = Field(description="whether texts passed Unicode hygiene")
    least_loss: float
    most_loss: float
    subjects: tuple[SubjectPart, ...]
    end_to_end: EndToEnd | None = None
