"""Audit of a run: does it match its manifest, a golden.lock and an expected signature?

An audit reads the run directory and, if they exist, the copies of the corpus and of its indexes in the cache. It calls
no model. The lock, the signature and the key pair are written only on request.

The cache matters because a run can be correct while the data for the next run was altered. Texts in the passage store,
BM25 scores and vectors are checked. Nothing is built, and a missing copy is not a finding.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Literal

from raggs.app.gates import check_meant, meaning_of, meaning_of_run
from raggs.base.cache import Cache
from raggs.base.errors import DataError, RaggsError, UsageError
from raggs.base.files import regular_file
from raggs.base.types import as_object
from raggs.golden.ceilings import ceiling_findings
from raggs.golden.files import labels_in
from raggs.golden.lineage_audit import lineage_findings
from raggs.golden.lineage_audit import unchecked as unchecked_lineage
from raggs.golden.sources import open_golden
from raggs.parts import retrievers
from raggs.parts.indexes.passages import PassageStore
from raggs.runs.manifests import goldenlock
from raggs.runs.manifests.audit import audit as findings_of
from raggs.runs.manifests.audit import audit_notes, unfinished
from raggs.runs.manifests.audit_pairs import text_findings
from raggs.runs.manifests.messages import answerer_lines
from raggs.runs.manifests.models import MANIFEST, AuditFinding, FindingRemedy, parameters
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.runs.manifests.store import RunStore, breaks
from raggs.runs.plan import RunState
from raggs.stages.questions import QUESTIONS
from raggs.stages.retrieve import RetrieveConfig

NO_STORE = "the texts of the pools (not in the cache)"


@dataclass(frozen=True)
class Copies:
    """Findings in the cached copies, and notes on copies that could not be checked."""

    findings: tuple[AuditFinding, ...] = ()
    unchecked: tuple[str, ...] = ()


def cached_copies(run: OpenedRun) -> Copies:
    """Compare a run with the copies of its corpus and indexes in the cache."""
    cache = Cache.of(run.folder.parent)
    merged = run.manifest.stages.get("merge")
    store = PassageStore.find(cache.at("corpora"), merged.components.get("corpus")) if merged else None
    if store is None:
        return Copies(unchecked=(NO_STORE,))
    with closing(store):
        texts = text_findings(run, store) if run.store.path("merge").is_file() else iter(())
        found = (*texts, *_passages(store, cache), *_indexes(run, store, cache))
        return Copies(found)


def _passages(store: PassageStore, cache: Cache) -> Iterator[AuditFinding]:
    for folder, fault in cache.at("corpora").faults(store.path.parent.name):
        said = f"the passage store is damaged ({fault}); delete the folder to rebuild it"
        yield AuditFinding(_relative_path(folder, cache), None, said, "told")


def _indexes(run: OpenedRun, store: PassageStore, cache: Cache) -> Iterator[AuditFinding]:
    """Yield faults in the indexes of the run's retrievers; a manifest without retrievers is reported elsewhere."""
    lock = run.manifest.stages.get("retrieve")
    try:
        specs = parameters(RetrieveConfig, "retrieve", lock.params).retrievers if lock else ()
        for spec in specs:
            for folder, fault in retrievers.REGISTRY.of(spec).index_faults(spec, store, cache):
                said = f"the index is damaged ({fault}); delete the folder to rebuild it"
                yield AuditFinding(_relative_path(folder, cache), None, said, "told")
    except RaggsError:
        return


def _relative_path(path: Path, cache: Cache) -> str:
    return str(path.relative_to(cache.folder.parent))


# Reported as not checked, because these checks need more than the run directory.
UNCHECKED = (
    "whether the corpus and the queries changed after the run",
    "whether the recorded answers and vectors are those of the model",
)

OF_QUESTIONS = (
    "whether the documents changed after the run",
    "whether the recorded answers and similarities are those of the models",
)

OF_FILES = ("the origin of the grades, which label files do not record",)


