"""Update a golden set for changed documents and queries: plan, then run a new version in a new run directory.

`planned` compares the corpus and the queries of a configuration with a run. It writes the labels and orders that can be
carried over into the directory of the new version. If the stages before the judge cost nothing, it runs them. Then it
forecasts the remaining work. `Update.run` runs the remaining stages. The judge grades only passages without a carried
label, and the rank stage starts from the carried orders.

The comparison is computed again for each invocation. If its inputs have not changed, a stopped update continues where
it stopped, and its results have the same bytes as without the interruption.

The verdicts that may flip are estimated from the intervals of the differences between the parent's retrievers. If a
share f of the labels changes, a share f of the variance of the differences is assumed to be drawn again. The standard
deviation of the change of the mean difference is then sqrt(2 f) times the standard error of the mean.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from os.path import relpath
from pathlib import Path
from tempfile import TemporaryDirectory

from raggs.app.addresses import permit
from raggs.app.run import RunForecast, forecast, open_runner, run_folder, stages_of
from raggs.app.services import RunServices
from raggs.base.artifacts import CarryReason, JudgeRecord, MergeRecord
from raggs.base.cache import Cache
from raggs.base.errors import DataError, UsageError
from raggs.base.files import make_folder, relative_to_cwd
from raggs.base.hashing import canonical_json
from raggs.base.text import plural
from raggs.config.load import LoadedConfig
from raggs.config.models import RunConfig
from raggs.evaluation.diff_results import ScoreColumn, compare_pairs
from raggs.evaluation.study import ScoringSettings, study_systems
from raggs.golden.aligning import QueryWords
from raggs.golden.carrying import CarriedOver, human_judges
from raggs.golden.changes import (
    PassageMatches,
    QueryMatches,
    dependent_queries,
    match_passages,
    match_queries,
    queries_of_run,
)
from raggs.golden.lineage_audit import chain_findings
from raggs.golden.runs import check_golden
from raggs.golden.sources import open_golden, open_systems
from raggs.metrics.names import at_cutoffs
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.judges import reviews_beside
from raggs.parts.judges.human import HumanConfig
from raggs.parts.reviews import Key, ReviewStore, fold_reviews
from raggs.runs.events import Listener, ignore_event
from raggs.runs.manifests.lineage import LABELS_FILE, MAX_GENERATIONS, ORDERS_FILE, VERSION_DIGITS, Lineage
from raggs.runs.manifests.open_run import ArtifactByQuery, OpenedRun, open_run
from raggs.runs.manifests.reasons import FailuresLeft
from raggs.runs.manifests.store import RunStore
from raggs.runs.partial import run_within_budget
from raggs.runs.plan import Selection, select
from raggs.runs.runner import PipelineResult, Runner
from raggs.stages.judge import STAGE as JUDGE
from raggs.stats.comparison import MARGIN, Comparison, Verdict

MEASURE, CUTOFF = "ndcg", 10  # measure of the verdicts that may flip
CONFIDENCE = 0.95
MAX_SHOWN_IDS = 3
BEFORE_JUDGE = "merge"  # the stage that makes the pools


@dataclass(frozen=True)
class VerdictRisk:
    """A verdict on two retrievers of the parent that may flip.

    Attributes:
        first, second: names of the systems.
        verdict: verdict on the first compared with the second, by the parent's labels.
        difference: mean difference.
        low, high: confidence interval of the difference.
        shift: largest plausible change of the difference by the update, at the confidence of the interval.
    """

    first: str
    second: str
    verdict: Verdict
    difference: float
    low: float
    high: float
    shift: float


@dataclass(frozen=True)
class PoolPlan:
    """Carried and missing labels in the new pools, without near-duplicates.

    Attributes:
        carried: number of passages with a carried label, by reason.
        judging: number of passages without one.
        touched: share of changed labels, by id of each query that has any. Passages to judge and lost labels of the
            parent count as changed, relative to the new pool and the lost labels together.
        total: number of queries with a pool.
    """

    carried: Mapping[CarryReason, int]
    judging: int
    touched: Mapping[str, float]
    total: int

    def changed(self, queries: QueryMatches) -> dict[str, float]:
        """Return the share of labels that change, by query id of the parent; 1 for queries that are gone.

        Queries that only the new version has are listed under their own id.
        """
        return {
            **{queries.earlier.get(qid, qid): share for qid, share in self.touched.items()},
            **dict.fromkeys(queries.gone, 1.0),
        }


@dataclass(frozen=True)
class UpdatePlan:
    """Plan of an update.

    Attributes:
        parent, folder: run directories of the parent and of the new version.
        lineage: lineage of the new version, without counts.
        queries, passages: comparison with the parent.
        labels: number of labels of the parent, without near-duplicates.
        pools: carried and missing labels in the new pools; None if the pools are unknown, for example because
            retrieval costs money.
        forecast: calls and cost of the remaining work.
        risks: verdicts that may flip; None if the parent has fewer than two systems or the pools are unknown.
        verdicts: number of verdicts on the parent's systems; 0 if `risks` is None.
        notes: sentences about what is unknown or unusual.
    """

    parent: Path
    folder: Path
    lineage: Lineage
    queries: QueryMatches
    passages: PassageMatches
    labels: int
    pools: PoolPlan | None
    forecast: RunForecast
    risks: tuple[VerdictRisk, ...] | None
    verdicts: int
    notes: tuple[str, ...]


@dataclass
class Update:
    """A planned update, ready to run."""

    plan: UpdatePlan
    runner: Runner
    selection: Selection

    def run(self) -> PipelineResult:
        """Run the stages of the new version that are not finished.

        Raises:
            RaggsError: as `raggs.app.run.run`; finished and paid results are kept.
        """
        return run_within_budget(self.runner, self.selection)


@contextmanager
def planned(
    parent: Path,
    config: LoadedConfig,
    *,
    run_id: str | None = None,
    dry_run: bool = False,
    listen: Listener = ignore_event,
) -> Iterator[Update]:
    """Compare a configuration with a run, and yield the plan and the runner of a new version.

    Args:
        parent: run directory of the version to update.
        config: configuration with the new corpus and queries.
        run_id: name of the new version's run directory [default: the parent's name with the next number].
        dry_run: whether to leave run directories unchanged and to write only caches.

    Raises:
        NotFoundError: the parent does not exist, or does not store its queries.
        DataError: the parent cannot be updated (see `open_parent`), or a text changed during the comparison.
        UsageError: the directory of the new version contains another run, or a finished version with other inputs.
    """
    before = open_parent(parent)
    folder = run_folder(config.run, run_id or next_name(before))
    _check_target(before, folder)
    with ExitStack() as stack:
        real = RunStore(folder).exists or not dry_run
        if not real:
            make_folder(config.run.workspace)
            holder = stack.enter_context(TemporaryDirectory(prefix=".update-", dir=config.run.workspace))
        place = folder if real else Path(holder)
        aside = place
        if dry_run and real:  # a dry run leaves the files of a started update as they are
            aside = Path(stack.enter_context(TemporaryDirectory(prefix=".update-", dir=config.run.workspace)))
        make_folder(aside)
        found = _compare(before, config.run, folder, aside, listen)
        changed = replace(config, run=carrying(config.run, aside))
        opened = open_runner(changed, run_id=folder.name, folder=place, lineage=found.lineage, listen=listen)
        runner = stack.enter_context(opened)
        selection = select(stages_of(changed.run))
        _keep_finished(runner, selection, folder)
        if found.free and not (dry_run and real):
            runner.run(select(stages_of(changed.run), stop=BEFORE_JUDGE))
        yield Update(_plan(found, changed.run, runner, selection), runner, selection)


def open_parent(folder: Path) -> OpenedRun:
    """Open a run that can be updated.

    Raises:
        NotFoundError: there is no such run.
        DataError: the run is unfinished or not a golden set, its lineage is invalid, or it has too many ancestors.
    """
    run = open_run(folder)
    check_golden(run)
    if missing := [name for name in run.pipeline.order if name not in run.manifest.stages]:
        told = f"is not finished: stage {missing[0]} has no result"
        raise DataError(told, where=folder, remedy=f"finish it first: {run.command}")
    for finding in chain_findings(run):
        raise DataError(finding.message, where=folder, remedy="restore the run directories, or start with raggs run")
    if run.manifest.lineage is not None and run.manifest.lineage.number > MAX_GENERATIONS:
        raise DataError(f"has {MAX_GENERATIONS:,} earlier versions", where=folder, remedy="start with raggs run")
    return run


def next_name(parent: OpenedRun) -> str:
    """Return the name of the next version's run directory: the parent's name with the next number."""
    lineage, name = parent.manifest.lineage, parent.folder.resolve().name
    number = 1 if lineage is None else lineage.number
    stem = name.removesuffix(f".{number}") if lineage is not None else name
    return f"{stem}.{number + 1}"


def carrying(config: RunConfig, folder: Path) -> RunConfig:
    """Return a configuration that uses the carried labels and orders in a run directory."""
    judge = config.judge.model_copy(update={"carry": folder / LABELS_FILE})
    rank = config.rank and config.rank.model_copy(update={"carry": folder / ORDERS_FILE})
    return config.model_copy(update={"judge": judge, "rank": rank})


# --- comparison ---


@dataclass(frozen=True)
class _Comparison:
    """A configuration compared with the parent.

    Attributes:
        parent, folder: the parent, and the run directory of the new version.
        queries, passages: parts of the parent that the new version contains.
        lineage: lineage of the new version.
        free: whether the stages before the judge cost nothing.
        notes: sentences about what is unknown or unusual.
    """

    parent: OpenedRun
    folder: Path
    queries: QueryMatches
    passages: PassageMatches
    lineage: Lineage
    free: bool
    notes: tuple[str, ...]


def _check_target(parent: OpenedRun, folder: Path) -> None:
    """Check that the run directory of the new version is free, or contains this update.

    Raises:
        UsageError: it contains another run.
    """
    remedy = "pass another --run-id NAME"
    if folder.resolve() == parent.folder.resolve():
        raise UsageError("a new version needs another run directory than its parent", where=folder, remedy=remedy)
    store = RunStore(folder)
    if not store.exists:
        return
    lineage = store.manifest().lineage
    if lineage is None or lineage.parent != parent.manifest.version:
        made = "another run" if lineage is None else f"an update of version {lineage.origin} of {lineage.name}"
        raise UsageError(f"already contains {made}", where=folder, remedy=remedy)


def _keep_finished(runner: Runner, selection: Selection, folder: Path) -> None:
    """Check that a finished version is not replaced.

    Raises:
        UsageError: the version is finished, and a stage would run again.
    """
    store = runner.store
    locks = store.manifest().stages if store.exists else {}
    if any(name not in locks for name in runner.pipeline.order):
        return
    reasons = [each for found in runner.plan(selection).values() for each in found]
    if changed := [each for each in reasons if not isinstance(each, FailuresLeft)]:
        remedy = f"update this version: raggs update {relative_to_cwd(folder)}, or pass another --run-id NAME"
        raise UsageError(
            f"is a finished version, and its inputs changed since: {changed[0]}", where=folder, remedy=remedy
        )


def _compare(parent: OpenedRun, config: RunConfig, folder: Path, aside: Path, listen: Listener) -> _Comparison:
    """Compare a configuration with the parent, and write the carried labels and orders into the folder `aside`."""
    permit(config, ())
    with ExitStack() as stack:
        services = RunServices(config, listen)
        stack.callback(services.close)
        store, now = services.corpus.store, services.queries
        earlier = {query.qid: query for query in queries_of_run(parent)}
        old = _old_corpus(parent)
        if old is not None:
            stack.callback(old.close)
        queries = match_queries(earlier.values(), now)
        passages = match_passages(parent, old, store, QueryWords(earlier))
        humans = human_judges(config.judge.judge)
        reviewed = set[Key]().union(*(_reviewed(each, config) for each in humans))
        origin = parent.manifest.version[:VERSION_DIGITS]
        carried = CarriedOver(parent, origin, queries, passages, now, store, config.rank, bool(humans), reviewed)
        labels, orders = carried.write(aside)
        pooled = (record.passage for record in parent.typed("merge", MergeRecord))
        dependent = dependent_queries(now.values(), pooled if old is None else old, store, whole=old is not None)
        notes = tuple(_notes(parent, services, passages, known=old is not None))
        free = not services.models(("embed", "retrieve"))
    before = parent.manifest.lineage
    lineage = Lineage(
        name=parent.manifest.name,
        folder=relpath(parent.folder.resolve(), folder.resolve()),
        parent=parent.manifest.version,
        ancestors=() if before is None else (before.parent, *before.ancestors)[:MAX_GENERATIONS],
        corpus=passages.corpus,
        pooled=passages.counts,
        queries=queries.counts,
        reused_ids=len(passages.reused),
        dependent=dependent,
        answerers=tuple({each.key: each.answerer for each in parent.manifest.answerers}.values()),
        labels=labels,
        orders=orders,
    )
    return _Comparison(parent, folder, queries, passages, lineage, free, notes)


def _old_corpus(parent: OpenedRun) -> PassageStore | None:
    """Return the parent's corpus, if the cache of its workspace still has it."""
    merged = parent.manifest.stages["merge"].components.get("corpus")
    return PassageStore.find(Cache.of(parent.folder.parent).at("corpora"), merged)


