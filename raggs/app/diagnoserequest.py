"""What is to be diagnosed, typed and checked, before anything is opened: the kind, its settings, and what was named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from raggs.app.addresses import Approve, nobody, permit, permit_parts
from raggs.app.run import AnyConfig, run_folder
from raggs.base.errors import UsageError
from raggs.base.jsonl import first_fault
from raggs.chunking.specs import parse_spec, spec_name, split_names
from raggs.config.load import LoadedConfig, load_config
from raggs.config.models import RunConfig
from raggs.diagnosis import FOLDER, REGISTRY
from raggs.diagnosis.base import Diagnosis, Found
from raggs.diagnosis.bench import Given
from raggs.llm import BudgetSettings, LLMSettings
from raggs.parts import embedders, rerankers
from raggs.parts.embedders.base import EmbedderConfig
from raggs.parts.rerankers.base import RerankerConfig
from raggs.parts.retrievers.reranked import RerankedConfig
from raggs.runs.manifests.store import RunStore
from raggs.sweeps.world import llm_of

CAP = 5.0  # USD, where no configuration names a budget
USUAL = "wordllama"


@dataclass(frozen=True)
class DiagnoseRequest:
    """What to diagnose.

    Attributes:
        kind: as `raggs list diagnoses` has it.
        config: of a run: a loaded configuration, a mapping, or the path of its file; None without one.
        settings: of the kind; those that are left out are its defaults.
        golden: a run directory, or labels; None for what the configuration's own run has made, if anything.
        embedders, rerankers: as on the command line, ``onnx:models/minilm``; empty for those of the configuration, and
            without these for wordllama and no reranker.
        out: where reports go; None for the run's folder, where there is one, else ``diagnose`` here.
        seed: of all that is drawn.
        allow_mixed: whether it goes on when a provider answers with another snapshot of a model than before.
        max_usd: what all diagnoses may cost that go to one folder; None for the configuration's budget, else `CAP`.
    """

    kind: str
    config: AnyConfig | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    golden: Path | None = None
    embedders: Sequence[str] = ()
    rerankers: Sequence[str] = ()
    out: Path | None = None
    seed: int = 0
    max_usd: float | None = None
    allow_mixed: bool = False

    @cached_property
    def run(self) -> RunConfig | None:
        """The configuration of the run, checked.

        Raises:
            RaggsError: it is missing or malformed.
        """
        config = self.config
        if config is None or isinstance(config, RunConfig):
            return config
        return config.run if isinstance(config, LoadedConfig) else load_config(config).run

    @cached_property
    def diagnosis(self) -> Diagnosis[Found]:
        """The kind with its settings.

        Raises:
            UsageError: there is no such kind or setting, or a value does not fit.
        """
        kind = REGISTRY.load(self.kind)
        try:
            return kind(kind.Config.model_validate({"type": self.kind, **self.settings}))
        except ValidationError as error:
            raise UsageError(
                f"{self.kind}: {first_fault(error)}", remedy=f"see raggs diagnose {self.kind} --help"
            ) from error

    @cached_property
    def given(self) -> Given:
        """What was named, checked but not opened.

        Raises:
            UsageError: a name stands for no embedder or reranker.
        """
        run = self.run
        own = None if run is None else run_folder(run)
        return Given(run, self.golden, own, self._embedders(), self._rerankers(), self.seed)

    @cached_property
    def folder(self) -> Path:
        """Where reports go."""
        if self.out is not None:
            return self.out
        runs = [self.golden, None if self.run is None else run_folder(self.run)]
        made = next((run for run in runs if run is not None and RunStore(run).exists), None)
        return Path(FOLDER) if made is None else made / FOLDER

    @property
    def llm(self) -> LLMSettings:
        """How language models are called: as the configuration says, else as the run did that made the golden set."""
        stored = None if self.golden is None or self.run is not None else llm_of(self.golden)
        found = stored or LLMSettings() if self.run is None else self.run.llm
        return found.mixing() if self.allow_mixed else found

    @property
    def budget(self) -> BudgetSettings:
        """What may be spent."""
        budget = BudgetSettings(max_usd=CAP) if self.run is None else self.run.budget
        return budget if self.max_usd is None else budget.model_copy(update={"max_usd": self.max_usd})

    @property
    def workspace(self) -> Path:
        """Below which the caches lie: the run's, where there is one."""
        if self.run is not None:
            return self.run.workspace
        of_run = self.golden is not None and RunStore(self.golden).exists
        return self.golden.parent if self.golden is not None and of_run else self.folder

    def permit(self, approve: Approve = nobody) -> None:
        """See to it that no key goes to an address that is new; those of a part's own word are the user's.

        Raises:
            PrerequisiteError: one would (see `raggs.app.addresses`).
        """
        parts = [*self.given.embedders.values(), *self.given.rerankers.values(), self.diagnosis.config]
        permit_parts(self.llm, parts, approve)
        if self.run is not None:
            permit(self.run, self.diagnosis.STAGES, approve)

    def _embedders(self) -> dict[str, EmbedderConfig]:
        own = None if self.run is None else self.run.embed.embedder
        if not self.embedders and own is not None:
            return {spec_name(own): own}
        names = split_names(self.embedders or (USUAL,), "embedder", "see: raggs list embedders")
        return {name: parse_spec(name, embedders.REGISTRY, EmbedderConfig) for name in names}

    def _rerankers(self) -> dict[str, RerankerConfig]:
        if self.rerankers:
            names = split_names(self.rerankers, "reranker", "see: raggs list rerankers")
            return {name: parse_spec(name, rerankers.REGISTRY, RerankerConfig) for name in names}
        specs = () if self.run is None else self.run.retrieve.retrievers
        found = [spec.by for spec in specs if isinstance(spec, RerankedConfig)]
        return {spec_name(spec): spec for spec in found}
