"""Run the planned stages one after the other: decide, run, validate and commit.

`RecordWatch` collects statistics of a stage while its records are written: failures, the judge's health, and the error
that stopped the stage.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

from raggs.base.artifacts import JournalRecord, Record, answerers_named, artifact_file
from raggs.base.errors import DataError, RaggsError
from raggs.base.files import disk
from raggs.base.settings import Settings
from raggs.base.types import Notice, as_object
from raggs.llm.ledger import CallLedger
from raggs.parts.judges import is_exact
from raggs.runs.events import Listener, StageFinished, StageProgress, StageSkipped, StageStarted, ignore_event
from raggs.runs.execution import Execution
from raggs.runs.manifests.lineage import Lineage
from raggs.runs.manifests.models import (
    CostEstimate,
    LockedAnswerer,
    RetrieverCeiling,
    RunManifest,
    StageLock,
    StageOutput,
    utc_now,
    versions,
)
from raggs.runs.manifests.open_run import edited_by_hand
from raggs.runs.manifests.reasons import FailuresLeft, LockEdited, OutputEdited, Reason
from raggs.runs.manifests.store import MANIFEST, RunJournal, RunStore, breaks, manifest_bytes
from raggs.runs.plan import Plan, RunState, Selection, components, fingerprint
from raggs.stages.base import AnyStage, Services, StageWork, Statistics
from raggs.stages.pipeline import Pipeline


class RecordWatch:
    """Count a stage's failed records and collect its statistics while the records are written."""

    def __init__(self, stage: AnyStage, statistics: Statistics) -> None:
        self._stage = stage
        self.statistics = statistics
        self.failed = 0
        self.answered: Counter[str] = Counter()  # number of records that each model answered, by the model's key
        self.stopped: RaggsError | KeyboardInterrupt | None = None

    def until_stopped(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records until an error stops the stage, and keep the error in `stopped`. An error before the first
        record is raised.
        """
        some = False
        try:
            for record in self.passing(records):
                some = True
                yield record
        except (RaggsError, KeyboardInterrupt) as error:
            if not some:
                raise
            self.stopped = error

    def passing(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield and count the records."""
        for record in records:
            self.failed += self._stage.failed(record)
            self.statistics.see(record)
            self.answered.update(answerers_named(record))
            yield record

    def journal(self, entries: Iterable[JournalRecord]) -> Iterator[JournalRecord]:
        """Yield and count the entries of the stage's journal."""
        for entry in entries:
            self.failed += entry.failed
            self.statistics.see(entry)
            self.answered.update(answerers_named(entry))
            yield entry


class RunnerServices(Services, Protocol):
    """Services that a runner needs in addition to those of its stages."""

    def check(self, stages: Collection[str]) -> None:
        """Check the inputs of these stages before any call is paid for."""
        ...


@dataclass(frozen=True)
class PipelineResult:
    """Result of `run`: the stages that ran and why, and the current manifest."""

    store: RunStore
    manifest: RunManifest
    ran: Mapping[str, tuple[Reason, ...]]
    seconds: float

    @property
    def failed(self) -> int:
        """Number of judgments without a result, over all stages."""
        return sum(lock.failed for lock in self.manifest.stages.values())


def _facts(manifest: RunManifest) -> tuple[object, ...]:
    """Return the parts of the manifest that describe the results. How raggs was called is not included."""
    config = manifest.config
    left_out = {name for name, section in config.items() if section is None}
    asked = as_object(as_object(config.get("judge")).get("gate"))
    gate = {name: limit for name, limit in asked.items() if limit is not None}
    return manifest.stages, left_out, config.get("name"), gate, manifest.lineage


@dataclass
class Runner:
    """Runs the stages of one run directory with a configuration.

    Args:
        store: the run directory.
        pipeline: the stages.
        name: the run's name.
        config: the complete effective configuration, for the manifest.
        config_file: path of the configuration file, for the manifest.
        configs: the configuration of each stage.
        services: services of the stages.
        execution: execution backend of the stages.
        estimate: returns the estimated cost of the stages; empty if they are free. It is called before the first stage
            that runs and before stages that call a model, unless the estimate in the manifest still applies.
        outlook: returns the same without the calls whose answers are cached. It calls no model, but takes longer.
        ceilings: returns PROC and %PROC of the retrieved lists, by the grades of the run. It is called after the judge
            stage.
        closing: receives the manifest before it is written for the last time, and returns it, possibly extended.
        lineage: lineage of a run that `raggs update` makes; None for other runs.
        listen: receives every event.
    """

    store: RunStore
    pipeline: Pipeline
    name: str
    config: Mapping[str, Any]
    config_file: str | None
    configs: Mapping[str, Settings]
    services: RunnerServices
    execution: Execution
    estimate: Callable[[], tuple[CostEstimate, ...]]
    outlook: Callable[[], tuple[CostEstimate, ...]] = tuple
    ceilings: Callable[[RunStore], Mapping[str, tuple[RetrieverCeiling, ...]]] = lambda _: {}
    closing: Callable[[RunManifest], RunManifest] = lambda manifest: manifest
    lineage: Lineage | None = None
    listen: Listener = ignore_event

    @cached_property
    def standing(self) -> RunState:
        """The reasons why each stage would run with this configuration."""
        return RunState(self.store, self.pipeline, self._components)

    def plan(self, selection: Selection | None = None) -> Plan:
        """Return for each selected stage why it would run now; empty if it is up to date. Nothing is written."""
        return self.standing.plan(selection)

    def run(self, selection: Selection) -> PipelineResult:
        """Run the selected stages that have a reason to run.

        Raises:
            DataError: an earlier stage that was not selected is out of date, an artifact was edited manually, or only
                `raggs update` may continue the run.
            PartialError, PrerequisiteError, ProviderError: the run stopped. Paid answers are kept.
        """
        began = time.perf_counter()
        ran: dict[str, tuple[Reason, ...]] = {}
        with self.at_work():
            self.keep_edits(selection)
            manifest, unsealed = self._manifest(), self._unsealed_calls()
            if manifest.seal and not unsealed:
                self.store.account.expect(manifest.seal.ledger)
            for name in self.pipeline.left_out:
                self.store.finish(name)  # the journal of the stage is kept, so its paid orders can be used again
            for name in self.pipeline.order[: self.pipeline.order.index(selection.stages[-1]) + 1]:
                stage, lock = self.pipeline.stage(name), manifest.stages.get(name)
                chosen = name in selection.stages
                reasons = self.standing.reasons(stage, lock, forced=selection.force and chosen)
                blocking = [reason for reason in reasons if chosen or not isinstance(reason, FailuresLeft)]
                if not blocking and lock is not None:
                    self.listen(StageSkipped(name, lock))
                    self.store.finish(name)
                    continue
                if not chosen:
                    raise DataError(
                        f"stage {name} is out of date: {blocking[0]}",
                        where=self.store.folder,
                        remedy=f"run with --from {name}",
                    )
                if not ran:
                    self.services.check(selection.stages)
                if not ran or stage.ASKS:
                    manifest = self._expecting(manifest, stage)
                if stage.ASKS and lock is None:  # the settings in the manifest apply to partial results
                    manifest = self.configured(manifest, name)
                    self.store.save(manifest)
                ran[name] = reasons
                manifest = self._execute(stage, reasons, manifest)
            now_true = self.closing(self.configured(manifest, selection.stages[-1]))
            if now_true != manifest if ran else self._outdated(now_true):
                manifest = now_true
                self.store.save(manifest)
            elif unsealed:
                self.store.seal_ledger()
        return PipelineResult(self.store, manifest, ran, time.perf_counter() - began)

    def keep_edits(self, selection: Selection) -> None:
        """Raise an error instead of replacing a manually edited artifact of a selected stage, unless the selection
        allows it.

        Raises:
            DataError: an artifact was edited.
        """
        if selection.force or selection.discards_edits or not self.store.exists:
            return
        locks = self.store.manifest().stages
        for name in selection.stages:
            if name not in locks or self.store.marker(name).exists():
                continue
            for file in locks[name].outputs:
                if self._edited(name, file, locks[name]):
                    artifact = file.removesuffix(".jsonl")
                    raise edited_by_hand(self.store, artifact, name, "pass --yes to discard the edit")

    def _edited(self, stage: str, file: str, lock: StageLock) -> bool:
        """Return whether a file was changed since the stage wrote it. If the lock was edited, the checksums of the
        lines are used instead of its hash.
        """
        if stage in self.standing.unsound:
            return self.store.first_edited_line(file.removesuffix(".jsonl")) is not None
        return self.standing.file_hash(file) not in (None, lock.outputs[file].sha256)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Lock the directory. If the work raises an error, seal the calls in the ledger. If sealing fails, the next run
        seals them.
        """
        with self.store.owned(), disk(self.store.folder, "choose another workspace"):
            try:
                yield
            except BaseException:
                with suppress(OSError, RaggsError):
                    self.services.workspace.arrive()
                    self.store.seal_ledger()
                raise

    def components(self, stage: AnyStage) -> dict[str, Any]:
        """Return everything that a stage's result depends on, from the current configuration and artifacts."""
        return components(stage, self.configs[stage.NAME], self.services, self.standing.inputs(stage))

    def kept(self, manifest: RunManifest) -> Mapping[str, StageLock]:
        """Return the locks of all stages that the configuration does not omit. The artifacts of omitted stages stay on
        disk, but are not read.
        """
        return {name: lock for name, lock in manifest.stages.items() if name not in self.pipeline.left_out}

    def progress(self, stage: str, done: int, total: int, calls: int = 0, expected: int = 0) -> None:
        """Report the progress of a stage and the money spent."""
        spent = self._ledger.spent
        self.listen(StageProgress(stage, done, total, spent.usd, spent.calls, spent.cached, calls, expected))

    def configured(self, manifest: RunManifest, done: str) -> RunManifest:
        """Return the manifest with the current configuration. Finished stages after `done` keep the configuration that
        they ran with.
        """
        later = self.pipeline.order[self.pipeline.order.index(done) + 1 :]
        kept = {name: manifest.config[name] for name in later if name in manifest.stages and name in manifest.config}
        now = {"config": {**self.config, **kept}, "config_file": self.config_file, "stages": self.kept(manifest)}
        return manifest.model_copy(update=now)

    # --- one stage ---

    def _execute(self, stage: AnyStage, reasons: tuple[Reason, ...], manifest: RunManifest) -> RunManifest:
        config, name = self.configs[stage.NAME], stage.NAME
        self.listen(StageStarted(name, reasons))
        inputs, parts = self.standing.inputs(stage), self.components(stage)
        self.store.begin(name, fingerprint(parts))
        for later in self.pipeline.order[self.pipeline.order.index(name) + 1 :]:
            self.store.forget_partial(later)
        journal = self._journal(stage.JOURNAL, reasons) if stage.JOURNAL else None
        self._ledger.turn_to(self.store.ledger, name)
        started, clock, before, booked = utc_now(), time.perf_counter(), self._ledger.spent, self.store.account.end()
        watch = RecordWatch(stage, stage.statistics(config))
        watch.statistics.exact = is_exact(parts.get("judge"))
        try:
            work = StageWork({name: self._reader(name) for name in stage.READS}, journal, partial(self.progress, name))
            watch.statistics.label = stage.label(self.services)
            watch.statistics.probed = stage.probe(work, config, self.services)
            records = self.execution.records(stage, work, config, self.services, self.store.folder)
            outputs = self._written(stage, records, watch)
            if journal is not None and stage.JOURNAL:
                settled = watch.journal(journal.settled())
                outputs |= self.store.write({stage.JOURNAL: JournalRecord}, settled)
        finally:
            self._ledger.turn_to(self.store.ledger, name)  # writes the lines that are still pending
            if journal is not None:
                journal.close()
        lock = StageLock(
            stage=name,
            fingerprint=fingerprint(parts),
            components=parts,
            params=config.model_dump(mode="json"),
            inputs=inputs,
            outputs=outputs,
            failed=watch.failed,
            health=watch.statistics.health(),
            counts=watch.statistics.counts(),
            cost=self._ledger.spent - before,
            started=started,
            ended=utc_now(),
            versions=versions(),
            judge=stage.asked(self.services),
            booked=(booked, self.store.account.end()),
            answerers=self._answerers(stage, watch),
            ceilings=self.ceilings(self.store) if name == "judge" else {},
        )
        return self._commit(manifest, lock, outputs, time.perf_counter() - clock)

    def _answerers(self, stage: AnyStage, watch: RecordWatch) -> dict[str, LockedAnswerer]:
        """Return the models that answered for a stage, by key: from its records, or from the ledger if records name
        none.
        """
        found = watch.answered if stage.names_answerers else self._ledger.answered(stage.NAME)
        return {
            key: LockedAnswerer(**self._ledger.answerers.named(key).model_dump(), answers=found[key])
            for key in sorted(found)
        }

    def _written(self, stage: AnyStage, records: Iterator[Record], watch: RecordWatch) -> dict[str, StageOutput]:
        """Write the stage's artifacts. If a stage that calls a model is stopped, its finished queries are kept.

        Raises:
            RaggsError, KeyboardInterrupt: the stage was stopped.
        """
        if not stage.ASKS:
            return self.store.write(stage.artifacts(), watch.passing(records))
        written = self.store.write_partial(stage.artifacts(), watch.until_stopped(records))
        if watch.stopped is not None:
            self.listen(Notice(f"{stage.NAME}: {self.pipeline.stopped}"))
            raise watch.stopped
        return self.store.promote(stage.artifacts(), written)

    def _commit(
        self, manifest: RunManifest, lock: StageLock, outputs: Mapping[str, StageOutput], seconds: float
    ) -> RunManifest:
        stages = {
            name: entry for name in self.pipeline.order if (entry := {**manifest.stages, lock.stage: lock}.get(name))
        }
        updated = self.configured(manifest.model_copy(update={"stages": stages}), lock.stage)
        self.store.save(updated)
        self.standing.mended(lock.stage)
        self.store.finish(lock.stage)
        for file, output in outputs.items():
            self.standing.wrote(file, output.sha256)
        self.listen(StageFinished(lock.stage, lock, seconds))
        return updated

    # --- helpers ---

    @property
    def _ledger(self) -> CallLedger:
        return self.services.workspace.ledger

    def _journal(self, artifact: str, reasons: tuple[Reason, ...]) -> RunJournal:
        """Return the journal. If it may have been edited manually, only the lines written by the run are used."""
        edited = any(
            reason == OutputEdited(artifact_file(artifact)) or isinstance(reason, LockEdited) for reason in reasons
        )
        return RunJournal(self.store.path(artifact), (self.store.line_sums(artifact) or b"") if edited else None)

    def _manifest(self) -> RunManifest:
        if self.store.exists:
            found, unsound = self.store.manifest(), self.standing.unsound
            for lock in found.stages.values():
                answerers, known = self._ledger.answerers, [each.answerer for each in lock.answerers.values()]
                answerers.learn(known)
                answerers.expect(known)
            self._learn_earlier_answerers()
            # An edited lock is not sealed again: its stage runs again.
            stages = {name: lock for name, lock in self.kept(found).items() if name not in unsound}
            return found.model_copy(update={"stages": stages, "lineage": self._same_lineage(found)})
        self._learn_earlier_answerers()
        fresh = RunManifest(
            name=self.name,
            pipeline=self.pipeline.name,
            created=utc_now(),
            config_file=self.config_file,
            config=self.config,
            lineage=self.lineage,
        )
        self.store.save(fresh)
        return fresh

    def _learn_earlier_answerers(self) -> None:
        """Register the models that made carried labels; their snapshots count as those of this run."""
        if self.lineage is not None:
            self._ledger.answerers.learn(self.lineage.answerers)
            self._ledger.answerers.expect(self.lineage.answerers)

    def _same_lineage(self, found: RunManifest) -> Lineage | None:
        """Return the lineage of the run. If it is unchanged, it keeps its counts.

        Raises:
            DataError: the run is a version that only `raggs update` may continue.
        """
        if self.lineage is None and found.lineage is not None:
            raise DataError(
                f"is version {found.lineage.number} of the golden set {found.lineage.name}, made by raggs update; "
                "raggs run would judge its carried labels again",
                where=self.store.folder,
                remedy="continue it with raggs update, or pass another --run-id",
            )
        known = found.lineage
        same = known is not None and known.model_copy(update={"counts": None}) == self.lineage
        return known if same else self.lineage

    def _unsealed_calls(self) -> bool:
        """Return whether a stopped attempt may have added calls to the ledger that no seal covers yet."""
        return any(self.store.marker(name).exists() for name in (*self.pipeline.order, *self.pipeline.left_out))

    def _outdated(self, manifest: RunManifest) -> bool:
        """Return whether the manifest must be written again although no stage ran: it has other facts, another format,
        or an edited configuration.

        If the configuration differs only in values that cannot change results, such as the budget, the manifest is not
        written again; the name and `judge.gate` are exceptions. Signatures and golden.lock files therefore stay valid.
        A manifest with any other edit is not written again either.
        """
        content = self.store.content()
        if edited := {each.path for each in breaks(content)}:
            return edited == {("config",)}
        if content.get("seal") and (self.store.folder / MANIFEST).read_bytes() != manifest_bytes(content):
            return True  # the content is the same, but formatted differently
        return _facts(self.store.manifest()) != _facts(manifest)

    def _expecting(self, manifest: RunManifest, stage: AnyStage) -> RunManifest:
        """Return the manifest with the estimated cost of the whole run. The estimate is written with the next lock, or
        earlier if a stage that calls a model has no lock yet.

        Resumed and finished stages keep the estimate from their start.
        """
        name, order, lock = stage.NAME, self.pipeline.order, manifest.stages.get(stage.NAME)
        known = {line.stage for line in manifest.estimates}
        before = (self.store.begun(name), lock.fingerprint if lock else "")
        if known and fingerprint(self.components(stage)) in before:
            return manifest
        first = next(each for each in order if each == name or self.pipeline.stage(each).ASKS)
        same = manifest.config.get(name) == self.config.get(name)
        if lock is None and stage.ASKS and first != name and name in known and same:
            # keep the estimate from the start of the first stage that calls a model: the pools were already known then
            return manifest
        renewed = {name, *(each for each in order[order.index(name) :] if each not in manifest.stages)}
        kept = [line for line in manifest.estimates if line.stage not in renewed]
        lines = [*kept, *(line for line in self.estimate() if line.stage in renewed)]
        return manifest.model_copy(update={"estimates": tuple(sorted(lines, key=lambda line: order.index(line.stage)))})

    def _components(self, stage: AnyStage, _: StageLock, inputs: Mapping[str, str]) -> Mapping[str, Any]:
        return components(stage, self.configs[stage.NAME], self.services, inputs)

    def _reader(self, artifact: str) -> Callable[[], Iterator[Record]]:
        return lambda: self.store.read(artifact, self.pipeline.record(artifact))