def _reviewed(judge: HumanConfig, config: RunConfig) -> set[Key]:
    """Return the digests of query and passage of all human labels that a judge reads."""
    found = fold_reviews(ReviewStore(judge.reviews or reviews_beside(config.workspace)).read())
    return {*found.grades, *found.settling}


def _notes(parent: OpenedRun, services: RunServices, passages: PassageMatches, *, known: bool) -> Iterator[str]:
    """Yield sentences about what is unknown or unusual."""
    if not known:
        yield (
            "the earlier corpus is not in the cache: passages that were never pooled may be new or old, so only pooled "
            "passages are compared"
        )
    if passages.reused:
        shown = ", ".join(passages.reused[:MAX_SHOWN_IDS]) + (", …" if len(passages.reused) > MAX_SHOWN_IDS else "")
        yield (
            f"{plural(len(passages.reused), 'id')} with unrelated new texts ({shown}): their labels are not carried "
            "over; give new passages new ids"
        )
    judge, made = services.judge.name, parent.manifest.stages["judge"]
    if made.judge != judge:
        yield f"the carried labels are from another judge ({made.judge}) than the new ones ({judge})"
    elif made.components.get("judge") != json.loads(canonical_json(services.causes("judge", "grade"))):
        yield f"the settings, prompt or model of the judge {judge} changed since the carried labels were made"


