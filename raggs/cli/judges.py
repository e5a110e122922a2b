"""`raggs judge bench` (comparison of judges on a labelled collection), `calibrate` and `drift`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import (
    AllowMixed,
    ColumnOption,
    Confidence,
    Details,
    DryRun,
    Json,
    Quiet,
    RunFolder,
    Seed,
    Yes,
    sufficient_cap,
    typed,
)
from raggs.cli.plain_text import say, say_json

if TYPE_CHECKING:
    from raggs.app.judge_bench import JudgeBenchRequest
    from raggs.app.leaderboard import Leaderboard
    from raggs.llm import BudgetSpent

Labels = Annotated[
    Path,
    typer.Argument(
        metavar="LABELS", help="Folder in the BEIR layout, file of labels (TREC, TSV, CSV, JSON), or run directory."
    ),
]
Judges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge", "-j", metavar="SPEC", help="Judge, e.g. litellm:openai/gpt-5-mini (raggs list judges). Repeatable."
    ),
]
JudgesFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="YAML file with a list of `judges` and with `llm` settings."),
]
CorpusFile = Annotated[
    Path | None,
    typer.Option("--corpus", metavar="FILE", help="JSON-lines file of the passages [default: next to the labels]."),
]
QueriesFile = Annotated[
    Path | None, typer.Option("--queries", metavar="FILE", help="File of the queries [default: next to the labels].")
]
ScaleOption = Annotated[
    str | None,
    typer.Option(
        "--scale", metavar="0-3", help="Lowest and highest label, stretched to 1-5 [default: read from the labels]."
    ),
]
MappingOption = Annotated[
    str | None,
    typer.Option("--mapping", metavar="LIST", help="Grade (1 to 5) of each label, e.g. 0=1,1=3,2=5."),
]
Pairs = Annotated[
    int, typer.Option("--pairs", metavar="N", min=1, help="Labelled pairs to grade, stratified by label.")
]
Repeats = Annotated[
    int,
    typer.Option(
        "--repeats", metavar="N", min=0, help="Pairs to grade twice, by whole queries, for test-retest agreement."
    ),
]
Orders = Annotated[
    int,
    typer.Option(
        "--orders", metavar="N", min=0, help="Queries whose passages are ordered twice, for the position bias."
    ),
]
BenchOut = Annotated[
    Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the leaderboard, the ledger and the caches.")
]
AddFile = Annotated[
    list[Path] | None,
    typer.Option(
        "--add", metavar="FILE", help="Add the judges of another leaderboard.json with the same sample. Repeatable."
    ),
]
BenchSeed = Annotated[int, typer.Option("--seed", metavar="N", help="Random seed of the sample.")]
MaxUsd = Annotated[
    float,
    typer.Option("--max-usd", metavar="USD", min=0, help="Budget in USD for all comparisons written to --out."),
]


LabelSource = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="Run directory with human labels, or leaderboard.json.")
]
CalibrationOut = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File to write (JSON).")]
LabelFolder = Annotated[
    Path | None,
    typer.Option(
        "--reviews", metavar="DIR", help="Folder of the human labels [default: `reviews` next to the folder of runs]."
    ),
]
BoardJudge = Annotated[
    str | None,
    typer.Option(
        "--judge", metavar="NAME", help="Judge of the leaderboard [default: the only one with probabilities]."
    ),
]
OnlyChosen = Annotated[
    bool,
    typer.Option("--chosen", help="Use only labels that were not drawn at random, and keep the others for checks."),
]
OverwriteFile = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]


def bench(
    labels: Labels,
    judge: Judges = None,
    config: JudgesFile = None,
    corpus: CorpusFile = None,
    queries: QueriesFile = None,
    scale: ScaleOption = None,
    mapping: MappingOption = None,
    column: ColumnOption = None,
    pairs: Pairs = 400,
    repeats: Repeats = 100,
    orders: Orders = 20,
    seed: BenchSeed = 1,
    add: AddFile = None,
    out: BenchOut = Path("bench"),
    max_usd: MaxUsd = 5.0,
    allow_mixed: AllowMixed = False,
    dry_run: DryRun = False,
    details: Details = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Compare judges on labelled data.

    All judges grade the same sample of labelled pairs. Prints the agreement of each judge with the labels, its bias,
    stability, cost and latency, and whether differences between judges are significant. Paid answers are cached in
    --out: after an interruption, run the same command again.

    \b
    Examples:
      raggs judge bench beir/nfcorpus -j litellm:openai/gpt-5-mini --dry-run
      raggs judge bench qrels.trec -j litellm:openai/gpt-5-mini -j litellm:openai/gpt-5-nano
      raggs judge bench beir/nfcorpus --config judges.yaml --pairs 200 --max-usd 2
      raggs judge bench beir/nfcorpus --add theirs/leaderboard.json
    """
    from raggs.app.judge_bench import JudgeBenchRequest, bench_judges, forecast_bench
    from raggs.app.leaderboard import leaderboard_json
    from raggs.base.tables import LABEL_ROLES, parse_column_names
    from raggs.cli.chunks import show_costs
    from raggs.cli.eval_options import parse_scale
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.llm import BudgetSpent
    from raggs.runs.events import ignore_event

    request = JudgeBenchRequest(
        labels,
        judges=judge or (),
        config=config,
        corpus=corpus,
        queries=queries,
        scale=None if scale is None else parse_scale(scale),
        mapping=None if mapping is None else _parse_mapping(mapping),
        columns=parse_column_names(column or (), LABEL_ROLES),
        pairs=pairs,
        repeats=repeats,
        orders=orders,
        seed=seed,
        max_usd=max_usd,
        add=add or (),
        allow_mixed=allow_mixed,
    )
    if dry_run:
        expected = forecast_bench(request, out)
        above = "\n".join(expected.what)
        show_costs(expected.estimates, max_usd, as_json=as_json, above=above, about=expected.about, llm=request.llm)
        return
    display = listener(quiet or as_json)
    try:
        with display or nullcontext():
            result = bench_judges(request, out, display or ignore_event, approver(yes, quiet))
    except BudgetSpent as error:
        error.remedy = _going_on(error, request, out)
        raise
    if as_json:
        say_json(leaderboard_json(result.leaderboard))
    elif not quiet:
        _show(result.leaderboard, result.files, details=details)


