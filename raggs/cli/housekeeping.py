"""`raggs init`, `doctor` and `cache`: the workplace around runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import CheckedConfig, Json, Yes
from raggs.cli.plain import agree, say, say_json

Workspace = Annotated[Path, typer.Option("--workspace", "-w", metavar="DIR", help="Where the runs lie.")]


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    force: Annotated[bool, typer.Option("--force", help="Write over files of the same names.")] = False,
    debug: Debug = False,
) -> None:
    """Make a starter project.

    A folder with a commented configuration, a small corpus and questions. It runs offline at once.

    \b
    Example:
      raggs init demo && raggs run --config demo/raggs.yaml
    """
    from raggs.app.init import make_starter

    for file in make_starter(folder, force=force):
        say(str(file))
    say(f"next: raggs run --config {shlex.quote(str(folder / 'raggs.yaml'))}")
    say("documents of your own, and no questions yet: raggs questions DOCS")


def doctor(config: CheckedConfig = None, as_json: Json = False, debug: Debug = False) -> None:
    """Check keys, extras, prices and disk.

    With a configuration also its inputs and its server. Nothing is paid for.

    \b
    Example:
      raggs doctor --config raggs.yaml
    """
    from raggs.app.doctor import examine
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
    """Show what the caches of a workspace hold.

    \b
    Example:
      raggs cache stats --workspace runs
    """
    from raggs.app.cache import survey
    from raggs.runs.manifests.store import dump_json

    found = survey(workspace)
    if as_json:
        facts = {each.name: {"entries": each.entries, "bytes": each.bytes, "damaged": each.damaged} for each in found}
        say_json(dump_json(facts))
        return
    for part in found:
        bad = f"; {part.damaged:,} damaged: asked again, paid again" if part.damaged else ""
        say(f"{part.name:<10} {part.entries:>9,} entries {part.bytes / 1e6:>10,.1f} MB  {part.note}{bad}")


def cache_clear(
    workspace: Workspace = Path("runs"),
    what: Annotated[
        str, typer.Option("--what", metavar="PART", help="llm, corpora, vectors, bm25, other or all.")
    ] = "all",
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Empty the caches of a workspace.

    Clearing `llm` throws paid answers away, so it asks first.

    \b
    Example:
      raggs cache clear --what corpora
    """
    from raggs.app.cache import clear
    from raggs.base.errors import UsageError

    if not yes and what in ("llm", "all"):
        try:
            agreed = agree(f"Throw away the paid answers in {workspace}?", err=False)
        except typer.Abort as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                raise
            agreed = False
        if not agreed:
            raise UsageError("nothing was cleared", remedy="pass --yes to clear without asking")
    for name in clear(workspace, what):
        say(f"cleared {name}")
