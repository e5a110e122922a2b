"""`raggs diagnose retrieval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.diagnosing import DiagnosisFlags, run_kind
from raggs.cli.groups import grouped


@grouped
def retrieval(
    shared: DiagnosisFlags,
    runs: Annotated[
        list[str] | None,
        typer.Option("--run", "-r", metavar="[NAME=]PATH", help="Lists of a system, or a run; repeatable."),
    ] = None,
    values: Annotated[
        Path | None, typer.Option("--values", metavar="FILE", help="eval.json of raggs eval, in place of --run.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option("--measure", "-m", metavar="NAME", help="By which questions fail, such as ndcg@10.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="NAME", help="What others are held against; else the first.")
    ] = None,
    pool: Annotated[int | None, typer.Option("--pool", metavar="N", help="Candidates of a system.")] = None,
    failing: Annotated[
        float | None, typer.Option("--failing", metavar="X", help="A question fails whose value lies below.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Say which questions fail, what they share, and what to turn.

    \b
    Examples:
      raggs diagnose retrieval --golden runs/demo
      raggs diagnose retrieval -g qrels.txt -c raggs.yaml -r a.trec -r b.trec
    """
    run_kind(
        "retrieval",
        shared,
        runs=runs,
        values=values,
        measure=measure,
        baseline=baseline,
        pool=pool,
        failing=failing,
    )
