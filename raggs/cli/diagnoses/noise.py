"""`raggs diagnose noise`: its own flags."""

from __future__ import annotations

from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.diagnosing import DiagnosisFlags, run_kind
from raggs.cli.groups import grouped

Languages = Annotated[
    list[str] | None, typer.Option("--language", metavar="CODE", help="Of the questions: en, fr; both if left out.")
]
Levels = Annotated[list[int] | None, typer.Option("--level", metavar="N", help="Of noise, 0 to 4; all if left out.")]
Noises = Annotated[
    list[str] | None,
    typer.Option("--noise", metavar="NAME", help="See raggs list noises; all if left out."),
]
Rewriters = Annotated[
    list[str] | None,
    typer.Option("--rewriter", metavar="NAME", help="clean, llm:MODEL, or your own; clean if left out. Repeatable."),
]
Draws = Annotated[int | None, typer.Option("--draws", metavar="N", help="Of the noise, by cosine. [3]")]
Of = Annotated[str | None, typer.Option("--of", metavar="WHAT", help="own or golden: questions and ideal texts. [own]")]
Retrieval = Annotated[
    bool | None, typer.Option("--search/--cosine-only", help="Search a golden set's questions with noise, too.")
]
Searched = Annotated[
    list[int] | None, typer.Option("--searched-level", metavar="N", help="With which they are searched. [2 and 4]")
]
Depth = Annotated[int | None, typer.Option("--depth", metavar="N", help="Passages of each list. [50]")]
Cutoffs = Annotated[list[int] | None, typer.Option("--cutoff", metavar="K", help="Of measures and overlaps. [10, 30]")]


@grouped
def noise(
    shared: DiagnosisFlags,
    language: Languages = None,
    level: Levels = None,
    noises: Noises = None,
    rewriter: Rewriters = None,
    draws: Draws = None,
    of: Of = None,
    retrieval: Retrieval = None,
    searched: Searched = None,
    depth: Depth = None,
    cutoff: Cutoffs = None,
    debug: Debug = False,
) -> None:
    """What do greetings and digressions cost, and what does rewriting bring back?

    Questions are asked with noise in levels and compared to the text that answers
    them best. With a golden set and its corpus its questions are searched with
    noise, too: by words, by vectors, by both, and reranked where one is named.

    \b
    Examples:
      raggs diagnose noise
      raggs diagnose noise --golden runs/demo --rewriter clean
      raggs diagnose noise -c raggs.yaml --rewriter llm:gpt-5-mini --dry-run
    """
    run_kind(
        "noise",
        shared,
        languages=language or None,
        levels=level or None,
        noises=noises or None,
        rewriters=rewriter or None,
        draws=draws,
        of=of,
        retrieval=retrieval,
        searched=searched or None,
        depth=depth,
        cutoffs=cutoff or None,
    )
