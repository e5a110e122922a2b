"""`raggs audit`: is a run what it says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.cli.boundary import Debug
from raggs.cli.options import Json, RunFolder
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from pathlib import Path

    from raggs.app.audit import Audit


def audit(run: RunFolder, as_json: Json = False, debug: Debug = False) -> None:
    """Check that a run is what it says.

    Seal, hashes, records, and everything that can be derived again: each lie is named by file and line.

    \b
    Example:
      raggs audit runs/demo
    """
    from raggs.app.audit import audit as audit_of
    from raggs.errors import AuditError
    from raggs.text import plural

    found = audit_of(run)
    if as_json:
        _as_json(run, found)
    else:
        for finding in found.findings:
            say(str(finding))
    if not found.ok:
        raise AuditError(
            f"{plural(len(found.findings), 'finding')}", where=run, remedy="run again to restore what was changed"
        )
    if not as_json:
        records = plural(found.records, "record")
        say(f"{run}: {records} checked; merge, judge, prune and rank derived again: all as the manifest says")
        for note in found.notes:
            say(f"note: {note}")
        for what in found.unchecked:
            say(f"not checked: {what}")


def _as_json(run: Path, found: Audit) -> None:
    from raggs.manifests.store import dump_json

    rows = [{"file": finding.file, "line": finding.line, "message": finding.message} for finding in found.findings]
    shown = {"run": str(run), "ok": found.ok, "findings": rows}
    say_json(dump_json({**shown, "notes": list(found.notes), "unchecked": list(found.unchecked)}))
