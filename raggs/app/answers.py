"""Generation of answers from the passages of each system, and the check of these answers, for the measure Acc|Hit.

Acc|Hit counts only the queries whose evidence is in a system's top K, so only these queries are answered. One
call answers from the texts of the top K. A second call compares that answer with the reference answer. The results of
both calls are cached in the workspace of the golden run. Their cost is recorded in a ledger in the folder of the
evaluation. The generated answers are written to a file that `--correct` reads.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from raggs.app.addresses import Approve, approve_nothing, permit_parts
from raggs.app.eval_request import JudgedFiles
from raggs.app.evaluate import EvalResult, evaluate
from raggs.app.status import stored_config
from raggs.base.artifacts import Query
from raggs.base.errors import DataError, UsageError
from raggs.base.files import make_folder, write_atomic
from raggs.base.settings import Settings
from raggs.base.text import plural, shorten
from raggs.base.types import BuildProgress, JsonObject
from raggs.config.models import RunConfig
from raggs.evaluation.study import Study
from raggs.golden.runs import RunGolden
from raggs.llm import LLM, BudgetSettings, ChatRequest
from raggs.llm.prices import require_keys
from raggs.metrics.hits import ranked_rows
from raggs.metrics.names import parse_measure
from raggs.parts.indexes.passages import Passages
from raggs.parts.workspace import Workspace
from raggs.prompts import label_texts, load_prompt
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.runs.forecast import lines_of
from raggs.runs.manifests.models import CostEstimate

CAP = 1.0  # USD
FILE, LEDGER, STAGE = "answers.jsonl", "answers.ledger.jsonl", "answers"
MODEL_PREFIX = "litellm:"
ANSWER_TOKENS, VERDICT_TOKENS = 150, 60
MAX_CHARACTERS = 10_000  # per answer
MAX_REASON = 1000  # characters
PLACEHOLDER_ANSWER = "word " * ANSWER_TOKENS  # used in a dry run in place of a generated answer
ESTIMATED = f"assumed length: {ANSWER_TOKENS} tokens per answer, {VERDICT_TOKENS} per verdict"
ANSWER, CORRECT = "answer@1", "correct@1"


class AnswerModel(Settings):
    """The model that answers and checks."""

    model: str = Field(min_length=1)


@dataclass(frozen=True)
class AnswersRequest:
    """Model that generates answers, folder of its file and ledger, and cost limit.

    Attributes:
        model: provider and model, e.g. openai/gpt-5-mini.
        folder: folder of the evaluation.
        max_usd: limit in USD for all calls in the folder's ledger.
        allow_mixed: whether to continue if the provider answers with another snapshot of the model than before.
    """

    model: str
    folder: Path
    max_usd: float = CAP
    allow_mixed: bool = False


def parse_model(spec: str) -> str:
    """Return the model that ``litellm:MODEL`` names.

    Raises:
        UsageError: the specification has another form.
    """
    model = spec.removeprefix(MODEL_PREFIX).strip()
    if not spec.startswith(MODEL_PREFIX) or not model:
        raise UsageError(f"--answers {spec}: not a model", remedy="write litellm:openai/gpt-5-mini")
    return model


@dataclass(frozen=True)
class GeneratedAnswers:
    """The written file, with the numbers of its lines, and the cost of this invocation.

    Attributes:
        total: number of pairs of system and query.
        correct: number of correct answers.
        failed: number of pairs without an answer or without a verdict.
    """

    file: Path
    total: int
    correct: int
    failed: int
    usd: float

    def __str__(self) -> str:
        failed = f", {self.failed:,} missing because a call failed" if self.failed else ""
        return (
            f"{self.file}: {plural(self.total, 'answer')}, {self.correct:,} correct{failed}; ${self.usd:.4f} spent now"
        )


@dataclass(frozen=True)
class _Job:
    """A query whose evidence a system returned, and the system's top K."""

    system: str
    query: Query
    doc_ids: tuple[str, ...]


@dataclass(frozen=True)
class _Answer:
    text: str = ""
    correct: bool | None = None
    reason: str = ""
    error: str = ""


