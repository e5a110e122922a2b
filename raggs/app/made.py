"""What came of making questions: what is kept, why the rest went, and the questions with all that is known of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.app.asking import QuestionWorld
from raggs.base.artifacts import Query
from raggs.base.text import plural
from raggs.llm import BudgetSpent
from raggs.parts.askers.base import Kind
from raggs.parts.queries.made import MADE
from raggs.runs.manifests.costs import costs
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.pipeline.runner import Runner
from raggs.stages.questions.records import AskRecord, FilterRecord, SampleRecord
from raggs.stages.questions.sample import windows_of
from raggs.stats.asking import DIFFICULTIES, LeakageSummary, difficulties, summarise_leakage
from raggs.stats.asking.difficulty import Level

NONE = "none"  # the expected answer of a question that has none


@dataclass(frozen=True)
class Made:
    """What came of making questions.

    Attributes:
        run: the run directory.
        files: that were written: questions, then those without an answer, where there are any.
        asked, kept: questions.
        rejected: by reason, how many went.
        why: by reason, what was told most often of those that went, where anything was.
        kinds: by kind, how many are kept.
        parts: how many of them are for choosing (dev) and for reporting (test).
        difficulties: how many of them are easy, medium, hard or found by none of the systems; empty if not measured.
        leakage: how far they copy what answers them.
        systems: that were asked how hard the questions are.
        usd: what the run has cost in all.
        short: why fewer were asked for than were wanted; empty where all were.
        asker: who asked.
        note: what whoever reads scores over the questions must know.
        stopped: the error that ended it before the last question, where one did.
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
        """What a question that is kept has cost; None where none is."""
        return self.usd / self.kept if self.kept else None


def made_by(runner: Runner, stopped: BudgetSpent | None) -> Made:
    """What a runner's run directory holds, whole or in part."""
    run = OpenedRun(runner.store, runner.store.manifest())
    kinds = kinds_of(run)
    records = list(run.typed("filter", FilterRecord))
    kept = [record for record in records if record.kept]
    services = runner.services
    if not isinstance(services, QuestionWorld):
        raise TypeError("a runner of another pipeline")
    return Made(
        run=run,
        files=(),
        asked=len(records),
        kept=len(kept),
        rejected=dict(Counter(record.rejected for record in records if record.rejected).most_common()),
        why=_told(records),
        kinds=dict(Counter(kinds[record.qid] for record in kept).most_common()),
        parts=dict(Counter(record.part for record in kept).most_common()),
        difficulties=_counted(difficulty_of(each, len(services.systems)) for each in kept if each.found_by is not None),
        leakage=summarise_leakage([record.leakage for record in kept if record.leakage is not None]),
        systems=len(services.systems),
        usd=costs(run.store).total.usd,
        short=_short(len(kinds), services),
        asker=services.asker.name,
        note=services.asker.NOTE,
        stopped=stopped,
    )


def _told(records: Iterable[FilterRecord]) -> dict[str, str]:
    """By reason, the detail that most of the questions share."""
    counts = Counter((record.rejected, record.detail) for record in records if record.rejected and record.detail)
    found: dict[str, str] = {}
    for (reason, detail), count in counts.most_common():
        if reason and count > 1:
            found.setdefault(reason, detail)
    return found


def _short(asked: int, services: QuestionWorld) -> str:
    """Why the sample is smaller than was wanted."""
    config = services.config.questions.sample
    if asked >= config.n:
        return ""
    windows = windows_of([each.text for each in services.documents], config.window)
    return (
        f"{plural(asked, 'question')} asked for, not {config.n:,}: the documents have {plural(windows, 'window')} of "
        f"{config.window:,} characters, each asked about {config.per_window} times (questions.sample.per_window)"
    )


def difficulty_of(record: FilterRecord, systems: int) -> Level:
    """How hard a question is that some systems were asked."""
    found = len(record.found_by or ())
    return difficulties(np.arange(max(1, systems))[None, :] < found)[0].level


def _counted(levels: Iterable[Level]) -> dict[str, int]:
    counts = Counter(levels)
    return {level: counts[level] for level in DIFFICULTIES if counts[level]}


def queries_of(made: Made) -> Iterator[Query]:
    """The questions that are kept, with what is known of each."""
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
            MADE: made.note,
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
            answer=NONE if kinds[record.qid] == "unanswerable" else None,
            references=record.references,
            metadata={name: value for name, value in told.items() if value not in (None, "")},
        )


def kinds_of(run: OpenedRun) -> dict[str, Kind]:
    """Of which kind each question is."""
    wanted = {sample.qid: sample.kind for sample in run.typed("sample", SampleRecord)}
    return wanted | {record.qid: record.kind for record in run.typed("ask", AskRecord) if record.kind}
