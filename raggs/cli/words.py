"""`raggs explain`: what a word means that a table or a configuration uses."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json
from raggs.cli.plain import say, say_json


def explain(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD", help="Of a table; a measure, setting or part; if left out, all words of tables."
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Explain a word of raggs' tables, a measure, a setting or a part.

    \b
    Examples:
      raggs explain kappa
      raggs explain "p (Holm)"
      raggs explain ndcg@10
      raggs explain rank                a section of the configuration
      raggs explain rank.floor
    """
    from raggs.app.explain import explain_word, meanings
    from raggs.cli.screen import hanging
    from raggs.manifests.store import dump_json

    found = tuple(dict.fromkeys(meanings().values())) if word is None else explain_word(word)
    if as_json:
        say_json(dump_json([asdict(entry) for entry in found]))
        return
    for entry in found:
        say(hanging(f"{', '.join(entry.words)}: ", entry.text) if word is None else hanging("", entry.text))