# --- plan ---


def _plan(found: _Comparison, config: RunConfig, runner: Runner, selection: Selection) -> UpdatePlan:
    expected = forecast(runner, selection)
    locks = runner.store.manifest().stages if runner.store.exists else {}
    pools = _pools(found, config, runner) if BEFORE_JUDGE in locks else None
    labels = sum(
        each.duplicate_of is None and each.grade is not None for each in found.parent.typed("judge", JudgeRecord)
    )
    risks, verdicts = (None, 0) if pools is None else verdict_risks(found.parent, pools.changed(found.queries))
    return UpdatePlan(
        parent=found.parent.folder,
        folder=found.folder,
        lineage=found.lineage,
        queries=found.queries,
        passages=found.passages,
        labels=labels,
        pools=pools,
        forecast=expected,
        risks=risks,
        verdicts=verdicts,
        notes=found.notes,
    )


def _pools(found: _Comparison, config: RunConfig, runner: Runner) -> PoolPlan:
    labels, asked = JUDGE.labels(config.judge), runner.services.queries
    earlier = ArtifactByQuery(found.parent, "judge")
    carried: Counter[CarryReason] = Counter()
    judging, touched, total = 0, dict[str, float](), 0
    for qid, group in groupby(runner.store.read("merge", MergeRecord), key=lambda record: record.qid):
        pool = [record for record in group if record.duplicate_of is None]
        kept = labels(asked[qid], pool)
        carried.update(label.carried.how for label in kept.values() if label.carried is not None)
        judging, total = judging + len(pool) - len(kept), total + 1
        before = earlier.of(found.queries.earlier.get(qid, ""), JudgeRecord)
        held = {doc_id for label in kept.values() if label.carried for doc_id in label.carried.doc_ids}
        lost = sum(each.duplicate_of is None and each.grade is not None and each.doc_id not in held for each in before)
        if changed := lost + len(pool) - len(kept):
            touched[qid] = changed / (lost + len(pool))
    return PoolPlan(dict(sorted(carried.items())), judging, touched, total)


