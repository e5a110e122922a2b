"""What the diagnosis of noise is told and what it finds. A number that is not defined is null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.text import did_you_mean
from raggs.base.types import Number
from raggs.chunking.specs import parse_spec, spec_name
from raggs.diagnosis.base import DiagnosisConfig, Found
from raggs.diagnosis.models import MeanPart
from raggs.evaluation.models import Part
from raggs.parts import noises, rewriters
from raggs.parts.noises.base import LANGUAGES, NoiseConfig
from raggs.parts.noises.levels import LEVELS

NONE = "none"
ALL = tuple(noises.REGISTRY.builtin)


def _noise(value: object) -> object:
    """A word of the command line is the settings that it stands for."""
    return parse_spec(value, noises.REGISTRY, NoiseConfig) if isinstance(value, str) else value


def _rewriter(value: object) -> object:
    return parse_spec(value, rewriters.REGISTRY, AdapterConfig) if isinstance(value, str) else value


NoiseSpec = Annotated[NoiseConfig, OneOf(noises.REGISTRY), BeforeValidator(_noise)]
RewriterSpec = Annotated[AdapterConfig, OneOf(rewriters.REGISTRY), BeforeValidator(_rewriter)]


class NoiseDiagnosisConfig(DiagnosisConfig):
    """Settings of the diagnosis of noise."""

    type: Literal["noise"] = "noise"
    languages: tuple[str, ...] = Field(LANGUAGES, min_length=1, description="of the questions")
    levels: tuple[int, ...] = Field(LEVELS, min_length=1, description="of noise, 0 to 4, by cosine")
    noises: tuple[NoiseSpec, ...] = Field(ALL, validate_default=True, min_length=1, description="that are added")
    rewriters: tuple[RewriterSpec, ...] = Field(
        (NONE, "clean"), validate_default=True, min_length=1, description="that are tried; none always is"
    )
    draws: int = Field(3, ge=1, le=100, description="of the noise, for each question and level, by cosine")
    of: Literal["own", "golden"] = Field(
        "own", description="questions and ideal texts by cosine: raggs' own, or a golden set's with its best passages"
    )
    retrieval: bool = Field(True, description="whether a golden set's questions are searched with noise, too")
    searched: tuple[int, ...] = Field((0, 2, 4), min_length=1, description="levels with which they are searched")
    depth: int = Field(50, ge=10, le=1000, description="passages of each list")
    cutoffs: tuple[int, ...] = Field((10, 30), min_length=1, description="of measures and of what lists share")

    @field_validator("languages")
    @classmethod
    def _know_the_languages(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        for language in languages:
            if language not in LANGUAGES:
                raise ValueError(f"there is no noise in {language!r}: {did_you_mean(language, LANGUAGES)}")
        return tuple(dict.fromkeys(languages))

    @field_validator("levels", "searched")
    @classmethod
    def _know_the_levels(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        for level in levels:
            if level not in LEVELS:
                raise ValueError(f"there is no level {level}: 0 is the question itself, 4 the noisiest")
        if not any(levels):
            raise ValueError("level 0 alone holds no noise")
        return tuple(sorted({0, *levels}))

    @field_validator("cutoffs")
    @classmethod
    def _count_from_one(cls, cutoffs: tuple[int, ...]) -> tuple[int, ...]:
        if min(cutoffs) < 1:
            raise ValueError(f"a cutoff is at least 1, not {min(cutoffs)}")
        return tuple(sorted(set(cutoffs)))

    @field_validator("rewriters")
    @classmethod
    def _begin_with_none(cls, found: tuple[AdapterConfig, ...]) -> tuple[AdapterConfig, ...]:
        if len(set(map(spec_name, found))) < len(found):
            raise ValueError("a rewriter is named twice")
        plain = parse_spec(NONE, rewriters.REGISTRY, AdapterConfig)
        return (plain, *(each for each in found if each.type != NONE))


class LevelPart(Part):
    """Questions of one language, level and rewriter against their ideal texts, by one embedder."""

    embedder: str
    language: str
    level: int
    rewriter: str
    cosine: MeanPart
    change: MeanPart = Field(description="against level 0 without rewriting, paired")
    percent: Number = Field(description="the same in percent of the mean")
    regained: MeanPart = Field(description="share of what the level costs; null without rewriting or loss")


class TargetPart(Part):
    """What was published, not repeated here."""

    model: str
    language: str
    level: int
    cosine: float


class EndPart(Part):
    """A golden set's questions with one level of noise and one rewriter, searched by one system, on one measure."""

    system: str
    level: int
    rewriter: str
    measure: str
    questions: int = Field(description="where the measure is defined")
    mean: MeanPart
    change: MeanPart = Field(description="against the questions without noise and rewriting, paired")
    gained: MeanPart = Field(description="against the same noise without rewriting, paired; null without rewriting")
    regained: MeanPart = Field(description="share of what the level costs; null without rewriting or a clear loss")


class ShufflePart(Part):
    """How far a system's lists stay what they are without noise and rewriting."""

    system: str
    level: int
    rewriter: str
    k: int
    overlap: MeanPart = Field(description="share of the first k that both have")
    tau: MeanPart = Field(description="Kendall's tau over those that both have")


class ExamplePart(Part):
    """One question as it is asked and as it is searched for."""

    language: str
    level: int
    text: str
    rewritten: Mapping[str, str] = Field(description="by rewriter")


class NoiseFound(Found):
    """Findings of the diagnosis of noise."""

    source: str = Field(description="of the questions and ideal texts by cosine")
    questions: Mapping[str, int] = Field(description="by language, that were compared by cosine")
    draws: int
    noises: tuple[str, ...]
    cosines: tuple[LevelPart, ...]
    targets: tuple[TargetPart, ...] = Field(description="published, not repeated here")
    searched: int = Field(description="questions of the golden set that were searched with noise")
    strange: int = Field(description="of its questions, in languages without noise, left out")
    ends: tuple[EndPart, ...]
    shuffles: tuple[ShufflePart, ...]
    untold: str | None = Field(description="why nothing was searched; null where it was")
    examples: tuple[ExamplePart, ...]
