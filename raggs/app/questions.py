"""Make questions of documents, or go on with that; or say what it would do and cost.

The questions go to a file that `raggs run`, `raggs chunks eval` and other tools read: those with excerpts, in the order
in which they were asked for. Questions without an answer on purpose go to a file of their own beside it, since nothing
can be found for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raggs.app.addresses import Approve, approve_nothing, permit
from raggs.app.question_results import QuestionRunServices, QuestionsResult, estimate_questions, made_by, queries_of
from raggs.app.run import run_folder
from raggs.base.errors import UsageError
from raggs.base.files import disk, hash_file, write_atomic
from raggs.config.load import LoadedConfig, load_config
from raggs.config.models import RunConfig
from raggs.config.source import refuse_stored
from raggs.llm import BudgetSpent
from raggs.parts.queries import format_of
from raggs.parts.queries.writing import write_queries
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.runs.execution import ExecutionContext, LocalExecution
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.store import RunStore, config_place
from raggs.runs.partial import run_part
from raggs.runs.plan import Selection
from raggs.runs.runner import Runner
from raggs.stages.questions import QUESTIONS

__all__ = [
    "QuestionsResult",
    "check_free",
    "make_questions",
    "open_questions",
    "output_of",
    "questions",
    "questions_folder",
]

SUFFIX = ".questions"
WRITTEN_FILES = "written.json"
UNANSWERABLE = ".unanswerable"


def questions_folder(config: RunConfig) -> Path:
    """Where the run lies that makes a configuration's questions: beside that of the golden set."""
    folder = run_folder(config)
    return folder.with_name(folder.name + SUFFIX)


@contextmanager
def open_questions(
    config: LoadedConfig | RunConfig, *, folder: Path | None = None, listen: Listener = ignore_event
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
    services = QuestionRunServices(settings, listen)
    store = RunStore(folder or questions_folder(settings), durable=lambda: bool(services.models()), pipeline=QUESTIONS)
    runner = Runner(
        store=store,
        pipeline=QUESTIONS,
        name=f"{settings.name}{SUFFIX}",
        config=stored,
        config_file=config_place(config.path, store.folder) if isinstance(config, LoadedConfig) else None,
        configs=settings.questions.stage_configs(),
        services=services,
        execution=_local_execution(),
        estimate=lambda: tuple(estimate_questions(services, store, looks=False)) if services.models() else (),
        outlook=lambda: tuple(estimate_questions(services, store, looks=True)),
        listen=listen,
    )
    try:
        yield runner
    finally:
        services.close()


def _local_execution() -> LocalExecution:
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
        if file.exists() and not force and _written_hashes(store).get(str(file.resolve())) != hash_file(file):
            remedy = "name another file with --out, or pass --force to replace it"
            raise UsageError("is there already, and this run did not write it as it is", where=file, remedy=remedy)


def questions(
    config: LoadedConfig | Path | str,
    out: Path | None = None,
    *,
    force: bool = False,
    listen: Listener = ignore_event,
    approve: Approve = approve_nothing,
) -> QuestionsResult:
    """Make questions of a configuration's documents, or go on with that. Works in notebooks too.

    Args:
        config: a loaded configuration, or the path of its file.
        out: where the questions go; None: where the configuration reads them.
        force: replace a file that the run has not written.
        approve: says whether a key may go to an address that is new (see `raggs.app.addresses`).

    Raises:
        RaggsError: see `raggs.base.errors`; whatever was finished or paid for is kept.
    """
    if in_loop():
        return run_in_thread(lambda hear: questions(config, out, force=force, listen=hear), listen)
    loaded = config if isinstance(config, LoadedConfig) else load_config(config)
    permit(loaded.run, QUESTIONS.order, approve)
    with open_questions(loaded, listen=listen) as runner:
        return make_questions(runner, output_of(loaded.run, out), force=force)


def make_questions(
    runner: Runner, out: Path, *, partial: bool = False, force: bool = False, discard_edits: bool = False
) -> QuestionsResult:
    """Run the pipeline, and write the questions. Where the budget ends, what is done is made use of.

    Args:
        out: the file; its ending says the format.
        partial: go on with the questions that a stopped run has asked, rather than ask more.
        force: replace a file that the run has not written.
        discard_edits: replace artifacts of the run that were edited by hand.

    Raises:
        RaggsError: see `raggs.base.errors`; whatever was finished or paid for is kept.
    """
    check_free(runner.store, out, force=force)
    everything = Selection(QUESTIONS.order, discards_edits=discard_edits)
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
    made = made_by(runner, stopped)
    return _write(made, out)


def _write(made: QuestionsResult, out: Path) -> QuestionsResult:
    """Write the files, and note what was written."""
    if not made.kept:
        return made
    found = list(queries_of(made))
    answered = [query for query in found if query.references]
    none = [query for query in found if not query.references]
    places = {out: answered} | ({_unanswerable(out): none} if none else {})
    for path, queries in places.items():
        write_queries(queries, path)
    store = made.run.store
    before, spare = _written_hashes(store), _unanswerable(out)
    if not none and spare.is_file() and before.pop(str(spare.resolve()), None) == hash_file(spare):
        spare.unlink()  # of questions that are gone
    noted = {**before, **{str(path.resolve()): hash_file(path) for path in places}}
    with disk(store.folder, "choose another workspace"):
        write_atomic(store.folder / WRITTEN_FILES, json.dumps(noted, indent=2).encode() + b"\n")
    return QuestionsResult(**{**made.__dict__, "files": tuple(places)})


def _unanswerable(out: Path) -> Path:
    return out.with_name(f"{out.stem}{UNANSWERABLE}{out.suffix}")


def _written_hashes(store: RunStore) -> dict[str, str]:
    """By path, the hash of each file that the run has written."""
    try:
        found = json.loads((store.folder / WRITTEN_FILES).read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(path): str(sha256) for path, sha256 in found.items()} if isinstance(found, dict) else {}
