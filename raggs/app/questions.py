"""Generation of questions from documents: start, resume, or estimate the work and the cost.

The questions with excerpts are written to a file that `raggs run`, `raggs chunks eval` and other tools read, in the
order in which they were generated. Deliberately unanswerable questions go to a separate file next to it, because no
passage is relevant to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raggs.app.addresses import Approve, approve_nothing, permit
from raggs.app.question_results import QuestionRunServices, QuestionsResult, estimate_questions, made_by, queries_of
from raggs.app.run import run_folder
from raggs.app.services import keep_default_embedder, telling_embedder
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
    """Return the run directory of question generation, which is next to the golden set's."""
    folder = run_folder(config)
    return folder.with_name(folder.name + SUFFIX)


@contextmanager
def open_questions(
    config: LoadedConfig | RunConfig, *, folder: Path | None = None, listen: Listener = ignore_event
) -> Iterator[Runner]:
    """Yield a runner that generates questions; its services are closed at the end of the block.

    Raises:
        ConfigError: the configuration contains a secret.
        PrerequisiteError: a key would be sent to a new server (see `raggs.app.addresses`), or the default embedder is
            not the one of the run.
    """
    settings = config.run if isinstance(config, LoadedConfig) else config
    permit(settings, ())
    stored = settings.model_dump(mode="json", exclude={"questions"}) | settings.questions.model_dump(mode="json")
    refuse_stored(stored)
    services = QuestionRunServices(settings, listen)
    store = RunStore(folder or questions_folder(settings), durable=lambda: bool(services.models()), pipeline=QUESTIONS)
    keep_default_embedder(settings, store)
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
        listen=telling_embedder(listen, settings, "filter"),
    )
    try:
        yield runner
    finally:
        services.close()


def _local_execution() -> LocalExecution:
    """Return local execution. A cluster would not help: there are few questions, and each round waits for the
    previous one.
    """
    return LocalExecution(LocalExecution.Config(), ExecutionContext(lambda: "", lambda *_: None))


def output_of(config: RunConfig, out: Path | None) -> Path:
    """Return the output file: `out`, or the file from which the configuration reads its questions.

    Raises:
        UsageError: neither is given, or the extension is not a format of questions.
    """
    found = out or getattr(config.queries, "path", None)
    if not isinstance(found, Path):
        raise UsageError("the output file of the questions is unknown", remedy="name a file: --out questions.jsonl")
    format_of(found)
    return found


def check_free(store: RunStore, out: Path, *, force: bool = False) -> None:
    """Raise an error if a file that this run has not written would be overwritten.

    Raises:
        UsageError: there is such a file, and `force` is false.
    """
    for file in (out, _unanswerable(out)):
        if file.exists() and not force and _written_hashes(store).get(str(file.resolve())) != hash_file(file):
            remedy = "name another file with --out, or pass --force to replace it"
            raise UsageError("exists, and was not written by this run or has changed since", where=file, remedy=remedy)


def questions(
    config: LoadedConfig | Path | str,
    out: Path | None = None,
    *,
    force: bool = False,
    listen: Listener = ignore_event,
    approve: Approve = approve_nothing,
) -> QuestionsResult:
    """Generate questions from a configuration's documents, or resume. Works in notebooks.

    Args:
        config: a loaded configuration, or the path of its file.
        out: output file; None for the file from which the configuration reads its questions.
        force: overwrite a file that the run has not written.
        approve: decides whether a key may be sent to a new address (see `raggs.app.addresses`).

    Raises:
        RaggsError: see `raggs.base.errors`; finished and paid work is kept.
    """
    if in_loop():
        return run_in_thread(lambda hear: questions(config, out, force=force, listen=hear, approve=approve), listen)
    loaded = config if isinstance(config, LoadedConfig) else load_config(config)
    permit(loaded.run, QUESTIONS.order, approve)
    with open_questions(loaded, listen=listen) as runner:
        return make_questions(runner, output_of(loaded.run, out), force=force)


def make_questions(
    runner: Runner, out: Path, *, partial: bool = False, force: bool = False, discard_edits: bool = False
) -> QuestionsResult:
    """Run the pipeline and write the questions. If the budget is used up, the finished work is written.

    Args:
        out: output file; its extension sets the format.
        partial: use only the questions that a stopped run has generated.
        force: overwrite a file that the run has not written.
        discard_edits: replace artifacts that were edited by hand.

    Raises:
        RaggsError: see `raggs.base.errors`; finished and paid work is kept.
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
    """Write the files and record their hashes."""
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
        spare.unlink()  # the unanswerable questions of an earlier result
    noted = {**before, **{str(path.resolve()): hash_file(path) for path in places}}
    with disk(store.folder, "choose another workspace"):
        write_atomic(store.folder / WRITTEN_FILES, json.dumps(noted, indent=2).encode() + b"\n")
    return QuestionsResult(**{**made.__dict__, "files": tuple(places)})


def _unanswerable(out: Path) -> Path:
    return out.with_name(f"{out.stem}{UNANSWERABLE}{out.suffix}")


def _written_hashes(store: RunStore) -> dict[str, str]:
    """Return the hash of each file that the run has written, by path."""
    try:
        found = json.loads((store.folder / WRITTEN_FILES).read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(path): str(sha256) for path, sha256 in found.items()} if isinstance(found, dict) else {}