def verdict_risks(parent: OpenedRun, changed: Mapping[str, float]) -> tuple[tuple[VerdictRisk, ...] | None, int]:
    """Return the verdicts on a run's retrievers that may flip, and the number of all verdicts.

    If the run has fewer than two systems, return None and 0.

    Args:
        parent: the run.
        changed: share of labels that change, by query id.
    """
    systems = list(open_systems([str(parent.folder)]))
    if len(systems) < 2:
        return None, 0
    measures = at_cutoffs(MEASURE, [CUTOFF])
    study = study_systems(
        open_golden(parent.folder).judgments(), systems, ScoringSettings(measures=measures, confidence=CONFIDENCE)
    )
    name, qids = measures[0].name, study.judgments.qrels.qids
    values = {system: each.column(name) for system, each in study.values.items()}
    pairs = compare_pairs(ScoreColumn(qids, values, higher=True), confidence=CONFIDENCE, seed=1)
    share = sum(changed.get(qid, 0.0) for qid in qids) / max(1, len(qids))
    found = [_risk(pair, each, share) for pair, each in pairs.items()]
    return tuple(each for each in found if each is not None), len(found)


def _risk(pair: tuple[str, str], found: Comparison, share: float) -> VerdictRisk | None:
    """Return the risk that a verdict flips if a share of the labels changes; None if it is negligible."""
    low, high = found.difference.low, found.difference.high
    shift = math.sqrt(2 * share) * (high - low) / 2
    flips = {
        "better": low - shift <= 0,
        "worse": high + shift >= 0,
        "equivalent": low - shift < -MARGIN or high + shift > MARGIN,
    }
    if math.isnan(shift) or not shift or not flips.get(found.verdict, low + shift > 0 or high - shift < 0):
        return None
    return VerdictRisk(*pair, found.verdict, found.difference.mean, low, high, shift)
