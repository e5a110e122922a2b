"""`raggs eval`, `raggs diff` and `raggs compare`.

`eval` scores systems against a golden set. `diff` compares two golden sets and their verdicts. `compare` compares the
settings, results and cost of two runs.
"""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.text import Text

from raggs.cli.boundary import Debug
from raggs.cli.eval_options import (
    HELP_SECTIONS,
    AnalysisFlags,
    AnswerFlags,
    GateFlags,
    MeasureFlags,
    Measures,
    OutputFlags,
    ScaleFlags,
    StatisticsFlags,
    SubjectFlags,
    set_options,
)
from raggs.cli.options import (
    Confidence,
    Details,
    Json,
    Precision,
    Seed,
    Summary,
    with_help_sections,
    with_option_groups,
)
from raggs.cli.plain_text import say, say_json

if TYPE_CHECKING:
    from rich.console import Console

    from raggs.app.answers import AnswersRequest
    from raggs.app.evaluate import EvalResult
    from raggs.app.gates import Apart, GateVerdicts
    from raggs.evaluation.diff_sets import DiffReport


@with_help_sections(HELP_SECTIONS)
@with_option_groups
def eval_(
    subject: SubjectFlags,
    measures: MeasureFlags,
    scale: ScaleFlags,
    analyses: AnalysisFlags,
    answers: AnswerFlags,
    statistics: StatisticsFlags,
    gates: GateFlags,
    output: OutputFlags,
    debug: Debug = False,
) -> None:
    """Score systems against a golden set and compare them.

    Prints a verdict per system, a table of scores, and how far to trust them. A judged query without results counts as
    an empty list, as with trec_eval -c.

    \b
    Examples:
      raggs eval --golden runs/demo --run runs/demo
      raggs eval -g qrels.txt -r bm25.trec -r new=dense.trec.gz -b bm25
      raggs eval -g runs/demo -r bm25.trec -m ndcg@10,E[recall@20] --bounds
      raggs eval -g qrels.tsv -r now.trec --fail-under ndcg@10=0.55
      raggs eval -g golden -r a.trec --lock golden.lock --junit a.xml --summary
      raggs eval -g golden -r a.trec --fail-on-regression main.json --across-sets
      raggs eval -g runs/at200 -r runs/at400 --project
      raggs eval -g runs/at200 -r bm25.trec --project --corpus at400.yaml
      raggs eval -g runs/demo -r runs/demo -m precision@10 --reviews reviews
      raggs eval -g runs/demo -r runs/demo --out scores \\
        --answers litellm:openai/gpt-5-mini --dry-run
      raggs eval --samples samples.yaml --outputs outputs.jsonl
    """
    from raggs.app.eval_request import EvalRequest
    from raggs.app.evaluate import evaluate
    from raggs.app.gates import check_gates, keep_earlier, refusals_told, sets_apart
    from raggs.cli.plain_text import append_summary
    from raggs.evaluation.layout import RESULT, report_json

    asked = answers.request(output.out, analyses.correct)
    keep_earlier(gates.fail_on_regression, output.out and output.out / RESULT, output.junit)
    with refusals_told(gates.lock, output.junit, append_summary if output.summary else None):
        result = evaluate(
            EvalRequest(
                subject=subject.request(),
                measures=measures.request(),
                scale=scale.request(),
                analyses=analyses.request(),
                gates=gates.request(),
                confidence=statistics.checked(),
                seed=statistics.seed,
            )
        )
        if asked is not None:
            if answers.dry_run:
                _show_costs(result, asked, output)
                return
            result = _with_answers(result, asked, output)
    files = [] if output.out is None else result.write(output.out)
    verdicts = check_gates(result.report, result.gates)
    if output.as_json:
        say_json(report_json(result.recorded(output.out or Path())))
    elif not output.quiet:
        repeated = [*measures.words(), *scale.words(), *set_options([("-b", analyses.baseline)]), *statistics.words()]
        _show(result, verdicts, _Following(subject, repeated), analyses.named or asked is not None, output)
        if files:
            say(f"written: {files[0]}, {', '.join(file.name for file in files[1:])}")
    apart = sets_apart(result.report, result.gates, tuple(subject.run or ()))
    if not output.quiet:
        _show_set_difference(apart, as_json=output.as_json, details=output.details)
    _hand_on(verdicts, output, apart)


class _Following(NamedTuple):
    """Parts of the next command: the options for its input, and the other options that are repeated in it."""

    subject: SubjectFlags
    repeated: list[str]


