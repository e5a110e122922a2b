"""`raggs index`: passages and vectors into Elasticsearch."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import ConfigFile, Json, Overrides, Quiet
from raggs.cli.plain import agree, say, say_json

if TYPE_CHECKING:
    from raggs.app.index import Load
    from raggs.app.services import RunServices
    from raggs.cli.progress import LiveProgress, PlainProgress

    Display = LiveProgress | PlainProgress | None

Row = dict[str, object]


def index(
    config: ConfigFile,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be made and loaded; change nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Replace an index that raggs made from something else; do not ask.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Load the corpus into Elasticsearch.

    Makes each index that an elasticsearch retriever searches, sends passages and vectors, and compares the counts.
    Run it again after an interruption: it sends what is missing. Credentials come from the environment:
    ELASTIC_API_KEY, or ELASTIC_USERNAME and ELASTIC_PASSWORD.

    \b
    Examples:
      raggs index --config raggs.yaml --dry-run
      raggs index --config raggs.yaml
      raggs index --config raggs.yaml --set index.analyzer=english --yes
    """
    from raggs.app.addresses import permit
    from raggs.app.index import loads
    from raggs.app.services import RunServices
    from raggs.cli.addresses import approver
    from raggs.cli.progress import listener
    from raggs.config.load import load_config
    from raggs.runs.manifests.store import dump_json
    from raggs.runs.pipeline.events import silent

    loaded = load_config(config, overrides or ())
    permit(loaded.run, ("embed",), approver(yes, quiet))
    display = listener(quiet or as_json or dry_run)
    services = RunServices(loaded.run, display or silent)
    rows = []
    try:
        for load in loads(loaded.run, services):
            row = _described(load) if dry_run else _done(load, services, display, _overwrite(load, yes))
            rows.append(row)
            if not as_json and not quiet:
                say(str(row["summary"]))
    finally:
        services.close()
    if as_json:
        say_json(dump_json(rows))
    elif not quiet:
        say(f"next: raggs {'index' if dry_run else 'run'} --config {config}")


def _overwrite(load: Load, yes: bool) -> bool:
    """Whether an index that holds something else may go; asked where somebody can answer."""
    if yes or load.standing.kind != "other" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return yes
    question = f"{load.loader.place.shown} is there already, and {load.standing.detail}. Delete it and load it anew?"
    return agree(question, err=True)


def _done(load: Load, services: RunServices, display: Display, overwrite: bool) -> Row:
    from raggs.app.index import run_load
    from raggs.base.text import plural

    with display or nullcontext():
        done = run_load(load, services, overwrite)
    place, rate = load.loader.place.shown, done.sent / max(done.seconds, 1e-9)
    what = f"{plural(done.documents, 'document')}, {done.vectors:,} with vectors"
    sent = f"{done.sent:,} sent in {done.seconds:.1f} s ({rate:,.0f}/s)" if done.sent else "all there already"
    return {
        "index": place,
        "documents": done.documents,
        "vectors": done.vectors,
        "sent": done.sent,
        "seconds": round(done.seconds, 3),
        "summary": f"{place}: {what}; {sent}; counts agree",
    }


def _described(load: Load) -> Row:
    from raggs.base.text import plural

    contents, place = load.loader.contents, load.loader.place.shown
    what = plural(contents.documents, "document")
    if contents.dims:
        what += f" with vectors of {contents.dims} dimensions ({contents.embedder})"
    doing = {
        "absent": "would be made",
        "begun": f"has {load.standing.detail} already; the missing would be sent",
        "other": f"is there already, and {load.standing.detail}; --yes would replace it",
        "foreign": f"is there already, and {load.standing.detail}; it would be left alone",
    }[load.standing.kind]
    return {
        "index": place,
        "standing": load.standing.kind,
        "documents": contents.documents,
        "dims": contents.dims,
        "body": load.loader.body(),
        "summary": f"{place} {doing}: {what}",
    }
