"""A run opened for reading: typed access to its artifacts and to the golden set.

Where each query's lines stand in a run's artifacts, so that one query is read without the others.

One pass over the bytes finds the ids; nothing is parsed until it is asked for. A file that changes afterwards is an
error or read as it is now, never another query's lines.

What a budget has bought of a run that it ended: how many queries are usable, and what they lack.
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
    """A stage that was stopped, or went on with the queries of one that was.

    Attributes:
        left: ids of the queries that it has not done, sorted.
        short: ids of those that end with what was paid for, sorted.
        cap: the cap of the budget that stopped it; None where something else did.
    """

    stage: str
    left: tuple[str, ...]
    short: tuple[str, ...] = ()
    cap: BudgetCap | None = None

    def __str__(self) -> str:
        told = []
        if self.left or not self.short:
            told.append(f"{plural(len(self.left), 'query')} left out ({_shorten_ids(self.left)})")
        if self.short:
            told.append(f"{plural(len(self.short), 'ranking')} cut short ({_shorten_ids(self.short)})")
        why = f", as the budget ended ({self.cap})" if self.cap else ""
        return f"stage {self.stage} was stopped: {' and '.join(told)}{why}"


def _goes_on(record: Record) -> bool:
    return record.kept if isinstance(record, PruneRecord) else True


def _shorten_ids(qids: Sequence[str]) -> str:
    return ", ".join(qids[:MAX_SHOWN_IDS]) + (", …" if len(qids) > MAX_SHOWN_IDS else "")


@dataclass(frozen=True)
class OpenedRun:
    """A run directory, read only. Streams open when they are read, so a large run costs no memory.

    Attributes:
        as_found: whether artifacts are read that are not what their stage wrote: for audits.
    """

    store: RunStore
    manifest: RunManifest
    as_found: bool = False

    @property
    def pipeline(self) -> Pipeline:
        """The stages that made it, without those that its configuration leaves out.

        Raises:
            UsageError: this raggs does not know them.
        """
        return load_pipeline(self.manifest.pipeline).of(self.manifest.config)

    @property
    def folder(self) -> Path:
        """The run directory."""
        return self.store.folder

    @property
    def command(self) -> str:
        """What goes on with this very run, for a shell: its configuration, and its name where that says another."""
        manifest = self.manifest
        words = [*self.pipeline.command.split()[:-1], str(self.config_file)]
        if as_object(manifest.config.get("judge")).get("human_first"):
            words += ["--human-first"]
        if manifest.pipeline == GOLDEN.name and manifest.name != manifest.config.get("name", manifest.name):
            words += ["--run-id", manifest.name]
        return join(words)

    @property
    def config_file(self) -> Path:
        """The run's configuration file as it can be typed here; its name alone if it is not there any more."""
        if (stated := self.manifest.config_file) is None:
            return UNKNOWN_CONFIG
        found = Path(normpath(self.folder.resolve() / stated))
        return relative_to_cwd(found) if found.is_file() else Path(found.name)

    def records(self, artifact: str) -> Iterator[Record]:
        """The records of an artifact ("embed" … "rank", "rank.journal").

        Raises:
            UsageError: no such artifact.
            NotFoundError: its stage has not run, or was stopped before it had done a whole query.
            DataError: it is not what its stage wrote.
        """
        return self.typed(artifact, self.pipeline.record(artifact))

    def typed(self, artifact: str, model: type[M]) -> Iterator[M]:
        """As `records`, for callers that name the record's class."""
        path = self.file(artifact)
        if not path.is_file():
            stage = self.pipeline.writer(artifact)
            raise NotFoundError(f"stage {stage} {self._why_nothing(stage)}", where=path, remedy=self.command)
        self.check(artifact)
        return islice(read_records(path, model), self.believed_lines(artifact))

    def check(self, artifact: str) -> None:
        """Compare an artifact with the hash in its stage's lock, once until the file changes; a missing one is none.

        Raises:
            DataError: it was edited by hand, or its stage is at work on it.
        """
        name = self.pipeline.writer(artifact)
        path, output = self.store.path(artifact), _output(self.manifest, name, artifact)
        if self.as_found or output is None or self.believed_lines(artifact) is not None or not path.is_file():
            return
        stat = path.stat()
        if self._compared.get(artifact) == (stamp := (stat.st_size, stat.st_mtime_ns)):
            return
        found = hash_file(path)
        if found != output.sha256:  # a run may have gone on since its manifest was read
            now = _output(self.store.manifest(), name, artifact)
            if now is None or found != now.sha256:
                raise self._not_as_written(artifact, name)
        self._compared[artifact] = stamp

    @cached_property
    def _compared(self) -> dict[str, tuple[int, int]]:
        """Size and time of each artifact that was found to be what its stage wrote."""
        return {}

    def _not_as_written(self, artifact: str, stage: str) -> DataError:
        path = self.store.path(artifact)
        if self.store.marker(stage).is_file():
            return DataError(f"stage {stage} has begun again and not finished", where=path, remedy=self.command)
        return edited_by_hand(self.store, artifact, stage, f"to discard that: {self.command} --yes")

    def _why_nothing(self, stage: str) -> str:
        """Why a stage has neither a result nor a part of one."""
        if cap := self.store.spent(stage):
            return f"has done no whole query, as the budget ended ({cap})"
        return "was stopped before it had done a whole query" if self.store.begun(stage) else "has not run"

    def believed_lines(self, artifact: str) -> int | None:
        """How many lines of an artifact belong to the result; None where all do.

        A stage that is begun anew appends to its journal, and its lock knows nothing of that until it has finished.
        """
        name = self.pipeline.writer(artifact)
        lock = self.manifest.stages.get(name) if self.store.marker(name).is_file() else None
        if lock is None or artifact != self.pipeline.stage(name).JOURNAL:
            return None
        output = lock.outputs.get(artifact_file(artifact))
        return output.rows if output else None

    def file(self, artifact: str) -> Path:
        """Where an artifact is; where its stage was never done, what the stage has done so far, if there is any."""
        whole, partial = self.store.path(artifact), self.store.partial(artifact)
        return partial if self.pipeline.writer(artifact) not in self.manifest.stages and partial.is_file() else whole

    @cached_property
    def graded(self) -> bool:
        """Whether a passage has a grade; where none has, `raggs.runs.manifests.reasons` says why.

        Raises:
            NotFoundError: the judge has not worked yet.
        """
        return any(record.grade for record in self.typed("judge", JudgeRecord))

    @property
    def unfinished(self) -> UnfinishedStage | None:
        """The stage that was stopped with some of its queries done; None where there is none."""
        return next(iter(self.parts), None)

    @cached_property
    def parts(self) -> tuple[UnfinishedStage, ...]:
        """Every stage of which a part is done: the one that was stopped, then those that went on with its queries."""
        order = self.pipeline.order
        begun = [name for name in order if name not in self.manifest.stages and self.store.partial(name).is_file()]
        return tuple(
            UnfinishedStage(name, tuple(self._left(name)), tuple(self._short(name)), self.store.spent(name))
            for name in begun
            if self.pipeline.stage(name).READS
        )

    @property
    def lacks(self) -> str:
        """Which queries are left out, and by which stage; empty where none is."""
        return "; ".join(str(part) for part in self.parts if part.left or part.short or part == self.unfinished)

    def _left(self, stage: str) -> Iterator[str]:
        """The ids of the queries of the stage before that a stage has not done; of no use are those that lost all."""
        before = {record.qid for record in self.records(self._before(stage)) if _goes_on(record)}
        yield from sorted(before - {record.qid for record in self.records(stage)})

    def _short(self, stage: str) -> Iterator[str]:
        """The ids of the queries that end with what was paid for."""
        found = self.pipeline.stage(stage)
        for artifact in found.BESIDE:
            if self.file(artifact).is_file():
                yield from (record.qid for record in self.records(artifact) if found.cut_short(record))

    def _before(self, stage: str) -> str:
        """The artifact of which a stage takes its queries: the latest one that it reads."""
        return self.pipeline.stage(stage).READS[-1]

    def golden(self) -> Iterator[tuple[str, list[RankRecord]]]:
        """Query id and its ranked passages, best first, query after query."""
        for qid, records in groupby(self.typed("rank", RankRecord), key=lambda record: record.qid):
            yield qid, list(records)


