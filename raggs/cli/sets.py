"""`raggs import`: golden sets of other tools."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import ColumnOption, ExportFolder, IntoOthers, Json
from raggs.cli.plain import say, say_json, say_note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from raggs.app.importset import Imported

SAID = {
    "whole": "as it was",
    "changed": "changed on the way",
    "partly": "came in part",
    "lost": "did not come",
    "read": "read",
}


def import_(
    place: Annotated[Path, typer.Argument(metavar="FOLDER|FILE", help="What another tool, or an export, wrote.")],
    out: ExportFolder,
    format_: Annotated[
        str | None,
        typer.Option("--format", "-f", metavar="FORMAT", help="See raggs list importers; an export of raggs says it."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="NAME", help="Split of beir and hf. [default: test, or the only one]"),
    ] = None,
    column: ColumnOption = None,
    force: IntoOthers = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Read a golden set of another tool.

    It is written as JSON lines, which `raggs eval -g DIR` reads. Of an export of raggs it is said, part by part, what
    came through as it was in the run.

    \b
    Examples:
      raggs import golden-beir --format beir --out golden
      raggs import qrels.txt --format trec --out golden
      raggs import labels.csv --format csv --column grade=score --out golden
    """
    from raggs.app.importset import import_set
    from raggs.base.tables import IMPORT_ROLES, parse_column_names
    from raggs.runs.manifests.store import dump_json

    columns = parse_column_names(column or (), IMPORT_ROLES)
    done = import_set(place, format_, out, split=split, columns=columns, force=force)
    if as_json:
        through = [asdict(each) for each in done.through]
        files = [str(file) for file in done.files]
        say_json(dump_json({"format": done.format, "files": files, "through": through, "notes": list(done.notes)}))
        return
    for line in _lines(done):
        say_note(line)
    for note in done.notes:
        say_note(f"note: {note}")
    say("\n".join(map(str, done.files)))


def _lines(done: Imported) -> Iterator[str]:
    width = max(len(each.counted) for each in done.through)
    for came, said in SAID.items():
        parts = [each for each in done.through if each.came == came]
        yield from [f"{said}:"] if parts else []
        yield from (f"  {each.counted:>{width}}  {each.what}" for each in parts)
