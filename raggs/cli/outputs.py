"""`raggs export`, `list` and `schema`: what raggs gives to other tools and people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json, RunFolder

Format = Annotated[
    str, typer.Option("--format", "-f", metavar="FORMAT", help="trec, beir or jsonl; see: raggs list exporters.")
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to write to.")]


def export(run: RunFolder, out: Out, format_: Format = "trec", as_json: Json = False, debug: Debug = False) -> None:
    """Write the golden set for another tool.

    \b
    Examples:
      raggs export runs/demo --format trec --out golden
      raggs export runs/demo --format beir --out golden-beir
    """
    from raggs.config.golden import export_run
    from raggs.manifests.opened import open_run
    from raggs.manifests.store import dump_json

    files = export_run(open_run(run), format_, out)
    typer.echo(dump_json({"files": [str(file) for file in files]}) if as_json else "\n".join(map(str, files)))


def list_(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="embedders, retrievers, judges, ...; all kinds if left out.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List what can be named in a configuration.

    \b
    Example:
      raggs list judges
    """
    from raggs.config.catalog import catalog
    from raggs.manifests.store import dump_json

    found = catalog(kind)
    if as_json:
        typer.echo(dump_json(found))
        return
    width = max(len(name) for entries in found.values() for name in entries)
    for title, entries in found.items():
        if kind is None:
            typer.echo(f"{title}:")
        for name, summary in entries.items():
            typer.echo(f"  {name:<{width}}  {summary}")


def schema(
    artifact: Annotated[
        str,
        typer.Argument(
            metavar="ARTIFACT",
            help="embed, retrieve, merge, judge, prune, rank, rank.journal, manifest, config or eval.",
        ),
    ],
    debug: Debug = False,
) -> None:
    """Print the JSON Schema of an artifact.

    Of an artifact's records, of the manifest, of the configuration, or of the eval.json of an evaluation.

    \b
    Example:
      raggs schema rank
    """
    if artifact.removesuffix(".json") == "eval":
        from raggs.evaluation.models import Report

        found = Report.model_json_schema(mode="serialization")
    else:
        from raggs.config.catalog import json_schema

        found = json_schema(artifact)
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