def _show(found: Leaderboard, files: tuple[Path, ...], *, details: bool) -> None:
    from raggs.app.leaderboard_layout import lay_out_leaderboard, summarise_leaderboard
    from raggs.cli.documents import show_summary, show_sweep
    from raggs.cli.screen import open_console

    if details:
        show_sweep(lay_out_leaderboard(found), open_console())
    else:
        show_summary(summarise_leaderboard(found, _next_command(found)), open_console())
    for file in files:
        say(typed(file))


def _next_command(found: Leaderboard) -> str:
    """Return the command that uses the best judge in a run; empty if it calls no single model."""
    best = found.entries[0].settings.get("grade") if found.entries else None
    model = best.get("model") if isinstance(best, dict) and best.get("type") == "litellm" else None
    if not isinstance(model, str):
        return ""
    return f"raggs run --config raggs.yaml --set judge.judge.model={quote(model)} --dry-run"


def _going_on(error: BudgetSpent, request: JudgeBenchRequest, out: Path) -> str:
    """Return how to continue, with a budget that covers the remaining work."""
    from raggs.app.judge_bench import forecast_bench
    from raggs.runs.manifests.models import total

    left = total(each.usd for each in forecast_bench(request, out).estimates)
    flag = f"--max-usd {sufficient_cap(error.cap, left)}"
    return f"paid answers are cached; to continue, run the same command with {flag}"


