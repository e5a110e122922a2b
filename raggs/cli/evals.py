"""`raggs eval`: score systems against a golden set, for people and for CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json

GoldenPath = Annotated[
    Path | None,
    typer.Option("--golden", "-g", metavar="RUN|FILE", help="A run directory, or qrels (TREC, BEIR, CSV, ranx JSON)."),
]
Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        "-r",
        metavar="[NAME=]FILE|RUN",
        help="What a system returned (TREC, CSV, ranx JSON; .gz), or a run directory for its retrievers. Repeatable.",
    ),
]
Measures = Annotated[
    str | None, typer.Option("--measures", "-m", metavar="NAMES", help="With commas; see: raggs list measures.")
]
Cutoffs = Annotated[
    str,
    typer.Option(
        "--k", "-k", metavar="5,10", help="Cutoffs of measures named without @k. [default: 10 where one is needed]"
    ),
]
Baseline = Annotated[str | None, typer.Option("--baseline", "-b", metavar="NAME", help="Test all others against it.")]
OutFolder = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write eval.json, eval.csv and eval.md there.")
]
PerQuery = Annotated[bool, typer.Option("--per-query", "-q", help="Print a line for each system and query.")]
TieRule = Annotated[
    str, typer.Option("--ties", metavar="trec|file", help="Order of equal scores: as trec_eval, or as in the file.")
]
ScaleText = Annotated[
    str | None, typer.Option("--scale", metavar="1-5", help="Lowest and highest grade. [default: from the labels]")
]
BinaryAt = Annotated[
    int | None, typer.Option("--binary-at", metavar="GRADE", help="Lowest relevant grade. [default: 4 of 1-5, else 1]")
]
Gains = Annotated[
    str | None, typer.Option("--gains", metavar="5=4,4=3,…", help="Gain of each grade. [default: grade - lowest]")
]
Condensed = Annotated[bool, typer.Option("--condensed", help="Leave unjudged passages out of the lists.")]
Pool = Annotated[int, typer.Option("--pool", metavar="50", min=1, help="Candidates for the PROC ceilings.")]
Bounds = Annotated[bool, typer.Option("--bounds", help="Scores with all holes at the lowest and the highest grade.")]
Grid = Annotated[bool, typer.Option("--sensitivity", help="Does the order of systems depend on RA-nWG's parameters?")]
Robust = Annotated[bool, typer.Option("--robustness", help="Distribution of recall over queries.")]
Doubt = Annotated[
    bool, typer.Option("--uncertainty", help="Widen intervals by the doubt about labels (needs --golden RUN).")
]
Facets = Annotated[
    Path | None, typer.Option("--facets", metavar="FILE", help="doc_id<TAB>facet lines, for ra_nwg_novel.")
]
Correct = Annotated[
    Path | None, typer.Option("--correct", metavar="FILE", help="qid<TAB>0|1 lines: was the answer right? For Acc|Hit.")
]
SamplesFile = Annotated[
    Path | None, typer.Option("--samples", metavar="FILE", help="YAML or JSON samples instead of --golden.")
]
OutputsFile = Annotated[
    Path | None, typer.Option("--outputs", metavar="FILE", help="JSON lines of what was retrieved for --samples.")
]
FailUnder = Annotated[
    list[str] | None,
    typer.Option("--fail-under", metavar="NAME=VALUE", help="Exit with 7 when a mean is below. Repeatable."),
]
FailOn = Annotated[
    Path | None, typer.Option("--fail-on-regression", metavar="EVAL.JSON", help="Exit with 7 when it got worse.")
]
MaxDrop = Annotated[
    float, typer.Option("--max-drop", min=0.0, help="What a mean may lose before that is a regression.")
]
Confidence = Annotated[float, typer.Option("--confidence", min=0.5, max=0.999, help="Of the intervals and tests.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the bootstrap.")]


def eval_(
    golden: GoldenPath = None,
    run: Runs = None,
    measures: Measures = None,
    k: Cutoffs = "",
    baseline: Baseline = None,
    out: OutFolder = None,
    per_query: PerQuery = False,
    ties: TieRule = "trec",
    scale: ScaleText = None,
    binary_at: BinaryAt = None,
    gains: Gains = None,
    condensed: Condensed = False,
    pool: Pool = 50,
    bounds: Bounds = False,
    sensitivity: Grid = False,
    robustness: Robust = False,
    uncertainty: Doubt = False,
    facets: Facets = None,
    correct: Correct = None,
    samples: SamplesFile = None,
    outputs: OutputsFile = None,
    fail_under: FailUnder = None,
    fail_on_regression: FailOn = None,
    max_drop: MaxDrop = 0.01,
    confidence: Confidence = 0.95,
    seed: Seed = 1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Score systems against a golden set.

    Every judged query counts: one that a run leaves out scores 0, as with trec_eval -c. A measure that is not defined
    for a query is left out of its mean, and the valid queries are shown.

    \b
    Examples:
      raggs eval --golden runs/demo --run runs/demo
      raggs eval -g qrels.txt -r bm25.trec -r new=dense.trec.gz --baseline bm25 --k 5,10 --out eval
      raggs eval -g runs/demo -r bm25.trec --measures ndcg@10,E[recall@20],ra_nwg@10 --bounds
      raggs eval -g qrels.tsv -r now.trec --fail-under ndcg@10=0.55 --fail-on-regression last/eval.json
      raggs eval --samples samples.yaml --outputs outputs.jsonl
    """
    from raggs.cli import evalviews
    from raggs.evaluation import command
    from raggs.evaluation.writers import write_report

    asked = command.Request(
        golden=golden,
        runs=tuple(run or ()),
        measures=measures,
        cutoffs=k,
        baseline=baseline,
        ties=ties,
        scale=scale,
        binary_at=binary_at,
        gains=gains,
        condensed=condensed,
        pool=pool,
        bounds=bounds,
        sensitivity=sensitivity,
        robustness=robustness,
        uncertainty=uncertainty,
        facets=facets,
        correct=correct,
        samples=samples,
        outputs=outputs,
        confidence=confidence,
        seed=seed,
        fail_under=tuple(fail_under or ()),
        fail_on_regression=fail_on_regression,
        max_drop=max_drop,
    )
    gates = command.open_gates(asked)
    report = command.evaluate_files(asked)
    files = [] if out is None else write_report(report, out)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        evalviews.show(report, per_query=per_query, files=files)
    gates.judge(report)
