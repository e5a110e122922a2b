"""Make questions of documents, or go on with that; or say what it would do and cost.

The questions go to a file that `raggs run`, `raggs chunks eval` and other tools read: those with excerpts, in the order
in which they were asked for. Questions without an answer on purpose go to a file of their own beside it, since nothing
can be found for them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.app.addresses import permit
from raggs.app.asking import QuestionWorld, estimate_questions
from raggs.app.run import run_folder
from raggs.artifacts import Query
from raggs.askers.base import Kind
from raggs.asking import DIFFICULTIES, LeakageSummary, difficulties, summarise_leakage
from raggs.asking.difficulty import Level
from raggs.atomic import disk, write_atomic
from raggs.config.environment import refuse_stored
from raggs.config.load import LoadedConfig
from raggs.config.models import RunConfig
from raggs.errors import UsageError
from raggs.execution.base import ExecutionContext
from raggs.execution.local import LocalExecution
from raggs.hashing import hash_file
from raggs.llm import BudgetSpent
from raggs.manifests.costs import costs
from raggs.manifests.opened import OpenedRun
from raggs.manifests.store import RunStore
from raggs.pipeline.events import Listener, silent
from raggs.pipeline.part import run_part
from raggs.pipeline.plan import Selection
from raggs.pipeline.runner import Runner
from raggs.queries.base import format_of
from raggs.queries.made import MADE
from raggs.queries.writing import write_queries
from raggs.questions import QUESTIONS
from raggs.questions.records import AskRecord, FilterRecord, SampleRecord
from raggs.questions.sample import windows_of
from raggs.text import plural

SUFFIX = ".questions"
WRITTEN = "written.json"
NONE = "none"
UNANSWERABLE = ".unanswerable"


@dataclass(frozen=True)
class Made:
    """What came of making questions.

    Attributes:
        run: the run directory.
        files: that were written: questions, then those without an answer, where there are any.
        asked, kept: questions.
        rejected: by reason, how many went.
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


def questions_folder(config: RunConfig) -> Path:
    """Where the run lies that makes a configuration's questions: beside that of the golden set."""
    folder = run_folder(config)
    return folder.with_name(folder.name + SUFFIX)


@contextmanager
def open_questions(
    config: LoadedConfig | RunConfig, *, folder: Path | None = None, listen: Listener = silent
) -> Iterator[Runner]:
    """A runner that makes questions; its services are closed at the end of the block.

    Raises:
        ConfigError: the configuration holds a secret.
        PrerequisiteError: a server is new that a key would be sent to (see `raggs.app.addresses`).
    """
    settings = config.run if isinstance(config, LoadedConfig) else config
    permit(settings, ())
    stored = settings.model_dump(mode="json", exclude={"questions"}) | settings.questions.model_dump(mode="json")
    refuse_stored(stored)
    services = QuestionWorld(settings, listen)
    store = RunStore(folder or questions_folder(settings), durable=lambda: bool(services.models()))
    runner = Runner(
        store=store,
        pipeline=QUESTIONS,
        name=f"{settings.name}{SUFFIX}",
        config=stored,
        config_file=str(config.path) if isinstance(config, LoadedConfig) else None,
        configs=settings.questions.stage_configs(),
        services=services,
        execution=_here(),
        estimate=lambda: tuple(estimate_questions(services, store, looks=False)) if services.models() else (),
        outlook=lambda: tuple(estimate_questions(services, store, looks=True)),
        listen=listen,
    )
    try:
        yield runner
    finally:
        services.close()


def _here() -> LocalExecution:
    """All work in this process: there are few questions, and each round waits for the one before."""
    return LocalExecution(LocalExecution.Config(), ExecutionContext(lambda: "", lambda *_: None))


def output_of(config: RunConfig, out: Path | None) -> Path:
    """Where the questions go: to `out`, or to where the configuration reads its questions.

    Raises:
        UsageError: there is no such place, or its ending says no format of questions.
    """
    found = out or getattr(config.queries, "path", None)
    if not isinstance(found, Path):
        raise UsageError("nothing says where the questions go", remedy="name a file: --out questions.jsonl")
    format_of(found)
    return found


def check_free(store: RunStore, out: Path, *, force: bool = False) -> None:
    """See to it that no file is lost that this run has not written.

    Raises:
        UsageError: there is one, and nobody forces.
    """
    for file in (out, _unanswerable(out)):
        if file.exists() and not force and _written(store).get(str(file.resolve())) != hash_file(file):
            remedy = "name another file with --out, or pass --force to replace it"
            raise UsageError("is there already, and this run did not write it as it is", where=file, remedy=remedy)


def make_questions(runner: Runner, out: Path, *, partial: bool = False, force: bool = False) -> Made:
    """Run the pipeline, and write the questions. Where the budget ends, what is done is made use of.

    Args:
        out: the file; its ending says the format.
        partial: go on with the questions that a stopped run has asked, rather than ask more.
        force: replace a file that the run has not written.

    Raises:
        RaggsError: see `raggs.errors`; whatever was finished or paid for is kept.
    """
    check_free(runner.store, out, force=force)
    everything = Selection(QUESTIONS.order)
    stopped: BudgetSpent | None = None
    if partial:
        run_part(runner, everything)
    else:
        try:
            runner.run(everything)
        except BudgetSpent as error:
            if OpenedRun(runner.store, runner.store.manifest()).unfinished is None:
                raise
            run_part(runner, everything)
            stopped = error
    made = _made(runner, stopped)
    return _write(made, out)


def _made(runner: Runner, stopped: BudgetSpent | None) -> Made:
    run = OpenedRun(runner.store, runner.store.manifest())
    kinds = _kinds(run)
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


def _write(made: Made, out: Path) -> Made:
    """Write the files, and note what was written."""
    found = list(_queries(made))
    answered = [query for query in found if query.references]
    none = [query for query in found if not query.references]
    places = {out: answered} | ({_unanswerable(out): none} if none else {})
    for path, queries in places.items():
        write_queries(queries, path)
    store = made.run.store
    noted = {**_written(store), **{str(path.resolve()): hash_file(path) for path in places}}
    with disk(store.folder, "choose another workspace"):
        write_atomic(store.folder / WRITTEN, json.dumps(noted, indent=2).encode() + b"\n")
    return Made(**{**made.__dict__, "files": tuple(places)})


def _queries(made: Made) -> Iterator[Query]:
    """The questions that are kept, with what is known of each."""
    samples = {sample.qid: sample for sample in made.run.typed("sample", SampleRecord)}
    kinds = _kinds(made.run)
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


def _kinds(run: OpenedRun) -> dict[str, Kind]:
    """Of which kind each question is."""
    wanted = {sample.qid: sample.kind for sample in run.typed("sample", SampleRecord)}
    return wanted | {record.qid: record.kind for record in run.typed("ask", AskRecord) if record.kind}


def _unanswerable(out: Path) -> Path:
    return out.with_name(f"{out.stem}{UNANSWERABLE}{out.suffix}")


def _written(store: RunStore) -> dict[str, str]:
    """By path, the hash of each file that the run has written."""
    try:
        found = json.loads((store.folder / WRITTEN).read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(path): str(sha256) for path, sha256 in found.items()} if isinstance(found, dict) else {}
