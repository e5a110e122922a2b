"""`raggs export`, `list` and `schema`: what raggs gives to other tools and people.

`raggs import`: golden sets of other tools.

`raggs report`: a golden set with its systems as one HTML file.
"""

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
    str, typer.Option("--format", "-f", metavar="FORMAT", help="trec, beir, hf, ...; see: raggs list exporters.")
]


Grades = Annotated[
    Literal["gain", "raw", "binary"],
    typer.Option("--grades", help="Labels as gains 0-4 (other tools expect these), as grades 1-5 (raw), or 0 and 1."),
]
BinaryAt = Annotated[
    int, typer.Option("--binary-at", metavar="GRADE", help="The lowest grade that --grades binary takes for 1.")
]
CorpusChoice = Annotated[
    Literal["all", "pool"],
    typer.Option("--corpus", help="Of formats with one: all passages, where the cache has them, or the pools'."),
]
Split = Annotated[str, typer.Option("--split", metavar="NAME", help="What these questions are called in beir and hf.")]


def export(
    run: RunFolder,
    out: ExportFolder,
    format_: Format = "trec",
    grades: Grades = "gain",
    binary_at: BinaryAt = 4,
    corpus: CorpusChoice = "all",
    split: Split = "test",
    force: IntoOthers = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the golden set for another tool.

    What the format cannot hold is said, and stands in the file of provenance beside the data. `raggs eval -g DIR` reads
    every export again.

    \b
    Examples:
      raggs export runs/demo --format trec --out golden
      raggs export runs/demo --format beir --out golden-beir --corpus pool
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
        force=force,
        hear=hear,
    )
    for note in notes:
        say_note(f"note: {note}")
    if done.lost:
        width = max(len(f"{loss.count:,}") for loss in done.lost)
        say_note(f"{format_} does not hold:")
        for loss in done.lost:
            say_note(f"  {loss.count:>{width},}  {loss}")
    if as_json:
        lost = [asdict(loss) for loss in done.lost]
        say_json(dump_json({"files": [str(file) for file in done.files], "notes": notes, "lost": lost}))
    else:
        say("\n".join(map(str, done.files)))


def list_(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="embedders, retrievers, judges, ...; all kinds if left out.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List everything that has a name.

    What can be named in a configuration or asked of an evaluation, and the package that gives it.

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
    """All that is known of each measure: a row, and below it what it says, its formula and its source."""
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
    say(hanging("", "ties known: E[...], range[...], range_at_k[...], bias[...], min[...], max[...], as in E[ndcg@10]"))


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
            help="One of `raggs list artifacts`, or manifest, llm.ledger, llm.intents, config, eval, diff, sweep, "
            "chunks, diagnose.",
        ),
    ],
    debug: Debug = False,
) -> None:
    """Print the JSON Schema of an artifact.

    Of an artifact's records, of the manifest, of the configuration, of the eval.json of an evaluation, of the
    diff.json of two golden sets, of the sweep.json of a sweep, of the chunks.json of a comparison of chunkers, or of
    the reports of diagnoses.

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
    run: Annotated[Path, typer.Argument(metavar="RUN|FILE", help="A run directory, or labels (TREC, BEIR, CSV).")],
    runs: Runs = None,
    sweep: Annotated[
        list[Path] | None, typer.Option("--sweep", metavar="DIR", help="The folder of a sweep over it. Repeatable.")
    ] = None,
    diagnose: Annotated[
        Path | None,
        typer.Option("--diagnose", metavar="DIR", help="The folder of diagnoses; the run's own if left out."),
    ] = None,
    evaluation: Annotated[
        Path | None, typer.Option("--eval", metavar="EVAL.JSON", help="What raggs eval --out wrote, in place of --run.")
    ] = None,
    baseline: Baseline = None,
    measures: Measures = None,
    k: Cutoffs = "",
    reviews: ReviewsFolder = None,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave the texts of passages out, so that it can travel.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = Path("report.html"),
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write one HTML file for the meeting where the decision falls.

    What the set says, whether it can be trusted, what blocks, what is next and what it cost; then
    where each system loses, and how each number was made. Without --run the run's own retrievers
    are the systems; the first one is the baseline. The file needs no network and no server.

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
