"""The kind `retrieval`: it scores the systems, reads the questions, and puts both before the traits and the rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from raggs.base.errors import UsageError
from raggs.base.settings import Causes, InputPath
from raggs.diagnosis.base import Diagnosis, DiagnosisConfig, Forecast
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.retrieval import showing
from raggs.diagnosis.retrieval.finding import put_together
from raggs.diagnosis.retrieval.lists import (
    Asked,
    check_there,
    digests,
    lists_of,
    measure_lists,
    read_values,
    usual_measure,
)
from raggs.diagnosis.retrieval.models import RetrievalFound
from raggs.diagnosis.retrieval.questions import read_questions
from raggs.evaluation.document import Section
from raggs.metrics.names import parse_measure


class RetrievalConfig(DiagnosisConfig):
    """What is looked at."""

    type: Literal["retrieval"] = "retrieval"
    runs: tuple[str, ...] = Field((), description="systems, [NAME=]PATH; the golden set's own retrievers if left out")
    values: InputPath | None = Field(None, description="eval.json of an earlier raggs eval, in place of systems")
    measure: str | None = Field(None, description="which questions fail; ra_nwg@10, or ndcg@10 on other grades")
    baseline: str | None = Field(None, description="the system that others are held against; the first if left out")
    pool: int = Field(50, ge=1, description="how many of its passages are a system's candidates")
    failing: float = Field(0.5, gt=0, le=1, description="a question fails whose value lies below")


class Retrieval(Diagnosis[RetrievalFound]):
    """Which questions of a golden set fail, what they share, and what to turn."""

    Config = RetrievalConfig
    Result = RetrievalFound
    TITLE = "Which questions fail, what do they share, and what is to be turned?"
    NEEDS = ("golden",)
    TIME = "seconds"
    config: RetrievalConfig

    def causes(self, bench: Bench) -> Causes:
        """With the files of the systems and the passages that are looked at."""
        systems = None if self.config.values else digests(lists_of(bench.golden, self.config.runs))
        corpus = bench.workshop.corpus(bench.corpus).key if bench.has("corpus") else None
        return {**super().causes(bench), "systems": systems, "passages": corpus}

    def check(self, bench: Bench) -> None:
        """Refuse a measure that is none, or of which less is better, and systems that are not there.

        Raises:
            UsageError, NotFoundError: with the remedy.
        """
        measure = self._asked(bench).measure
        if not measure.higher:
            raise UsageError(f"of {measure.name} less is better", remedy="name another: --measure ndcg@10")
        if self.config.values and self.config.runs:
            raise UsageError("--values holds systems already", remedy="leave out --run")
        if not self.config.values:
            check_there(lists_of(bench.golden, self.config.runs))

    def forecast(self, bench: Bench) -> Forecast:
        """Nobody is asked."""
        return Forecast(("lists are scored and read; nobody is asked",))

    def measure(self, bench: Bench) -> RetrievalFound:
        """Score, read, compare."""
        asked, judgments = self._asked(bench), bench.judgments
        known = read_questions(bench, judgments.qrels.scale.relevant)
        if self.config.values is not None:
            measured = read_values(self.config.values, judgments, asked)
        else:
            specs = lists_of(bench.golden, self.config.runs)
            measured = measure_lists(judgments, specs, asked, known.letters)
        return put_together(measured, known, asked, self.config.failing)

    def rests_on(self, found: RetrievalFound) -> int:
        return found.systems[0].questions

    def sections(self, found: RetrievalFound) -> tuple[Section, ...]:
        """See `showing`."""
        return showing.sections(found)

    def plots(self, found: RetrievalFound) -> Mapping[str, str]:
        """See `showing`."""
        return showing.plots(found)

    def _asked(self, bench: Bench) -> Asked:
        name = self.config.measure or usual_measure(bench.judgments.qrels.scale)
        return Asked(parse_measure(name), self.config.pool, self.config.baseline, bench.seed)
