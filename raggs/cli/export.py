"""`raggs export`, `import`, `report`, `list` and `schema`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from raggs.cli.boundary import Debug
from raggs.cli.eval_options import Baseline, Cutoffs, Measures, Runs, parse_cutoffs
from raggs.cli.options import ColumnOption, ExportFolder, IntoOthers, Json, Quiet, RunFolder
from raggs.cli.plain_text import say, say_json, say_note
from raggs.cli.reviews import ReviewsFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from raggs.app.catalog import CatalogEntry, MeasureEntry
    from raggs.app.export import ImportResult

Format = Annotated[
    str,
    typer.Option("--format", "-f", metavar="FORMAT", help="Output format: trec, beir, hf, ... (raggs list exporters)."),
]


Grades = Annotated[
    Literal["gain", "raw", "binary"],
    typer.Option(
        "--grades", help="Labels as gains 0-4 (which other tools expect), grades 1-5 (raw), or 0 and 1 (binary)."
    ),
]
BinaryAt = Annotated[
    int, typer.Option("--binary-at", metavar="GRADE", help="Lowest grade that becomes 1 with --grades binary.")
]
CorpusChoice = Annotated[
    Literal["all", "pool"],
    typer.Option("--corpus", help="Passages in the exported corpus: all (if cached), or only those of the pools."),
]
Split = Annotated[
    str | None,
    typer.Option(
        "--split", metavar="NAME", help="Split name in beir and hf exports [default: test; training data: train]."
    ),
]
TestShare = Annotated[
    float,
    typer.Option("--test-share", metavar="SHARE", min=0, max=1, help="Share of test queries, for training data."),
]
EvalQueries = Annotated[
    Path | None,
    typer.Option(
        "--eval-queries", metavar="FILE", help="Ids of the test queries, for training data [default: by a hash]."
    ),
]
AllowTest = Annotated[bool, typer.Option("--allow-test", help="Write training data from test queries.")]


def export(
    run: RunFolder,
    out: ExportFolder,
    format_: Format = "trec",
    grades: Grades = "gain",
    binary_at: BinaryAt = 4,
    corpus: CorpusChoice = "all",
    split: Split = None,
    test_share: TestShare = 0.2,
    eval_queries: EvalQueries = None,
    allow_test: AllowTest = False,
    force: IntoOthers = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Export the golden set for another tool.

    Data that the format cannot represent is reported, and listed in the provenance file next to the data.
    `raggs eval -g DIR` reads exports in all formats except training data.

    \b
    Examples:
      raggs export runs/demo --format trec --out golden
      raggs export runs/demo --format beir --out golden-beir --corpus pool
      raggs export runs/demo --format sentence-transformers --out training
    """
    from raggs.app.export import export_run
    from raggs.base.types import Notice
    from raggs.runs.manifests.open_run import open_run
    from raggs.runs.manifests.store import dump_json

    notes: list[str] = []

    def hear(news: object) -> None:
        if isinstance(news, Notice):
            notes.append(news.message)

    done = export_run(
        open_run(run),
        format_,
        out,
        grades=grades,
        binary_at=binary_at,
        corpus=corpus,
        split=split,
        test_share=test_share,
        eval_queries=eval_queries,
        allow_test=allow_test,
        force=force,
        hear=hear,
    )
    for note in notes:
        say_note(f"note: {note}")
    if done.lost:
        width = max(len(f"{loss.count:,}") for loss in done.lost)
        say_note(f"{format_} does not include:")
        for loss in done.lost:
            say_note(f"  {loss.count:>{width},}  {loss}")
    if as_json:
        lost = [asdict(loss) for loss in done.lost]
        say_json(dump_json({"files": [str(file) for file in done.files], "notes": notes, "lost": lost}))
    else:
        say("\n".join(map(str, done.files)))


