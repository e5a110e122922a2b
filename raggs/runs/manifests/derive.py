"""Recompute the artifacts of a run from earlier artifacts, without calling a model, and compare them.

The stages embed, merge and prune run again; vectors and rewrites by models are copied. The judge stage runs again with
the recorded answers (see `regraded`), and the rank stage replays the journal. The stage retrieve is not recomputed. In
the pipeline that generates questions, the stage verify is recomputed completely. Of the stage filter, the cosine
similarities and the systems that find the excerpts are copied.

`derivations` compares each recomputed artifact line by line. It then checks the invariants of a golden set. Every
passage of the pool was kept or pruned, and ranks are 1..n. Every ranking contradicts none of its locked pairs, so these
have no cycle.

`part_findings` checks the partial results of a stopped stage. They have no lock with a hash, so they are compared with
the other artifacts. Every line must be a valid record at the right position, with exactly the bytes that raggs writes
for the record. Grades are recomputed from the recorded answers, pools are pruned again, and rankings are replayed from
the journal. While the stage has not finished, the entries of its journal are in order of arrival, and may be mixed with
entries of earlier settings.

`regraded` runs the judge stage with a judge that returns the recorded answers. The answers themselves cannot be
recomputed, but everything that follows from them can: each grade from its samples, where grading stopped, which
passages got further samples, and which duplicates share a grade. In a cascade, this includes the votes for each sample
and whether the good judge was called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import (
    EmbedRecord,
    JournalRecord,
    JudgeProfile,
    JudgeRecord,
    MergeRecord,
    Passage,
    PruneRecord,
    Query,
    QueryRecord,
    RankingRecord,
    RankRecord,
    Record,
    artifact_file,
)
from raggs.base.errors import RaggsError
from raggs.base.jsonl import dump_line, first_fault, read_torn
from raggs.base.judge_health import HUMAN_SOURCE, source_of
from raggs.base.loops import open_loop
from raggs.base.text import shorten
from raggs.base.types import as_object
from raggs.parts import rewriters
from raggs.parts.judges import Judgment, may_abstain
from raggs.parts.rewriters import Expansion, Rewriter
from raggs.parts.rewriters.expansion import ExpandingConfig
from raggs.runs.manifests.models import AuditFinding, StageLock, misfits_as_data_errors, parameters
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.outdated import outdated
from raggs.runs.manifests.shared_budget_replay import (
    MIXED_PROFILES,
    mixed_state_problem,
    profile_mismatch,
    ranked_together,
)
from raggs.stages import merge, prune
from raggs.stages.base import StageWork
from raggs.stages.embed import EmbedConfig, prepare
from raggs.stages.judge import STAGE, JudgeConfig
from raggs.stages.judge_health import NOT_JUDGED_PREFIX, votes_settled
from raggs.stages.questions.filter import FilterConfig, rederived
from raggs.stages.questions.verify import verified_records
from raggs.stages.rank_config import RankConfig
from raggs.stages.rank_health import rank_records
from raggs.stages.replay import JournalAnswers, kept_pool, replay
from raggs.stats.grade_distribution import median_grade

MISSING_ANSWER = Judgment(None, error="no such answer in judge.jsonl")


class RecordedJudge:
    """Judge that returns the recorded answers for the passages of one query. If an answer was not recorded, the grade
    is missing.

    Args:
        records: the records of the query.
        spec: settings of the judge. A missing grade counts as an abstention only if the settings allow abstentions.
    """

    def __init__(self, records: Sequence[JudgeRecord], spec: AdapterConfig) -> None:
        self._abstains, self._settled = may_abstain(spec.model_dump(mode="json")), votes_settled(spec)
        self._records = {record.doc_id: record for record in records if record.duplicate_of is None}
        self.name = next((record.judge for record in records if record.judge), "")

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        return other.doc_id in self._records

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        record, asked = self._records.get(passage.doc_id), sample
        if record is not None and source_of(record.judge) == HUMAN_SOURCE:
            sample = 0  # human labels are recorded once, and are the same for each sample
        silent = record is not None and self._abstains and not (record.skipped or "").startswith(NOT_JUDGED_PREFIX)
        if record is None or sample >= len(record.grades):
            return Judgment(None, silent=record.skipped or "abstained") if record and silent else MISSING_ANSWER
        votes = {
            name: _judgment_of_record(grades[min(asked, len(grades) - 1)], record)
            for name, grades in record.votes.items()
        }
        said = _judgment_of_record(self._settled(record, sample), record)
        own = record.sample_distributions
        shares = own[sample] if sample < len(own) else record.distribution
        if said.grade is not None and shares is not None:
            # the distribution of a single answer determines its grade
            grade = median_grade(shares) if (own or len(record.grades) == 1) and not votes else said.grade
            said = replace(said, grade=grade, distribution=shares, distribution_source=record.distribution_source)
        return replace(said, votes=votes, by=record.judge, answerers=record.answerers)

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        return [await self.grade(query, passage, sample=sample) for passage in passages]


def _judgment_of_record(grade: int | None, record: JudgeRecord) -> Judgment:
    if grade is None:
        return Judgment(None, error=record.error, raw=record.raw)
    return Judgment(grade, record.reason)


@dataclass(frozen=True)
class RecordedPool:
    """The services for grading one query's pool: the query, and the judge with its recorded answers."""

    queries: Mapping[str, Query]
    judge: RecordedJudge


