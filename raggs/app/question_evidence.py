"""Evidence sets of queries, proposed and verified by a language model.

For each query, the model reads the passages with the best grades and proposes minimal combinations that suffice for an
answer. Each combination is then verified by calls that show only its passages. The first call must find them
sufficient. For a combination of several passages, one more call per passage omits this passage, and must find the rest
insufficient. A combination that does not pass is recorded, but not used. If a call fails, the query gets no evidence,
so that no combination is missing without notice.

Answers are cached in the workspace of the run. To continue after an interruption or failed calls, run the same command
again. Without --force, the command replaces the file of queries only if calls failed and this file is unchanged since.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from raggs.app.addresses import Approve, approve_nothing, permit_parts
from raggs.app.answers import MODEL_PREFIX, AnswerModel
from raggs.app.status import stored_config
from raggs.base.artifacts import Groups, Passage, Query
from raggs.base.document import Summary, Table
from raggs.base.errors import DataError, UsageError
from raggs.base.files import make_folder, write_atomic
from raggs.base.jsonl import read_objects
from raggs.base.languages import detect_language
from raggs.base.text import plural, shorten
from raggs.base.types import BuildProgress, JsonObject, as_list, as_object
from raggs.config.models import RunConfig
from raggs.golden.base import GoldenQuery
from raggs.golden.runs import RunGolden
from raggs.golden.sources import open_golden
from raggs.llm import LLM, BudgetSettings, ChatRequest
from raggs.llm.prices import require_keys
from raggs.parts.judges.litellm import LiteLLMJudge
from raggs.parts.queries import format_of
from raggs.parts.queries.writing import write_queries
from raggs.parts.workspace import Workspace
from raggs.prompts import label_texts, labels_for, load_prompt
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.runs.forecast import lines_of
from raggs.runs.manifests.models import CostEstimate

QueryStatus = Literal["verified", "none", "rejected", "failed", "stated", "reviewed", "ungraded"]
SetVerdict = Literal["verified", "insufficient", "not minimal", "failed"]

CAP = 1.0  # USD
STAGE = "evidence"
EVIDENCE, SUFFICES = "evidence@1", "suffices@1"
MIN_GRADE, MAX_PASSAGES = 4, 8
MAX_SETS, MAX_MEMBERS = 4, 4  # limits of an answer, which bound the number of calls
ANSWER_TOKENS, VERDICT_TOKENS = 120, 60
MAX_REASON = 1000  # characters
ESTIMATED = "assumed: one combination of two passages per query, verified by three calls"
STATUS_TEXT: Mapping[QueryStatus, str] = {
    "verified": "with verified sets",
    "none": "no combination suffices",
    "rejected": "no combination passed",
    "failed": "a call failed",
    "stated": "with evidence from their author",
    "reviewed": "with evidence from annotators",
    "ungraded": f"no passage of grade {MIN_GRADE} or 5",
}


@dataclass(frozen=True)
class EvidenceRequest:
    """Run, model, and limits.

    Attributes:
        run: run directory.
        out: file for the queries; its suffix selects the format.
        model: ``litellm:MODEL``; None: the model of the run's judge.
        max_usd: limit in USD for all calls in the ledger next to `out`.
        force: whether to overwrite `out`.
        allow_mixed: whether to continue if the provider answers with another snapshot of the model than before.
    """

    run: Path
    out: Path
    model: str | None = None
    max_usd: float = CAP
    force: bool = False
    allow_mixed: bool = False

    @property
    def records(self) -> Path:
        """File of all proposals and verdicts."""
        return self.out.with_name(f"{self.out.stem}.evidence.jsonl")

    @property
    def ledger(self) -> Path:
        """File of all calls."""
        return self.out.with_name(f"{self.out.stem}.evidence.ledger.jsonl")


@dataclass(frozen=True)
class ProposedSet:
    """A combination of passages, the verdict of its verification, and the reason that the model gave."""

    doc_ids: tuple[str, ...]
    verdict: SetVerdict
    reason: str = ""


@dataclass(frozen=True)
class QueryEvidence:
    """Result for one query.

    Attributes:
        shown: ids of the passages for the model, best first.
        sets: the proposed combinations.
        error: reason of the first failed call; empty if no call failed.
    """

    query: Query
    status: QueryStatus
    shown: tuple[str, ...] = ()
    sets: tuple[ProposedSet, ...] = ()
    error: str = ""

    @property
    def evidence(self) -> Groups:
        """The evidence sets of the query; empty if no combination passed, or if any of its calls failed."""
        if self.status in ("stated", "reviewed"):
            return self.query.evidence
        return tuple(each.doc_ids for each in self.sets if each.verdict == "verified") if not self.error else ()


@dataclass(frozen=True)
class EvidenceResult:
    """Results of all queries, the written files, and the cost of this invocation."""

    model: str
    found: tuple[QueryEvidence, ...]
    files: tuple[Path, ...]
    usd: float

    @property
    def failed(self) -> int:
        """Number of queries with a failed call."""
        return sum(each.status == "failed" for each in self.found)


@dataclass(frozen=True)
class _QueryPassages:
    """A query, its language, and the passages that the model reads, best first."""

    query: Query
    language: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class _Setup:
    """Checked input: the run's configuration, the model with its call parameters, the work, the settled queries."""

    config: RunConfig
    model: str
    parameters: Mapping[str, object]
    jobs: tuple[_QueryPassages, ...]
    settled: tuple[QueryEvidence, ...]


