"""Every setting of a run and its default. This is the only place where a default is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.settings import AnchoredPath, Effort, Settings
from raggs.llm import BudgetSettings, LLMSettings
from raggs.parts import corpora, queries
from raggs.parts.elastic.settings import IndexSettings
from raggs.parts.retrievers.base import name_of
from raggs.runs import execution
from raggs.stages.embed import EmbedConfig
from raggs.stages.judge import JudgeConfig
from raggs.stages.merge import MergeConfig
from raggs.stages.prune import PruneConfig
from raggs.stages.questions.ask import AskConfig
from raggs.stages.questions.filter import FilterConfig
from raggs.stages.questions.sample import SampleConfig
from raggs.stages.questions.verify import VerifyConfig
from raggs.stages.rank_config import RankConfig
from raggs.stages.retrieve import RetrieveConfig

CorpusSpec = Annotated[AdapterConfig, OneOf(corpora.REGISTRY)]
QueriesSpec = Annotated[AdapterConfig, OneOf(queries.REGISTRY)]
ExecutionSpec = Annotated[AdapterConfig, OneOf(execution.REGISTRY)]


# A folder's name on every system: letters, digits, dots, dashes, underscores, and no leading dot or dash.
RUN_NAME = r"^\w[\w.-]*$"
RunName = Annotated[str, StringConstraints(pattern=RUN_NAME, max_length=120)]


class DocumentsConfig(Settings):
    """The settings of a run's file that matter for its documents alone; its other sections are not read."""

    workspace: AnchoredPath = Field(Path("runs"), validate_default=True, description="where runs and caches lie")
    corpus: CorpusSpec = Field(description="the passages")
    budget: BudgetSettings = BudgetSettings()
    llm: LLMSettings = LLMSettings()

    @classmethod
    def sections_not_read(cls) -> frozenset[str]:
        """The other sections of a run's file."""
        return frozenset(RunConfig.model_fields.keys() - cls.model_fields.keys())

    @model_validator(mode="before")
    @classmethod
    def _leave_other_sections(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        return {name: value for name, value in values.items() if name not in cls.sections_not_read()}


class QuestionsConfig(Settings):
    """How `raggs questions` makes questions of the documents."""

    sample: SampleConfig = SampleConfig()
    ask: AskConfig = AskConfig()
    verify: VerifyConfig = VerifyConfig()
    filter: FilterConfig = FilterConfig()

    def stage_configs(self) -> dict[str, Settings]:
        """Each stage's configuration by stage."""
        return {"sample": self.sample, "ask": self.ask, "verify": self.verify, "filter": self.filter}


class RunConfig(Settings):
    """A whole run. Paths are relative to the file that they stand in."""

    name: RunName = Field(description="the run's name; its directory is <workspace>/<name>")
    workspace: AnchoredPath = Field(Path("runs"), validate_default=True, description="where runs and caches lie")
    corpus: CorpusSpec = Field(description="the passages")
    queries: QueriesSpec = Field(description="the questions")
    embed: EmbedConfig = EmbedConfig()
    retrieve: RetrieveConfig = RetrieveConfig()
    merge: MergeConfig = MergeConfig()
    judge: JudgeConfig
    prune: PruneConfig = PruneConfig()
    rank: RankConfig | None = Field(
        RankConfig(), description="how the golden order is found; null leaves it out: a golden set of grades alone"
    )
    budget: BudgetSettings = BudgetSettings()
    llm: LLMSettings = LLMSettings()
    index: IndexSettings = Field(IndexSettings(), description="how `raggs index` makes an index; no stage reads it")
    questions: QuestionsConfig = QuestionsConfig()
    execution: Effort[ExecutionSpec] = Field(
        {"type": "local"}, validate_default=True, description="where the work is done"
    )

    @model_validator(mode="after")
    def _weights_have_retrievers(self) -> RunConfig:
        names = [name_of(spec) for spec in self.retrieve.retrievers]
        for name in self.merge.weights or {}:
            if name not in names:
                raise ValueError(f"merge.weights names {name!r}, which is no retriever; retrievers: {', '.join(names)}")
        return self

    @model_validator(mode="after")
    def _rewrites_can_differ(self) -> RunConfig:
        depth = self.retrieve.depth
        if depth is None or depth.when.rewrite is None:
            return self
        if self.embed.embedder is None:
            raise ValueError("retrieve.depth.when.rewrite compares vectors, and embed.embedder is null")
        if self.embed.rewrite.type == "none":
            raise ValueError("retrieve.depth.when.rewrite never fires, since embed.rewrite is none; leave it out")
        return self

    @model_validator(mode="after")
    def _orders_are_there_to_be_held(self) -> RunConfig:
        gate = self.judge.gate
        held = [name for name in ("flips", "position_bias") if getattr(gate, name) is not None]
        if self.rank is None and held:
            raise ValueError(f"judge.gate.{held[0]} is read off rankings, and rank is null: leave one of them out")
        return self

    @property
    def ordering(self) -> RankConfig:
        """How one question is ordered by itself: by the defaults where ranking is left out and one is wanted all the
        same, and with calls of its own where all share a budget."""
        return (self.rank or RankConfig()).alone

    def stage_configs(self) -> dict[str, Settings]:
        """Each stage's configuration by stage, of those that are not left out."""
        return {
            "embed": self.embed,
            "retrieve": self.retrieve,
            "merge": self.merge,
            "judge": self.judge,
            "prune": self.prune,
            **({} if self.rank is None else {"rank": self.rank}),
        }