def generate_answers(
    result: EvalResult, request: AnswersRequest, listen: Listener = ignore_event, approve: Approve = approve_nothing
) -> GeneratedAnswers:
    """Generate an answer for each system and query that Acc|Hit counts, and write answers.jsonl.

    Queries without a reference answer are skipped. This also works in notebooks.

    Args:
        result: the evaluation, made without a file of answers.
        approve: decides whether a key may be sent to a new address (see `raggs.app.addresses`).

    Raises:
        UsageError: the golden set is not a run of raggs, or the evaluation changes the systems' lists (`--project`,
            `--condensed`).
        DataError: no judged query has a reference answer.
        BudgetError: the limit is reached; paid answers are cached.
        RaggsError: a key is missing, or a provider refused a call.
    """
    if in_loop():
        return run_in_thread(lambda hear: generate_answers(result, request, hear, approve), listen)
    run, jobs = _run_of(result), _jobs(result)
    permit_parts(run.llm, [AnswerModel(model=request.model)], approve)
    require_keys([request.model], run.llm)
    make_folder(request.folder)
    with _opened_workshop(run, request, listen) as (workspace, passages):
        workspace.llm.require_price(request.model)
        workspace.ledger.turn_to(request.folder / LEDGER, STAGE)
        done = 0

        async def one(job: _Job) -> _Answer:
            nonlocal done
            found = await _answer(workspace.llm, request.model, job, passages)
            done += 1
            listen(BuildProgress("answers", done, len(jobs)))
            return found

        async def every() -> list[_Answer | BaseException]:
            return await asyncio.gather(*map(one, jobs), return_exceptions=True)

        found = workspace.loop.run(every())
        usd = workspace.llm.spent.usd
    answers = []
    for each in found:
        if isinstance(each, BaseException):
            raise each
        answers.append(each)
    file = request.folder / FILE
    write_atomic(file, "".join(map(_line, jobs, answers)).encode())
    right, failed = (sum(each.correct is value for each in answers) for value in (True, None))
    return GeneratedAnswers(file, len(jobs), right, failed, usd)


def evaluate_with(result: EvalResult, answers: GeneratedAnswers) -> EvalResult:
    """Evaluate again with the generated answers, as if they were given by `--correct`."""
    if result.request is None:
        raise TypeError("the evaluation result has no request, so it cannot be evaluated again")
    analyses = replace(result.request.analyses, correct=answers.file)
    return evaluate(replace(result.request, analyses=analyses))


def forecast_answers(result: EvalResult, request: AnswersRequest) -> tuple[CostEstimate, ...]:
    """Return the cost of `generate_answers`: one estimate for the answers, one for their verdicts. No model is called.

    Raises:
        RaggsError: the request is invalid; see `generate_answers`.
    """
    run, jobs = _run_of(result), _jobs(result)
    with _opened_workshop(run, request, ignore_event) as (workspace, passages), workspace.rehearsal() as llm:

        async def every() -> None:
            for job in jobs:
                await _answer(llm, request.model, job, passages, PLACEHOLDER_ANSWER)

        workspace.loop.run(every())
        llm.guess()
        return tuple(lines_of(llm))


def settings_of(result: EvalResult) -> RunConfig:
    """Return the configuration of the golden run, which contains the `llm` settings.

    Raises:
        UsageError: the golden set is not a run of raggs, or the evaluation changes the systems' lists (`--project`,
            `--condensed`).
    """
    return _run_of(result)


def _run_of(result: EvalResult) -> RunConfig:
    subject = result.request.subject if result.request else None
    if not isinstance(subject, JudgedFiles) or not isinstance(result.golden, RunGolden):
        raise UsageError(
            "--answers needs the texts of passages, which only a run of raggs has",
            remedy="pass a run directory to --golden, or a file of answers to --correct",
        )
    if subject.projection is not None or result.report.condensed:
        raise UsageError(
            "--answers needs the systems' unchanged lists over the corpus of the golden set",
            remedy="omit --project and --condensed, or pass a file of answers to --correct",
        )
    return stored_config(result.golden.run.folder)


def _jobs(result: EvalResult) -> list[_Job]:
    """Return the queries to answer, sorted by system and query.

    Raises:
        DataError: no judged query has a reference answer.
    """
    study = result.gates.study
    if study is None or result.golden is None:
        raise TypeError("an evaluation of samples has no passage texts, so no answers can be generated")
    judged = study.judgments.qrels.qids
    known = {query.qid: query for query in result.golden.queries() if (query.answer or "").strip()}
    if not known.keys() & set(judged):
        raise DataError(
            "no judged query has a reference answer, so no generated answer can be checked",
            where=result.golden.source,
            remedy="add `answer` to the queries and run raggs run again, or give a file: --correct FILE",
        )
    return [
        _Job(system.name, known[qid], doc_ids)
        for system in result.systems
        for qid, doc_ids in _fully_covered_tops(study, system.name, result).items()
        if qid in known
    ]