def list_(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help="Kind of parts: embedders, retrievers, judges, ... [default: all kinds]."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List parts, metrics and artifacts by name.

    Prints the names that configurations and evaluations accept, and the package that provides each.

    \b
    Examples:
      raggs list judges
      raggs list measures
    """
    from raggs.app.catalog import catalog
    from raggs.cli.screen import hanging
    from raggs.runs.manifests.store import dump_json

    if kind == "measures":
        _list_measures(as_json)
        return
    found = catalog(kind)
    if as_json:
        say_json(dump_json({title: _plain_entries(entries) for title, entries in found.items()}))
        return
    width = max((len(name) for entries in found.values() for name in entries), default=0)
    origins = max((len(entry.origin) for entries in found.values() for entry in entries.values()), default=0)
    for title, entries in found.items():
        if kind is None:
            say(f"{title}:")
        for name, entry in entries.items():
            say(hanging(f"  {name:<{width}}  {entry.origin:<{origins}}  ", entry.summary))


def _plain_entries(entries: Mapping[str, CatalogEntry]) -> dict[str, dict[str, str | bool]]:
    return {name: asdict(entry) for name, entry in entries.items()}


def _list_measures(as_json: bool) -> None:
    """Print each metric with its description, formula and source."""
    from raggs.app.catalog import measure_entries
    from raggs.cli.screen import hanging
    from raggs.runs.manifests.store import dump_json

    entries = measure_entries()
    if as_json:
        say_json(dump_json({"measures": {name: asdict(entry) for name, entry in entries.items()}}))
        return
    rows = [("measure", "range", "better", "ties", "parameters"), *map(_measure_row, entries.values())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    say(lines[0])
    for line, entry in zip(lines[1:], entries.values(), strict=True):
        origin = "" if entry.origin.startswith("raggs ") else f"  from {entry.origin}"
        say(line)
        say(hanging("    ", entry.summary))
        say(hanging("    ", f"{entry.formula}  [{entry.source}]{origin}"))
    say(
        hanging(
            "",
            "if ties are known, you can write E[...], range[...], range_at_k[...], bias[...], min[...] and max[...], "
            "as in E[ndcg@10]",
        )
    )


def _measure_row(entry: MeasureEntry) -> tuple[str, ...]:
    low, high = entry.range
    bounds = f"{'-inf' if low is None else f'{low:g}'}..{'inf' if high is None else f'{high:g}'}"
    usual = " ".join(key if value is None else f"{key}={value:g}" for key, value in entry.parameters.items())
    return entry.written, bounds, entry.better, "known" if entry.ties else "-", usual or "-"


def schema(
    artifact: Annotated[
        str,
        typer.Argument(
            metavar="ARTIFACT",
            help="Name from `raggs list artifacts`, or manifest, llm.ledger, llm.intents, config, eval, diff, sweep, "
            "chunks, diagnose.",
        ),
    ],
    debug: Debug = False,
) -> None:
    """Print the JSON Schema of an artifact.

    Schemas exist for the records of artifacts, the manifest, the ledger, the configuration, and the JSON files of
    eval, diff, sweep, chunks and diagnose.

    \b
    Example:
      raggs schema rank
    """
    if artifact.removesuffix(".json") == "eval":
        from raggs.evaluation.models import EvalReport

        found = EvalReport.model_json_schema(mode="serialization")
    else:
        from raggs.app.catalog import json_schema

        found = json_schema(artifact)
    say_json(json.dumps(found, indent=2, ensure_ascii=False))


STATE_TEXT = {
    "whole": "unchanged",
    "changed": "changed",
    "partly": "partly imported",
    "lost": "not imported",
    "read": "read",
}


def import_(
    place: Annotated[
        Path, typer.Argument(metavar="FOLDER|FILE", help="Golden set of another tool, or an export of raggs.")
    ],
    out: ExportFolder,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="Input format (raggs list importers) [default: detected for exports of raggs].",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="NAME", help="Split of beir and hf data [default: test, or the only one]."),
    ] = None,
    column: ColumnOption = None,
    force: IntoOthers = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Import a golden set of another tool.

    Writes JSON lines, which `raggs eval -g DIR` reads. For an export of raggs, reports which parts survived the round
    trip.

    \b
    Examples:
      raggs import golden-beir --format beir --out golden
      raggs import qrels.txt --format trec --out golden
      raggs import labels.csv --format csv --column grade=score --out golden
    """
    from raggs.app.export import import_set
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


def _lines(done: ImportResult) -> Iterator[str]:
    width = max(len(each.counted) for each in done.through)
    for came, said in STATE_TEXT.items():
        parts = [each for each in done.through if each.came == came]
        yield from [f"{said}:"] if parts else []
        yield from (f"  {each.counted:>{width}}  {each.what}" for each in parts)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN|FILE", help="Run directory, or labels (TREC, BEIR, CSV).")],
    runs: Runs = None,
    sweep: Annotated[
        list[Path] | None,
        typer.Option("--sweep", metavar="DIR", help="Folder of a sweep over this golden set. Repeatable."),
    ] = None,
    diagnose: Annotated[
        Path | None,
        typer.Option("--diagnose", metavar="DIR", help="Folder of diagnoses [default: that of the run]."),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option("--eval", metavar="EVAL.JSON", help="eval.json of raggs eval --out, instead of --run."),
    ] = None,
    baseline: Baseline = None,
    measures: Measures = None,
    k: Cutoffs = "",
    reviews: ReviewsFolder = None,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Omit passage texts, so that the file can be shared.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File to write.")] = Path("report.html"),
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a self-contained HTML report for decision makers.

    Contains the result and its reliability, open problems, the next step and the cost. Details show where each system
    loses and how each number was computed. Without --run, the systems are the retrievers of the run and their fusion.

    \b
    Examples:
      raggs report runs/demo --out report.html
      raggs report runs/demo --run now=bm25.trec --run new=dense.trec
      raggs report runs/demo --sweep sweeps/demo --no-text
      raggs report qrels.txt --eval eval/eval.json
    """
    from raggs.app.eval_request import MeasureRequest
    from raggs.app.report import ReportRequest, write_report_page
    from raggs.metrics.names import split_names

    request = ReportRequest(
        golden=run,
        runs=tuple(runs or ()),
        diagnoses=diagnose,
        evaluation=evaluation,
        sweeps=tuple(sweep or ()),
        baseline=baseline,
        measures=MeasureRequest(tuple(split_names(measures or "")), parse_cutoffs(k)),
        reviews=reviews,
        texts=not no_text,
        out=out,
    )
    written = write_report_page(request)
    if not quiet:
        say(str(written))
