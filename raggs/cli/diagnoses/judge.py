"""`raggs diagnose judge`."""

from __future__ import annotations

from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.diagnosing import DiagnosisFlags, run_kind
from raggs.cli.groups import grouped


@grouped
def judge(
    shared: DiagnosisFlags,
    pools: Annotated[int | None, typer.Option("--pools", metavar="N", help="Pools that are ordered.")] = None,
    size: Annotated[int | None, typer.Option("--size", metavar="N", help="Passages of a pool, at most.")] = None,
    showings: Annotated[
        int | None, typer.Option("--showings", metavar="N", help="Orders in which one prompt shows a pool.")
    ] = None,
    repeats: Annotated[int | None, typer.Option("--repeats", metavar="N", help="Asks of each of these.")] = None,
    rankings: Annotated[
        int | None, typer.Option("--rankings", metavar="N", help="Rankings of each pool by the rank stage.")
    ] = None,
    top: Annotated[int | None, typer.Option("--top", metavar="N", help="How many of the first are compared.")] = None,
    debug: Debug = False,
) -> None:
    """Say whether the judge orders alike, and what the rank stage buys.

    \b
    Examples:
      raggs diagnose judge --config raggs.yaml --dry-run
      raggs diagnose judge --config raggs.yaml --pools 5 --rankings 1
    """
    run_kind(
        "judge",
        shared,
        pools=pools,
        size=size,
        showings=showings,
        repeats=repeats,
        rankings=rankings,
        top=top,
    )