def regraded(work: StageWork, config: JudgeConfig) -> Iterator[JudgeRecord]:
    """Yield the records that judge.jsonl must contain, given the pools and the answers recorded in judge.jsonl.

    Queries that are missing because the budget ran out are treated as unanswered.
    """
    recorded = work.by_query("judge", JudgeRecord)
    following = next(recorded, None)
    with open_loop() as loop:
        for qid, pool in work.by_query("merge", MergeRecord):
            records = list[JudgeRecord]()
            if following is not None and following[0] <= qid:
                records, following = following[1], next(recorded, None)
            services = RecordedPool({qid: Query(qid=qid, text="?")}, RecordedJudge(records, config.judge))
            carried = {each.doc_id: each for each in records if each.carried and each.duplicate_of is None}
            yield from loop.run(STAGE.pool(pool, config, services, carried))


Params = Mapping[str, object]  # a stage's parameters, as in the manifest
Problem = Callable[[str], None]  # receives a sentence about a problem with the journal


class _PoolTexts:
    """Supplies the passages of merge.jsonl to the merge stage, query by query. The audit does not need the corpus."""

    def __init__(self, pools: Iterator[tuple[str, list[MergeRecord]]]) -> None:
        self._pools = pools

    @property
    def file(self) -> None:
        """None, because the passages have no file."""

    def get(self, doc_ids: Iterable[str]) -> Mapping[str, Passage]:
        _, pool = next(self._pools, ("", []))
        known = {record.doc_id: record.passage for record in pool}
        return {doc_id: known.get(doc_id) or Passage(doc_id=doc_id, text="(not in merge.jsonl)") for doc_id in doc_ids}


class _ReplayServices:
    """The services that the merge and prune stages need."""

    queries: Mapping[str, Query] = MappingProxyType({})  # the stages use only the number of queries, to report progress

    def __init__(self, work: StageWork) -> None:
        self.passages = _PoolTexts(work.by_query("merge", MergeRecord))


def work_of(run: OpenedRun) -> StageWork:
    """Return all artifacts of a run as the input of a stage."""

    def reader(artifact: str) -> Callable[[], Iterator[Record]]:
        return lambda: run.records(artifact)

    return StageWork({name: reader(name) for name in run.pipeline.artifacts})


def _embedded(work: StageWork, params: Params, _problem: Problem, rewriter_causes: object = None) -> Iterator[Record]:
    """Yield the queries unchanged, and the records of embed for them. Vectors, and rewrites by models, are copied from
    embed.jsonl.
    """
    config = parameters(EmbedConfig, "embed", params)
    recorded = iter(work.read("embed", EmbedRecord))
    following = next(recorded, None)
    rewriter = _by_rule(config, as_object(rewriter_causes).get("version"))
    with open_loop() as loop:
        for query in work.read("queries", QueryRecord):
            yield query
            while following is not None and following.qid < query.qid:
                following = next(recorded, None)
            found = following if following is not None and following.qid == query.qid else None
            made = loop.run(prepare(query, rewriter or _RecordedRewrite(found, config.rewrite), config.language))
            vector = {} if found is None else {"embedding": found.embedding, "embedder": found.embedder}
            yield made.model_copy(update=vector)


def _by_rule(config: EmbedConfig, version: object) -> Rewriter | None:
    """Return the rewriter if its results can be recomputed: it is built in, rule-based and of the recorded version.
    Otherwise return None.
    """
    if config.rewrite.type not in rewriters.REGISTRY.builtin:
        return None
    rewriter = rewriters.REGISTRY.of(config.rewrite)
    return rewriter(config.rewrite) if rewriter.BY_RULE and version == rewriter.VERSION else None