def _show(
    result: EvalResult, verdicts: GateVerdicts, following: _Following, analysed: bool, output: OutputFlags
) -> None:
    """Print the summary. With --details or a requested analysis, print the headline and then all other sections.

    Args:
        analysed: whether an analysis is requested.
    """
    from dataclasses import replace

    from raggs.cli import documents
    from raggs.cli.screen import open_console
    from raggs.evaluation.layout import summarise

    screen, digits = open_console(), output.precision or documents.DIGITS
    gates = (len(verdicts.outcomes), sum(each.failed for each in verdicts.outcomes))
    context = result.context(digits, gates)
    summary = summarise(result.report, context)
    if output.per_query:
        documents.show_per_query(result.report)
    if output.details or analysed:
        documents.show_headline(summary, screen)
        documents.show(result.report, screen, output.precision)
    else:
        documents.show_summary(
            replace(summary, next=_next_command(result, following, context.binary_at)), screen, digits
        )


def _next_command(result: EvalResult, following: _Following, binary_at: int | None) -> str:
    """Return the next command, with the options that it accepts.

    If labels seem to list only relevant passages, the command sets the lowest relevant grade (`--binary-at`). If the
    report has warnings and `--golden` is given, it prints the ranges of the scores (`--bounds`). Otherwise the command
    diagnoses retrieval if the golden set is a run and neither `--project` nor `--column` is given, else it prints the
    scores per query.
    """
    from raggs.runs.manifests.store import RunStore

    subject, words = following.subject, [*following.subject.words(), *following.repeated]
    if binary_at is not None:
        return shlex.join(["raggs", "eval", *words, "--binary-at", str(binary_at)])
    if result.report.warnings and subject.golden is not None:
        return shlex.join(["raggs", "eval", *words, "--bounds"])
    if subject.golden is not None and RunStore(subject.golden).exists and not (subject.project or subject.column):
        request = result.request
        measure = result.primary if request is not None and request.measures.names else None
        accepted = set_options(
            [
                ("-m", measure),
                ("--baseline", request and request.analyses.baseline),
                ("--binary-at", request and request.scale.relevant),
            ]
        )
        return shlex.join(["raggs", "diagnose", "retrieval", *subject.words(), *accepted])
    return shlex.join(["raggs", "eval", *words, "--per-query"])


def _with_answers(result: EvalResult, asked: AnswersRequest, output: OutputFlags) -> EvalResult:
    """Generate the answers, then evaluate again with them.

    Raises:
        BudgetSpent: the cap is reached; paid answers are cached.
    """
    from raggs.app.answers import evaluate_with, generate_answers
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.llm import BudgetSpent
    from raggs.runs.events import ignore_event

    display = listener(output.quiet or output.as_json)
    try:
        with display or nullcontext():
            found = generate_answers(result, asked, display or ignore_event, approver(False, output.quiet))
    except BudgetSpent as error:
        error.remedy = "paid answers are cached; run the same command with a higher --max-usd"
        raise
    if not output.quiet:
        say(str(found), err=True)
    return evaluate_with(result, found)


def _show_costs(result: EvalResult, asked: AnswersRequest, output: OutputFlags) -> None:
    from raggs.app.answers import ESTIMATED, forecast_answers, settings_of
    from raggs.cli.chunks import show_costs

    estimates, llm = forecast_answers(result, asked), settings_of(result).llm
    show_costs(estimates, asked.max_usd, as_json=output.as_json, llm=llm, about=ESTIMATED)


def _hand_on(verdicts: GateVerdicts, output: OutputFlags, apart: Apart) -> None:
    """Write the outcomes of the gates for a CI server, then raise an error if a gate failed."""
    from raggs.app.gates import summary, write_junit
    from raggs.cli.plain_text import append_summary

    if output.junit is not None:
        write_junit(verdicts, output.junit)
    if output.summary:
        append_summary(summary(verdicts, apart))
    for said in verdicts.passed_over:
        say(f"warning: {said}", err=True)
    verdicts.settle()


def _show_set_difference(found: Apart, *, as_json: bool, details: bool) -> None:
    """Print how this golden set differs from the earlier one, if it does. Print to stderr if stdout is JSON."""
    from raggs.cli.screen import Screen, open_console

    if isinstance(found, str):
        say(f"note: {found}", err=True)
    elif found is not None:
        from dataclasses import replace

        from raggs.app.diff_summary import summarise_diff
        from raggs.cli.documents import show_summary

        screen = Screen(stderr=True) if as_json else open_console()
        if details:
            show_diff(found, screen)
        else:
            show_summary(replace(summarise_diff(found), next=""), screen)


