"""`raggs report`: a golden set with its systems as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.evalflags import Baseline, Cutoffs, Measures, Runs
from raggs.cli.evaltexts import parse_cutoffs
from raggs.cli.options import Quiet
from raggs.cli.plain import say
from raggs.cli.reviews import ReviewsFolder


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
    from raggs.app.evaluate import MeasureRequest
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