class _RecordedRewrite(Rewriter):
    """Rewriter that returns the rewrite and the added texts in embed.jsonl. `config`: settings of the rewriter."""

    def __init__(self, record: EmbedRecord | None, config: AdapterConfig) -> None:
        super().__init__(config)
        self._record = record

    @property
    def repeats(self) -> int:
        return self.config.repeat_query if isinstance(self.config, ExpandingConfig) else 1

    async def expand(self, query: Query, text: str, language: str) -> Expansion:
        found = self._record
        return Expansion() if found is None else Expansion(found.variants, found.hypothetical)

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        return text if self._record is None else self._record.rewrite


def _derive_merge(work: StageWork, params: Params, _problem: Problem) -> Iterator[Record]:
    return merge.STAGE.run(work, parameters(merge.MergeConfig, "merge", params), _ReplayServices(work))


def _derive_judge(work: StageWork, params: Params, _problem: Problem) -> Iterator[Record]:
    return regraded(work, parameters(JudgeConfig, "judge", params))


def _pruned(work: StageWork, params: Params, _problem: Problem) -> Iterator[Record]:
    return prune.STAGE.run(work, parameters(prune.PruneConfig, "prune", params), _ReplayServices(work))


def _ranked(work: StageWork, params: Params, problem: Problem, prices: object = None) -> Iterator[Record]:
    config = parameters(RankConfig, "rank", params)
    if config.budget is not None:
        return ranked_together(work, config, config.budget, prices, problem)
    return _ranked_alone(work, config, problem)


def _ranked_alone(work: StageWork, config: RankConfig, problem: Problem) -> Iterator[Record]:
    believed = set[JudgeProfile | None]()
    journal = work.by_query("rank.journal", JournalRecord)
    qid, entries = next(journal, ("", []))
    for name, records in work.by_query("prune", PruneRecord):
        pool, mine = kept_pool(name, records), []
        if qid == name:
            mine = entries
            qid, entries = next(journal, ("", []))
        answers = JournalAnswers(mine)
        found = replay(config.course(pool), answers)
        if mine:
            believed.add(answers.profile)
        if wrong := mixed_state_problem(mine) or found.problem:
            problem(f"query {name}: {wrong}")
        yield from rank_records(pool, found.ranking)
    if qid:
        problem(f"query {qid} is not in prune.jsonl")
    if len(believed) > 1:
        problem(MIXED_PROFILES)
    elif (profile := next(iter(believed), None)) and (wrong := profile_mismatch(work, config, profile)):
        problem(wrong)


def _derive_verify(work: StageWork, _params: Params, _problem: Problem) -> Iterator[Record]:
    return verified_records(work)


def _filtered(work: StageWork, params: Params, _problem: Problem) -> Iterator[Record]:
    return rederived(work, parameters(FilterConfig, "filter", params))


DERIVATIONS: Mapping[str, Callable[[StageWork, Params, Problem], Iterator[Record]]] = MappingProxyType(
    {
        "embed": _embedded,
        "merge": _derive_merge,
        "judge": _derive_judge,
        "prune": _pruned,
        "rank": _ranked,
        "verify": _derive_verify,
        "filter": _filtered,
    }
)


def derived_records(run: OpenedRun, lock: StageLock, problem: Problem) -> Iterator[Record]:
    """Yield the records that a stage must have written, in the order of each artifact. The journal is not included.

    Args:
        run: the run.
        lock: lock of a stage in `DERIVATIONS`.
        problem: receives sentences about problems with the journal.

    Raises:
        RaggsError: an artifact or the lock's parameters cannot be read.
    """
    if lock.stage == "rank":  # if queries share a budget, the order of their rounds may depend on prices
        return _ranked(work_of(run), lock.params, problem, lock.components.get("prices"))
    if lock.stage == "embed":
        return _embedded(work_of(run), lock.params, problem, lock.components.get("rewriter"))
    return DERIVATIONS[lock.stage](work_of(run), lock.params, problem)


def derivations(run: OpenedRun, damaged: Set[str]) -> Iterator[AuditFinding]:
    """Recompute the artifacts of each finished stage in `DERIVATIONS`. Yield the first difference of each artifact,
    problems with the journal, and violated invariants. Stages that read or wrote `damaged` files are skipped.
    """
    for name in DERIVATIONS:
        lock = run.manifest.stages.get(name)
        if lock is None or damaged & {*lock.inputs, *lock.outputs}:
            continue
        if name == "embed" and "queries.jsonl" not in lock.outputs:
            continue  # from an older version of raggs, which did not store the queries
        try:
            if older := outdated(lock):
                yield AuditFinding(artifact_file(name), None, f"cannot be recomputed: {older}")
            else:
                with misfits_as_data_errors(name):
                    yield from _derivation(run, lock)
        except RaggsError as error:
            yield AuditFinding(artifact_file(name), None, f"cannot be recomputed: {error}")


