"""`raggs init`, `doctor`, `cache`, `validate`, `config show`, `index`, `audit` and `keygen`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import (
    CheckedConfig,
    ConfigFile,
    Details,
    Json,
    Overrides,
    Quiet,
    RunFile,
    SameConfig,
    Yes,
    find_config,
)
from raggs.cli.plain_text import agree, say, say_json

if TYPE_CHECKING:
    from raggs.app.audit import Audit
    from raggs.app.housekeeping import IndexLoad
    from raggs.app.services import RunServices
    from raggs.cli.progress import LiveProgress, PlainProgress

    Display = LiveProgress | PlainProgress | None

Workspace = Annotated[Path, typer.Option("--workspace", "-w", metavar="DIR", help="Folder that contains the runs.")]


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to create.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    debug: Debug = False,
) -> None:
    """Create a starter project.

    The folder contains a commented configuration, a small corpus and queries. It runs offline.

    \b
    Example:
      raggs init demo && raggs run --config demo/raggs.yaml
    """
    from raggs.app.init import make_starter

    for file in make_starter(folder, force=force):
        say(str(file))
    say(f"next: raggs run --config {shlex.quote(str(folder / 'raggs.yaml'))}")
    say("No queries yet? Generate some from your documents: raggs questions DOCS")


def doctor(config: CheckedConfig = None, as_json: Json = False, debug: Debug = False) -> None:
    """Check API keys, optional packages, prices and disk space.

    With a configuration, also checks its inputs and servers. Calls a model only if the judge must state probabilities
    (`answers`): one call per model.

    \b
    Example:
      raggs doctor --config raggs.yaml
    """
    from raggs.app.housekeeping import examine
    from raggs.base.errors import PrerequisiteError
    from raggs.runs.manifests.store import dump_json

    checks = examine(config)
    if as_json:
        say_json(dump_json([{"name": check.name, "ok": check.ok, "note": check.note} for check in checks]))
    else:
        for check in checks:
            sign = {True: "ok  ", False: "FAIL", None: "-   "}[check.ok]
            say(f"{sign} {check.name:<22} {check.note}")
    failed = [check for check in checks if check.ok is False]
    if failed:
        raise PrerequisiteError(f"{failed[0].name}: {failed[0].note}")


def cache_stats(workspace: Workspace = Path("runs"), as_json: Json = False, debug: Debug = False) -> None:
    """Show the contents of the caches of a workspace.

    \b
    Example:
      raggs cache stats --workspace runs
    """
    from raggs.app.housekeeping import survey
    from raggs.runs.manifests.store import dump_json

    found = survey(workspace)
    if as_json:
        facts = {each.name: {"entries": each.entries, "bytes": each.bytes, "damaged": each.damaged} for each in found}
        say_json(dump_json(facts))
        return
    for part in found:
        bad = f"; {part.damaged:,} damaged, will be requested and paid again" if part.damaged else ""
        say(f"{part.name:<10} {part.entries:>9,} entries {part.bytes / 1e6:>10,.1f} MB  {part.note}{bad}")


def cache_clear(
    workspace: Workspace = Path("runs"),
    what: Annotated[
        str, typer.Option("--what", metavar="PART", help="Cache to clear: llm, corpora, vectors, bm25, other or all.")
    ] = "all",
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Clear the caches of a workspace.

    Clearing `llm` or `all` deletes paid answers and needs confirmation.

    \b
    Example:
      raggs cache clear --what corpora
    """
    from raggs.app.housekeeping import clear
    from raggs.base.errors import UsageError

    if not yes and what in ("llm", "all"):
        try:
            agreed = agree(f"Delete the paid answers in {workspace}?", err=False)
        except typer.Abort as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                raise
            agreed = False
        if not agreed:
            raise UsageError("nothing was cleared", remedy="pass --yes to clear without confirmation")
    for name in clear(workspace, what):
        say(f"cleared {name}")


