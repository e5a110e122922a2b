"""Comparison of judges on a labelled collection: sample, grades, second samples, orders, and their cost.

All judges grade the same pairs of a query and a passage, a sample that is stratified by label. Only the pairs that a
judge's calibration was fitted on are omitted for this judge. The sample depends on the labels, the available texts, its
size and the seed, but not on the judges. Some queries are graded a second time, for test-retest
agreement. For some queries, a small list of passages is ordered in two presentation orders, for position bias.

Paid answers are cached in the output folder. To continue an interrupted comparison, run the same command again. A dry
run makes the same calls to models that only count them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from pydantic import Field, model_validator

from raggs.app.addresses import Approve, approve_nothing, permit_parts
from raggs.app.chunks import CAP, open_questions
from raggs.app.leaderboard import (
    LEADERBOARD,
    BenchOrder,
    BenchSample,
    JudgeBenchCost,
    JudgeBenchEntry,
    Leaderboard,
    check_same_judge,
    check_same_sample,
    keep_other_sample,
    kept_name,
    make_leaderboard,
    merge_entries,
    read_leaderboard,
)
from raggs.app.leaderboard_layout import write_leaderboard
from raggs.base import __version__
from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord, MergeRecord, Passage, Query
from raggs.base.errors import ConfigError, DataError, UsageError
from raggs.base.hashing import hash_value
from raggs.base.settings import PromptName, Settings
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.base.text import plural
from raggs.base.types import BuildProgress, leaves
from raggs.chunking.models import parse_spec, spec_name
from raggs.config.load import load_settings
from raggs.diagnosis.judge.measuring import QueryPool, RepeatPlan, one_prompt
from raggs.golden.base import GoldenSet
from raggs.golden.sources import open_golden
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.llm.client import MeteredLLM
from raggs.llm.ledger import lines_in
from raggs.llm.prices import require_keys
from raggs.llm.rehearsal import DryRunLLM
from raggs.metrics.columns import GradeScale
from raggs.parts.judges import REGISTRY, Judge
from raggs.parts.judges.litellm import read_calibration_file
from raggs.parts.workspace import Workspace, judge_prompts
from raggs.prompts import load_prompt
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.runs.forecast import lines_of
from raggs.runs.manifests.models import CostEstimate
from raggs.runs.manifests.store import RunStore
from raggs.stages.judge import STAGE, JudgeConfig
from raggs.stages.ordered import run_ordered
from raggs.stages.rank_config import RankConfig
from raggs.stats.correction import draw, sampling_numbers
from raggs.sweeps.world import corpus_of

LEDGER = "bench.ledger.jsonl"
QUERIES = "queries.jsonl"  # next to the labels
ORDERED_PASSAGES = 5  # maximum number of passages per order
FEWEST_ORDERED = 3  # queries with fewer passages are not ordered
PRESENTATIONS = 2  # presentation orders per query


# --- request --------------------------------------------------------------------------------------------------


class BenchJudgeConfig(JudgeConfig):
    """One judge to compare: the settings of the section `judge` of a run, and a name."""

    name: str = Field("", description="name in the leaderboard; empty: type and model of the judge")
    order_prompt: PromptName = Field(
        RankConfig().prompt, description="prompt for ordering passages: name of a prompt or path of a Markdown file"
    )

    @model_validator(mode="before")
    @classmethod
    def _judge_alone(cls, values: object) -> object:
        """Return the values with the settings of the judge in `judge`, if they are not there yet."""
        return {"judge": values} if isinstance(values, Mapping) and "judge" not in values else values

    @property
    def shown(self) -> str:
        """Name in the leaderboard."""
        return self.name or spec_name(self.judge)

    @property
    def repeats(self) -> bool:
        """Whether the judge grades every passage more than once."""
        return self.samples > 1 and self.samples_if_below is None

    @property
    def twice(self) -> BenchJudgeConfig:
        """The same settings with two grades for every passage."""
        return self.model_copy(update={"samples": 2, "samples_if_below": None})


class JudgesConfig(Settings):
    """Content of the file given by --config: the judges to compare, and the settings of model calls."""

    judges: tuple[BenchJudgeConfig, ...] = Field(min_length=1, description="the judges to compare")
    llm: LLMSettings = LLMSettings()


@dataclass(frozen=True)
class JudgeBenchRequest:
    """Comparison of judges as requested.

    Attributes:
        labels: run directory, folder in the BEIR layout, or file of labels.
        judges: judges in the syntax of the command line, e.g. ``litellm:openai/gpt-5-mini``.
        config: file with a list of judges (see `JudgesConfig`).
        corpus, queries: files of the passages and of the queries; None: those next to the labels.
        scale: lowest and highest label; None: derived from the labels.
        mapping: grade (1 to 5) of each label; None: the scale is stretched to 1 to 5.
        columns: names of columns in a table of labels.
        pairs: number of labelled pairs to grade.
        repeats: minimum number of pairs that are graded twice, if the sample has as many. All pairs of a query are
            graded twice, or none. For judges with `samples` above 1 and no `samples_if_below`, the first two samples of
            each pair are compared instead.
        orders: maximum number of queries whose passages are ordered, in two presentation orders each.
        seed: random seed of the sample. The bootstrap has a fixed seed, so that merged leaderboards agree.
        max_usd: budget in USD for all comparisons written to one folder.
        add: leaderboard files whose entries are added.
        allow_mixed: whether to continue if a provider answers with another snapshot of a model than before.
    """

    labels: Path
    judges: Sequence[str] = ()
    config: Path | None = None
    corpus: Path | None = None
    queries: Path | None = None
    scale: tuple[int, int] | None = None
    mapping: Mapping[int, int] | None = None
    columns: ColumnNames = field(default_factory=lambda: NO_COLUMNS)
    pairs: int = 400
    repeats: int = 100
    orders: int = 20
    seed: int = 1
    max_usd: float = CAP
    add: Sequence[Path] = field(default_factory=tuple)
    allow_mixed: bool = False

    @cached_property
    def configured(self) -> JudgesConfig | None:
        """Content of the configuration file; None without a file.

        Raises:
            NotFoundError, ConfigError: the file is missing or invalid.
        """
        return None if self.config is None else load_settings(JudgesConfig, self.config)[0]

    @cached_property
    def specs(self) -> Mapping[str, BenchJudgeConfig]:
        """Settings of the judges by name.

        Raises:
            UsageError: a judge is unknown, two judges have the same name, or there is neither a judge nor a file to
                add.
            ConfigError: `mode` of a judge is "batch".
        """
        found: dict[str, BenchJudgeConfig] = {}
        typed = [
            (without_folders(text), BenchJudgeConfig(judge=parse_spec(text, REGISTRY, AdapterConfig)))
            for text in self.judges
        ]
        listed = [(each.shown, each) for each in (self.configured.judges if self.configured else ())]
        for name, spec in (*typed, *listed):
            if name in found:
                raise UsageError(f"two judges have the name {name!r}", remedy="give one of them another `name`")
            if spec.mode == "batch":
                raise ConfigError(f"{name}: judges are compared by direct calls", remedy="set mode: direct")
            found[name] = spec
        if not found and not self.add:
            raise UsageError("no judge to compare", remedy="name one: --judge litellm:openai/gpt-5-mini")
        return found

    @property
    def llm(self) -> LLMSettings:
        """Settings of model calls."""
        found = LLMSettings() if self.configured is None else self.configured.llm
        return found.mixing() if self.allow_mixed else found


def without_folders(text: str) -> str:
    """Return an argument for a judge without the folders of existing files, which would name this machine's paths."""
    parts = (part.rpartition("=") for part in text.split(":"))
    return ":".join(f"{key}{sign}{Path(value).name if Path(value).exists() else value}" for key, sign, value in parts)