class _CallError(Exception):
    """A call gave no usable answer."""


@dataclass
class _Verifier:
    """Calls the model for one query; each subset of its passages is verified once."""

    llm: LLM
    setup: _Setup
    job: _QueryPassages
    verdicts: dict[frozenset[int], tuple[bool, str]] = field(default_factory=dict)

    async def propose(self) -> list[tuple[int, ...]]:
        """Return the combinations that the model proposes, as positions in the job's passages.

        Raises:
            _CallError: the model gave no usable answer.
        """
        labels = labels_for(len(self.job.passages))
        entry = {"type": "array", "items": {"type": "string", "enum": list(labels)}}
        reply = await self.llm.ask(
            ChatRequest(
                model=self.setup.model,
                messages=load_prompt(EVIDENCE, "evidence").render(
                    self.job.language,
                    query=self.llm.guard(self.job.query.in_context(self.job.language)),
                    passages=label_texts([each.content for each in self.job.passages], self.llm.guard),
                    sets=str(MAX_SETS),
                    members=str(MAX_MEMBERS),
                ),
                schema=_schema({"reason": {"type": "string"}, "sets": {"type": "array", "items": entry}}),
                schema_name="evidence",
                check=partial(read_sets, labels=labels),
                qid=self.job.query.qid,
                max_output_tokens=ANSWER_TOKENS,
                parameters=self.setup.parameters,
            )
        )
        if reply.value is None:
            raise _CallError(reply.error or "the model gave no answer")
        return reply.value

    async def verify(self, members: tuple[int, ...]) -> ProposedSet:
        """Return the verdict on a combination.

        Raises:
            _CallError: the model gave no usable answer.
        """
        doc_ids = tuple(self.job.passages[place].doc_id for place in members)
        enough, reason = await self._suffices(frozenset(members))
        if not enough:
            return ProposedSet(doc_ids, "insufficient", reason)
        for place in members if len(members) > 1 else ():
            fewer, said = await self._suffices(frozenset(members) - {place})
            if fewer:
                return ProposedSet(doc_ids, "not minimal", said)
        return ProposedSet(doc_ids, "verified", reason)

    async def _suffices(self, places: frozenset[int]) -> tuple[bool, str]:
        if places in self.verdicts:
            return self.verdicts[places]
        shown = [self.job.passages[place].content for place in sorted(places)]
        reply = await self.llm.ask(
            ChatRequest(
                model=self.setup.model,
                messages=load_prompt(SUFFICES, "suffices").render(
                    self.job.language,
                    query=self.llm.guard(self.job.query.in_context(self.job.language)),
                    passages=label_texts(shown, self.llm.guard),
                ),
                schema=_schema({"reason": {"type": "string"}, "sufficient": {"type": "integer", "enum": [0, 1]}}),
                schema_name="suffices",
                check=_read_verdict,
                qid=self.job.query.qid,
                max_output_tokens=VERDICT_TOKENS,
                parameters=self.setup.parameters,
            )
        )
        if reply.value is None:
            raise _CallError(reply.error or "the model gave no verdict")
        self.verdicts[places] = reply.value
        return reply.value