def validate(
    file: RunFile = None,
    config: SameConfig = None,
    overrides: Overrides = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check a configuration and its inputs.

    Runs no stage and calls no model.

    \b
    Example:
      raggs validate raggs.yaml
    """
    from raggs.app.housekeeping import validate as inputs_of
    from raggs.base.text import plural
    from raggs.cli.options import RunFlags
    from raggs.runs.manifests.store import dump_json

    config = find_config(file, config, "raggs.yaml", "name one: raggs validate raggs.yaml; raggs init DIR creates one")
    found = inputs_of(config, overrides or ())
    if as_json:
        say_json(dump_json({"valid": True, **asdict(found)}))
        return
    sizes = f"{plural(found.queries, 'query')}, {plural(found.passages, 'passage')}"
    say(f"{config} is valid: {sizes}, retrievers {', '.join(found.retrievers)}")
    for note in found.notes:
        say(note)
    say(f"next: {RunFlags(config, overrides or ()).command()}")


def show(
    file: RunFile = None,
    config: SameConfig = None,
    overrides: Overrides = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the effective configuration.

    Prints each value with its origin: default, file, environment or --set. For the meaning of a setting, use
    raggs explain KEY.

    \b
    Example:
      raggs config show raggs.yaml --set rank.max_calls=40
    """
    from raggs.config.load import load_config
    from raggs.runs.manifests.store import dump_json

    loaded = load_config(
        find_config(file, config, "raggs.yaml", "name one: raggs config show raggs.yaml"), overrides or ()
    )
    rows = [(name, value, origin) for name, value, origin in loaded.with_origins()]
    if as_json:
        say_json(dump_json({name: {"value": value, "origin": origin} for name, value, origin in rows}))
        return
    width = max(len(name) for name, _, _ in rows)
    for name, value, origin in rows:
        say(f"{name:<{width}}  {_yaml(value):<12}  # {origin}")


def _yaml(value: object) -> str:
    """Return a value as text that `--set` accepts."""
    import json

    from raggs.config.source import parse_value

    plain = isinstance(value, str) and parse_value(value) == value
    return str(value) if plain and value else json.dumps(value, ensure_ascii=False)


Row = dict[str, object]


def index(
    config: ConfigFile,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be created and loaded; change nothing.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Replace, without confirmation, an index that raggs made from other data."),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Load the corpus into Elasticsearch.

    Creates each index that an elasticsearch retriever searches, sends passages and vectors, and compares the counts.
    To resume after an interruption, run the same command again. Credentials come from the environment:
    ELASTIC_API_KEY, or ELASTIC_USERNAME and ELASTIC_PASSWORD.

    \b
    Examples:
      raggs index --config raggs.yaml --dry-run
      raggs index --config raggs.yaml
      raggs index --config raggs.yaml --set index.analyzer=english --yes
    """
    from raggs.app.addresses import permit
    from raggs.app.housekeeping import loads
    from raggs.app.services import RunServices
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.config.load import load_config
    from raggs.runs.events import ignore_event
    from raggs.runs.manifests.store import dump_json

    loaded = load_config(config, overrides or ())
    permit(loaded.run, ("embed",), approver(yes, quiet))
    display = listener(quiet or as_json or dry_run)
    services = RunServices(loaded.run, display or ignore_event)
    rows = []
    try:
        for load in loads(loaded.run, services):
            row = _described(load) if dry_run else _load_and_describe(load, services, display, _overwrite(load, yes))
            rows.append(row)
            if not as_json and not quiet:
                say(str(row["summary"]))
    finally:
        services.close()
    if as_json:
        say_json(dump_json(rows))
    elif not quiet:
        say(f"next: raggs {'index' if dry_run else 'run'} --config {config}")


def _overwrite(load: IndexLoad, yes: bool) -> bool:
    """Return whether an index with other data may be replaced: with `--yes`, or if the user agrees on a terminal."""
    if yes or load.standing.kind != "other" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return yes
    question = f"{load.loader.place.shown} exists, and {load.standing.detail}. Delete and reload it?"
    return agree(question, err=True)


def _load_and_describe(load: IndexLoad, services: RunServices, display: Display, overwrite: bool) -> Row:
    from raggs.app.housekeeping import run_load
    from raggs.base.text import plural

    with display or nullcontext():
        done = run_load(load, services, overwrite)
    place, rate = load.loader.place.shown, done.sent / max(done.seconds, 1e-9)
    what = f"{plural(done.documents, 'document')}, {done.vectors:,} with vectors"
    sent = f"{done.sent:,} sent in {done.seconds:.1f} s ({rate:,.0f}/s)" if done.sent else "already complete"
    return {
        "index": place,
        "documents": done.documents,
        "vectors": done.vectors,
        "sent": done.sent,
        "seconds": round(done.seconds, 3),
        "summary": f"{place}: {what}; {sent}, counts agree",
    }


def _described(load: IndexLoad) -> Row:
    from raggs.base.text import plural

    contents, place = load.loader.contents, load.loader.place.shown
    what = plural(contents.documents, "document")
    if contents.dims:
        what += f" with vectors of {contents.dims} dimensions ({contents.embedder})"
    doing = {
        "absent": "would be created",
        "begun": f"has {load.standing.detail} already; the rest would be sent",
        "other": f"exists, and {load.standing.detail}; --yes would replace it",
        "foreign": f"exists, and {load.standing.detail}; it would not be changed",
    }[load.standing.kind]
    return {
        "index": place,
        "standing": load.standing.kind,
        "documents": contents.documents,
        "dims": contents.dims,
        "body": load.loader.body(),
        "summary": f"{place} {doing}: {what}",
    }


def audit(
    run: Annotated[
        Path, typer.Argument(metavar="RUN|SET", help="Run directory, sweep, eval.json, or golden set in files.")
    ],
    lock: Annotated[
        Path | None,
        typer.Option("--lock", metavar="FILE", help="golden.lock that the golden set must match."),
    ] = None,
    new_lock: Annotated[
        Path | None,
        typer.Option("--write-lock", metavar="FILE", help="File for the golden.lock of the set, to be kept in git."),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option("--verify", metavar="PUBKEY", help="Public key that must have signed the run."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option("--sign", metavar="KEYFILE", help="Private key to sign the run with, if the audit passes."),
    ] = None,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check that a run was not changed.

    Compares the seal and all hashes, reads every record, and recomputes what needs no model. Each finding names the
    file, and the line if one is wrong.

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
    if not found.ok:
        if not as_json:
            _print_audit(run, found, (), details)
        _refuse(run, found, lock)
    written = []
    if new_lock is not None:
        auditing.write_lock(run, new_lock)
        written.append(f"lock: {new_lock}")
    if sign is not None:
        written.append(f"signature: {auditing.sign(run, sign)}")
    if not as_json:
        _print_audit(run, found, written, details)


def keygen(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File for the private key; the public key is written to FILE.pub.")
    ],
    debug: Debug = False,
) -> None:
    """Create a key pair to sign runs.

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
        told = f"{', '.join(found.unfinished)} not finished; the rest matches the manifest"
        raise PartialError(told, where=run, remedy=f"to resume: raggs {found.of}")
    raise AuditError(plural(len(found.findings), "finding"), where=run, remedy=remedy_of(run, found, lock))


def _print_audit(run: Path, found: Audit, written: Sequence[str], details: bool) -> None:
    from raggs.cli.documents import show_details
    from raggs.cli.screen import open_console
    from raggs.cli.summaries import summarise_audit

    def rest() -> None:
        for finding in found.findings:
            say(str(finding))
        for stage in found.left_out:
            say(f"{stage}: disabled ({stage}: null); its earlier files are not part of the run")
        for sentence in (*found.answered, *(f"note: {note}" for note in found.notes)):
            say(sentence)
        for what in found.unchecked:
            say(f"not checked: {what}")

    show_details(summarise_audit(run, found), open_console(), details, rest)
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
