"""Build a golden set, resume a run, or forecast what a run would do and cost.

`run` runs a configuration; `open_runner` also gives access to the plan of a run. The module also selects where the
stages run. At the end of the judge stage, it reports remarks of the judge, and given labels of passages outside the
pools. These passages are not in the golden set. If some of them are relevant, scores against the set are too high.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from raggs.app.addresses import Approve, approve_nothing, permit
from raggs.app.run_result import RunResult
from raggs.app.services import RunServices, keep_default_embedder, telling_embedder
from raggs.base.artifacts import JournalRecord, JudgeRecord, MergeRecord
from raggs.base.errors import UsageError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import read_records
from raggs.base.judge_health import JudgeHealth
from raggs.base.settings import BASE_FOLDER
from raggs.base.text import plural
from raggs.base.types import Notice
from raggs.config.load import IN_MEMORY, LoadedConfig, load_config
from raggs.config.models import RUN_NAME, RunConfig
from raggs.config.source import refuse_stored
from raggs.llm import BudgetSpent
from raggs.parts.file_shapes import RELEVANT
from raggs.runs import execution
from raggs.runs.events import Event, Listener, StageFinished, ignore_event, in_loop, run_in_thread
from raggs.runs.execution import Execution, ExecutionContext
from raggs.runs.manifests.lineage import Lineage, count_version
from raggs.runs.manifests.models import CostEstimate, RetrieverCeiling, RunManifest, total
from raggs.runs.manifests.reasons import Reason
from raggs.runs.manifests.store import RunStore, config_place
from raggs.runs.partial import run_within_budget
from raggs.runs.plan import RunState, Selection, select
from raggs.runs.runner import Runner
from raggs.stages import GOLDEN
from raggs.stages.pipeline import Pipeline

__all__ = ["BudgetSpent", "RunForecast", "forecast", "open_runner", "run", "run_folder"]


def make_execution(config: RunConfig) -> Execution:
    """Return the execution that a configuration names; workers get the configuration with absolute paths."""
    context = ExecutionContext(partial(_portable, config, Path.cwd()), _run_shard)
    return execution.REGISTRY.of(config.execution)(config.execution, context)


def _portable(config: RunConfig, folder: Path) -> str:
    return RunConfig.model_validate(config.model_dump(mode="json"), context={BASE_FOLDER: folder}).model_dump_json()


def _run_shard(job: str, number: int) -> None:
    from raggs.app.worker import run_shard  # imported lazily: only needed by workers

    run_shard(job, number)


def telling_unpooled(listen: Listener, services: RunServices, store: RunStore) -> Listener:
    """Return `listen`, extended by notices after the judge stage: its remarks, and labels outside the pools."""

    def hear(event: Event) -> None:
        listen(event)
        if isinstance(event, StageFinished) and event.stage == "judge":
            for sentence in (*services.judge.remarks(), *_unpooled(services, store)):
                listen(Notice(sentence))

    return hear


def _unpooled(services: RunServices, store: RunStore) -> Iterator[str]:
    labels = services.judge.labels()
    known = {(qid, doc_id): grade for qid in services.queries for doc_id, grade in labels.get(qid, {}).items()}
    if not known:
        return
    total = len(known)
    for record in read_records(store.path("merge"), MergeRecord):
        known.pop((record.qid, record.doc_id), None)
    if known:
        relevant = sum(grade >= RELEVANT for grade in known.values())
        yield (
            f"{total - len(known):,} of {plural(total, 'labelled passage')} are in the pools; {len(known):,} fell "
            f"outside, {relevant:,} of them with grade {RELEVANT} or more (remedy: raise the retrievers' k or "
            "merge.depth)"
        )


AnyConfig = LoadedConfig | RunConfig | Mapping[str, object] | Path | str


PART_NAME = 60  # characters of query ids in the name of a run directory; longer names are hashed
RANK_COST_NOTE = "more queries would distinguish systems better for the same money; --set rank=null disables ranking"


@dataclass(frozen=True)
class RunForecast:
    """Forecast of a run.

    Attributes:
        plan: by stage, the reasons why it would run; empty if it would not.
        estimates: estimated calls and cost, by stage and model.
    """

    plan: dict[str, tuple[Reason, ...]]
    estimates: tuple[CostEstimate, ...]

    @property
    def running(self) -> tuple[CostEstimate, ...]:
        """Estimates of the stages that would run."""
        return tuple(line for line in self.estimates if self.plan.get(line.stage))

    @property
    def usd(self) -> float | None:
        """Maximum cost of the stages that would run, in USD, without corrections; None if a price is unknown."""
        return total(line.usd for line in self.running)

    @property
    def usd_expected(self) -> float | None:
        """Expected cost in USD (see `raggs.app.forecast`); None if a price is unknown."""
        return total(line.expected_usd for line in self.running)

    @property
    def usd_at_most(self) -> float | None:
        """Cost in USD if every answer is corrected `llm.max_repairs` times; None if a price is unknown."""
        return total(line.usd_at_most for line in self.running)

    @property
    def advice(self) -> Iterator[str]:
        """Sentences on cached answers, on cascades, and on a ranking that costs more than the grades."""
        from raggs.app.forecast import sent_for_advice  # imported lazily: most runs have no forecast

        rank, judge = (total(line.usd for line in self.running if line.stage == stage) for stage in ("rank", "judge"))
        if rank and judge and rank > judge:
            yield f"ranking costs more than grading: {RANK_COST_NOTE}"
        yield from sent_for_advice(self.running)
        yield from dict.fromkeys(line.anew for line in self.running if line.anew and line.calls)
        if any(line.cached for line in self.running):
            yield "cached: answers that are already paid for and cost nothing"

    @property
    def exact(self) -> bool:
        """Whether all paid calls are counted exactly; False if some counts are upper bounds or estimates."""
        return all(line.exact or line.usd == 0 for line in self.running)


def run_folder(config: RunConfig, run_id: str | None = None) -> Path:
    """Return the run directory of a configuration.

    Raises:
        UsageError: `run_id` is not a valid folder name.
    """
    if run_id is not None and not re.fullmatch(RUN_NAME, run_id):
        raise UsageError(f"{run_id!r} is not a run name", remedy="use letters, digits, dots, dashes and underscores")
    return config.workspace / (run_id or config.name)


def name_of_part(config: RunConfig) -> str | None:
    """Return the name of the run directory if only some queries are run, else None.

    The golden set of all queries does not change when only some of them are run.
    """
    if not config.query_ids:
        return None
    ids = sorted(set(config.query_ids))
    readable = "-".join(re.sub(r"[^\w.-]+", "_", qid) for qid in ids)
    return f"{config.name}.{readable if len(readable) <= PART_NAME else hash_value(ids)[:12]}"


def stages_of(config: RunConfig) -> Pipeline:
    """Return the stages of a configuration's run: all, or without ranking if `rank` is null."""
    return GOLDEN.of({name: None for name in GOLDEN.order if name not in config.stage_configs()})


