"""`raggs audit` and `raggs keygen`: is a run what it says, and who says so?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from raggs.app.audit import Audit


def audit(
    run: Annotated[
        Path, typer.Argument(metavar="RUN|SET", help="A run, a sweep, an eval.json, or a golden set in files.")
    ],
    lock: Annotated[
        Path | None,
        typer.Option("--lock", metavar="FILE", help="Check that this golden.lock means this set."),
    ] = None,
    new_lock: Annotated[
        Path | None,
        typer.Option("--write-lock", metavar="FILE", help="Write the set's golden.lock, for git."),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option("--verify", metavar="PUBKEY", help="Check that this key signed the run."),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEYFILE", help="Sign the run, if there are no findings.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check that a run is what it says.

    Seal, hashes, records, and everything that can be derived again: each lie is named by file and line.

    \b
    Examples:
      raggs audit runs/demo
      raggs audit runs/demo --write-lock golden.lock
      raggs audit runs/demo --lock golden.lock --verify team.key.pub
      raggs audit qrels.tsv --write-lock golden.lock
      raggs audit sweeps/stack
      raggs audit main/eval.json
    """
    from raggs.app import audit as auditing

    found = auditing.audit(run, lock=lock, public_key=verify)
    if as_json:
        _as_json(run, found)
    else:
        for finding in found.findings:
            say(str(finding))
        for note in found.notes if found.unfinished and not found.findings else ():
            say(f"note: {note}")
    if not found.ok:
        _refuse(run, found, lock)
    written = []
    if new_lock is not None:
        auditing.write_lock(run, new_lock)
        written.append(f"lock: {new_lock}")
    if sign is not None:
        written.append(f"signature: {auditing.sign(run, sign)}")
    if not as_json:
        _as_text(run, found, written)


def keygen(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The private key; the public one is FILE.pub.")],
    debug: Debug = False,
) -> None:
    """Make a pair of keys to sign runs with.

    \b
    Example:
      raggs keygen team.key
    """
    from raggs.app.audit import make_key

    say(f"public key: {make_key(file)}")


def _refuse(run: Path, found: Audit, lock: Path | None) -> None:
    from raggs.app.audit import remedy_of
    from raggs.base.errors import AuditError, PartialError
    from raggs.base.text import plural

    if not found.findings:
        told = f"has not finished {', '.join(found.unfinished)}; what is there is as the manifest says"
        raise PartialError(told, where=run, remedy=f"raggs {found.of} goes on with it")
    raise AuditError(plural(len(found.findings), "finding"), where=run, remedy=remedy_of(run, found, lock))


DERIVED = {
    "run": "embed (vectors as recorded), merge, judge, prune and rank",
    "questions": "verify and filter (its cosines as recorded)",
    "sweep": "scores, waiting and choice",
}


def _as_text(run: Path, found: Audit, written: Sequence[str]) -> None:
    from raggs.base.text import plural

    if found.of == "files":
        say(f"{run}: {plural(found.records, 'judgment')} read")
    elif found.of == "evaluation":
        say(f"{run}: {plural(found.records, 'value')} evaluated again from the files that it names: all the same")
    else:
        records = plural(found.records, "record")
        what = "embed (vectors as recorded), merge, judge and prune" if found.left_out else DERIVED[found.of]
        say(f"{run}: {records} checked; {what} derived again: all as the manifest says")
        for stage in found.left_out:
            say(f"{stage}: left out ({stage}: null); files of one that ran before are no part of the run")
    for sentence in (*found.answered, *(f"note: {note}" for note in found.notes)):
        say(sentence)
    for what in found.unchecked:
        say(f"not checked: {what}")
    for what in written:
        say(what)


def _as_json(run: Path, found: Audit) -> None:
    from raggs.runs.manifests.store import dump_json

    rows = [{"file": finding.file, "line": finding.line, "message": finding.message} for finding in found.findings]
    shown = {"run": str(run), "ok": found.ok, "findings": rows, "unfinished": list(found.unfinished)}
    say_json(
        dump_json(
            {**shown, "answered": list(found.answered), "notes": list(found.notes), "unchecked": list(found.unchecked)}
        )
    )
