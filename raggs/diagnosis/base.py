"""What a diagnosis is: a question about retrieval, small controlled probes, findings with intervals, and a verdict.

A kind measures once and draws from what it found alone: `sections` and `plots` compute nothing that the findings do
not hold, and look at nothing else. It asks no model in `check` and `forecast`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.settings import Causes
from raggs.diagnosis.bench import Bench, Need
from raggs.evaluation.document import Section
from raggs.evaluation.models import Part
from raggs.runs.manifests.models import Estimate

VERDICTS = 2  # version of the words of all kinds, which reports hold
Time = Literal["seconds", "a minute", "minutes"]


class DiagnosisConfig(AdapterConfig):
    """What every kind's settings derive from; each has a default and a description."""


class Found(Part):
    """What a kind found. A number that is not defined is null."""

    verdict: str = Field(description="what was found and what is to be done first: at most two sentences")
    passed: bool | None = Field(description="whether it holds what was asked of it; null: nothing was, or who knows")


P = TypeVar("P", bound=Found)


@dataclass(frozen=True)
class Forecast:
    """What a diagnosis would do, in sentences, and a line for each model and task that would be paid for."""

    what: tuple[str, ...] = ()
    estimates: tuple[Estimate, ...] = ()
    about: str = "at most so many: what is asked later depends on the answers"


class Diagnosis(Adapter, ABC, Generic[P]):
    """One kind. Built as ``cls(config)``; the first line of its docstring is its line in `raggs list diagnoses`.

    Attributes:
        Result: what it finds; read again from its file.
        TITLE: the question that it answers.
        NEEDS: what it cannot do without, TAKES: what it uses where it is there. Both are causes of its findings.
        STAGES: of a run, whose models it asks; none of a kind that asks nobody but embedders and rerankers.
        TIME: how long it takes with embedders of this machine.
        OVER: what its intervals are over, in the singular.
        PASSAGES: whether texts of passages stand in its tables, which a report without texts leaves out.
    """

    Config: ClassVar[type[AdapterConfig]] = DiagnosisConfig
    Result: ClassVar[type[Found]] = Found
    TITLE: ClassVar[str]
    NEEDS: ClassVar[tuple[Need, ...]] = ()
    TAKES: ClassVar[tuple[Need, ...]] = ()
    STAGES: ClassVar[tuple[str, ...]] = ()
    TIME: ClassVar[Time] = "a minute"
    OVER: ClassVar[str] = "question"
    PASSAGES: ClassVar[bool] = False

    def __init__(self, config: AdapterConfig) -> None:
        self.config = config

    def causes(self, bench: Bench) -> Causes:
        """All that can change what is found; findings of equal causes are read, not made again."""
        parts: Causes = {need: bench.causes(need) for need in (*self.needs, *self.TAKES)}
        return {"kind": self.own_causes(), "verdicts": VERDICTS, "seed": bench.seed, **parts}

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it cannot do without, with its settings."""
        return self.NEEDS

    def models(self, bench: Bench) -> tuple[str, ...]:
        """The models that it would pay: those of the embedders and rerankers that it uses, and what a kind adds."""
        used = {*self.needs, *self.TAKES}
        asked = [each.models for each in bench.embedders.values() if "embedder" in used]
        asked += [each.models for each in bench.rerankers.values() if "reranker" in used]
        return tuple(dict.fromkeys(model for models in asked for model in models))

    def check(self, bench: Bench) -> None:
        """Refuse what can be refused before the work; what it NEEDS is there already.

        Raises:
            RaggsError: with a remedy.
        """
        return

    @abstractmethod
    def forecast(self, bench: Bench) -> Forecast:
        """What `measure` would do and cost. The embedders and rerankers of this bench only remember: see `Bench.asked`.

        Raises:
            RaggsError: as `check`.
        """

    @abstractmethod
    def measure(self, bench: Bench) -> P:
        """Do the work. What costs more than a second goes through `bench.kept`, so that a kill costs a part.

        Raises:
            RaggsError: an input is not what it should be, or a model failed.
        """

    @abstractmethod
    def rests_on(self, found: P) -> int:
        """How many questions, or whatever its intervals are `OVER`, the verdict rests on."""

    @abstractmethod
    def sections(self, found: P) -> tuple[Section, ...]:
        """Sentences and tables with intervals, the most important first; from `found` alone."""

    def files(self, found: P) -> Mapping[str, str]:
        """Other files by name, such as a configuration to go on with; from `found` alone."""
        return {}

    def plots(self, found: P) -> Mapping[str, str]:
        """SVG by name, drawn by `raggs.evaluation.svg` from `found` alone; files are ``<kind>-<name>.svg``."""
        return {}