OldSet = Annotated[
    Path,
    typer.Argument(metavar="OLD", help="Golden set before the change: a run directory, an export, or a qrels file."),
]
NewSet = Annotated[Path, typer.Argument(metavar="NEW", help="Golden set after the change.")]
Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        "-r",
        metavar="[NAME=]FILE|RUN",
        help="System to score with both sets. Repeatable. [default: retrievers of the runs]",
    ),
]
OutFolder = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write diff.json and diff.md to this folder.")
]
FailOnFlip = Annotated[bool, typer.Option("--fail-on-flip", help="Exit with 7 if a verdict flips.")]


def diff(
    old: OldSet,
    new: NewSet,
    run: Systems = None,
    measures: Measures = None,
    out: OutFolder = None,
    fail_on_flip: FailOnFlip = False,
    details: Details = False,
    precision: Precision = 3,
    confidence: Confidence = 0.95,
    seed: Seed = 1,
    summary: Summary = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two golden sets and their verdicts.

    Prints the verdicts that flip, the scores with both sets, and which grades, orders and queries changed. A
    difference is not an error: the exit code is 0. With --fail-on-flip, it is 7 if a verdict flips.

    \b
    Examples:
      raggs diff runs/before runs/after
      raggs diff old/qrels.txt runs/after -r bm25.trec -r new=dense.trec.gz
      raggs diff runs/before runs/after --fail-on-flip --out diff
    """
    from raggs.app.diff import DiffRequest, diff_json, lay_out_diff, write_diff
    from raggs.app.diff import diff as compared
    from raggs.app.diff_summary import summarise_diff
    from raggs.base.document import markdown
    from raggs.base.errors import PartialError
    from raggs.base.text import plural
    from raggs.cli.documents import show_summary
    from raggs.cli.eval_options import finite
    from raggs.cli.plain_text import append_summary
    from raggs.cli.screen import open_console
    from raggs.metrics.names import split_names

    names = tuple(split_names(measures or ""))
    sure = finite("--confidence", confidence)
    found = compared(DiffRequest(old, new, tuple(run or ()), names, sure, seed))
    files = [] if out is None else write_diff(found, out)
    if as_json:
        say_json(diff_json(found))
    elif details:
        show_diff(found, open_console())
    else:
        show_summary(summarise_diff(found, precision), open_console(), precision)
    if files and not as_json:
        say(f"written: {files[0]}, {', '.join(file.name for file in files[1:])}")
    if summary:
        append_summary(markdown(lay_out_diff(found)))
    if fail_on_flip and found.decisions and (flips := found.decisions.flips):
        told = f"{plural(len(flips), 'verdict')} of {len(found.decisions.verdicts)} flip"
        raise PartialError(told, where=new)


def show_diff(found: DiffReport, screen: Console) -> None:
    """Print all sections of a comparison of two golden sets."""
    from raggs.app.diff import lay_out_diff
    from raggs.base.text import escape_controls
    from raggs.cli.documents import show_sweep
    from raggs.cli.screen import hanging

    document = lay_out_diff(found)
    for warning in document.warnings:
        screen.print(Text(hanging("warning: ", escape_controls(warning), screen), style="bold yellow"), soft_wrap=True)
    show_sweep(document, screen)


def compare(
    run: Annotated[Path, typer.Argument(metavar="RUN_A", help="First run directory.")],
    other: Annotated[Path, typer.Argument(metavar="RUN_B", help="Second run directory.")],
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare the settings, results and cost of two runs.

    Prints which settings differ, whether each affects results, and which stages have the same results. To compare the
    grades and orders of the two golden sets, use raggs diff.

    \b
    Example:
      raggs compare runs/before runs/after
    """
    from raggs.app.diff import compare_runs, lay_out_runs
    from raggs.app.diff_summary import summarise_runs
    from raggs.cli.documents import show_summary, show_sweep
    from raggs.cli.screen import open_console

    found = compare_runs(run, other)
    if as_json:
        say_json(found.model_dump_json(indent=2))
    elif details:
        show_sweep(lay_out_runs(found), open_console())
    else:
        show_summary(summarise_runs(found), open_console())
