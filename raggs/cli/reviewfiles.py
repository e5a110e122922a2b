"""`raggs review import` and `raggs review export`: people's word from elsewhere, and to elsewhere."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import ColumnOption, Json, RunFolder
from raggs.cli.plain import say, say_json
from raggs.cli.reviews import ReviewsFolder


def import_(
    run: RunFolder,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=".csv, .jsonl or .json.")],
    who: Annotated[
        list[str] | None,
        typer.Option(
            "--who", metavar="[AS=]NAME", help="Whose words rows without a name are, or those of AS. Repeatable."
        ),
    ] = None,
    column: ColumnOption = None,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Add grades that people gave elsewhere to the reviews.

    All rows of all files are added, or none.

    A table has the columns grade (1 to 5, or ? for cannot tell), qid and doc_id, and perhaps who, at, note, seconds
    and blind (true: no machine's grade was seen before; raggs judge counts these alone). Lists of Argilla's records
    and of Label Studio's tasks are read as these write them. Rows with an empty grade are left out; what was imported
    before is not added again.

    \b
    Examples:
      raggs review import runs/demo grades.csv --who ada
      raggs review import runs/demo label-studio.json --who 7=ada --who 9=bo
    """
    from raggs.app.reviewimport import import_reviews
    from raggs.base.tables import REVIEW_ROLES, parse_column_names
    from raggs.base.text import plural
    from raggs.runs.manifests.opened import open_run
    from raggs.runs.manifests.store import dump_json

    columns = parse_column_names(column or (), REVIEW_ROLES)
    taken = import_reviews(open_run(run), files, folder=reviews, who=who or (), columns=columns)
    if as_json:
        say_json(dump_json({**asdict(taken), "folder": str(taken.folder)}))
        return
    say(f"{plural(taken.added, 'word')} added to {taken.folder}")
    if taken.known:
        say(f"{plural(taken.known, 'row')} said what was known already")
    if taken.open:
        say(f"{plural(taken.open, 'row')} without a grade left out")
    if taken.stale:
        say(f"{plural(taken.stale, 'word')} on texts that have changed since: kept, not used")


def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file.")],
    form: Annotated[str, typer.Option("--format", metavar="FORM", help="csv, jsonl, argilla or label-studio.")] = "csv",
    todo: Annotated[bool, typer.Option("--todo", help="The passages that nobody has read, as tasks.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="All lines, also those that hold no longer; with --format jsonl.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write what people say of a run, or what waits for them, as a file.

    Tasks show the question and the passage and no machine's grade; they carry ids and digests, so that
    raggs review import finds where their grades belong.

    \b
    Examples:
      raggs review export runs/demo --out words.csv
      raggs review export runs/demo --todo --format label-studio --out tasks.json
    """
    from raggs.app.reviewexport import export_reviews
    from raggs.base.text import plural
    from raggs.runs.manifests.opened import open_run
    from raggs.runs.manifests.store import dump_json

    given = export_reviews(open_run(run), out, form, folder=reviews, todo=todo, everything=everything, force=force)
    if as_json:
        say_json(dump_json({**asdict(given), "path": str(given.path)}))
    elif todo:
        say(f"{out}: {plural(given.items, 'passage')} to read")
    elif everything:
        say(f"{out}: {plural(given.words, 'line')}")
    else:
        say(f"{out}: {plural(given.words, 'word')} on {plural(given.items, 'passage')}")
