"""`raggs judge`: a run's judge, held against people, and two judges against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Confidence, Json, RunFolder, Seed
from raggs.cli.plain import say, say_json
from raggs.cli.reviews import ReviewsFolder

OutFolder = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write check.json and check.md there.")
]
CalibrationFile = Annotated[
    Path | None,
    typer.Option("--calibration", metavar="FILE", help="Write what the judge's grades are worth in people's there."),
]


def check(
    run: RunFolder,
    reviews: ReviewsFolder = None,
    out: OutFolder = None,
    calibration: CalibrationFile = None,
    confidence: Confidence = 0.95,
    seed: Seed = 1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare a judge's grades with people's: what are they good for?

    How far they agree, where they differ, and what they may be used for. Only grades by people
    who had not seen a machine's count.

    \b
    Examples:
      raggs judge check runs/demo
      raggs judge check runs/demo --reviews team/reviews --out check
      raggs judge check runs/demo --calibration map.json
    """
    from raggs.app.judge_check import check_json, check_judge, lay_out_check, write_calibration, write_check
    from raggs.cli.documents import show_sweep
    from raggs.cli.screen import open_console
    from raggs.runs.manifests.opened import open_run

    found = check_judge(open_run(run), reviews, confidence=confidence, seed=seed)
    files = [] if out is None else write_check(found, out)
    if calibration is not None:
        write_calibration(found, calibration)
        files.append(calibration)
    if as_json:
        say_json(check_json(found))
        return
    show_sweep(lay_out_check(found), open_console())
    for file in files:
        say(str(file))


FirstRun = Annotated[Path, typer.Argument(metavar="A", help="A run directory.")]
SecondRun = Annotated[
    Path | None,
    typer.Argument(metavar="B", help="Another, over the same questions and passages; A's panel if left out."),
]
Members = Annotated[
    str | None, typer.Option("--members", metavar="A,B", help="Two members of a panel, by parts of their names.")
]
ComparisonOut = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write compare.json and compare.md there.")
]
PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="Write what to read, where they differ, for review serve --plan."),
]
Shown = Annotated[int, typer.Option("--show", metavar="N", min=0, help="Passages listed on which they differ.")]


def compare(
    first: FirstRun,
    second: SecondRun = None,
    members: Members = None,
    reviews: ReviewsFolder = None,
    out: ComparisonOut = None,
    plan: PlanFile = None,
    show: Shown = 10,
    confidence: Confidence = 0.95,
    seed: Seed = 1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two judges, prompts or models: which one to use?

    How far they agree on the same passages, what each costs, where they differ, and which is
    nearer to people's grades, where people gave some.

    \b
    Examples:
      raggs run --to judge --run-id strict --set judge.prompt=strict.md --dry-run
      raggs run --to judge --run-id strict --set judge.prompt=strict.md
      raggs judge compare runs/demo runs/strict
      raggs judge compare runs/demo runs/strict --plan differ.jsonl
      raggs review serve runs/demo --plan differ.jsonl
      raggs judge compare runs/panel --members mini,haiku
    """
    from raggs.app.judge_compare import (
        compare_judges,
        compare_members,
        comparison_json,
        lay_out_comparison,
        plan_differing,
        write_comparison,
    )
    from raggs.base.errors import UsageError
    from raggs.cli.documents import show_sweep
    from raggs.cli.screen import open_console
    from raggs.runs.manifests.opened import open_run

    if second is not None and members is not None:
        raise UsageError("members are of one run's panel", remedy="leave out B, or --members")
    if second is None:
        names = [name.strip() for name in (members or "").split(",") if name.strip()]
        found = compare_members(open_run(first), names, reviews, confidence=confidence, seed=seed)
    else:
        found = compare_judges(open_run(first), open_run(second), reviews, confidence=confidence, seed=seed)
    files = [] if out is None else write_comparison(found, out, show)
    if plan is not None and plan_differing(found, plan, seed):
        files.append(plan)
    if as_json:
        say_json(comparison_json(found))
        return
    show_sweep(lay_out_comparison(found, show), open_console())
    if plan is not None and not found.unread:
        say("nothing to read: people have spoken wherever the judges differ")
    for file in files:
        say(str(file))
