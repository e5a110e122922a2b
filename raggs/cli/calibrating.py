"""`raggs questions calibrate`: thresholds found by looking at pairs."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json
from raggs.cli.plain import ask, is_quiet, say, say_json

if TYPE_CHECKING:
    from raggs.app.calibrate import Calibration, Kind, Pairs, Thresholds

NEAR = 5  # pairs shown on each side of a threshold
BAR = 40
WIDTH = 400  # characters of a text that are shown
ASKED = {"duplicate": "the same question?", "excerpt": "is the excerpt about the question?"}
NAMES = {"duplicate": "questions and the nearest before them", "excerpt": "questions and their furthest excerpts"}


def calibrate(
    questions: Annotated[Path, typer.Argument(metavar="FILE", help="Questions with excerpts: CSV, JSONL or YAML.")],
    embedder: Annotated[
        str, typer.Option("--embedder", metavar="NAME", help="type:path or model:key=value; raggs list embedders.")
    ] = "wordllama",
    corpus: Annotated[
        str | None, typer.Option("--corpus", metavar="NAME", help="Only questions about this document or corpus.")
    ] = None,
    duplicate: Annotated[
        float | None,
        typer.Option("--duplicate", metavar="COSINE", min=-1, max=1, help="Above it: asked twice; .70, wordllama .85."),
    ] = None,
    excerpt: Annotated[
        float | None,
        typer.Option("--excerpt", metavar="COSINE", min=-1, max=1, help="Below it: off the point; .41, wordllama .15."),
    ] = None,
    ask: Annotated[
        bool | None, typer.Option("--ask/--no-ask", help="Judge pairs now; if left out, on a terminal.")
    ] = None,
    max_usd: Annotated[
        float, typer.Option("--max-usd", metavar="USD", min=0, help="The most that the embedder may cost.")
    ] = 5.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find thresholds by looking at pairs of questions and excerpts.

    Thresholds belong to a corpus and an embedder. Prints histograms of both cosines and the pairs next to each
    threshold; on a terminal, pairs are shown in binary search instead: y or n, u takes the last answer back, q ends.

    \b
    Examples:
      raggs questions calibrate questions.csv
      raggs questions calibrate questions.csv --corpus finance --duplicate 0.8
    """
    from raggs.app.calibrate import CalibrateRequest, Thresholds, calibrate
    from raggs.cli.progress import listener
    from raggs.runs.pipeline.events import silent

    request = CalibrateRequest(questions, embedder, corpus, max_usd=max_usd)
    display = listener(as_json)
    with display or nullcontext():
        found = calibrate(request, display or silent)
    thresholds = Thresholds(
        found.usual.excerpt if excerpt is None else excerpt,
        found.usual.duplicate if duplicate is None else duplicate,
    )
    if as_json:
        say_json(json.dumps(_as_json(found, thresholds), indent=2))
        return
    interactive = sys.stdin.isatty() and sys.stdout.isatty() if ask is None else ask
    for pairs in found.pairs.values():
        _histogram(pairs)
        if not interactive:
            _near(pairs, getattr(thresholds, pairs.kind))
    if interactive:
        thresholds = _searched(found, thresholds)
    _end(found, thresholds)


def _as_json(found: Calibration, thresholds: Thresholds) -> dict[str, object]:
    gone = found.gone(thresholds)
    return {
        "questions": found.questions,
        "embedder": found.embedder,
        **{
            kind: {
                "threshold": getattr(thresholds, kind),
                "gone": gone[kind],
                "pairs": len(pairs.texts),
                "histogram": [{"from": edge, "count": count} for edge, count in pairs.histogram],
            }
            for kind, pairs in found.pairs.items()
        },
    }


def _histogram(pairs: Pairs) -> None:
    """Bars of the bins that hold something and those between them."""
    say(f"\ncosines of {NAMES[pairs.kind]}: {len(pairs.texts):,}")
    bins = pairs.histogram
    held = [place for place, (_, count) in enumerate(bins) if count]
    most = max((count for _, count in bins), default=0)
    for edge, count in bins[held[0] : held[-1] + 1] if held else ():
        say(f"  {edge:.2f}  {'#' * -(-BAR * count // most)} {count:,}")


def _near(pairs: Pairs, threshold: float) -> None:
    """The pairs next to a threshold, the nearest to it in the middle."""
    order = pairs.cosines.argsort(kind="stable")[::-1].tolist()
    above = [row for row in order if pairs.cosines[row] > threshold]
    shown = order[max(0, len(above) - NEAR) : len(above) + NEAR]
    for place, row in enumerate(shown):
        if place == min(NEAR, len(above)):
            say(f"  ---- {pairs.kind} {threshold:g} ----")
        _pair(pairs, row)


def _pair(pairs: Pairs, row: int, err: bool = False) -> None:
    from raggs.base.text import shorten

    one, other = (shorten(text, WIDTH) for text in pairs.texts[row])
    say(f"  {pairs.cosines[row]:.3f}  {one}\n         {other}", err=err)


def _searched(found: Calibration, usual: Thresholds) -> Thresholds:
    """Both thresholds, as the answers say; the usual one where there is nothing to look at."""
    from raggs.app.calibrate import Thresholds

    values = {kind: _search(kind, pairs) for kind, pairs in found.pairs.items()}
    return Thresholds(
        usual.excerpt if values["excerpt"] is None else values["excerpt"],
        usual.duplicate if values["duplicate"] is None else values["duplicate"],
    )


def _search(kind: Kind, pairs: Pairs) -> float | None:
    """One threshold; None where there is nothing to look at."""
    from raggs.app.calibrate import Search

    search = Search(pairs.cosines)
    if not len(pairs.cosines):
        return None
    while (standing := search.standing()).row is not None:
        say("", err=is_quiet())  # a pair that is asked about is shown in any case
        _pair(pairs, standing.row, err=is_quiet())
        answer = _answer(f"{ASKED[kind]} [y/n/u/q] ({standing.low:.2f} to {standing.high:.2f})")
        if answer == "q":
            break
        if answer == "u":
            search.undo()
        else:
            search.answer(answer == "y")
    return search.standing().threshold


def _answer(question: str) -> str:
    while True:
        given = ask(question).strip().lower()[:1]
        if given and given in "ynuq":
            return given


def _end(found: Calibration, thresholds: Thresholds) -> None:
    """What the thresholds take out, and how they are set."""
    gone = found.gone(thresholds)
    say(
        f"\nduplicate {thresholds.duplicate:g}: {gone['duplicate']:,} of {found.questions:,} questions go; "
        f"excerpt {thresholds.excerpt:g}: {gone['excerpt']:,} go"
    )
    say(f"embedder: {found.embedder} (thresholds of another are on another scale)")
    place, values = "questions.filter", thresholds
    say(f"to use them: {place}.duplicate={values.duplicate:g} {place}.excerpt={values.excerpt:g}")
