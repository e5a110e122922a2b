"""Question generation: inputs, cost estimate, and results with the metadata of each question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from raggs.app.forecast import learn_answer_lengths
from raggs.app.services import RunServices
from raggs.base.artifacts import Passage, Query
from raggs.base.errors import UsageError
from raggs.base.hashing import hash_bytes, hash_value
from raggs.base.text import plural
from raggs.llm import BudgetSpent
from raggs.llm.rehearsal import DryRunLLM
from raggs.parts import retrievers
from raggs.parts.askers import Asker, QuestionKind
from raggs.parts.judges import Task
from raggs.parts.queries import ORIGIN_KEY
from raggs.parts.retrievers import Retriever
from raggs.runs.forecast import line_of
from raggs.runs.manifests.costs import costs
from raggs.runs.manifests.models import CostEstimate
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.store import RunStore
from raggs.runs.runner import Runner
from raggs.stages.base import StageWork
from raggs.stages.questions import QUESTIONS
from raggs.stages.questions.ask import AskConfig, assignment_of, rounds, shown_before
from raggs.stages.questions.filter import required_embedder
from raggs.stages.questions.records import AskRecord, FilterRecord, SampleRecord, Text
from raggs.stages.questions.sample import STAGE as SAMPLE
from raggs.stages.questions.sample import windows_of
from raggs.stats.question_filters import DIFFICULTIES, DifficultyLevel, LeakageSummary, difficulties, summarise_leakage

FILE = "runfile"  # retriever that reads a run file, which has no results for new questions
EARLIER_QUESTION_TOKENS = 20  # assumed tokens of an earlier question in a prompt
# stands for an earlier question that does not exist yet; has about EARLIER_QUESTION_TOKENS tokens
PLACEHOLDER = "?" * 48
EXCERPTS = 2  # assumed excerpts per question
EXCERPT = 60  # assumed tokens per excerpt


class QuestionRunServices(RunServices):
    """Services of a run that generates questions (see `raggs.stages.questions.records.QuestionServices`)."""

    @cached_property
    def documents(self) -> Sequence[Text]:
        """All documents with text, or the passages if the corpus has no documents."""
        found = [_text(each) if isinstance(each, Passage) else Text(each.source, each.body.text, each.begin)
                 for each in self.corpus.documents()]  # fmt: skip
        texts = [each for each in found if each.text.strip()]
        if not texts:
            raise self.corpus.empty()
        return texts

    @cached_property
    def asker(self) -> Asker:
        """Asker of the configuration."""
        return self.workspace.asker(self.config.questions.ask.asker)

    @cached_property
    def systems(self) -> Mapping[str, Retriever]:
        """Retrievers of the configuration that can measure difficulty: neither paid nor reading a run file."""
        paid = bool(self.embedder and self.embedder.models)
        specs = []
        for spec in self.config.retrieve.retrievers:
            kind = retrievers.REGISTRY.of(spec)
            if not (kind.paid(spec) or spec.type == FILE or (kind.needs_vectors(spec) and paid)):
                specs.append(spec)
        return self.workspace.retrievers(specs, self.passages, (), self.embedder)

    def causes(self, part: str, task: Task | None = None) -> object:
        """Return the inputs and settings of a part that can change a result.

        This extends `RunServices.causes` by the parts "documents", "asker" and "systems".
        """
        if part == "systems":
            return {name: system.causes() for name, system in self.systems.items()}
        if part == "documents":
            rows = ((each.source, each.start, each.doc_id, hash_bytes(each.text.encode())) for each in self.documents)
            return hash_value([list(row) for row in rows])
        return self.asker.causes() if part == "asker" else super().causes(part, task)

    def check_inputs(self, stages: Collection[str] = QUESTIONS.order) -> None:
        """Check the inputs before any model is called.

        Raises:
            RaggsError: there is no document, the asker cannot generate any of the wanted kinds, or a part (asker,
                embedder or retriever) is not usable.
        """
        self.asker.check()
        wanted = [kind for kind, share in self.config.questions.sample.types.items() if share]
        if not set(wanted) & set(self.asker.kinds):
            raise UsageError(
                f"the asker {self.asker.name} does not generate questions of the type {' or '.join(wanted)}",
                remedy=f"use one of {', '.join(self.asker.kinds)} in questions.sample.types, or another asker",
            )
        self.documents  # noqa: B018 - raises if there is none
        if "filter" in stages:
            required_embedder(self).check()
            for system in self.systems.values():
                system.check()

    def models(self, stages: Collection[str] = QUESTIONS.order) -> tuple[str, ...]:
        """Return the models that these stages call."""
        asked = self.asker.models if "ask" in stages else ()
        if "filter" in stages and self.embedder is not None:
            asked += tuple(self.embedder.models)
        return tuple(dict.fromkeys(asked))


def _text(passage: Passage) -> Text:
    """Return a passage as a text, with its position in the document if its text is unchanged."""
    span = passage.span
    if span is not None and span.end - span.start == len(passage.text):
        return Text(span.source, passage.text, span.start)
    return Text(passage.doc_id, passage.text, doc_id=passage.doc_id)


def estimate_questions(services: QuestionRunServices, store: RunStore, *, looks: bool) -> Iterator[CostEstimate]:
    """Yield the cost estimates of the stages that call models.

    Args:
        services: services of the run.
        store: the run directory.
        looks: whether to subtract answers in the cache.
    """
    samples = list(SAMPLE.run(StageWork({}), services.config.questions.sample, services))
    answers, count = learn_answer_lengths(services, store), len(samples)
    with services.workspace.rehearsal(remembers=looks) as llm:
        llm.turn_to("ask")
        asker = services.workspace.asker(services.config.questions.ask.asker, llm)
        if asker.models:
            services.workspace.loop.run(_estimate_asking(asker, samples, services.config.questions.ask, llm))
        else:
            llm.count(f"{asker.name} (local)", "ask", count, exact=True, paid=False)
        yield from (
            line_of(llm, "ask", model, asked, answers.length(model, task) if asked.paid else None)
            for (_, model, task), asked in llm.all_asked.items()
        )
        llm.turn_to("filter")
        embedder = services.embedder
        for model in embedder.models if embedder is not None else ():
            calls = -(-count * (1 + EXCERPTS) // embedder.config.batch) if embedder is not None else 0
            llm.count(model, "embed", calls, count * (EARLIER_QUESTION_TOKENS + EXCERPTS * EXCERPT))
            yield line_of(llm, "filter", model, llm.asked(model, "embed"))


async def _estimate_asking(asker: Asker, samples: Sequence[SampleRecord], config: AskConfig, llm: DryRunLLM) -> None:
    """Count the calls for all questions. Prompts contain earlier questions; placeholders replace those that do not
    exist yet.
    """
    said: list[str] = []
    for batch in rounds(samples, config.round):
        for assignment in [assignment_of(sample, shown_before(said, config, sample.qid)) for sample in batch]:
            missing = llm.missing
            question = await asker.ask(assignment)
            if question.text or llm.missing > missing:
                said.append(question.text or PLACEHOLDER)


PLACEHOLDER_ANSWER = "none"  # reference answer of unanswerable questions


@dataclass(frozen=True)
class QuestionsResult:
    """Result of question generation.

    Attributes:
        run: the run directory.
        files: written files: the questions, then the unanswerable ones if there are any.
        asked, kept: number of generated and kept questions.
        rejected: number of rejected questions by reason.
        why: most frequent detail of the rejected questions by reason, if several questions have the same detail.
        kinds: number of kept questions by kind.
        parts: number of kept questions by split: dev and test.
        difficulties: number of kept questions by difficulty: easy, medium, hard, or found by no system; empty if not
            measured.
        leakage: how much the questions copy from the text that answers them.
        systems: number of systems that measured the difficulty.
        usd: total cost of the run.
        short: reason why fewer questions than requested were generated; empty otherwise.
        asker: name of the asker.
        note: caveat about scores on these questions.
        stopped: error that ended the generation early; None otherwise.
    """

    run: OpenedRun
    files: tuple[Path, ...]
    asked: int
    kept: int
    rejected: Mapping[str, int]
    why: Mapping[str, str]
    kinds: Mapping[str, int]
    parts: Mapping[str, int]
    difficulties: Mapping[str, int]
    leakage: LeakageSummary
    systems: int
    usd: float
    short: str
    asker: str
    note: str
    stopped: BudgetSpent | None = None

    @property
    def usd_each(self) -> float | None:
        """Cost in USD per kept question; None if no question is kept."""
        return self.usd / self.kept if self.kept else None


def made_by(runner: Runner, stopped: BudgetSpent | None) -> QuestionsResult:
    """Return the result of a complete or partial run directory."""
    run = OpenedRun(runner.store, runner.store.manifest())
    kinds = kinds_of(run)
    records = list(run.typed("filter", FilterRecord))
    kept = [record for record in records if record.kept]
    services = runner.services
    if not isinstance(services, QuestionRunServices):
        raise TypeError("the runner does not belong to question generation")
    return QuestionsResult(
        run=run,
        files=(),
        asked=len(records),
        kept=len(kept),
        rejected=dict(Counter(record.rejected for record in records if record.rejected).most_common()),
        why=_common_details(records),
        kinds=dict(Counter(kinds[record.qid] for record in kept).most_common()),
        parts=dict(Counter(record.part for record in kept).most_common()),
        difficulties=_count_by_level(
            difficulty_of(each, len(services.systems)) for each in kept if each.found_by is not None
        ),
        leakage=summarise_leakage([record.leakage for record in kept if record.leakage is not None]),
        systems=len(services.systems),
        usd=costs(run.store).total.usd,
        short=_shortfall_reason(len(kinds), services),
        asker=services.asker.name,
        note=services.asker.NOTE,
        stopped=stopped,
    )


def _common_details(records: Iterable[FilterRecord]) -> dict[str, str]:
    """Return the most frequent detail of each reason, if at least two questions share this detail."""
    counts = Counter((record.rejected, record.detail) for record in records if record.rejected and record.detail)
    found: dict[str, str] = {}
    for (reason, detail), count in counts.most_common():
        if reason and count > 1:
            found.setdefault(reason, detail)
    return found


def _shortfall_reason(asked: int, services: QuestionRunServices) -> str:
    """Return the reason why the sample is smaller than requested; empty if the sample is complete."""
    config = services.config.questions.sample
    if asked >= config.n:
        return ""
    windows = windows_of([each.text for each in services.documents], config.window)
    return (
        f"{plural(asked, 'question')} instead of {config.n:,}: the documents have {plural(windows, 'window')} of "
        f"{config.window:,} characters, and each may give {config.per_window} questions (questions.sample.per_window)"
    )


def difficulty_of(record: FilterRecord, systems: int) -> DifficultyLevel:
    """Return the difficulty of a question, which depends on how many of these systems found its excerpts."""
    found = len(record.found_by or ())
    return difficulties(np.arange(max(1, systems))[None, :] < found)[0].level


def _count_by_level(levels: Iterable[DifficultyLevel]) -> dict[str, int]:
    counts = Counter(levels)
    return {level: counts[level] for level in DIFFICULTIES if counts[level]}


def queries_of(made: QuestionsResult) -> Iterator[Query]:
    """Yield the kept questions with their metadata."""
    samples = {sample.qid: sample for sample in made.run.typed("sample", SampleRecord)}
    kinds = kinds_of(made.run)
    for record in made.run.typed("filter", FilterRecord):
        if not record.kept or record.question is None:
            continue
        sample = samples[record.qid]
        told = {
            "type": kinds[record.qid],
            "style": sample.style,
            "persona": sample.persona,
            "asker": made.asker,
            ORIGIN_KEY: made.note,
            "source": sample.windows[0].source,
            "relevance": record.relevance,
            "leakage": record.leakage,
            "difficulty": None if record.found_by is None else difficulty_of(record, made.systems),
            "found_by": ", ".join(record.found_by or ()),
            "split": record.part,
        }
        yield Query(
            qid=record.qid,
            text=record.question,
            language=sample.language,
            answer=PLACEHOLDER_ANSWER if kinds[record.qid] == "unanswerable" else None,
            references=record.references,
            metadata={name: value for name, value in told.items() if value not in (None, "")},
        )


def kinds_of(run: OpenedRun) -> dict[str, QuestionKind]:
    """Return the kind of each question by id."""
    wanted = {sample.qid: sample.kind for sample in run.typed("sample", SampleRecord)}
    return wanted | {record.qid: record.kind for record in run.typed("ask", AskRecord) if record.kind}