def _derivation(run: OpenedRun, lock: StageLock) -> Iterator[AuditFinding]:
    problems: list[str] = []
    yield from _compare(run, lock.stage, derived_records(run, lock, problems.append))
    yield from (AuditFinding("rank.journal.jsonl", None, problem) for problem in problems)
    if lock.stage == "prune":
        yield from _whole_pool(run)
    if lock.stage == "rank":
        yield from _golden_order(run)


def _compare(run: OpenedRun, stage: str, derived: Iterable[Record]) -> Iterator[AuditFinding]:
    """Compare the artifacts of a stage with the recomputed records, and yield the first difference of each artifact."""
    files = {
        model: _ComparedArtifact(artifact, run.records(artifact))
        for artifact, model in run.pipeline.stage(stage).artifacts().items()
    }
    for expected in derived:
        yield from files[type(expected)].next(expected)
    for compared in files.values():
        yield from compared.next(None)


class _ComparedArtifact:
    """Compares an artifact line by line with its expected records, up to the first difference."""

    def __init__(self, artifact: str, found: Iterator[Record]) -> None:
        self._file, self._found = artifact_file(artifact), enumerate(found, start=1)
        self._line, self._differs = 0, False

    def next(self, expected: Record | None) -> Iterator[AuditFinding]:
        """Compare the next line with `expected`; None means that no line is expected."""
        if self._differs:
            return
        self._line, found = next(self._found, (self._line + 1, None))
        if expected is found is None:
            return
        if expected is None or found is None or dump_line(expected) != dump_line(found):
            self._differs = True
            yield AuditFinding(self._file, self._line, _difference(expected, found))


def _difference(expected: Record | None, found: Record | None) -> str:
    if expected is None or found is None:
        return "has more lines than can be recomputed" if expected is None else "lines are missing from here on"
    before, after = expected.model_dump(), found.model_dump()
    # compared as text, because 0.0 == -0.0
    field = next(name for name in before if repr(before[name]) != repr(after[name]))
    return f"{field} is {shorten(str(after[field]), 60)!r}, but {shorten(str(before[field]), 60)!r} when recomputed"


def _whole_pool(run: OpenedRun) -> Iterator[AuditFinding]:
    """Check that every passage of each pool was either kept or pruned."""
    pool = ((record.qid, record.rank, record.doc_id) for record in run.typed("merge", MergeRecord))
    pruned = ((record.qid, record.rank, record.doc_id) for record in run.typed("prune", PruneRecord))
    for number, (expected, found) in enumerate(zip_longest(pool, pruned), start=1):
        if expected != found:
            yield AuditFinding("prune.jsonl", number, f"is {found}, but the pool has {expected} here")
            return


def _golden_order(run: OpenedRun) -> Iterator[AuditFinding]:
    lines = 0
    for qid, records in run.golden():
        yield from _invariants(qid, records, lines)
        lines += len(records)


def _invariants(qid: str, records: list[RankRecord], before: int) -> Iterator[AuditFinding]:
    """Check that ranks are 1..n, and that the ranking agrees with its locked pairs."""
    position = {record.doc_id: number for number, record in enumerate(records)}
    for number, record in enumerate(records):
        line = before + number + 1
        if record.rank != number + 1:
            yield AuditFinding("rank.jsonl", line, f"query {qid}: rank {record.rank} is at position {number + 1}")
        for loser in record.locks_out:
            # For every locked pair, the winner is above the loser: the order is topological, so the pairs have no
            # cycle.
            if position.get(loser, -1) <= number:
                yield AuditFinding(
                    "rank.jsonl",
                    line,
                    f"query {qid}: {record.doc_id} is locked above {loser}, but is not ranked above it",
                )


RANK, RANKING_ARTIFACT = "rank", "rank.queries"
NOT_DERIVABLE = "cannot be recomputed"


def part_findings(run: OpenedRun) -> Iterator[AuditFinding]:
    """Yield the first wrong line of each file with partial results of a stopped stage, and an unreadable line of the
    journal.
    """
    sound = True
    for part in _partial_stages(run):
        found = [*_lines(run, part)]
        yield from found
        if found or not sound:
            sound = False
            continue
        try:
            with misfits_as_data_errors(part):
                yield from _partcheck_ranked(run) if part == RANK else _partial_records_findings(run, part)
        except RaggsError as error:
            yield AuditFinding(run.store.partial(part).name, None, f"{NOT_DERIVABLE}: {error}")
    if RANK in run.pipeline.order and RANK not in run.manifest.stages:
        try:
            _journal(run)
        except RaggsError as error:
            yield AuditFinding(run.store.path("rank.journal").name, error.line, error.message)


