"""Is a run what its manifest says? Everything that can be derived is derived again and compared.

1. The manifest fits its seal: no part of it was changed since raggs wrote it (`seal`); the ledger fits its mark.
2. Every file has the hash, lines and bytes in its lock, and every line is what its record writes (`filecheck`).
3. Each lock agrees with its components, the other locks, the configuration, the records and the ledger (`lockcheck`).
4. Merge, judge, prune and rank are computed again from their inputs and compared line by line (`rederived`); of a
   stage that was stopped, what it has done (`partcheck`).

A manifest may hold anything, so whatever cannot be read is a finding. Nothing is written and nobody is asked: no
network, no corpus, no key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from pydantic import ValidationError

from raggs.base.errors import RaggsError
from raggs.base.jsonl import dump_line, first_fault
from raggs.llm.ledger import FILE as LEDGER
from raggs.llm.ledger import LedgerLine
from raggs.runs.manifests import account, filecheck, lockcheck, seal
from raggs.runs.manifests.costs import costs
from raggs.runs.manifests.findings import MANIFEST, Cure, Finding
from raggs.runs.manifests.models import LedgerMark, StageLock
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.paircheck import pair_findings
from raggs.runs.manifests.params import parameters
from raggs.runs.manifests.partcheck import part_findings
from raggs.runs.manifests.rederived import derivations
from raggs.runs.manifests.store import manifest_bytes
from raggs.runs.manifests.words import answerer_lines
from raggs.stages.base import AnyStage
from raggs.stages.pipeline import load_pipeline
from raggs.stages.statistics import Statistics

__all__ = ["Finding", "audit", "notes", "unfinished"]

UNSEALED = "the manifest has no seal: a version of raggs made it that did not write one; run again to seal it"
Lines = dict[int, LedgerLine]


def audit(run: OpenedRun) -> Iterator[Finding]:
    """Every finding of a run; none means that the run is what it says."""
    text = (run.folder / MANIFEST).read_bytes().decode()
    yield from _manifest(run, text)
    lines: Lines = {}
    yield from _ledger(run, lines)
    damaged: set[str] = set()
    to_come = unfinished(run)
    for name in run.pipeline.order:
        lock = run.manifest.stages.get(name)
        if lock is None:
            if name not in to_come:
                yield Finding(MANIFEST, None, f"stage {name} has no lock, and a later one has")
            continue
        for finding in _stage(run, name, lock, lines, damaged):
            yield _placed(finding, text, name)
    for finding in pair_findings(run, damaged):
        yield _placed(finding, text, finding.message.removeprefix("stage ").partition(":")[0])
    yield from derivations(run, damaged)
    yield from part_findings(run)


def unfinished(run: OpenedRun) -> tuple[str, ...]:
    """The last stages, as far as none has a lock: what was stopped there, or has never begun, is no lie."""
    order = run.pipeline.order
    done = max((place for place, name in enumerate(order) if name in run.manifest.stages), default=-1)
    return tuple(order[done + 1 :])


def notes(run: OpenedRun) -> Iterator[str]:
    """What there is to say of a run that is no lie."""
    if run.manifest.seal is None:
        yield UNSEALED
    for name in run.pipeline.order:
        if name in run.manifest.stages and run.store.marker(name).is_file():
            yield f"stage {name} was begun anew and has not finished: its result here is that of before"
    if run.manifest.skipped_files:
        yield run.manifest.skipped_files
    with suppress(RaggsError):  # a ledger that cannot be read is a finding
        if told := costs(run.store).total.possibly_billed:
            yield told
    lines = answerer_lines(run.manifest.answerers)
    yield from (line.text.removeprefix("warning: ") for line in lines if line.warning)
    with suppress(RaggsError):  # a part that cannot be read is a finding
        if run.lacks:
            yield run.lacks


def _manifest(run: OpenedRun, text: str) -> Iterator[Finding]:
    if (run.folder / MANIFEST).is_symlink():
        yield Finding(MANIFEST, None, "is not a file of its own but a link", "copy")
    content = run.store.content()
    if run.manifest.seal is not None and text.encode() != (written := manifest_bytes(content)):
        yield Finding(MANIFEST, _first_difference(text, written.decode()), "is not written as raggs writes it")
    for found in seal.breaks(content):
        cure: Cure = "run" if found.stage is not None or found.path == ("config",) else "copy"
        yield Finding(MANIFEST, seal.place_of(text, found.path), found.message, cure)
    for name in run.manifest.stages:
        if name not in run.pipeline.order:
            place = seal.place_of(text, ("stages", name))
            yield Finding(MANIFEST, place, f"there is no stage {name!r}")


def _ledger(run: OpenedRun, lines: Lines) -> Iterator[Finding]:
    """The ledger against its mark, and its lines by the byte at which each begins."""
    path, sums = run.store.ledger, run.store.ledger_sums
    if path.is_symlink() or (path.exists() and not path.is_file()):
        yield Finding(LEDGER, None, "is not a file of its own but a link or a device", "copy")
        return
    mark = run.manifest.seal.ledger if run.manifest.seal else LedgerMark()
    for line, message in account.problems(path, mark, sums):
        yield Finding(LEDGER, line, message, "copy")
    at_work = any(run.store.marker(name).is_file() for name in load_pipeline(run.manifest.pipeline).order)
    if not at_work and run.manifest.seal and (added := account.unbooked(path, mark)):
        yield Finding(LEDGER, *added, "copy")
    if not path.is_file():
        return
    at = 0
    with path.open("rb") as file:
        for number, data in enumerate(file, start=1):
            try:
                if data.endswith(b"\n"):  # a torn last line goes when the ledger is opened again
                    lines[at] = LedgerLine.model_validate_json(data)
            except ValidationError as error:
                yield Finding(LEDGER, number, first_fault(error), "copy")
            else:
                if at in lines and dump_line(lines[at], given=True) != data and at < mark.bytes:
                    yield Finding(LEDGER, number, "its bytes are not those that its record writes again", "copy")
            at += len(data)


def _stage(run: OpenedRun, name: str, lock: StageLock, lines: Lines, damaged: set[str]) -> Iterator[Finding]:
    yield from lockcheck.lock_findings(run, name, lock)
    if lock.stage != name:
        damaged.update(lock.outputs)
        return
    stage: AnyStage = run.pipeline.stage(name)
    statistics, readable = Statistics(), True
    try:
        config = parameters(stage.Config, name, lock.params)
        statistics = stage.statistics(config)
        yield from lockcheck.agreement(run, lock, config)
    except RaggsError as error:
        readable = False
        yield Finding(MANIFEST, None, error.message)
    found, tally = filecheck.files(run, lock, statistics)
    yield from found
    damaged |= tally.damaged
    if readable and not tally.damaged:
        yield from lockcheck.tallied(lock, tally)
        yield from lockcheck.answerers(stage, lock, tally)
    yield from lockcheck.cost(lock, lines)


def _placed(finding: Finding, text: str, stage: str) -> Finding:
    """A finding about a lock, at the lock's line."""
    if finding.file != MANIFEST or finding.line is not None:
        return finding
    path = ("config", stage) if finding.message.startswith("config") else ("stages", stage)
    return replace(finding, line=seal.place_of(text, path))


def _first_difference(text: str, written: str) -> int:
    lines, expected = text.split("\n"), written.split("\n")
    pairs = zip(lines, expected, strict=False)
    return next((number for number, (a, b) in enumerate(pairs, start=1) if a != b), min(len(lines), len(expected)))