# --- labelled collection --------------------------------------------------------------------------------------

Pair = tuple[str, str]  # query id, passage id


@dataclass(frozen=True)
class LabelledPairs:
    """Labelled pairs whose texts are known.

    Attributes:
        name: name of the collection.
        set_hash: hash of all its labels, as grades.
        grades: grade of each pair, sorted by pair.
        queries: queries by id.
        texts: returns passages by id.
        mapping: grade of each label that occurs.
        unused: number of labels without a grade, by reason.
        graders: number of labels by source, if known; empty for files without such data.
    """

    name: str
    set_hash: str
    grades: Mapping[Pair, int]
    queries: Mapping[str, Query]
    texts: Callable[[Iterable[str]], Mapping[str, Passage]]
    mapping: Mapping[int, int]
    unused: Mapping[str, int]
    graders: Mapping[str, int]


def read_labelled(request: JudgeBenchRequest, workspace: Workspace) -> LabelledPairs:
    """Return the labelled pairs of a collection.

    Raises:
        NotFoundError, DataError: a file is missing or invalid, a label has no grade, or no pair has both texts.
    """
    golden = open_golden(request.labels, request.columns)
    scale = None if request.scale is None else GradeScale.of(*request.scale)
    judged = golden.judgments(scale)
    qrels = judged.qrels
    labels = {
        (qrels.qids[query], qrels.docs.text(row)): grade
        for row, (query, grade) in enumerate(zip(qrels.query.tolist(), qrels.grade.tolist(), strict=True))
    }
    known = {pair: label for pair, label in labels.items() if label >= 0}
    mapping = _mapping(request, sorted(set(known.values())), qrels.scale)
    queries = _queries(request, golden)
    present, texts = _passages(request, golden, workspace, {doc for _, doc in known})
    with_query = {pair: label for pair, label in known.items() if pair[0] in queries}
    kept = {pair: mapping[label] for pair, label in sorted(with_query.items()) if pair[1] in present}
    unused = {
        "unjudged": len(labels) - len(known),
        "without the text of the query": len(known) - len(with_query),
        "without the text of the passage": len(with_query) - len(kept),
    }
    if not kept:
        told = ", ".join(f"{plural(count, 'label')} {why}" for why, count in unused.items() if count) or "no labels"
        remedy = "name the files: --queries queries.jsonl --corpus corpus.jsonl"
        raise DataError(
            f"no label has the texts of its query and its passage ({told})", where=request.labels, remedy=remedy
        )
    every = [[qid, doc_id, mapping[label]] for (qid, doc_id), label in sorted(known.items())]
    return LabelledPairs(
        name=golden.name,
        set_hash=hash_value(every),
        grades=kept,
        queries=queries,
        texts=texts,
        mapping=mapping,
        unused={why: count for why, count in unused.items() if count},
        graders=_graders(golden, judged.sources),
    )