@dataclass(frozen=True)
class Audit:
    """Result of an audit.

    Attributes:
        findings: all mismatches; empty if the audited object matches what is recorded about it.
        unfinished: stages that have not finished; their partial results were audited too.
        records: number of records that were read and checked.
        unchecked: checks that were not possible.
        notes: remarks that are not findings.
        of: kind of object that was audited.
        answered: for each model, a sentence on the snapshot that answered; empty if no model was called.
        left_out: stages that the run's configuration omits; their files were not read.
    """

    findings: tuple[AuditFinding, ...]
    records: int
    unchecked: tuple[str, ...] = UNCHECKED
    notes: tuple[str, ...] = ()
    of: Literal["run", "questions", "sweep", "files", "evaluation"] = "run"
    unfinished: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Return whether there are no findings and all stages have finished."""
        return not self.findings and not self.unfinished


def audit(folder: Path, *, lock: Path | None = None, public_key: Path | None = None) -> Audit:
    """Check a run's seal, hashes and records, and compute again what needs no model.

    For a golden set in files, only the grades are checked. For an eval.json, the systems are evaluated again from the
    files that it names.

    Args:
        lock: golden.lock that the golden set must match.
        public_key: public key that the signature must match.

    Raises:
        UsageError: a lock or a key is given for an object that has none.
        NotFoundError: the run, the lock or the key does not exist.
        DataError: the lock or the key cannot be read.
        PrerequisiteError: a signature must be checked, and `cryptography` is not installed.
    """
    if is_sweep(folder):
        return _sweep(folder, lock or public_key)
    if is_evaluation(folder):
        return _evaluation(folder, lock or public_key)
    if in_files(folder):
        return _files(folder, lock, public_key)
    outside = list(_signature(folder, public_key))
    try:
        run = open_run(folder, as_found=True)
        rows = sum(output.rows for each in run.manifest.stages.values() for output in each.outputs.values())
        found = [*findings_of(run)]
        if not found and (judged := run.manifest.stages.get("judge")) is not None:
            found += ceiling_findings(run.store, judged)
        if not found and run.pipeline is not QUESTIONS:
            found += lineage_findings(run)
        copies = cached_copies(run)
    except (DataError, UsageError) as error:  # the manifest cannot be read, or names an unknown pipeline
        return Audit((AuditFinding(MANIFEST, error.line, error.message, "copy"), *outside), 0)
    meant = [] if lock is None else [*goldenlock.lock_findings(run, meaning_of_run(run), lock)]
    lies = (*found, *copies.findings, *meant, *outside)
    answered = tuple(line.text for line in answerer_lines(run.manifest.answerers) if not line.warning)
    if run.pipeline is QUESTIONS:
        return Audit(lies, rows, OF_QUESTIONS, tuple(audit_notes(run)), "questions", unfinished(run), answered=answered)
    unchecked, left = (*UNCHECKED, *copies.unchecked, *unchecked_lineage(run)), run.pipeline.left_out
    state = (unfinished(run), left, answered)
    return Audit(lies, rows, unchecked, tuple(audit_notes(run)), "run", *state)


def remedy_of(folder: Path, found: Audit, lock: Path | None = None) -> str | None:
    """Return the commands that correct the findings, as clauses; None if the findings already name the remedy.

    Args:
        lock: golden.lock that the set was compared with.
    """
    place, cures = quote(str(folder)), {finding.cure for finding in found.findings}
    if found.of == "sweep":
        return "run the sweep again to restore the changed files"
    if found.of == "evaluation":
        return "restore the files, or evaluate again: raggs eval ... --out DIR"
    told = []
    if cures & {"run", "copy"}:
        told.append(_restoring(folder, cures))
    if "lock" in cures:
        command = f"raggs audit {place} --write-lock {quote(str(lock))}"
        told.append(f"if this golden set is the intended one, update the lock: {command}")
    if "sign" in cures:
        told.append(f"if this manifest is the intended one, sign it again: raggs audit {place} --sign KEYFILE")
    return "; then, ".join(told) or None


def _restoring(folder: Path, cures: Collection[FindingRemedy]) -> str:
    """Return a remedy for changed files: the command that writes them again, or a restore from a copy."""
    try:
        run = open_run(folder)
        plan = RunState(run.store, run.pipeline).plan()
    except RaggsError as error:
        return error.remedy or f"restore {folder / MANIFEST} from a copy"
    if "copy" in cures or run.pipeline is QUESTIONS:
        if run.pipeline is QUESTIONS:
            return f"restore the files from a copy, or delete {folder}: {run.command}"
        again = run.command.partition(" --run-id ")[0]
        name = quote(f"{folder.resolve().name}-2")
        return f"restore the file from a copy, or create the run under another name: {again} --run-id {name}"
    edited = {each.path for each in breaks(run.store.content())}
    if any(plan.values()):
        return f"{run.command} --yes"
    return run.command if edited == {("config",)} else f"{run.command} --force"


def is_sweep(folder: Path) -> bool:
    """Return whether a folder holds a sweep instead of a run, according to its manifest."""
    try:
        return as_object(json.loads(regular_file(folder / MANIFEST).read_bytes())).get("kind") == "sweep"
    except (OSError, ValueError, RecursionError, DataError):
        return False


def _sweep(folder: Path, outside: Path | None) -> Audit:
    from raggs.sweeps.audit import findings  # Imported lazily: most audits are of runs.

    if outside is not None:
        raise UsageError("a sweep has no lock and no signature", remedy="omit --lock and --verify")
    found, records, unchecked = findings(folder)
    return Audit(tuple(found), records, unchecked, of="sweep")


def is_evaluation(path: Path) -> bool:
    """Return whether a path is an eval.json, or a folder that contains one."""
    if path.suffix != ".json" and not (path / "eval.json").is_file():
        return False
    from raggs.app import evaluation_audit  # Imported lazily: most audits are of runs.

    return evaluation_audit.is_evaluation(path)


def _evaluation(path: Path, outside: Path | None) -> Audit:
    from raggs.app.evaluation_audit import findings  # Imported lazily: most audits are of runs.

    if outside is not None:
        raise UsageError("an evaluation has no lock and no signature", remedy="omit --lock and --verify")
    found, values, unchecked = findings(path)
    return Audit(tuple(found), values, unchecked, of="evaluation")


def in_files(path: Path) -> bool:
    """Return whether a path is a golden set in files: a file of labels, or an exported folder."""
    return path.is_file() or (path.is_dir() and not RunStore(path).exists and labels_in(path) is not None)


def _files(path: Path, lock: Path | None, public_key: Path | None) -> Audit:
    if public_key is not None:
        raise UsageError("a golden set in files has no signature", remedy="omit --verify, or audit the run directory")
    judgments = open_golden(path).judgments()
    if lock is None:
        return Audit((), len(judgments.qrels.query), OF_FILES, of="files")
    check_meant(lock)
    found = goldenlock.meaning_findings(meaning_of(judgments), lock)
    return Audit(tuple(found), len(judgments.qrels.query), OF_FILES, of="files")


def write_lock(folder: Path, file: Path) -> None:
    """Write the golden.lock of a run or of a golden set in files. Audit the set first.

    Raises:
        RaggsError: the set cannot be read, or the file cannot be written.
    """
    if in_files(folder):
        golden = open_golden(folder)
        goldenlock.write_lock(goldenlock.lock_of_files(golden.name, meaning_of(golden.judgments())), file)
        return
    run = open_run(folder)
    goldenlock.write_lock(goldenlock.lock_of(run, meaning_of_run(run)), file)


def sign(folder: Path, key: Path) -> Path:
    """Sign a run and return the path of the signature. Audit the run first.

    Raises:
        RaggsError: as `raggs.runs.manifests.goldenlock.sign`.
    """
    if in_files(folder):
        raise UsageError("a golden set in files has no manifest to sign", remedy="raggs audit RUN --sign KEYFILE")
    return goldenlock.sign(folder, key)


def make_key(file: Path) -> Path:
    """Create a key pair and return the path of the public key.

    Raises:
        RaggsError: as `raggs.runs.manifests.goldenlock.make_key`.
    """
    return goldenlock.make_key(file)


def _signature(folder: Path, key: Path | None) -> Iterator[AuditFinding]:
    if key is not None and (found := goldenlock.signature_finding(folder, key)) is not None:
        yield found
