"""`raggs questions import`: questions out of logs of real users."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json, Quiet
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from raggs.app.importing import Imported

SHOWN = 5


def import_(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG", help=".txt (a line each), .csv, .tsv or .jsonl; .gz.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the questions go: .jsonl, .csv or .yaml.")
    ] = Path("questions.jsonl"),
    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="The column of the texts; nothing else is read.")
    ] = None,
    allow: Annotated[
        str, typer.Option("--allow", metavar="KINDS", help="Personal data that may stay: email,phone, and so on.")
    ] = "",
    mask: Annotated[bool, typer.Option("--mask", help="Replace personal data by [EMAIL] and so on.")] = False,
    near: Annotated[
        float, typer.Option("--near", metavar="COSINE", min=0, max=1, help="Above it two are one; 1: none are.")
    ] = 0.92,
    language: Annotated[
        str | None, typer.Option("--language", metavar="CODE", help="Of all questions; each is detected if left out.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make questions of what users typed, without what tells who they are.

    Nothing is sent anywhere. What is no question goes, what was asked before is counted, and questions with e-mail
    addresses, phone numbers, IBANs, cards, IP addresses, social security numbers or names are set aside in
    FILE.flagged.jsonl, unless they are allowed or masked.

    \b
    Examples:
      raggs questions import search.log.gz --dry-run
      raggs questions import chats.csv --column message --mask
    """
    from raggs.app.importing import ImportRequest, import_logs
    from raggs.cli.progress import listener
    from raggs.runs.pipeline.events import silent

    kinds = [kind.strip() for kind in allow.split(",") if kind.strip()]
    request = ImportRequest(
        logs, None if dry_run else out, column, kinds, mask=mask, near=near, language=language, force=force
    )
    display = listener(quiet or as_json)
    with display or nullcontext():
        found = import_logs(request, display or silent)
    if as_json:
        say_json(json.dumps(_as_json(found), indent=2))
    elif not quiet:
        say("\n".join(_lines(found)))


def _as_json(found: Imported) -> dict[str, object]:
    return {
        "entries": found.entries,
        "questions": len(found.questions),
        "same": found.same,
        "near": found.near,
        "dropped": dict(found.dropped),
        "flagged": {"questions": found.flagged_questions, "entries": found.flagged_entries, **found.flagged},
        "masked": dict(found.masked),
        "languages": dict(found.languages),
        "files": [str(path) for path in found.files],
    }


def _lines(found: Imported) -> Iterator[str]:
    from raggs.base.text import plural, shorten

    yield f"{plural(found.entries, 'entry')}: {plural(len(found.questions), 'question')} ({_counts(found.languages)})"
    if found.same or found.near:
        yield f"asked before: {found.same:,} in the same words, {found.near:,} in others"
    if found.dropped:
        yield f"no question: {_counts(found.dropped)}"
    if found.flagged:
        aside = plural(found.flagged_questions, "question")
        yield f"personal data: {aside} set aside ({_counts(found.flagged)}); --mask or --allow KINDS keeps them"
    if found.masked:
        yield f"personal data masked: {_counts(found.masked)}"
    for query in found.questions[:SHOWN]:
        yield f"  {query.metadata['frequency']:>7}  {shorten(query.text, 100)}"
    yield "\n".join(map(str, found.files)) if found.files else "nothing was written"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