def calibrate(
    source: LabelSource,
    out: CalibrationOut,
    reviews: LabelFolder = None,
    judge: BoardJudge = None,
    chosen: OnlyChosen = False,
    confidence: Confidence = 0.95,
    seed: Seed = 1,
    force: OverwriteFile = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Calibrate the probabilities of grades that a judge states.

    Fits a temperature and a mix (the weight of the confusion table) on blind human labels of a run, or on the labels of
    a leaderboard of raggs judge bench. Prints the accuracy of the probabilities before and after, by cross-validation
    over queries. Use the file as the setting `calibration` of the judge. Needs at least 20 labels of 5 queries. No
    model is called.

    \b
    Examples:
      raggs judge calibrate runs/demo --out calibration.json
      raggs judge calibrate runs/demo --chosen --out calibration.json
      raggs judge calibrate bench/leaderboard.json --out calibration.json
    """
    from raggs.app.judge_calibration import (
        CalibrationRequest,
        calibrate_judge,
        calibration_json,
        summarise_calibration,
        write_calibration_file,
    )
    from raggs.cli.documents import show_summary
    from raggs.cli.screen import open_console

    found = calibrate_judge(CalibrationRequest(source, reviews, judge, chosen, confidence, seed))
    write_calibration_file(found, out, force=force)
    if as_json:
        say_json(calibration_json(found))
        return
    show_summary(summarise_calibration(found, out), open_console())
    say(typed(out))


CheckName = Annotated[
    str | None,
    typer.Option(
        "--check",
        metavar="NAME",
        help="Name of the check [default: today's date, UTC]. Answers are paid for once per name.",
    ),
]
AskedPassages = Annotated[
    int, typer.Option("--passages", metavar="N", min=1, help="Judged passages to grade again, drawn over queries.")
]
RepeatedPassages = Annotated[
    int,
    typer.Option(
        "--repeats", metavar="N", min=0, help="Passages to grade twice, if the run has one grade per passage."
    ),
]
CanaryCount = Annotated[
    int, typer.Option("--canaries", metavar="N", min=0, help="Maximum number of hidden control items.")
]
ShiftTolerance = Annotated[
    float, typer.Option("--shift", metavar="GRADES", min=0, help="Tolerated mean shift of grades, up or down.")
]
AgreementTolerance = Annotated[
    float,
    typer.Option(
        "--lost",
        metavar="SHARE",
        min=0,
        max=1,
        help="Tolerated loss of equal grades (beyond noise) and of passed canaries.",
    ),
]
CheckMaxUsd = Annotated[
    float, typer.Option("--max-usd", metavar="USD", min=0, help="Budget in USD for all invocations of this check.")
]
DrawSeed = Annotated[int, typer.Option("--seed", metavar="N", help="Random seed of the sample and of the bootstrap.")]


def drift(
    run: RunFolder,
    check: CheckName = None,
    passages: AskedPassages = 30,
    repeats: RepeatedPassages = 20,
    canaries: CanaryCount = 6,
    shift: ShiftTolerance = 0.25,
    lost: AgreementTolerance = 0.1,
    max_usd: CheckMaxUsd = 0.1,
    confidence: Confidence = 0.95,
    seed: DrawSeed = 1,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Test whether the judge of a run still grades as before.

    Grades a fixed sample of the run's passages again. Ends with exit code 7 if an interval shows a change
    beyond its tolerance. The run does not change; results are in its folder `drift`. After an interruption, run the
    same command again: raggs pays for no answer twice.

    \b
    Examples:
      raggs judge drift runs/demo --dry-run
      raggs judge drift runs/demo
      raggs judge drift runs/demo --check release-12 --passages 100 --max-usd 0.5
    """
    from raggs.app.judge_drift import DriftRequest, check_drift, drift_json, forecast_drift, require_no_drift
    from raggs.cli.chunks import show_costs
    from raggs.cli.documents import show_summary
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.cli.review_summaries import summarise_drift
    from raggs.cli.screen import open_console
    from raggs.llm import BudgetSpent
    from raggs.runs.events import ignore_event
    from raggs.runs.manifests.open_run import open_run
    from raggs.stats.judge_drift import DriftTolerance

    tolerance = DriftTolerance(shift, lost)
    request = DriftRequest(run, check, passages, repeats, canaries, tolerance, max_usd, confidence, seed)
    if dry_run:
        expected = forecast_drift(request)
        above = "\n".join(expected.what)
        show_costs(expected.estimates, max_usd, as_json=as_json, above=above, about=expected.about, llm=expected.llm)
        return
    display = listener(quiet or as_json)
    try:
        with display or nullcontext():
            found = check_drift(request, display or ignore_event, approver(yes, quiet))
    except BudgetSpent as error:
        cap = sufficient_cap(error.cap, None)
        error.remedy = f"paid answers are cached; to continue, run the same command with --max-usd {cap}"
        raise
    if as_json:
        say_json(drift_json(found))
    elif not quiet:
        config = typed(open_run(run).config_file)
        show_summary(summarise_drift(found, f"raggs judge drift {typed(run)}", config), open_console())
    require_no_drift(found)


def _parse_mapping(text: str) -> dict[int, int]:
    """Return the grade of each label.

    Raises:
        UsageError: the text is not a list of label=grade, a label occurs twice, or a grade is not 1 to 5.
    """
    from raggs.base.artifacts import MAX_GRADE, MIN_GRADE
    from raggs.base.errors import UsageError

    found: dict[int, int] = {}
    for part in text.split(","):
        label, _, grade = (each.strip() for each in part.partition("="))
        if not (label.isascii() and label.isdigit() and grade.isascii() and grade.isdigit()):
            raise UsageError(f"--mapping {text} is not a mapping", remedy="write e.g. --mapping 0=1,1=3,2=5")
        if not MIN_GRADE <= int(grade[:9]) <= MAX_GRADE:
            raise UsageError(f"--mapping {text}: {grade} is not a grade", remedy=f"use {MIN_GRADE} to {MAX_GRADE}")
        if int(label[:9]) in found:
            raise UsageError(f"--mapping {text}: label {label} occurs twice", remedy="name each label once")
        found[int(label[:9])] = int(grade)
    return found