def _graders(golden: GoldenSet, stated: Mapping[str, int]) -> Mapping[str, int]:
    """Return the number of labels by source: those that an export states, or else the judge of a run."""
    if stated or not RunStore(Path(golden.source)).exists:
        return stated
    found: dict[str, int] = {}
    for each in golden.by_query("grades"):
        for record in each.grades:
            if record.grade is not None:
                found[record.judge] = found.get(record.judge, 0) + 1
    return found


def _mapping(request: JudgeBenchRequest, labels: Sequence[int], scale: GradeScale) -> Mapping[int, int]:
    """Return the grade of each label that occurs.

    Raises:
        DataError: the given mapping lacks a label.
    """
    if request.mapping is not None:
        if missing := [label for label in labels if label not in request.mapping]:
            remedy = f"add it: --mapping {missing[0]}=GRADE"
            raise DataError(f"label {missing[0]} has no grade in --mapping", where=request.labels, remedy=remedy)
        return {label: request.mapping[label] for label in labels}
    low, high = scale.low, scale.high
    if request.scale is None and low == 0:
        high = max(1, *labels)  # the guessed scale 0 to 4 is wider than that of most collections
    return {label: stretched(label, low, high) for label in labels}


def stretched(label: int, low: int, high: int) -> int:
    """Return the grade of a label if the scale `low` to `high` is stretched to 1 to 5; halves are rounded down."""
    steps, wide = (MAX_GRADE - MIN_GRADE) * (label - low), high - low
    return MIN_GRADE + -(-(2 * steps - wide) // (2 * wide))


def _queries(request: JudgeBenchRequest, golden: GoldenSet) -> Mapping[str, Query]:
    if request.queries is not None:
        return {qid: query for qid, (_, query) in open_questions(request.queries).items()}
    found = {query.qid: query for query in golden.queries()}
    beside = request.labels.parent / QUERIES
    if not found and request.labels.is_file() and beside.is_file():
        return {qid: query for qid, (_, query) in open_questions(beside).items()}
    return found


def _passages(
    request: JudgeBenchRequest, golden: GoldenSet, workspace: Workspace, wanted: set[str]
) -> tuple[set[str], Callable[[Iterable[str]], Mapping[str, Passage]]]:
    """Return which of the wanted passages exist, and a function that returns passages by id.

    The passages are those of the set if it has texts, and those of the corpus otherwise.
    """
    if request.corpus is None:
        own = {each.doc_id: each for query in golden.by_query("pool") for each in query.pool if each.doc_id in wanted}
        spec = None if own else corpus_of(request.labels)
    else:
        own, spec = {}, _corpus_spec(request.corpus)
    if spec is None:
        return set(own), lambda names: {name: own[name] for name in names}
    passages = workspace.corpus(spec).passages(whole=False)
    return passages.known(wanted), lambda names: passages.get(sorted(set(names)))


def _corpus_spec(path: Path) -> AdapterConfig:
    from raggs.parts import corpora  # imported lazily: most collections have their corpus next to the labels

    return corpora.REGISTRY.load("jsonl").Config.model_validate({"type": "jsonl", "path": str(path)})


# --- sample ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BenchTasks:
    """The calls that are made to every judge.

    Attributes:
        sample: the sampled pairs with their grades.
        pools: sampled passages by query, as records of a pool.
        repeated: ids of the queries that are graded twice.
        lists: the passages to order, by query.
        plan: presentation orders of the lists.
        queries: all queries of the collection, by id.
    """

    sample: BenchSample
    pools: Mapping[str, tuple[MergeRecord, ...]]
    repeated: frozenset[str]
    lists: tuple[QueryPool, ...]
    plan: RepeatPlan
    queries: Mapping[str, Query]

    def without(self, pairs: Collection[Pair]) -> BenchTasks:
        """Return the tasks without the grades of some pairs."""
        left = {
            qid: tuple(record for record in records if (qid, record.doc_id) not in pairs)
            for qid, records in self.pools.items()
        }
        return replace(self, pools={qid: records for qid, records in left.items() if records})


def plan_tasks(request: JudgeBenchRequest, labelled: LabelledPairs) -> BenchTasks:
    """Draw the sample, the queries to repeat and the lists to order. Equal labels and requests give equal tasks."""
    pairs, grades = list(labelled.grades), np.array(list(labelled.grades.values()), dtype=np.int64)
    lot = sampling_numbers(request.seed, ("\x1f".join(pair) for pair in pairs))
    items = draw(grades, lot, request.pairs).items.tolist()
    drawn = sorted(pairs[item] for item in items)
    by_query: dict[str, list[str]] = {}
    for qid, doc_id in drawn:
        by_query.setdefault(qid, []).append(doc_id)
    repeated, count = set[str](), 0
    for qid in dict.fromkeys(pairs[item][0] for item in items):
        if count >= request.repeats:
            break
        repeated.add(qid)
        count += len(by_query[qid])
    lists = dict(_lists(request, labelled))
    passages = labelled.texts(
        [*(doc_id for _, doc_id in drawn), *(doc_id for docs in lists.values() for doc_id in docs)]
    )
    texts = [
        [labelled.queries[qid].text, passages[doc_id].content, labelled.grades[qid, doc_id]] for qid, doc_id in drawn
    ]
    sample = BenchSample(
        name=labelled.name,
        set_hash=labelled.set_hash,
        sample_hash=hash_value(texts),
        seed=request.seed,
        available=len(pairs),
        mapping={str(label): grade for label, grade in labelled.mapping.items()},
        unused=labelled.unused,
        graders=labelled.graders,
        labels=tuple((qid, doc_id, labelled.grades[qid, doc_id]) for qid, doc_id in drawn),
    )
    return BenchTasks(
        sample=sample,
        pools={qid: tuple(_records(qid, [passages[doc_id] for doc_id in docs])) for qid, docs in by_query.items()},
        repeated=frozenset(repeated),
        lists=tuple(
            QueryPool(labelled.queries[qid], tuple(passages[doc_id] for doc_id in docs)) for qid, docs in lists.items()
        ),
        plan=RepeatPlan(request.seed, PRESENTATIONS, 1, 0),
        queries=labelled.queries,
    )


def _records(qid: str, passages: Sequence[Passage]) -> Iterator[MergeRecord]:
    for rank, passage in enumerate(passages, start=1):
        yield MergeRecord(
            qid=qid,
            rank=rank,
            doc_id=passage.doc_id,
            score=0.0,
            sources={},
            title=passage.title,
            text=passage.text,
            span=passage.span,
            metadata=passage.metadata,
        )


def _lists(request: JudgeBenchRequest, labelled: LabelledPairs) -> Iterator[tuple[str, list[str]]]:
    """Yield up to five passage ids, drawn by grade, for each of up to `orders` randomly drawn queries."""
    by_query: dict[str, list[str]] = {}
    for qid, doc_id in labelled.grades:
        by_query.setdefault(qid, []).append(doc_id)
    fit = [
        qid
        for qid, docs in by_query.items()
        if len(docs) >= FEWEST_ORDERED and len({labelled.grades[qid, doc] for doc in docs}) > 1
    ]
    lot = sampling_numbers(request.seed, fit)
    for place in np.argsort(lot, kind="stable")[: request.orders].tolist():
        qid, docs = fit[place], by_query[fit[place]]
        numbers = sampling_numbers(request.seed, (f"{qid}\x1f{doc}" for doc in docs))
        grades = np.array([labelled.grades[qid, doc] for doc in docs], dtype=np.int64)
        yield qid, sorted(docs[item] for item in draw(grades, numbers, ORDERED_PASSAGES).items.tolist())


# --- grading --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradingServices:
    """The services that grading one pool needs."""

    queries: Mapping[str, Query]
    judge: Judge


def fitted_pairs(spec: BenchJudgeConfig) -> frozenset[Pair] | None:
    """Return the pairs that the judge's calibrations were fitted on; None if a calibration file does not name them.

    Raises:
        DataError: a calibration file is invalid.
    """
    named = leaves(spec.judge.model_dump(mode="json"))
    files = [value for place, value in named if place[-1:] == ("calibration",) and isinstance(value, str)]
    found = [read_calibration_file(Path(file)).fitted_on for file in files]
    return None if None in found else frozenset(pair for each in found for pair in each or ())


def _judge(workspace: Workspace, spec: BenchJudgeConfig, queries: Mapping[str, Query], llm: LLM | None = None) -> Judge:
    grade, order = judge_prompts(spec.prompt, spec.order_prompt)
    together = load_prompt(spec.group_prompt, "grades") if spec.group > 1 else None
    return workspace.judge(spec.judge, grade, order, llm, queries.values, together)


def _graded(
    workspace: Workspace, judge: Judge, spec: BenchJudgeConfig, tasks: BenchTasks, qids: Sequence[str], tell: Listener
) -> dict[Pair, JudgeRecord]:
    """Return the record of each sampled pair of the queries.

    Raises:
        BudgetError: the budget is used up; all paid answers are cached.
    """
    services, whole = GradingServices(tasks.queries, judge), spec.model_copy(update={"stop_after": None})

    async def grade(qid: str) -> list[JudgeRecord]:
        return await STAGE.pool(tasks.pools[qid], whole, services)

    found: dict[Pair, JudgeRecord] = {}
    size = lambda qid: len(tasks.pools[qid]) * spec.samples  # noqa: E731 - needs the tasks
    for done, records in enumerate(run_ordered(workspace, qids, grade, size=size), start=1):
        found.update({(record.qid, record.doc_id): record for record in records})
        tell(BuildProgress("queries graded", done, len(qids)))
    return found


def _entry(
    workspace: Workspace, name: str, spec: BenchJudgeConfig, tasks: BenchTasks, ledger: Path, listen: Listener
) -> JudgeBenchEntry:
    """Make all calls for one judge, and return its answers with their cost."""
    fit = fitted_pairs(spec)
    tasks = tasks.without(fit or frozenset())
    plain = _judge(workspace, spec, tasks.queries)
    settings = causes_of_judge(workspace, spec, plain)
    fingerprint = hash_value(settings)
    stage = f"{name} {fingerprint[:8]}"
    workspace.ledger.turn_to(ledger, stage)
    meter = MeteredLLM(workspace.llm)
    tell = partial(_tell_progress, listen, name)
    records = _graded(workspace, _judge(workspace, spec, tasks.queries, meter), spec, tasks, list(tasks.pools), tell)
    again = records if spec.repeats else _second_samples(workspace, plain, spec, tasks)
    orders = workspace.loop.run(one_prompt(plain, tasks.lists, tasks.plan))
    place = {(qid, doc_id): number for number, (qid, doc_id, _) in enumerate(tasks.sample.labels)}
    graded = [records.get(pair) for pair in place]
    asked = [record for record in graded if record is not None]
    given = sum(record.grade is not None for record in asked)
    shares = tuple(None if record is None else record.distribution for record in graded)
    took = meter.took
    return JudgeBenchEntry(
        judge=name,
        fingerprint=fingerprint,
        raggs=__version__,
        settings=settings,
        grades=tuple(None if record is None else record.grade for record in graded),
        distributions=shares if any(shares) else (),
        excluded=tuple(number for number, record in enumerate(graded) if record is None),
        unknown_fit=fit is None,
        failed=sum(record.failed for record in asked),
        abstained=sum(record.grade is None and not record.failed for record in asked),
        errors=tuple(dict.fromkeys(record.error for record in asked if record.error))[:3],
        repeats=tuple((place[pair], *record.grades[:2]) for pair, record in again.items() if len(record.grades) > 1),
        orders=tuple(BenchOrder(qid=row.qid, shown=row.shown, order=row.order) for row in orders),
        cost=JudgeBenchCost(
            usd_per_1000=1000 * took.usd / given if given else None,
            tokens_per_grade=took.tokens / given if given else None,
            calls=took.calls,
            **_latency(ledger, stage),
        ),
    )


def _tell_progress(listen: Listener, name: str, event: BuildProgress) -> None:
    listen(replace(event, what=f"{event.what} by {name}"))


def _second_samples(
    workspace: Workspace, judge: Judge, spec: BenchJudgeConfig, tasks: BenchTasks
) -> dict[Pair, JudgeRecord]:
    """Grade some queries again. The first sample is in the cache, so only the second one is paid for."""
    qids = [qid for qid in tasks.pools if qid in tasks.repeated]
    return _graded(workspace, judge, spec.twice, tasks, qids, ignore_event)


def causes_of_judge(workspace: Workspace, spec: BenchJudgeConfig, judge: Judge) -> dict[str, object]:
    """Return everything that can change the judge's answers. It contains no paths and no secrets."""
    llm = {"llm": workspace.settings.causes_for(judge.models)} if judge.models else {}
    grouped = {"grades": judge.causes("grades"), "group": spec.group} if spec.group > 1 else {}
    causes = {"grade": judge.causes("grade"), "order": judge.causes("order")}
    chosen = {} if spec.samples_if_below is None else {"samples_if_below": spec.samples_if_below}
    return {**causes, **grouped, "samples": spec.samples, **chosen, **llm}


def _latency(ledger: Path, stage: str) -> dict[str, float | None]:
    """Return median and 95th percentile of the latency of a judge's grading calls in the ledger, in seconds. They are
    None without calls.
    """
    found = [
        line.latency_s
        for line in lines_in(ledger)
        if line.stage == stage and line.outcome == "answered" and line.task != "order"
    ]
    if not found:
        return {"p50_s": None, "p95_s": None}
    low, high = np.quantile(found, [0.5, 0.95]).tolist()
    return {"p50_s": round(low, 4), "p95_s": round(high, 4)}


# --- use cases ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgeBenchResult:
    """The leaderboard and its files."""

    leaderboard: Leaderboard
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()


Files = list[tuple[Path, Sequence[JudgeBenchEntry]]]


@contextmanager
def _opened_bench(
    request: JudgeBenchRequest, out: Path, listen: Listener
) -> Iterator[tuple[Workspace, BenchTasks, list[JudgeBenchEntry], Files]]:
    """Yield the workspace, the tasks, the earlier entries of the folder, and the entries of added files.

    All input is checked first. Earlier entries of the judges that are graded now are omitted.
    """
    specs = request.specs
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file, not a folder", remedy="name another folder with --out")
    with Workspace(out, request.llm, BudgetSettings(max_usd=request.max_usd), hear=listen) as workspace:
        tasks = plan_tasks(request, read_labelled(request, workspace))
        earlier = earlier_entries(out, tasks.sample)
        added = [(file, _added_entries(file, tasks.sample)) for file in request.add]
        merge_entries(added)
        for name, spec in specs.items():
            judge = _judge(workspace, spec, tasks.queries)
            try:
                judge.check([tasks.queries[qid] for qid in tasks.pools])
                if not tasks.without(fitted_pairs(spec) or frozenset()).pools:
                    raise DataError("its calibration was fitted on all pairs of the sample, so no pair is left")
            except DataError as error:
                error.message = f"{name}: {error.message}"
                raise
            fingerprint = hash_value(causes_of_judge(workspace, spec, judge))
            for file, entries in added:
                for entry in (each for each in entries if each.judge == name):
                    check_same_judge(entry, file, fingerprint, "this comparison")
        yield workspace, tasks, [each for each in earlier if each.judge not in specs], added


def earlier_entries(out: Path, sample: BenchSample) -> Sequence[JudgeBenchEntry]:
    """Return the entries of the sample's earlier leaderboard in the output folder; none if there is none.

    Raises:
        DataError: a leaderboard is damaged.
    """
    files = [file for file in (out / LEADERBOARD, out / kept_name(sample)) if file.is_file()]
    found = [board.entries for board in map(read_leaderboard, files) if board.sample.same_as(sample)]
    return found[0] if found else ()


def _added_entries(file: Path, sample: BenchSample) -> Sequence[JudgeBenchEntry]:
    found = read_leaderboard(file)
    check_same_sample(found.sample, sample, file)
    return found.entries


def bench_judges(
    request: JudgeBenchRequest, out: Path, listen: Listener = ignore_event, approve: Approve = approve_nothing
) -> JudgeBenchResult:
    """Compare judges on a labelled collection, and write the leaderboard to `out`. This also works in notebooks.

    Args:
        request: the comparison.
        out: folder for the leaderboard, the ledger and the caches.
        listen: progress callback.
        approve: decides whether an API key may be sent to a new address (see `raggs.app.addresses`).

    Raises:
        RaggsError: the labels, a judge or an added leaderboard is invalid, a key is missing, a provider failed, or the
            budget is used up. All paid answers are cached.
    """
    if in_loop():
        return run_in_thread(lambda hear: bench_judges(request, out, hear, approve), listen)
    permit_parts(request.llm, [spec.judge for spec in request.specs.values()], approve)
    with _opened_bench(request, out, listen) as (workspace, tasks, earlier, added):
        if not workspace.has_answers:
            models = {m for spec in request.specs.values() for m in _judge(workspace, spec, tasks.queries).models}
            require_keys(sorted(models), workspace.settings)
        entries = [_entry(workspace, *each, tasks, out / LEDGER, listen) for each in request.specs.items()]
        found = make_leaderboard(tasks.sample, merge_entries([(out / LEADERBOARD, [*entries, *earlier]), *added]))
        if (kept := keep_other_sample(out, tasks.sample)) is not None:
            workspace.notify(f"the leaderboard of the earlier sample is kept as {kept}")
    return JudgeBenchResult(found, tuple(write_leaderboard(found, out)))


@dataclass(frozen=True)
class JudgeBenchForecast:
    """Forecast of a comparison: its work in sentences, and one estimate per judge, model and task."""

    what: tuple[str, ...]
    estimates: tuple[CostEstimate, ...]
    about: str = "upper bound: later calls depend on earlier answers"


def forecast_bench(request: JudgeBenchRequest, out: Path) -> JudgeBenchForecast:
    """Return the work and the expected cost of `bench_judges`. No model is called; only the corpus cache is written.

    Raises:
        RaggsError: see `bench_judges`; only errors that are known before any call.
    """
    if in_loop():
        return run_in_thread(lambda _: forecast_bench(request, out), ignore_event)
    with _opened_bench(request, out, ignore_event) as (workspace, tasks, *_), workspace.rehearsal() as llm:
        for name, spec in request.specs.items():
            llm.turn_to(name)
            _rehearse(workspace, name, spec, tasks, llm)
        sample = tasks.sample
        counted = sum(len(tasks.pools[qid]) for qid in tasks.repeated)
        what = (
            f"{plural(len(sample.labels), 'grade')} per judge, of {plural(len(tasks.pools), 'query')} "
            f"({sample.available:,} labelled pairs)",
            f"{plural(counted, 'pair')} graded twice; {plural(len(tasks.lists), 'list')} of passages ordered twice",
        )
        return JudgeBenchForecast(what, tuple(lines_of(llm)))


def _rehearse(workspace: Workspace, name: str, spec: BenchJudgeConfig, tasks: BenchTasks, llm: DryRunLLM) -> None:
    judge, tasks = _judge(workspace, spec, tasks.queries, llm), tasks.without(fitted_pairs(spec) or frozenset())
    qids = list(tasks.pools)
    if not judge.models:
        repeated = 0 if spec.repeats else sum(len(tasks.pools[qid]) for qid in tasks.repeated)
        calls = len(tasks.sample.labels) * spec.samples + repeated + len(tasks.lists) * PRESENTATIONS
        llm.count(f"{name} (local)", "grade", calls, exact=True, paid=False)
        return
    twice = spec if spec.repeats else spec.twice
    _graded(workspace, judge, spec, tasks, [qid for qid in qids if qid not in tasks.repeated], ignore_event)
    _graded(workspace, judge, twice, tasks, [qid for qid in qids if qid in tasks.repeated], ignore_event)
    workspace.loop.run(one_prompt(judge, tasks.lists, tasks.plan))
