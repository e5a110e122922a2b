"""`raggs diagnose index`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.diagnosing import DiagnosisFlags, run_kind
from raggs.cli.groups import grouped


@grouped
def index(
    shared: DiagnosisFlags,
    index: Annotated[
        list[str] | None,
        typer.Option("--index", metavar="LIST", help="type:setting=value; hnsw, ivf and ivf with pq if left out."),
    ] = None,
    vary: Annotated[
        list[str] | None, typer.Option("--vary", metavar="NAME=LIST", help="Values to try: m=8,16 or reorder=2,10.")
    ] = None,
    k: Annotated[
        list[int] | None, typer.Option("--k", metavar="N", help="Hits wanted; 10 and 100 if left out.")
    ] = None,
    held_out: Annotated[
        int | None, typer.Option("--held-out", metavar="N", help="Passages kept out of indexes and asked for.")
    ] = None,
    level: Annotated[
        list[float] | None, typer.Option("--level", metavar="SHARE", help="Mean recalls to compare indexes at.")
    ] = None,
    tune: Annotated[
        str | None, typer.Option("--tune", metavar="LOSS", help="Find the least effort: 1% of loss at 10 and 30.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option("--measure", metavar="NAME", help="What is lost, by a golden set: n_recall4.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="N", help="Hits wanted when tuning; the retriever's k.")
    ] = None,
    fix: Annotated[
        str | None,
        typer.Option("--fix", metavar="WHAT=LEAST", help="recall=.9, robustness=.99 or qps=500: the others' front."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", metavar="SHARE", help="Recall that counts as robust in --fix.")
    ] = None,
    correct: Annotated[
        Path | None, typer.Option("--correct", metavar="FILE", help="qid,setting,correct: to choose delta by answers.")
    ] = None,
    near: Annotated[
        float | None, typer.Option("--near", metavar="SHARE", help="Of the exact search's accuracy, for --correct.")
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="FILE", help="Vectors as .npy, in place of a corpus.")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="Vectors of questions as .npy.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Say what approximate indexes lose, for which questions, and which effort is enough.

    \b
    Examples:
      raggs diagnose index --config raggs.yaml
      raggs diagnose index --config raggs.yaml --index hnsw --tune 1%
      raggs diagnose index --vectors passages.npy --queries questions.npy
    """
    words = None if index is None else [word for each in index for word in each.split(",")]
    run_kind(
        "index", shared, indexes=words, vary=vary, k=k, held_out=held_out, levels=level, tune=tune, measure=measure,
        depth=depth, fix=fix, delta=delta, correct=correct, near=near, vectors=vectors, queries=queries,
    )  # fmt: skip