@contextmanager
def open_runner(
    config: LoadedConfig | RunConfig,
    *,
    run_id: str | None = None,
    folder: Path | None = None,
    lineage: Lineage | None = None,
    listen: Listener = ignore_event,
) -> Iterator[Runner]:
    """Yield a runner for a configuration; its services are closed at the end of the block.

    Args:
        folder: run directory, if it is not the configuration's own.
        lineage: lineage of the run, if `raggs update` makes it.

    Raises:
        ConfigError: the configuration holds a secret.
        PrerequisiteError: a key would be sent to a new server (see `raggs.app.addresses`), or the default embedder is
            not the one of the run.
    """
    settings = config.run if isinstance(config, LoadedConfig) else config
    permit(settings, ())
    stored = settings.model_dump(mode="json")
    refuse_stored(stored)
    services, execution = RunServices(settings, listen), make_execution(settings)
    store = RunStore(folder or run_folder(settings, run_id), durable=lambda: bool(services.models()))
    keep_default_embedder(settings, store)
    runner = Runner(
        store=store,
        pipeline=stages_of(settings),
        name=run_id or settings.name,
        config=stored,
        config_file=_config_file(config, store),
        configs=settings.stage_configs(),
        services=services,
        execution=execution,
        estimate=lambda: _estimates(services, runner.standing, looks=False) if services.models() else (),
        outlook=lambda: _estimates(services, runner.standing, looks=True),
        ceilings=_ceilings,
        closing=lambda manifest: _with_human_agreement(_with_counts(manifest, store), store, settings),
        lineage=lineage,
        listen=telling_unpooled(telling_embedder(listen, settings, "embed"), services, store),
    )
    try:
        yield runner
    finally:
        execution.close()
        services.close()