def _fully_covered_tops(study: Study, system: str, result: EvalResult) -> Mapping[str, tuple[str, ...]]:
    """Map each query whose evidence is in a system's top K, by `study.evidence`, to that top K, best first."""
    hits, k = study.hits[system], study.cutoff
    run = next(each.run for each in result.systems if each.name == system)
    query, rank, row = ranked_rows(hits.qrels, run, study.scoring.ties, k)
    tops: dict[int, list[tuple[int, str]]] = {}
    names = (name.decode() for name in run.docs.take(row).tolist())
    for number, place, name in zip(query.tolist(), rank.tolist(), names, strict=True):
        tops.setdefault(number, []).append((place, name))
    met = parse_measure(study.evidence).values(hits)
    return {
        qid: tuple(name for place, name in sorted(tops.get(number, [])) if place <= k)
        for number, qid in enumerate(hits.qrels.qids)
        if met[number] == 1
    }


@contextmanager
def _opened_workshop(run: RunConfig, request: AnswersRequest, listen: Listener) -> Iterator[tuple[Workspace, Passages]]:
    llm = run.llm.mixing() if request.allow_mixed else run.llm
    with Workspace(run.workspace, llm, BudgetSettings(max_usd=request.max_usd), hear=listen) as workspace:
        yield workspace, workspace.corpus(run.corpus).passages(whole=False)


async def _answer(llm: LLM, model: str, job: _Job, passages: Passages, guess: str = "") -> _Answer:
    """Generate an answer from the passages, then compare it with the reference answer.

    Args:
        guess: placeholder for the unknown answer in a dry run.
    """
    query, found = job.query, passages.get(job.doc_ids)
    language, guard = query.language or "en", llm.guard
    texts = label_texts([found[doc_id].content for doc_id in job.doc_ids], guard)
    reply = await llm.ask(
        ChatRequest(
            model=model,
            messages=load_prompt(ANSWER, "answer").render(language, query=guard(query.text), passages=texts),
            schema=_schema({"answer": {"type": "string"}}),
            schema_name="answer",
            check=_check_answer,
            qid=query.qid,
            max_output_tokens=ANSWER_TOKENS,
        )
    )
    text = reply.value or guess
    if not text:
        return _Answer(error=reply.error or "the model gave no answer")
    verdict = await llm.ask(
        ChatRequest(
            model=model,
            messages=load_prompt(CORRECT, "correct").render(
                language, query=guard(query.text), reference=guard(query.answer or ""), answer=guard(text)
            ),
            schema=_schema({"reason": {"type": "string"}, "correct": {"type": "integer", "enum": [0, 1]}}),
            schema_name="correct",
            check=_check_verdict,
            qid=query.qid,
            max_output_tokens=VERDICT_TOKENS,
        )
    )
    if verdict.value is None:
        return _Answer(text, error=verdict.error or "the model gave no verdict")
    correct, reason = verdict.value
    return _Answer(text, correct, reason)


def _schema(properties: Mapping[str, object]) -> Mapping[str, object]:
    names: Sequence[str] = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _check_answer(found: JsonObject) -> str:
    answer = found.get("answer")
    if not isinstance(answer, str) or not answer.strip():
        raise ValueError('"answer" must be text, and not empty')
    if len(answer) > MAX_CHARACTERS:
        raise ValueError(f'"answer" must have at most {MAX_CHARACTERS} characters')
    return answer.strip()


def _check_verdict(found: JsonObject) -> tuple[bool, str]:
    correct, reason = found.get("correct"), found.get("reason")
    if isinstance(correct, bool) or correct not in (0, 1):
        raise ValueError('"correct" must be 0 or 1')
    return correct == 1, shorten(reason, MAX_REASON) if isinstance(reason, str) else ""


def _line(job: _Job, answer: _Answer) -> str:
    found = {"system": job.system, "qid": job.query.qid, "correct": answer.correct, "answer": answer.text}
    more = {"reason": answer.reason, "error": answer.error}
    return json.dumps({**found, **{name: value for name, value in more.items() if value}}, ensure_ascii=False) + "\n"
