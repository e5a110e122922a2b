"""`raggs review`: people's word on passages, from the command line."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json, RunFolder
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from raggs.app.review import Standing

ReviewsFolder = Annotated[
    Path | None,
    typer.Option("--reviews", metavar="DIR", help="The folder of reviews; `reviews` beside the runs' if left out."),
]
Who = Annotated[str | None, typer.Option("--who", metavar="NAME", help="The reviewer; your login if left out.")]
CANNOT_TELL = "?"
UNSEEN = "before a machine's grade was seen; these alone count for raggs judge and gates"


def set_(
    run: RunFolder,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A query id, e.g. q12.")],
    passage: Annotated[str, typer.Argument(metavar="PASSAGE", help="A passage of its pool, e.g. doc7.")],
    grade: Annotated[str, typer.Argument(metavar="GRADE", help="1 (not relevant) to 5 (answers); ? for cannot tell.")],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why.")] = "",
    who: Who = None,
    settle: Annotated[bool, typer.Option("--settle", help="Decide where reviewers differ.")] = False,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Note your grade of one passage. The run stays as it is; the judge `human` reads it.

    \b
    Examples:
      raggs review set runs/demo q12 doc7 4 --note "names the limit, not the exception"
      raggs review set runs/demo q12 doc7 ? --who ada
      raggs review set runs/demo q12 doc7 3 --settle
    """
    from raggs.app.review import next_run, reviews_of, set_grade
    from raggs.runs.manifests.opened import open_run

    opened = open_run(run)
    number = _grade(grade)
    said = set_grade(opened, query, passage, number, folder=reviews, who=who, note=note, settles=settle)
    if as_json:
        say_json(said.model_dump_json(indent=2))
        return
    what = "cannot tell" if number is None else f"grade {number}"
    replaced = ", in place of your earlier word" if said.replaces else ""
    say(f"{said.who}: {what} for {passage} of {query}{replaced}, in {reviews_of(opened.folder, reviews)}")
    say(f"next: {next_run(opened, reviews)}")


def status(run: RunFolder, reviews: ReviewsFolder = None, as_json: Json = False, debug: Debug = False) -> None:
    """Say how much people have read, who, and where they differ.

    \b
    Example:
      raggs review status runs/demo
    """
    from raggs.app.review import standing
    from raggs.runs.manifests.opened import open_run
    from raggs.runs.manifests.store import dump_json

    found = standing(open_run(run), reviews)
    if as_json:
        say_json(dump_json({**asdict(found), "folder": str(found.folder)}))
    else:
        say("\n".join(_told(found)))


def _grade(given: str) -> int | None:
    """What was typed as a grade.

    Raises:
        UsageError: it is neither a whole number nor a question mark.
    """
    from raggs.base.errors import UsageError

    if given == CANNOT_TELL:
        return None
    if not given.isascii() or not given.isdigit():
        raise UsageError(f"{given!r} is no grade", remedy="give 1 to 5, or ? for cannot tell")
    return int(given[:9])


def _told(found: Standing) -> list[str]:
    from raggs.base.text import plural

    lines = [
        f"{found.graded:,} of {plural(found.pooled, 'passage')} graded by people ({found.folder})",
        *([f"{found.blind:,} of these {UNSEEN}"] if found.blind < found.graded else []),
        *(f"  {name}: {plural(count, 'passage')}" for name, count in found.reviewers.items()),
    ]
    if found.conflicts:
        lines.append(f"{plural(found.conflicts, 'passage')} on which they differ; raggs review set --settle decides")
    if found.unsure:
        lines.append(f"{plural(found.unsure, 'passage')} on which nobody could tell")
    if found.stale:
        lines.append(f"{plural(found.stale, 'word')} on texts that have changed since: kept, not used")
    if found.torn:
        lines.append("the last line is torn (a power cut?) and does not count; the next review drops it")
    return lines
