"""What the artifacts of a run must hold, derived again from the artifacts before them. Nobody is asked.

Questions are prepared, pools merged and grades pruned once more; judge with the answers that it recorded (see
`regrade`); rank by replaying the journal. Of the pipeline that makes questions, verify is computed once more, and
filter but for its cosines. Each stage gets the few services that it asks for, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import (
    EmbedRecord,
    JournalRecord,
    MergeRecord,
    Passage,
    PruneRecord,
    Query,
    QueryRecord,
    Record,
)
from raggs.base.believed import JudgeProfile
from raggs.base.jsontypes import as_object
from raggs.base.loops import open_loop
from raggs.parts import rewriters
from raggs.parts.rewriters.base import Rewriter
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.params import parameters
from raggs.runs.manifests.regrade import regraded
from raggs.runs.manifests.taught import untaught
from raggs.runs.manifests.together import TORN, mixed, ranked_together
from raggs.stages import merge, prune
from raggs.stages.base import Work
from raggs.stages.embed import EmbedConfig, prepare
from raggs.stages.judge import JudgeConfig
from raggs.stages.questions.filter import FilterConfig, rederived
from raggs.stages.questions.verify import verified
from raggs.stages.rankconfig import RankConfig
from raggs.stages.rankrecords import rank_records
from raggs.stages.replay import Answers, kept_pool, replay

Params = Mapping[str, object]  # a stage's parameters as the manifest has them
Problem = Callable[[str], None]  # takes what is wrong with the journal, as a sentence


class _PoolTexts:
    """Gives merge the passages of its own artifact, a query at a time: the corpus is not needed for an audit."""

    def __init__(self, pools: Iterator[tuple[str, list[MergeRecord]]]) -> None:
        self._pools = pools

    @property
    def file(self) -> None:
        """There is none."""

    def get(self, doc_ids: Iterable[str]) -> Mapping[str, Passage]:
        _, pool = next(self._pools, ("", []))
        known = {record.doc_id: record.passage for record in pool}
        return {doc_id: known.get(doc_id) or Passage(doc_id=doc_id, text="(not in merge.jsonl)") for doc_id in doc_ids}


class _ReplayServices:
    """What merge and prune ask for."""

    queries: Mapping[str, Query] = MappingProxyType({})  # they only count them, for progress

    def __init__(self, work: Work) -> None:
        self.passages = _PoolTexts(work.by_query("merge", MergeRecord))


def work_of(run: OpenedRun) -> Work:
    """All artifacts of a run, a query at a time."""

    def reader(artifact: str) -> Callable[[], Iterator[Record]]:
        return lambda: run.records(artifact)

    return Work({name: reader(name) for name in run.pipeline.artifacts})


def _embedded(work: Work, params: Params, _problem: Problem, rewriter_causes: object = None) -> Iterator[Record]:
    """Yield the questions as they are, and what embed makes of them; vectors and models' rewrites as recorded."""
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
            made = loop.run(prepare(query, rewriter or _RecordedRewrite(found), config.language))
            vector = {} if found is None else {"embedding": found.embedding, "embedder": found.embedder}
            yield made.model_copy(update=vector)


def _by_rule(config: EmbedConfig, version: object) -> Rewriter | None:
    """Return the rewriter if it gives the same again: by rule, raggs' own, and of the version that was used."""
    if config.rewrite.type not in rewriters.REGISTRY.builtin:
        return None
    rewriter = rewriters.REGISTRY.of(config.rewrite)
    return rewriter(config.rewrite) if rewriter.BY_RULE and version == rewriter.VERSION else None


class _RecordedRewrite(Rewriter):
    """Gives the rewrite that embed.jsonl has."""

    def __init__(self, record: EmbedRecord | None) -> None:
        super().__init__(AdapterConfig(type="recorded"))
        self._record = record

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        return text if self._record is None else self._record.rewrite


def _merged(work: Work, params: Params, _problem: Problem) -> Iterator[Record]:
    return merge.STAGE.run(work, parameters(merge.MergeConfig, "merge", params), _ReplayServices(work))


def _judged(work: Work, params: Params, _problem: Problem) -> Iterator[Record]:
    return regraded(work, parameters(JudgeConfig, "judge", params))


def _pruned(work: Work, params: Params, _problem: Problem) -> Iterator[Record]:
    return prune.STAGE.run(work, parameters(prune.PruneConfig, "prune", params), _ReplayServices(work))


def _ranked(work: Work, params: Params, problem: Problem, prices: object = None) -> Iterator[Record]:
    config = parameters(RankConfig, "rank", params)
    if config.budget is not None:
        return ranked_together(work, config, config.budget, prices, problem)
    return _ranked_alone(work, config, problem)


def _ranked_alone(work: Work, config: RankConfig, problem: Problem) -> Iterator[Record]:
    believed = set[JudgeProfile | None]()
    journal = work.by_query("rank.journal", JournalRecord)
    qid, entries = next(journal, ("", []))
    for name, records in work.by_query("prune", PruneRecord):
        pool, mine = kept_pool(name, records), []
        if qid == name:
            mine = entries
            qid, entries = next(journal, ("", []))
        answers = Answers(mine)
        found = replay(config.course(pool), answers)
        if mine:
            believed.add(answers.profile)
        if wrong := mixed(mine) or found.problem:
            problem(f"query {name}: {wrong}")
        yield from rank_records(pool, found.ranking)
    if qid:
        problem(f"query {qid} is not in prune.jsonl")
    if len(believed) > 1:
        problem(TORN)
    elif (profile := next(iter(believed), None)) and (wrong := untaught(work, config, profile)):
        problem(wrong)


def _verified(work: Work, _params: Params, _problem: Problem) -> Iterator[Record]:
    return verified(work)


def _filtered(work: Work, params: Params, _problem: Problem) -> Iterator[Record]:
    return rederived(work, parameters(FilterConfig, "filter", params))


DERIVATIONS: Mapping[str, Callable[[Work, Params, Problem], Iterator[Record]]] = MappingProxyType(
    {
        "embed": _embedded,
        "merge": _merged,
        "judge": _judged,
        "prune": _pruned,
        "rank": _ranked,
        "verify": _verified,
        "filter": _filtered,
    }
)


def derived(run: OpenedRun, lock: StageLock, problem: Problem) -> Iterator[Record]:
    """The records that a stage must have written, of all its artifacts but the journal, each in its order.

    Args:
        lock: of a stage in `DERIVATIONS`.
        problem: hears what is wrong with the journal, as sentences.

    Raises:
        RaggsError: an artifact or the lock's parameters cannot be read.
    """
    if lock.stage == "rank":  # what a call costs may decide whose turn it was
        return _ranked(work_of(run), lock.params, problem, lock.components.get("prices"))
    if lock.stage == "embed":
        return _embedded(work_of(run), lock.params, problem, lock.components.get("rewriter"))
    return DERIVATIONS[lock.stage](work_of(run), lock.params, problem)