def _output(manifest: RunManifest, stage: str, artifact: str) -> StageOutput | None:
    lock = manifest.stages.get(stage)
    return lock.outputs.get(artifact_file(artifact)) if lock else None


def edited_by_hand(store: RunStore, artifact: str, stage: str, remedy: str) -> DataError:
    """Return the error of everybody who would use an artifact, or replace it, that is not what its stage wrote.

    Args:
        remedy: how to discard the edit, as a clause.
    """
    path = store.path(artifact)
    if artifact == "judge":
        remedy = f"raggs review set {quote(str(store.folder))} QUERY PASSAGE GRADE gives a label that lasts; {remedy}"
    said = f"was edited by hand, or is damaged: it is not what stage {stage} wrote"
    return DataError(said, where=path, line=store.first_edited_line(artifact), remedy=remedy)


def open_run(folder: Path | str, *, as_found: bool = False) -> OpenedRun:
    """Open a run directory.

    Args:
        as_found: see `OpenedRun`.

    Raises:
        NotFoundError: there is no run.
        DataError: its manifest is damaged.
    """
    store = RunStore(Path(folder))
    return OpenedRun(store, store.manifest(), as_found)


R = TypeVar("R", bound=Record)
QID = re.compile(rb'"qid":\s*("(?:[^"\\]|\\.)+")')  # inside a text its quotes would be escaped
RANK_FIELD = re.compile(rb'"rank":\s*([0-9]+)')