def read_sets(answer: JsonObject, labels: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the combinations of an answer, as positions of their labels, each in ascending order.

    Raises:
        ValueError: the answer has too many or too large combinations, an empty one, an unknown or repeated label, or a
            combination that contains another one.
    """
    given = answer.get("sets")
    if not isinstance(given, list) or len(given) > MAX_SETS:
        raise ValueError(f'"sets" must be a list of at most {MAX_SETS} lists')
    found: list[tuple[int, ...]] = []
    for each in given:
        members = as_list(each)
        if not 1 <= len(members) <= MAX_MEMBERS:
            raise ValueError(f'each list in "sets" must have 1 to {MAX_MEMBERS} labels')
        if len(set(map(str, members))) < len(members) or not all(label in labels for label in members):
            raise ValueError('each list in "sets" must contain different labels of the passages shown')
        found.append(tuple(sorted(labels.index(str(label)) for label in members)))
    if any(one is not other and set(one) <= set(other) for one in found for other in found):
        raise ValueError('no list in "sets" may contain all labels of another list')
    return found


def _read_verdict(answer: JsonObject) -> tuple[bool, str]:
    found, reason = answer.get("sufficient"), answer.get("reason")
    if isinstance(found, bool) or found not in (0, 1):
        raise ValueError('"sufficient" must be 0 or 1')
    return found == 1, shorten(reason, MAX_REASON) if isinstance(reason, str) else ""


def _schema(properties: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


# --- use cases ------------------------------------------------------------------------------------------------


def find_question_evidence(
    request: EvidenceRequest, listen: Listener = ignore_event, approve: Approve = approve_nothing
) -> EvidenceResult:
    """Propose and verify the evidence sets of a run's queries, and write the queries with them.

    This also works in notebooks. All queries of the run are written, sorted by id. Evidence from the author of a query
    or from annotators is kept, without any call.

    Args:
        approve: decides whether a key may be sent to a new address (see `raggs.app.addresses`).

    Raises:
        UsageError: the golden set is not a run, the model is missing or invalid, or `out` exists or has an unknown
            suffix.
        DataError: no query has a passage of grade 4 or 5, and none has evidence from its author or from annotators.
        BudgetError: the limit is reached; paid answers are cached.
        RaggsError: a key is missing, or a provider refused a call.
    """
    if in_loop():
        return run_in_thread(lambda hear: find_question_evidence(request, hear, approve), listen)
    setup = _checked_setup(request)
    permit_parts(setup.config.llm, [AnswerModel(model=setup.model)], approve)
    require_keys([setup.model], setup.config.llm)
    make_folder(request.out.parent)
    with _opened_workspace(setup, request, listen) as workspace:
        workspace.llm.require_price(setup.model)
        workspace.ledger.turn_to(request.ledger, STAGE)
        found = workspace.loop.run(_evidence_of_all(workspace.llm, setup, listen))
        usd = workspace.llm.spent.usd
    results = tuple(sorted((*found, *setup.settled), key=lambda each: each.query.qid))
    queries = [each.query.model_copy(update={"evidence": each.evidence}) for each in results]
    write_queries([Query.model_validate(dict(query)) for query in queries], request.out)
    write_atomic(request.records, "".join(_line(each, setup.model) for each in results).encode())
    return EvidenceResult(setup.model, results, (request.out, request.records), usd)


def forecast_question_evidence(request: EvidenceRequest) -> tuple[RunConfig, tuple[CostEstimate, ...]]:
    """Return the run's configuration, and the expected cost of `find_question_evidence`. No model is called.

    Raises:
        RaggsError: the request is invalid; see `find_question_evidence`.
    """
    setup = _checked_setup(request)
    with _opened_workspace(setup, request, ignore_event) as workspace, workspace.rehearsal() as llm:
        workspace.loop.run(_evidence_of_all(llm, setup, ignore_event, guess=True))
        llm.guess()
        return setup.config, tuple(lines_of(llm))


async def _evidence_of_all(llm: LLM, setup: _Setup, listen: Listener, *, guess: bool = False) -> list[QueryEvidence]:
    done = 0

    async def one(job: _QueryPassages) -> QueryEvidence:
        nonlocal done
        found = await _evidence_of(_Verifier(llm, setup, job), guess=guess)
        done += 1
        listen(BuildProgress("evidence sets", done, len(setup.jobs)))
        return found

    results = await asyncio.gather(*map(one, setup.jobs), return_exceptions=True)
    if broken := next((each for each in results if isinstance(each, BaseException)), None):
        raise broken
    return [each for each in results if isinstance(each, QueryEvidence)]


async def _evidence_of(verifier: _Verifier, *, guess: bool) -> QueryEvidence:
    """Return the evidence of one query.

    Args:
        guess: whether a dry run verifies the two best passages if the proposal is not known yet.
    """
    job = verifier.job
    shown = tuple(each.doc_id for each in job.passages)
    try:
        proposed = await verifier.propose()
    except _CallError as error:
        if not guess:
            return QueryEvidence(job.query, "failed", shown, error=str(error))
        proposed = [tuple(range(min(2, len(shown))))]
    sets: list[ProposedSet] = []
    failures: list[str] = []
    for members in proposed:
        try:
            sets.append(await verifier.verify(members))
        except _CallError as error:
            failures.append(str(error))
            sets.append(ProposedSet(tuple(shown[place] for place in members), "failed"))
            if guess:
                await _rehearse(verifier, members)
    if failures:
        return QueryEvidence(job.query, "failed", shown, tuple(sets), failures[0])
    passed = any(each.verdict == "verified" for each in sets)
    return QueryEvidence(job.query, "verified" if passed else "rejected" if sets else "none", shown, tuple(sets))


async def _rehearse(verifier: _Verifier, members: tuple[int, ...]) -> None:
    """Count the calls without one passage, as if the combination had been found sufficient."""
    for place in members if len(members) > 1 else ():
        try:
            await verifier._suffices(frozenset(members) - {place})
        except _CallError:
            continue


@contextmanager
def _opened_workspace(setup: _Setup, request: EvidenceRequest, listen: Listener) -> Iterator[Workspace]:
    llm = setup.config.llm.mixing() if request.allow_mixed else setup.config.llm
    with Workspace(setup.config.workspace, llm, BudgetSettings(max_usd=request.max_usd), hear=listen) as workspace:
        yield workspace


def _checked_setup(request: EvidenceRequest) -> _Setup:
    """Return the checked input.

    Raises:
        UsageError, DataError: see `find_question_evidence`.
    """
    format_of(request.out)
    golden = open_golden(request.run)
    if not isinstance(golden, RunGolden):
        raise UsageError(
            f"{request.run} is not a run, so the texts of its passages are unknown", remedy="pass a run directory"
        )
    if request.out.exists() and not request.force and not _is_unfinished(request, golden):
        raise UsageError(f"{request.out} exists", remedy="name another file, or pass --force to replace it")
    config = stored_config(golden.run.folder)
    model, parameters = _model(request.model, config)
    jobs, settled = [], []
    for found in golden.by_query():
        if found.query is None:
            continue
        passages = best_passages(found)
        if found.qid in golden.human_evidence.sets:
            settled.append(QueryEvidence(_as_query(found.query), "reviewed"))
        elif found.query.evidence:
            settled.append(QueryEvidence(_as_query(found.query), "stated"))
        elif not passages:
            settled.append(QueryEvidence(_as_query(found.query), "ungraded"))
        else:
            language = found.query.language or detect_language(found.query.text)
            jobs.append(_QueryPassages(_as_query(found.query), language, passages))
    if not jobs and not any(each.status in ("stated", "reviewed") for each in settled):
        raise DataError(
            f"no query has a passage of grade {MIN_GRADE} or 5",
            where=request.run,
            remedy="retrieve more passages, or state the evidence in the file of queries",
        )
    return _Setup(config, model, parameters, tuple(jobs), tuple(settled))


def _is_unfinished(request: EvidenceRequest, golden: RunGolden) -> bool:
    """Return whether calls of an earlier invocation failed, and `out` is as that invocation wrote it."""
    rows = {row.get("qid"): row for _, row in read_objects(request.records)} if request.records.is_file() else {}
    if not any(row.get("status") == "failed" for row in rows.values()):
        return False
    written = []
    for query in golden.queries():
        row = rows.get(query.qid, {})
        sets = [as_object(each) for each in as_list(row.get("sets"))]
        passages = [as_list(each.get("passages")) for each in sets if each.get("verdict") == "verified"]
        verified = () if "error" in row else tuple(tuple(map(str, each)) for each in passages)
        evidence = verified if "sets" in row else query.evidence
        written.append(_as_query(query).model_copy(update={"evidence": evidence}))
    with tempfile.TemporaryDirectory(prefix="raggs-") as folder:
        copy = Path(folder) / request.out.name
        write_queries(written, copy)
        return copy.read_bytes() == request.out.read_bytes()


def _as_query(query: Query) -> Query:
    """Return the record of a query as a query."""
    return Query.model_validate(query.model_dump(include={*Query.model_fields}))


def best_passages(found: GoldenQuery) -> tuple[Passage, ...]:
    """Return up to 8 passages of grade 4 or 5 without near-duplicates, by grade, then by rank, then by fused rank."""
    place = {record.doc_id: record.rank for record in found.order}
    texts = {passage.doc_id: passage for passage in found.pool}
    good = [
        record
        for record in found.grades
        if (record.grade or 0) >= MIN_GRADE and record.duplicate_of is None and record.doc_id in texts
    ]
    good.sort(key=lambda record: (-(record.grade or 0), place.get(record.doc_id, len(place) + record.rank)))
    return tuple(texts[record.doc_id] for record in good[:MAX_PASSAGES])


def _model(spec: str | None, config: RunConfig) -> tuple[str, Mapping[str, object]]:
    """Return the model and its call parameters.

    Raises:
        UsageError: the specification is not ``litellm:MODEL``, or there is none and the run's judge is not one model.
    """
    judge = config.judge.judge
    own = judge if isinstance(judge, LiteLLMJudge.Config) else None
    remedy = "pass --judge litellm:openai/gpt-5-mini"
    if spec is None:
        if own is None:
            raise UsageError(f"the judge of the run ({judge.type}) is not a single language model", remedy=remedy)
        return own.model, own.parameters
    model = spec.removeprefix(MODEL_PREFIX).strip()
    if not spec.startswith(MODEL_PREFIX) or not model:
        raise UsageError(f"--judge {spec}: not a model", remedy=remedy)
    return model, own.parameters if own is not None and own.model == model else {}


def _line(found: QueryEvidence, model: str) -> str:
    sets = [
        {"passages": each.doc_ids, "verdict": each.verdict, **({"reason": each.reason} if each.reason else {})}
        for each in found.sets
    ]
    called = found.status not in ("stated", "reviewed", "ungraded")
    row = {
        "qid": found.query.qid,
        "status": found.status,
        **({"model": model, "prompts": [EVIDENCE, SUFFICES], "shown": found.shown, "sets": sets} if called else {}),
        **({"error": found.error} if found.error else {}),
    }
    return json.dumps(row, ensure_ascii=False) + "\n"


def summarise_evidence(found: EvidenceResult, command: str) -> Summary:
    """Return the default output of `raggs questions evidence`.

    Args:
        command: the command to run next.
    """
    verified = [each for each in found.found if each.status == "verified"]
    sets = [members for each in verified for members in each.evidence]
    proposed = [each.verdict for query in found.found for each in query.sets]
    several = sum(all(len(members) > 1 for members in each.evidence) for each in verified)
    counts = Counter(each.status for each in found.found)
    rejected = {verdict: proposed.count(verdict) for verdict in ("insufficient", "not minimal") if verdict in proposed}
    said = [f"{count:,} {verdict}" for verdict, count in rejected.items()]
    return Summary(
        headline=(
            f"{plural(len(sets), 'evidence set')} of {plural(len(verified), 'query')} passed the verification by "
            f"{found.model}; ${found.usd:.4f} spent now.",
            f"{plural(several, 'query')} of these need several passages.",
        ),
        table=Table.of(
            ("queries", "evidence"), [(f"{counts[name]:,}", text) for name, text in STATUS_TEXT.items() if counts[name]]
        ),
        trust=(f"Rejected of {plural(len(proposed), 'proposed set')}: {', '.join(said)}.",) if said else (),
        next=command,
    )
