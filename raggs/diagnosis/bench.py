"""What a diagnosis works with: embedders, rerankers, a golden set, questions, passages, each opened at first use.

Whatever is missing is one sentence that says how to name it. Nothing here knows what is measured.

What rerankers that are paid would take, for the forecasts of diagnoses. Nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.errors import NotFoundError, PrerequisiteError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import M
from raggs.base.settings import causes_of
from raggs.base.stores import RowStore
from raggs.base.text import FOLDING
from raggs.base.types import Hear, deaf
from raggs.config.models import RunConfig
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.opened import open_golden
from raggs.llm.prices import estimate_tokens
from raggs.llm.rehearsal import Rehearsal
from raggs.parts.embedders.base import Embedder, EmbedderConfig
from raggs.parts.rerankers.base import Reranker, RerankerConfig
from raggs.parts.workshop import Passages, Workshop, open_queries, place_of
from raggs.runs.manifests.models import Estimate
from raggs.runs.pipeline.plan import line_of
from raggs.stages.embed import quotes_folded
from raggs.sweeps.world import corpus_of, refuse_foreign

Need = Literal["run", "golden", "corpus", "embedder", "reranker"]
SECTIONS = ("embed", "retrieve", "merge", "judge", "rank")  # of a run, that say what it does
EMBED = "embed"  # the ledger's name of the task
REMEDIES: Mapping[Need, str] = {
    "run": "name a run's YAML file: --config raggs.yaml",
    "golden": "name one: --golden RUN|FILE; raggs run makes a golden set",
    "corpus": "name the run's YAML file, --config raggs.yaml, or a run directory: --golden RUN",
    "embedder": "name one: --embedder wordllama, or see: raggs list embedders",
    "reranker": "name one: --reranker onnx:models/minilm, or see: raggs list rerankers",
}


@dataclass(frozen=True)
class Given:
    """What was named, checked but not opened.

    Attributes:
        run: the run's configuration.
        golden: the golden set's place as the user named it; `own`: where the run's own would lie.
        embedders, rerankers: by the names that tables give them.
        seed: of all that is drawn.
    """

    run: RunConfig | None = None
    golden: Path | None = None
    own: Path | None = None
    embedders: Mapping[str, EmbedderConfig] = field(default_factory=dict)
    rerankers: Mapping[str, RerankerConfig] = field(default_factory=dict)
    seed: int = 0


class Bench:
    """See the module.

    Args:
        given: what was named.
        workshop: makes the parts; closed by whoever made it.
        hear: is told what takes its time.
        rehearsal: language models that only remember, in place of the workshop's own, for a forecast.
    """

    def __init__(self, given: Given, workshop: Workshop, hear: Hear = deaf, rehearsal: Rehearsal | None = None) -> None:
        self.given, self.workshop, self.hear = given, workshop, hear
        self.run, self.seed = given.run, given.seed
        self.rehearsal = rehearsal
        self._rows = RowStore(workshop.places.diagnoses, hear)

    # --- parts ---

    @cached_property
    def embedders(self) -> Mapping[str, Embedder]:
        """The embedders by name, in the order in which they were named; their models are loaded at first use."""
        return {name: self.workshop.embedder(spec, self.rehearsal) for name, spec in self.given.embedders.items()}

    @cached_property
    def rerankers(self) -> Mapping[str, Reranker]:
        """The rerankers by name; none where none is named."""
        return {name: self.workshop.reranker(spec, self.rehearsal) for name, spec in self.given.rerankers.items()}

    # --- what is asked, and of what ---

    @cached_property
    def golden(self) -> GoldenSet:
        """The golden set.

        Raises:
            NotFoundError: there is none.
            DataError: it is damaged.
        """
        found = self._golden
        if found is None:
            raise NotFoundError("there is no golden set", remedy=REMEDIES["golden"])
        return found

    @cached_property
    def judgments(self) -> Judgments:
        """Its grades.

        Raises:
            NotFoundError, DataError: as `golden`, or there are no grades.
        """
        return self.golden.judgments()

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """The questions by id, sorted: those of the golden set, or those of the run.

        Raises:
            NotFoundError: labels alone hold no questions, and no run is named.
        """
        if not self._questions:
            raise NotFoundError("there are no questions", remedy=REMEDIES["golden"])
        return self._questions

    @cached_property
    def corpus(self) -> AdapterConfig:
        """The settings of the corpus.

        Raises:
            PrerequisiteError: nobody says where it is.
            DataError: the golden set says it wrongly.
        """
        found = self._corpus
        if found is None:
            raise PrerequisiteError("there is no corpus", remedy=REMEDIES["corpus"])
        return found

    @cached_property
    def passages(self) -> Passages:
        """All passages, known to be those that the golden set is about, where there is one.

        Raises:
            PrerequisiteError, DataError: there are none, or they are not.
        """
        found = self.workshop.corpus(self.corpus).passages(whole=True)
        if self._golden is not None:
            refuse_foreign(found, self.judgments, self._golden.source, place_of(self.corpus))
        return found

    # --- what was named, and what it depends on ---

    def has(self, need: Need) -> bool:
        """Whether it is there, as far as is known without reading it."""
        match need:
            case "run":
                return self.run is not None
            case "golden":
                return self._golden is not None
            case "corpus":
                return self._corpus is not None
            case "embedder":
                return bool(self.given.embedders)
            case "reranker":
                return bool(self.given.rerankers)

    def require(self, needs: Iterable[Need]) -> None:
        """Refuse where something is not there.

        Raises:
            PrerequisiteError: with the way to name it.
            NotFoundError, DataError: it is named, and cannot be opened.
        """
        for need in needs:
            if not self.has(need):
                article = "an" if need[0] in "ae" else "a"
                raise PrerequisiteError(f"this diagnosis needs {article} {NAMES[need]}", remedy=REMEDIES[need])

    def causes(self, need: Need) -> object:
        """What of it can change a finding; None where it is not there."""
        if not self.has(need):
            return None
        match need:
            case "run":
                tree = {name: getattr(self.run, name) for name in SECTIONS}
                return {name: causes_of(section) for name, section in tree.items() if section is not None}
            case "golden":
                digest = self.judgments.digest
                asked = [query.model_dump(mode="json") for query in self._questions.values()]
                return {"judgments": digest, "queries": hash_value(asked), **quotes_folded(self._questions.values())}
            case "corpus":
                content = self.passages.content_hash
                return [content, FOLDING] if self.passages.folded else content
            case "embedder":
                return {name: embedder.causes() for name, embedder in self.embedders.items()}
            case "reranker":
                folds = any(reranker.reader.FOLDS for reranker in self.rerankers.values())
                read = folds and (
                    quotes_folded(self._questions.values()) or (self.has("corpus") and self.passages.folded)
                )
                found = {name: reranker.causes() for name, reranker in self.rerankers.items()}
                return {**found, "quotes": FOLDING} if read else found

    def kept(self, causes: object, model: type[M], make: Callable[[], Iterable[M]]) -> list[M]:
        """Rows of this kind and these causes, as they were kept, or as they are made now and kept.

        Args:
            causes: all that can change a row, as plain JSON: the kind's name, settings, seed, `causes` of parts.
            model: of a row.
            make: gives the rows.
        """
        found = self._rows.rows(causes, model)
        if found is None:
            self._rows.keep(causes, found := list(make()))
        return found

    # --- money ---

    @property
    def models(self) -> tuple[str, ...]:
        """The models that embedders and rerankers pay."""
        parts: Collection[Embedder | Reranker] = [*self.embedders.values(), *self.rerankers.values()]
        return tuple(dict.fromkeys(model for part in parts for model in part.models))

    def asked(self, *tasks: str) -> tuple[Estimate, ...]:
        """A line for each model and task that was asked on this bench so far, where its models only remember.

        Args:
            tasks: as the ledger names them; "embed" where nothing is said.
        """
        if self.rehearsal is None:
            return ()
        found = {
            (task, model): self.rehearsal.asked(model, task) for model in self.models for task in tasks or (EMBED,)
        }
        price = self.workshop.llm.price
        return tuple(
            line_of(task, model, asked, price(model))
            for (task, model), asked in found.items()
            if asked.calls or asked.known
        )

    # --- opened once ---

    @cached_property
    def _golden(self) -> GoldenSet | None:
        if self.given.golden is not None:
            return open_golden(self.given.golden)
        if self.given.own is None:
            return None
        try:
            found = open_golden(self.given.own)
            found.judgments()
        except NotFoundError:
            return None  # not made yet
        return found

    @cached_property
    def _questions(self) -> Mapping[str, Query]:
        found = {} if self._golden is None else {query.qid: query for query in self._golden.queries()}
        if not found and self.run is not None:
            found = dict(open_queries(self.run.queries, self.hear))
        return dict(sorted(found.items()))

    @cached_property
    def _corpus(self) -> AdapterConfig | None:
        if self.run is not None:
            return self.run.corpus
        return None if self.given.golden is None else corpus_of(self.given.golden)


NAMES: Mapping[Need, str] = {
    "run": "run's configuration",
    "golden": "golden set",
    "corpus": "corpus",
    "embedder": "embedder",
    "reranker": "reranker",
}


def reranking(
    reranker: Reranker, times: int, candidates: int, queries: Sequence[str], passages: Sequence[str]
) -> Iterator[Estimate]:
    """A line for each model that a reranker pays; none for one of this machine.

    Args:
        times: how many queries it is asked.
        candidates: passages of each of them.
        queries, passages: some of them, which say how long one is.
    """
    query, passage = mean_tokens(queries), mean_tokens(passages)
    for model in reranker.models:
        one = reranker.outlay(model, candidates, query, passage)
        yield Estimate(
            stage="rerank",
            calls=times * one.calls,
            input_tokens=times * one.input_tokens,
            output_tokens=times * one.output_tokens,
            usd=None if one.usd is None else times * one.usd,
            exact=False,
            who=model,
        )


def mean_tokens(texts: Sequence[str]) -> int:
    """Tokens of a text on average."""
    return round(sum(map(estimate_tokens, texts)) / max(1, len(texts)))