class ArtifactByQuery:
    """An artifact by query; empty where there is no file.

    Raises:
        DataError: a line names no query, or the file is not what its stage wrote.
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
        """The queries, in the order of the file."""
        return tuple(self._pieces)

    def of(self, qid: str, model: type[R], depth: int | None = None) -> tuple[R, ...]:
        """A query's records; none where it has none.

        Args:
            depth: those of a rank beyond it are not read; None: all are.

        Raises:
            DataError: a line does not fit `model`, or the file has changed since.
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
            raise DataError("has changed while it was read", where=self._path, remedy="start again")
        return tuple(records)

    def _lines(self, qid: str, depth: int | None) -> Iterator[bytes]:
        with self._path.open("rb", buffering=0) as file:  # a query's lines mostly stand in one piece, read at once
            for begin, end in self._pieces[qid]:
                file.seek(begin)
                lines = file.read(end - begin).splitlines()
                yield from lines if depth is None else (line for line in lines if not _is_beyond_depth(line, depth))


def _is_beyond_depth(line: bytes, depth: int) -> bool:
    """Whether a line says a rank beyond a depth."""
    found = RANK_FIELD.search(line)
    return found is not None and int(found[1]) > depth


def _pieces(path: Path) -> Iterator[tuple[str, int, int]]:
    """Query, first byte and end of each run of lines of one query."""
    named, head, begin, byte = b"", b"\n", 0, 0
    with regular_file(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.startswith(head):  # as the line before begins, up to the end of its query
                found = QID.search(line)
                if found is None and line.strip():
                    raise DataError("names no query", where=path, line=number, remedy="run raggs audit on the run")
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
    """How far the money went.

    Attributes:
        cap: that was reached, and what was spent under it.
        queries: of the run.
        graded: how many of them are graded in full.
        ranked: how many of these have an order; None where ranking was not begun.
        short: how many of these orders would have been asked about further.
    """

    cap: BudgetCap
    queries: int
    graded: int
    ranked: int | None
    short: int

    @property
    def json(self) -> dict[str, object]:
        """As commands print it."""
        cap = {"setting": f"budget.{self.cap.setting}", "limit": self.cap.limit, "spent": self.cap.spent}
        counts = {"queries": self.queries, "graded": self.graded, "ranked": self.ranked, "short": self.short}
        return {"cap": cap, **counts}

    @property
    def sentence(self) -> str:
        """What is done and what helps, for people."""
        return f"the budget ended ({self.cap}): {self}; what was paid is kept, and a higher cap goes on with it"

    def __str__(self) -> str:
        told = f"{self.graded:,} of {plural(self.queries, 'query')} graded in full"
        if self.ranked is None:
            return told
        return f"{told}; {self.ranked - self.short:,} ranked to the end, {self.short:,} with the answers paid for"


def budget_coverage(run: OpenedRun) -> BudgetCoverage | None:
    """What the budget of a run has bought; None where it did not end, or stopped no stage that asks the judge."""
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
