"""`raggs diagnose precision`."""

from __future__ import annotations

from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.diagnosing import DiagnosisFlags, run_kind
from raggs.cli.groups import grouped


@grouped
def precision(
    shared: DiagnosisFlags,
    measures: Annotated[
        str | None, typer.Option("--measures", "-m", metavar="NAMES", help="With commas, without cutoffs.")
    ] = None,
    cutoff: Annotated[
        int | None, typer.Option("--cutoff", "-k", metavar="K", help="At which questions are told apart.")
    ] = None,
    deepest: Annotated[int | None, typer.Option("--deepest", metavar="K", help="Last cutoff of the curves.")] = None,
    candidates: Annotated[
        int | None, typer.Option("--candidates", metavar="N", help="Of a question, that rerankers are given.")
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--run", "-r", "--runs", metavar="[NAME=]PATH", help="Lists with scores, in place of models; repeatable."
        ),
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option(
            "--scores",
            metavar="score|logit|logits",
            help="What the files hold: scores, logits, or two each (logit_no, logit_yes).",
        ),
    ] = None,
    limit: Annotated[
        float | None, typer.Option("--limit", metavar="POINTS", help="The widest range that still passes.")
    ] = None,
    debug: Debug = False,
) -> None:
    """What 16 bits make of scores: ties, ranges, reversals, leaks.

    Scores in f32, f16 and bf16, with and without the last step in float32 (HPS): each measure
    as it stands, by expectation, at least and at most.

    \b
    Examples:
      raggs diagnose precision --config raggs.yaml
      raggs diagnose precision --golden qrels.txt --run a.trec --run b.trec
    """
    run_kind(
        "precision",
        shared,
        measures=None if measures is None else tuple(filter(None, map(str.strip, measures.split(",")))),
        cutoff=cutoff,
        deepest=deepest,
        candidates=candidates,
        runs=None if runs is None else tuple(runs),
        scores=scores,
        limit=limit,
    )
