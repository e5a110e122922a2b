"""`raggs review plan`: what a person should read next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json, RunFolder
from raggs.cli.plain import say, say_json
from raggs.cli.reviews import ReviewsFolder

Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--systems",
        "-s",
        metavar="[NAME=]FILE|RUN",
        help="What a system returned, or a run for its retrievers; the run's own if left out. Repeatable.",
    ),
]
Measures = Annotated[
    str | None,
    typer.Option("--measures", "-m", metavar="NAMES", help="With commas. [default: ra_nwg@10,ndcg@10,recall@10]"),
]
Minutes = Annotated[float, typer.Option("--minutes", metavar="N", help="How long somebody will read.")]
Share = Annotated[
    float,
    typer.Option("--random", metavar="SHARE", help="Of the time, for passages drawn at random, in 0 to 1."),
]
Whole = Annotated[
    bool,
    typer.Option("--whole", help="Draw whole questions: any measure can be corrected by them."),
]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the plan there, JSON lines.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the draw.")]


def plan(
    run: RunFolder,
    systems: Systems = None,
    measures: Measures = None,
    minutes: Minutes = 60.0,
    share: Share = 0.1,
    whole: Whole = False,
    out: Out = None,
    seed: Seed = 1,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Say what to read so that verdicts on systems become sure soonest.

    What was read already is left out. A part is drawn at random, which tells how far the judge errs.

    \b
    Examples:
      raggs review plan runs/demo --minutes 60 --out plan.jsonl
      raggs review plan runs/demo -s runs/demo -s new=new.trec -m ndcg@10
      raggs review plan runs/demo --whole --random 1 --minutes 600 --out plan.jsonl
    """
    from raggs.app.planlayout import lay_out_plan, plan_json
    from raggs.app.reviewplan import MEASURES, PlanRequest, keep_plan, plan_reading
    from raggs.cli.screen import open_console
    from raggs.cli.sweepviews import show_sweep
    from raggs.metrics.names import split_names
    from raggs.runs.manifests.opened import open_run

    names = MEASURES if measures is None else tuple(split_names(measures))
    request = PlanRequest(tuple(systems or ()), names, minutes, share, whole, seed)
    found = plan_reading(open_run(run), request, reviews)
    if out is not None:
        keep_plan(found, out)
    if as_json:
        say_json(plan_json(found))
        return
    show_sweep(lay_out_plan(found), open_console())
    if out is not None:
        say(str(out))