def _partial_stages(run: OpenedRun) -> list[str]:
    return [
        name
        for name in run.pipeline.order
        if name in DERIVATIONS and name not in run.manifest.stages and run.store.partial(name).exists()
    ]


def _lines(run: OpenedRun, stage: str) -> Iterator[AuditFinding]:
    """Check the form of each file of a stage. Yield the first line that is invalid, not sorted, or not in the bytes
    that raggs writes.
    """
    for artifact, model in run.pipeline.stage(stage).artifacts().items():
        path = run.store.partial(artifact)
        if path.is_symlink() or not path.is_file():
            yield AuditFinding(path.name, None, "is not a regular file" if path.exists() else "the file is missing")
            continue
        if (fault := _first_fault(path, model)) is not None:
            yield AuditFinding(path.name, *fault)


def _first_fault(path: Path, model: type[Record]) -> tuple[int, str] | None:
    previous: tuple[object, ...] | None = None
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = model.model_validate_json(line)
            except ValidationError as error:
                return number, first_fault(error)
            key = tuple(getattr(record, field) for field in model.ORDER)
            if previous is not None and key <= previous:
                return number, f"is not sorted by {', '.join(model.ORDER)}"
            if dump_line(record, given=True) != line:
                return number, "its bytes differ from those that raggs writes for this record"
            previous = key
    return None


def _partial_records_findings(run: OpenedRun, stage: str) -> Iterator[AuditFinding]:
    params = as_object(run.manifest.config.get(stage))
    left = next(part.left for part in run.parts if part.stage == stage)
    made = (record for record in DERIVATIONS[stage](work_of(run), params, lambda _: None) if record.qid not in left)
    yield from _first_mismatch(run.store.partial(stage).name, made, run.records(stage))


def _partcheck_ranked(run: OpenedRun) -> Iterator[AuditFinding]:
    """Compare each query's ranking with the replay of its journal. Entries of different states (settings and inputs)
    are replayed separately, and one replay must match.
    """
    config = parameters(RankConfig, RANK, as_object(run.manifest.config.get(RANK)))
    work, journal = work_of(run), _journal(run)
    part = next(part for part in run.parts if part.stage == RANK)
    ranked, told = dict(work.by_query(RANK, RankRecord)), dict(work.by_query(RANKING_ARTIFACT, RankingRecord))
    file = run.store.partial(RANK).name
    for qid, pruned in work.by_query("prune", PruneRecord):
        pool, records, word = kept_pool(qid, pruned), ranked.pop(qid, []), told.pop(qid, [])
        if qid in part.left:
            continue
        states, spent = journal.get(qid, {"": []}).values(), qid in part.short
        lists = [*states, []] if spent else states
        shared = config.budget is not None  # if so, the order of rounds depends on the rankings of all queries
        rankings = (
            replay(config.course(pool), JournalAnswers(each), spent=spent, shared=shared).ranking for each in lists
        )
        made = [[*rank_records(pool, ranking)] for ranking in rankings]
        if records not in ([each for each in one if isinstance(each, RankRecord)] for one in made):
            yield AuditFinding(file, None, f"query {qid}: its ranking differs from the one that the journal implies")
            return
        if [*word, *records] not in made:
            yield AuditFinding(
                run.store.partial(RANKING_ARTIFACT).name,
                None,
                f"query {qid}: differs from the record that the journal implies",
            )
            return
    if left := ranked.keys() | told.keys():
        yield AuditFinding(file, None, f"query {min(left)} is not in prune.jsonl")


def _journal(run: OpenedRun) -> Mapping[str, Mapping[str, list[JournalRecord]]]:
    """Return the journal entries by query and state."""
    found: dict[str, dict[str, list[JournalRecord]]] = {}
    for entry in read_torn(run.store.path("rank.journal"), JournalRecord, "delete the file to restart this stage"):
        found.setdefault(entry.qid, {}).setdefault(entry.state, []).append(entry)
    return found


def _first_mismatch(file: str, made: Iterator[Record], found: Iterator[Record]) -> Iterator[AuditFinding]:
    for number, (expected, read) in enumerate(zip_longest(made, found), start=1):
        if expected != read:
            yield AuditFinding(file, number, "differs from the record that the earlier artifacts imply")
            return
