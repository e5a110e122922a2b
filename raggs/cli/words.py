"""`raggs explain`: what a word means that a table or a configuration uses."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from raggs.app.explain import Meaning


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
    from raggs.app.explain import meanings
    from raggs.cli.app import COMMANDS
    from raggs.cli.screen import hanging
    from raggs.runs.manifests.store import dump_json

    command = word in COMMANDS
    found = tuple(dict.fromkeys(meanings().values())) if word is None else _explained(word, command)
    if as_json:
        say_json(dump_json([asdict(entry) for entry in found]))
        return
    for entry in found:
        say(hanging(f"{', '.join(entry.words)}: ", entry.text) if word is None else hanging("", entry.text))
    if command:
        say(f"a command: raggs {word} --help")


def _explained(word: str, command: bool) -> tuple[Meaning, ...]:
    """What a word means; nothing, where it is a command and no word besides."""
    from raggs.app.explain import explain_word
    from raggs.base.errors import NotFoundError

    try:
        return explain_word(word)
    except NotFoundError:
        if command:
            return ()
        raise
