"""Read a run: typed access to its artifacts and to the golden set.

`ArtifactByQuery` locates each query's lines in an artifact, so that one query can be read without the others. One pass
over the bytes finds the ids. Records are parsed only when they are requested. If a file changes after that pass, `of`
raises an error or returns the new content, but never the lines of another query.

`budget_coverage` reports how many queries of a run are usable after its budget was used up, and what is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from os.path import normpath
from pathlib import Path
from shlex import join, quote
from typing import TypeVar

from pydantic import ValidationError

from raggs.base.artifacts import JudgeRecord, PruneRecord, RankRecord, Record, artifact_file
from raggs.base.errors import DataError, NotFoundError
from raggs.base.files import hash_file, regular_file, relative_to_cwd
from raggs.base.jsonl import M, all_records, first_fault, read_records
from raggs.base.text import plural
from raggs.base.types import as_object
from raggs.llm.budget import BudgetCap
from raggs.runs.manifests.models import RunManifest, StageOutput
from raggs.runs.manifests.store import RunStore
from raggs.stages import GOLDEN
from raggs.stages.pipeline import Pipeline, load_pipeline

MAX_SHOWN_IDS = 5
UNKNOWN_CONFIG = Path("CONFIG")


@dataclass(frozen=True)
class UnfinishedStage:
    """A stage with a partial result: it was stopped, or it processed only the finished queries of a stopped stage.

    Attributes:
        left: ids of the queries that the stage has not finished, sorted.
        short: ids of queries whose rankings ended early because the budget was used up, sorted.
        cap: budget cap that stopped the stage; None if something else stopped it.
    """

    stage: str
    left: tuple[str, ...]
    short: tuple[str, ...] = ()
    cap: BudgetCap | None = None

    def __str__(self) -> str:
        told = []
        if self.left or not self.short:
            told.append(f"{plural(len(self.left), 'query')} omitted ({_shorten_ids(self.left)})")
        if self.short:
            told.append(f"{plural(len(self.short), 'ranking')} ended early ({_shorten_ids(self.short)})")
        why = f", because the budget is used up ({self.cap})" if self.cap else ""
        return f"stage {self.stage} was stopped: {' and '.join(told)}{why}"


def _goes_on(record: Record) -> bool:
    return record.kept if isinstance(record, PruneRecord) else True


def _shorten_ids(qids: Sequence[str]) -> str:
    return ", ".join(qids[:MAX_SHOWN_IDS]) + (", …" if len(qids) > MAX_SHOWN_IDS else "")


def find_config_file(folder: Path, stated: str) -> Path:
    """Return the path of a configuration file relative to the current folder, or only its name if it does not exist.

    Args:
        stated: its path relative to `folder`, as manifests store it.
    """
    found = Path(normpath(folder.resolve() / stated))
    return relative_to_cwd(found) if found.is_file() else Path(found.name)


@dataclass(frozen=True)
class OpenedRun:
    """A run directory, opened read-only. Artifacts are read line by line, so large runs need little memory.

    Attributes:
        as_found: whether edited artifacts are read instead of raising an error. Audits need this.
    """

    store: RunStore
    manifest: RunManifest
    as_found: bool = False

    @property
    def pipeline(self) -> Pipeline:
        """The stages of the run, without those that its configuration omits.

        Raises:
            UsageError: this version of raggs does not know the run's pipeline.
        """
        return load_pipeline(self.manifest.pipeline).of(self.manifest.config)

    @property
    def folder(self) -> Path:
        """The run directory."""
        return self.store.folder

    @property
    def command(self) -> str:
        """Shell command that continues this run, with its configuration and, if it differs, its name."""
        manifest = self.manifest
        words = [*self.pipeline.command.split()[:-1], str(self.config_file)]
        if manifest.lineage is not None:
            parent = relative_to_cwd((self.folder / manifest.lineage.folder).resolve())
            return join(["raggs", "update", str(parent), *words[2:], "--run-id", manifest.name])
        if as_object(manifest.config.get("judge")).get("human_first"):
            words += ["--human-first"]
        if manifest.pipeline == GOLDEN.name and manifest.name != manifest.config.get("name", manifest.name):
            words += ["--run-id", manifest.name]
        return join(words)

    @property
    def config_file(self) -> Path:
        """Path of the run's configuration file, relative to the current folder. If the file no longer exists, only its
        name. If the manifest names no file, the placeholder `CONFIG`.
        """
        stated = self.manifest.config_file
        return UNKNOWN_CONFIG if stated is None else find_config_file(self.folder, stated)

    def records(self, artifact: str) -> Iterator[Record]:
        """Return the records of an artifact ("embed" … "rank", "rank.journal").

        Raises:
            UsageError: the pipeline has no such artifact.
            NotFoundError: its stage has not run, or was stopped before it finished a query.
            DataError: the artifact was changed since its stage wrote it.
        """
        return self.typed(artifact, self.pipeline.record(artifact))

    def typed(self, artifact: str, model: type[M]) -> Iterator[M]:
        """Return the records of an artifact as a given record type; see `records`."""
        path = self.file(artifact)
        if not path.is_file():
            stage = self.pipeline.writer(artifact)
            raise NotFoundError(f"stage {stage} {self._why_nothing(stage)}", where=path, remedy=self.command)
        self.check(artifact)
        return islice(read_records(path, model), self.believed_lines(artifact))

    def check(self, artifact: str) -> None:
        """Compare an artifact with the hash in its stage's lock. An unchanged file is hashed only once, and a missing
        file is ignored.

        Raises:
            DataError: the artifact was edited manually, or its stage is running.
        """
        name = self.pipeline.writer(artifact)
        path, output = self.store.path(artifact), _output(self.manifest, name, artifact)
        if self.as_found or output is None or self.believed_lines(artifact) is not None or not path.is_file():
            return
        stat = path.stat()
        if self._compared.get(artifact) == (stamp := (stat.st_size, stat.st_mtime_ns)):
            return
        found = hash_file(path)
        # the run may have continued since its manifest was read, so the current manifest decides
        if found != output.sha256:
            now = _output(self.store.manifest(), name, artifact)
            if now is None or found != now.sha256:
                raise self._not_as_written(artifact, name)
        self._compared[artifact] = stamp

    @cached_property
    def _compared(self) -> dict[str, tuple[int, int]]:
        """Size and modification time of each artifact whose hash was correct, so that it is not hashed again."""
        return {}

    def _not_as_written(self, artifact: str, stage: str) -> DataError:
        path = self.store.path(artifact)
        if self.store.marker(stage).is_file():
            return DataError(f"stage {stage} was restarted and has not finished", where=path, remedy=self.command)
        return edited_by_hand(self.store, artifact, stage, f"discard the edit with: {self.command} --yes")

    def _why_nothing(self, stage: str) -> str:
        """Return why a stage has neither a complete nor a partial result."""
        if cap := self.store.spent(stage):
            return f"finished no query because the budget is used up ({cap})"
        return "was stopped before it finished a query" if self.store.begun(stage) else "has not run"

    def believed_lines(self, artifact: str) -> int | None:
        """Return how many lines of an artifact belong to the stage's result, or None if all do.

        A restarted stage appends lines to its journal. They are not part of the result until the stage has finished.
        """
        name = self.pipeline.writer(artifact)
        lock = self.manifest.stages.get(name) if self.store.marker(name).is_file() else None
        if lock is None or artifact != self.pipeline.stage(name).JOURNAL:
            return None
        output = lock.outputs.get(artifact_file(artifact))
        return output.rows if output else None

    def file(self, artifact: str) -> Path:
        """Return the path of an artifact. If its stage never finished, return the path of its partial result."""
        whole, partial = self.store.path(artifact), self.store.partial(artifact)
        return partial if self.pipeline.writer(artifact) not in self.manifest.stages and partial.is_file() else whole

    @cached_property
    def graded(self) -> bool:
        """Whether any passage has a grade. If no passage has one, `raggs.runs.manifests.reasons.ungraded` explains why.

        Raises:
            NotFoundError: the judge has not run yet.
        """
        return any(record.grade for record in self.typed("judge", JudgeRecord))

    @property
    def unfinished(self) -> UnfinishedStage | None:
        """The stage that was stopped after it had finished some of its queries, or None."""
        return next(iter(self.parts), None)

    @cached_property
    def parts(self) -> tuple[UnfinishedStage, ...]:
        """Every stage with a partial result: the stopped stage, then the stages that processed its finished queries."""
        order = self.pipeline.order
        begun = [name for name in order if name not in self.manifest.stages and self.store.partial(name).is_file()]
        return tuple(
            UnfinishedStage(name, tuple(self._left(name)), tuple(self._short(name)), self.store.spent(name))
            for name in begun
            if self.pipeline.stage(name).READS
        )

    @property
    def lacks(self) -> str:
        """A sentence that names the missing queries and the stages that lack them; empty if no stage has a partial
        result.
        """
        return "; ".join(str(part) for part in self.parts if part.left or part.short or part == self.unfinished)

    def _left(self, stage: str) -> Iterator[str]:
        """Yield the ids of the queries that a stage has not finished. Queries of which no passage was kept are not
        included.
        """
        before = {record.qid for record in self.records(self._before(stage)) if _goes_on(record)}
        yield from sorted(before - {record.qid for record in self.records(stage)})

    def _short(self, stage: str) -> Iterator[str]:
        """Yield the ids of the queries whose rankings ended early because the budget was used up."""
        found = self.pipeline.stage(stage)
        for artifact in found.BESIDE:
            if self.file(artifact).is_file():
                yield from (record.qid for record in self.records(artifact) if found.cut_short(record))

    def _before(self, stage: str) -> str:
        """Return the artifact that determines which queries a stage processes: the last artifact that it reads."""
        return self.pipeline.stage(stage).READS[-1]

    def golden(self) -> Iterator[tuple[str, list[RankRecord]]]:
        """Yield each query id with its ranked passages, best first."""
        for qid, records in groupby(self.typed("rank", RankRecord), key=lambda record: record.qid):
            yield qid, list(records)


def _output(manifest: RunManifest, stage: str, artifact: str) -> StageOutput | None:
    lock = manifest.stages.get(stage)
    return lock.outputs.get(artifact_file(artifact)) if lock else None


def edited_by_hand(store: RunStore, artifact: str, stage: str, remedy: str) -> DataError:
    """Return the error for an artifact that was changed since its stage wrote it.

    Args:
        store: the run directory.
        artifact: name of the artifact.
        stage: the stage that wrote it.
        remedy: how to discard the edit, as a clause for the error message.
    """
    path = store.path(artifact)
    if artifact == "judge":
        remedy = (
            f"to change a grade permanently, use raggs review set {quote(str(store.folder))} QUERY PASSAGE "
            f"GRADE; {remedy}"
        )
    said = f"was edited manually or is damaged: it differs from the output of stage {stage}"
    return DataError(said, where=path, line=store.first_edited_line(artifact), remedy=remedy)


def open_run(folder: Path | str, *, as_found: bool = False) -> OpenedRun:
    """Open a run directory.

    Args:
        folder: the run directory.
        as_found: see `OpenedRun`.

    Raises:
        NotFoundError: the directory contains no run.
        DataError: the manifest is damaged.
    """
    store = RunStore(Path(folder))
    return OpenedRun(store, store.manifest(), as_found)


R = TypeVar("R", bound=Record)
# a `"qid"` inside a text has escaped quotation marks, so it does not match
QID = re.compile(rb'"qid":\s*("(?:[^"\\]|\\.)+")')
RANK_FIELD = re.compile(rb'"rank":\s*([0-9]+)')


class ArtifactByQuery:
    """Access to the records of an artifact by query. If the file does not exist, there are none.

    Raises:
        DataError: a line has no query id, or the file was changed since its stage wrote it.
    """

    def __init__(self, run: OpenedRun, artifact: str) -> None:
        self._path = run.file(artifact)
        run.check(artifact)
        self._pieces: dict[str, list[tuple[int, int]]] = {}
        if self._path.is_file():
            for qid, begin, end in _pieces(self._path):
                self._pieces.setdefault(qid, []).append((begin, end))

    @property
    def qids(self) -> tuple[str, ...]:
        """The query ids, in the order of the file."""
        return tuple(self._pieces)

    def of(self, qid: str, model: type[R], depth: int | None = None) -> tuple[R, ...]:
        """Return a query's records; empty if it has none.

        Args:
            qid: the query id.
            model: record type.
            depth: maximum rank to read; None to read all ranks.

        Raises:
            DataError: a line is not a valid `model`, or the file has changed.
        """
        if qid not in self._pieces:
            return ()
        lines = [line for line in self._lines(qid, depth) if line.strip()]
        try:
            records = all_records(lines, model) or list(map(model.model_validate_json, lines))
        except ValidationError as error:
            where = f"{self._path}, query {qid}"
            raise DataError(first_fault(error), where=where, remedy=f"expected a {model.__name__}") from error
        if any(record.qid != qid for record in records):
            raise DataError("changed while it was read", where=self._path, remedy="run the command again")
        return tuple(records)

    def _lines(self, qid: str, depth: int | None) -> Iterator[bytes]:
        # unbuffered, because a query's lines are mostly contiguous and read by one call
        with self._path.open("rb", buffering=0) as file:
            for begin, end in self._pieces[qid]:
                file.seek(begin)
                lines = file.read(end - begin).splitlines()
                yield from lines if depth is None else (line for line in lines if not _is_beyond_depth(line, depth))


def _is_beyond_depth(line: bytes, depth: int) -> bool:
    """Return whether a line is a record with a rank greater than `depth`."""
    found = RANK_FIELD.search(line)
    return found is not None and int(found[1]) > depth


def _pieces(path: Path) -> Iterator[tuple[str, int, int]]:
    """Yield the query id, start byte and end byte of each block of consecutive lines of one query."""
    named, head, begin, byte = b"", b"\n", 0, 0
    with regular_file(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            # the next lines of the same query start with the same bytes, so their ids need not be parsed
            if not line.startswith(head):
                found = QID.search(line)
                if found is None and line.strip():
                    raise DataError("has no query id", where=path, line=number, remedy="run raggs audit on the run")
                if found is not None and found[1] != named:
                    if named:
                        yield json.loads(named), begin, byte
                    named, begin = found[1], byte
                head = b"\n" if found is None else line[: found.end()]
            byte += len(line)
    if named:
        yield json.loads(named), begin, byte


JUDGE, RANK = "judge", "rank"


@dataclass(frozen=True)
class BudgetCoverage:
    """How far a run got before its budget was used up.

    Attributes:
        cap: the cap that was reached, and the amount spent.
        queries: number of queries of the run.
        graded: number of fully graded queries.
        ranked: number of graded queries that have an order; None if the rank stage did not start.
        short: number of ranked queries whose ranking ended early.
    """

    cap: BudgetCap
    queries: int
    graded: int
    ranked: int | None
    short: int

    @property
    def json(self) -> dict[str, object]:
        """The progress as commands print it with --json."""
        cap = {"setting": f"budget.{self.cap.setting}", "limit": self.cap.limit, "spent": self.cap.spent}
        counts = {"queries": self.queries, "graded": self.graded, "ranked": self.ranked, "short": self.short}
        return {"cap": cap, **counts}

    @property
    def sentence(self) -> str:
        """A sentence about the progress, and how to continue."""
        return (
            f"the budget is used up ({self.cap}): {self}. Paid answers are kept. To continue the run, set a higher cap"
        )

    def __str__(self) -> str:
        told = f"{self.graded:,} of {plural(self.queries, 'query')} fully graded"
        if self.ranked is None:
            return told
        return f"{told}; {self.ranked - self.short:,} fully ranked, {self.short:,} ranked from the paid answers"


def budget_coverage(run: OpenedRun) -> BudgetCoverage | None:
    """Return the progress of a run whose budget is used up, or None if the run was not stopped by its budget."""
    parts = {part.stage: part for part in run.parts}
    cap = next((part.cap for part in run.parts if part.cap), None)
    first = run.manifest.stages.get(run.pipeline.order[0])
    if cap is None or first is None:
        return None
    total = first.outputs[artifact_file(first.stage)].rows
    graded = total - (len(parts[JUDGE].left) if JUDGE in parts else 0)
    rank = parts.get(RANK)
    ranked = None if rank is None else graded - len(rank.left)
    return BudgetCoverage(cap, total, graded, ranked, len(rank.short) if rank else 0)
