"""`raggs eval`: score systems against a golden set, for people and for CI."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.cli.boundary import Debug
from raggs.cli.evalflags import (
    AnalysisFlags,
    AnswerFlags,
    MeasureFlags,
    OutputFlags,
    ScaleFlags,
    StatisticsFlags,
    SubjectFlags,
)
from raggs.cli.gateflags import GateFlags
from raggs.cli.groups import grouped
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from raggs.app.answers import AnswersRequest
    from raggs.app.evaluate import EvalResult
    from raggs.app.gating import Apart, Verdicts


@grouped
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
    """Score systems against a golden set.

    Every judged query counts: one that a run leaves out scores 0, as with trec_eval -c. A measure that is not defined
    for a query is left out of its mean, and the valid queries are shown.

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
    from raggs.app.evaluate import EvalRequest, evaluate
    from raggs.app.gating import judged, keep_earlier, refusals_told, sets_apart
    from raggs.cli import evalviews
    from raggs.cli.github import append_summary
    from raggs.cli.screen import open_console
    from raggs.evaluation.writers import RESULT, report_json

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
    if output.as_json:
        say_json(report_json(result.recorded(output.out or Path())))
    elif not output.quiet:
        evalviews.show(result.report, open_console(), per_query=output.per_query, files=files)
    apart = sets_apart(result.report, result.gates, tuple(subject.run or ()))
    if not output.quiet:
        _across(apart, as_json=output.as_json)
    _hand_on(judged(result.report, result.gates), output, apart)


def _with_answers(result: EvalResult, asked: AnswersRequest, output: OutputFlags) -> EvalResult:
    """Have the answers generated, then evaluate again with them.

    Raises:
        BudgetSpent: the cap is reached; paid answers are cached.
    """
    from raggs.app.answers import evaluate_with, generate_answers
    from raggs.cli.addresses import approver
    from raggs.cli.progress import listener
    from raggs.llm import BudgetSpent
    from raggs.runs.pipeline.events import silent

    display = listener(output.quiet or output.as_json)
    try:
        with display or nullcontext():
            found = generate_answers(result, asked, display or silent, approver(False, output.quiet))
    except BudgetSpent as error:
        error.remedy = "paid answers are cached; run the same command with a higher --max-usd"
        raise
    if not output.quiet:
        say(str(found), err=True)
    return evaluate_with(result, found)


def _show_costs(result: EvalResult, asked: AnswersRequest, output: OutputFlags) -> None:
    from raggs.app.answers import ESTIMATED, forecast_answers, settings_of
    from raggs.cli.cutting import show_costs

    estimates, llm = forecast_answers(result, asked), settings_of(result).llm
    show_costs(estimates, asked.max_usd, as_json=output.as_json, llm=llm, about=ESTIMATED)


def _hand_on(verdicts: Verdicts, output: OutputFlags, apart: Apart) -> None:
    """Tell a CI server what the gates say, then fail where one did."""
    from raggs.app.gating import summary, write_junit
    from raggs.cli.github import append_summary

    if output.junit is not None:
        write_junit(verdicts, output.junit)
    if output.summary:
        append_summary(summary(verdicts, apart))
    for said in verdicts.passed_over:
        say(f"warning: {said}", err=True)
    verdicts.settle()


def _across(found: Apart, *, as_json: bool) -> None:
    """What differs between the sets of this result and of the earlier one, where they may differ; beside JSON aside."""
    from raggs.cli.diffs import show
    from raggs.cli.screen import Screen, open_console

    if isinstance(found, str):
        say(f"note: {found}", err=True)
    elif found is not None:
        show(found, [], Screen(stderr=True) if as_json else open_console())
