"""`raggs diagnose depth`."""

from __future__ import annotations

from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.diagnosing import DiagnosisFlags, run_kind
from raggs.cli.groups import grouped


@grouped
def depth(
    shared: DiagnosisFlags,
    mode: Annotated[str | None, typer.Option("--mode", metavar="MODE", help="hybrid, or dense.")] = None,
    base: Annotated[int | None, typer.Option("--base", metavar="K", help="Candidates of a question; 50.")] = None,
    deep: Annotated[int | None, typer.Option("--deep", metavar="K", help="Where a signal fires; 100.")] = None,
    near: Annotated[
        int | None, typer.Option("--near", metavar="K", help="Cutoff at which quality must not fall; 10.")
    ] = None,
    far: Annotated[
        int | None, typer.Option("--far", metavar="K", help="Where it is to rise; 30, or --deep with no reranker.")
    ] = None,
    most: Annotated[
        float | None, typer.Option("--most", metavar="SHARE", help="Of the questions that may go deep; 0.5.")
    ] = None,
    loss: Annotated[
        float | None, typer.Option("--loss", metavar="X", help="By which quality may fall at --near; 0.01.")
    ] = None,
    slo: Annotated[
        float | None,
        typer.Option("--slo", metavar="MS", help="Milliseconds that 95% of single searches by a router must keep."),
    ] = None,
    timed: Annotated[
        int | None, typer.Option("--timed", metavar="N", help="Questions that are timed; 0: none.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Say whether some questions are worth a deeper search, and write the router.

    Thresholds are fitted on even questions and told on odd ones; --out gets a
    routed.yaml, which raggs run takes, where a router pays.

    \b
    Examples:
      raggs diagnose depth --config raggs.yaml --reranker onnx:models/minilm
      raggs diagnose depth -c raggs.yaml -g runs/demo --mode dense --slo 500
    """
    run_kind(
        "depth",
        shared,
        mode=mode,
        base=base,
        deep=deep,
        near=near,
        far=far,
        most=most,
        loss=loss,
        slo_ms=slo,
        timed=timed,
    )
