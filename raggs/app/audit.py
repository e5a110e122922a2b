"""Is a run what its manifest says? Reads the run's own directory, asks nobody, writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raggs.errors import DataError, UsageError
from raggs.manifests.audit import Finding, notes
from raggs.manifests.audit import audit as findings_of
from raggs.manifests.findings import MANIFEST
from raggs.manifests.opened import open_run

# What no run directory can prove by itself.
UNCHECKED = (
    "whether the corpus and the questions still are what the run read",
    "what the judge answered (its answers are taken as recorded; what was made of them is derived again)",
)


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        findings: every lie; none means that the run is what it says.
        records: how many were read and checked.
        unchecked: what could not be looked at.
        notes: what there is to say that is no lie.
    """

    findings: tuple[Finding, ...]
    records: int
    unchecked: tuple[str, ...] = UNCHECKED
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def audit(folder: Path) -> Audit:
    """Check a run: hashes, records, and all that can be derived again.

    Raises:
        NotFoundError: there is no run.
    """
    try:
        run = open_run(folder)
        rows = sum(output.rows for lock in run.manifest.stages.values() for output in lock.outputs.values())
        return Audit(tuple(findings_of(run)), rows, notes=tuple(notes(run)))
    except (DataError, UsageError) as error:  # a manifest that cannot be read, or of a pipeline that is none
        return Audit((Finding(MANIFEST, error.line, error.message),), 0)