def _config_file(config: LoadedConfig | RunConfig, store: RunStore) -> str | None:
    if not isinstance(config, LoadedConfig) or config.path == IN_MEMORY:
        return None
    return config_place(config.path, store.folder)


def _estimates(services: RunServices, standing: RunState, *, looks: bool) -> tuple[CostEstimate, ...]:
    from raggs.app.forecast import estimate  # imported lazily: only for runs that call a paid model

    return tuple(estimate(services, standing, looks=looks))


def _ceilings(store: RunStore) -> Mapping[str, tuple[RetrieverCeiling, ...]]:
    from raggs.golden.ceilings import ceilings_of  # imported lazily: only for runs that grade

    return ceilings_of(store)


def _with_human_agreement(manifest: RunManifest, store: RunStore, config: RunConfig) -> RunManifest:
    if config.judge.gate.kappa is None and not _told_of_people(manifest):
        return manifest
    from raggs.app.judge_check import held_against_people  # imported lazily: few runs have a gate

    return held_against_people(manifest, store, config)


def _with_counts(manifest: RunManifest, store: RunStore) -> RunManifest:
    """Return the manifest with the counts of its version; unchanged for a first version, and before it is finished."""
    lineage = manifest.lineage
    if lineage is None or any(name not in manifest.stages for name in GOLDEN.of(manifest.config).order):
        return manifest
    orders = store.read("rank.journal", JournalRecord) if "rank" in manifest.stages else iter(())
    counts = count_version(store.read("judge", JudgeRecord), orders)
    return manifest.model_copy(update={"lineage": lineage.model_copy(update={"counts": counts})})


def _told_of_people(manifest: RunManifest) -> bool:
    lock = manifest.stages.get("judge")
    return lock is not None and isinstance(lock.health, JudgeHealth) and lock.health.people is not None


def forecast(runner: Runner, selection: Selection) -> RunForecast:
    """Return what a run would do and cost. No model is called, and only caches are written.

    Raises:
        RaggsError: the inputs cannot be read.
    """
    plan = runner.plan(selection)
    return RunForecast(plan, runner.outlook() if any(plan.values()) else ())


def run(
    config: AnyConfig,
    *,
    corpus: object = None,
    queries: object = None,
    start: str | None = None,
    stop: str | None = None,
    only: str | None = None,
    force: bool = False,
    discard_edits: bool = False,
    run_id: str | None = None,
    listen: Listener = ignore_event,
    approve: Approve = approve_nothing,
) -> RunResult:
    """Run a configuration; stages whose inputs have not changed are skipped. Works in notebooks.

    Args:
        config: a loaded configuration, a mapping with the keys of the YAML file, or the path of the file.
        corpus, queries: passages and queries to use instead of those of the configuration: mappings of ids to texts,
            rows or tables. If their content changes, the stages run again (see `raggs.app.run_inputs`).
        start, stop, only: first stage, last stage, or the only stage to run ("embed" … "rank") [default: all stages].
        force: run the selected stages even if nothing changed.
        discard_edits: replace artifacts that were edited by hand.
        run_id: name of the run directory.
        listen: receives every event (see `raggs.runs.events`).
        approve: decides whether a key may be sent to a new address (see `raggs.app.addresses`).

    Raises:
        RaggsError: see `raggs.base.errors`; finished and paid results are kept.
    """
    if in_loop():
        named = {"start": start, "stop": stop, "only": only, "run_id": run_id}
        return run_in_thread(
            lambda hear: run(
                config,
                corpus=corpus,
                queries=queries,
                force=force,
                discard_edits=discard_edits,
                listen=hear,
                approve=approve,
                **named,
            ),
            listen,
        )
    ready = _resolve_config(config, corpus, queries)
    settings = ready.run if isinstance(ready, LoadedConfig) else ready
    selection = select(stages_of(settings), start, stop, only, force, discard_edits)
    permit(settings, selection.stages, approve)
    with open_runner(ready, run_id=run_id, listen=listen) as runner:
        return RunResult.of(run_within_budget(runner, selection))


def _resolve_config(config: AnyConfig, corpus: object, queries: object) -> LoadedConfig | RunConfig:
    if corpus is not None or queries is not None:
        from raggs.app.run_inputs import configured  # imported lazily: most runs read files

        return configured(config, corpus, queries)
    return config if isinstance(config, LoadedConfig | RunConfig) else load_config(config)
