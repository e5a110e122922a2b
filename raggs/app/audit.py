"""Is a run what its manifest says, the one that a lock means, signed by whom it should be? Are these the grades meant?

Reads the run's own directory, and beside it the cache's copies of the corpus and of its indexes where there are any.
Asks nobody. Writes nothing but the lock or the signature that it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from raggs.app.copies import cached_copies
from raggs.app.locking import check_meant, meaning_of, meaning_of_run
from raggs.errors import DataError, UsageError
from raggs.golden.files import labels_in
from raggs.golden.opened import open_golden
from raggs.inputs import regular_file
from raggs.jsontypes import as_object
from raggs.manifests import goldenlock, signature
from raggs.manifests.audit import Finding, notes, unfinished
from raggs.manifests.audit import audit as findings_of
from raggs.manifests.findings import MANIFEST
from raggs.manifests.opened import open_run
from raggs.manifests.store import RunStore
from raggs.questions import QUESTIONS

# What no run directory can prove by itself.
UNCHECKED = (
    "whether the corpus and the questions still are what the run read",
    "what the judge answered (its answers are taken as recorded; what was made of them is derived again)",
)

OF_QUESTIONS = (
    "whether the documents still are what the run read",
    "what the asker and the embedder gave (their answers and cosines are taken as recorded)",
)

OF_FILES = ("who gave the grades, and of which passages: files of labels do not say",)


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        findings: every lie; none means that the run is what it says.
        unfinished: stages that have not finished; what there is of them was audited too.
        records: how many were read and checked.
        unchecked: what could not be looked at.
        notes: what there is to say that is no lie.
        of: what was audited.
        left_out: stages that the run does without; what lies there of them was not read.
    """

    findings: tuple[Finding, ...]
    records: int
    unchecked: tuple[str, ...] = UNCHECKED
    notes: tuple[str, ...] = ()
    of: Literal["run", "questions", "sweep", "files"] = "run"
    unfinished: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was found, and nothing is missing."""
        return not self.findings and not self.unfinished


def audit(folder: Path, *, lock: Path | None = None, public_key: Path | None = None) -> Audit:
    """Check a run: seal, hashes, records, and all that can be derived again; of a golden set in files, its grades.

    Args:
        lock: a golden.lock that it must fit.
        public_key: of whoever must have signed it.

    Raises:
        NotFoundError: there is no run, no such lock or key.
        DataError: the lock or the key cannot be read.
        PrerequisiteError: a signature is to be checked, and `cryptography` is not installed.
    """
    if is_sweep(folder):
        return _sweep(folder, lock or public_key)
    if in_files(folder):
        return _files(folder, lock, public_key)
    outside = list(_signature(folder, public_key))
    try:
        run = open_run(folder)
        rows = sum(output.rows for each in run.manifest.stages.values() for output in each.outputs.values())
        found = [*findings_of(run)]
        copies = cached_copies(run)
    except (DataError, UsageError) as error:  # a manifest that cannot be read, or of a pipeline that is none
        return Audit((Finding(MANIFEST, error.line, error.message), *outside), 0)
    meant = [] if lock is None else [*goldenlock.lock_findings(run, meaning_of_run(run), lock)]
    lies = (*found, *copies.findings, *meant, *outside)
    if run.pipeline is QUESTIONS:
        return Audit(lies, rows, OF_QUESTIONS, tuple(notes(run)), "questions", unfinished(run))
    unchecked, left = (*UNCHECKED, *copies.unchecked), run.pipeline.left_out
    return Audit(lies, rows, unchecked, tuple(notes(run)), unfinished=unfinished(run), left_out=left)


def is_sweep(folder: Path) -> bool:
    """Whether a folder holds a sweep, not a run: its manifest says so."""
    try:
        return as_object(json.loads(regular_file(folder / MANIFEST).read_bytes())).get("kind") == "sweep"
    except (OSError, ValueError, RecursionError, DataError):
        return False


def _sweep(folder: Path, outside: Path | None) -> Audit:
    from raggs.sweeps.audit import findings  # late: most audits are of runs

    if outside is not None:
        raise UsageError("a sweep has no lock and no signature", remedy="raggs audit SWEEP alone")
    found, records, unchecked = findings(folder)
    return Audit(tuple(found), records, unchecked, of="sweep")


def in_files(path: Path) -> bool:
    """Whether a path names a golden set that is no run: a file of labels, or a folder that was exported."""
    return path.is_file() or (path.is_dir() and not RunStore(path).exists and labels_in(path) is not None)


def _files(path: Path, lock: Path | None, public_key: Path | None) -> Audit:
    if public_key is not None:
        raise UsageError("a golden set in files has no signature", remedy="raggs audit RUN --verify, or --lock alone")
    judgments = open_golden(path).judgments()
    if lock is None:
        return Audit((), len(judgments.qrels.query), OF_FILES, of="files")
    check_meant(lock)
    found = goldenlock.meaning_findings(meaning_of(judgments), lock)
    return Audit(tuple(found), len(judgments.qrels.query), OF_FILES, of="files")


def write_lock(folder: Path, file: Path) -> None:
    """Write the golden.lock of a run, which should be audited before, or of a golden set in files.

    Raises:
        RaggsError: the set cannot be read, or the file not be written.
    """
    if in_files(folder):
        golden = open_golden(folder)
        goldenlock.write_lock(goldenlock.lock_of_files(golden.name, meaning_of(golden.judgments())), file)
        return
    run = open_run(folder)
    goldenlock.write_lock(goldenlock.lock_of(run, meaning_of_run(run)), file)


def sign(folder: Path, key: Path) -> Path:
    """Sign a run, which should be audited before; the file of the signature.

    Raises:
        RaggsError: as `raggs.manifests.signature.sign`.
    """
    if in_files(folder):
        raise UsageError("a golden set in files has no manifest to sign", remedy="raggs audit RUN --sign KEYFILE")
    return signature.sign(folder, key)


def make_key(file: Path) -> Path:
    """Make a key pair; the file of the public key.

    Raises:
        RaggsError: as `raggs.manifests.signature.make_key`.
    """
    return signature.make_key(file)


def _signature(folder: Path, key: Path | None) -> Iterator[Finding]:
    if key is not None and (found := signature.signature_finding(folder, key)) is not None:
        yield found
