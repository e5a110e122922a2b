"""`raggs prompts list` and `raggs prompts show`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json
from raggs.cli.plain import say, say_json, say_page


def list_(as_json: Json = False, debug: Debug = False) -> None:
    """List the prompts, their languages and what each is for.

    \b
    Example:
      raggs prompts list
    """
    from raggs.app.prompts import prompt_pages
    from raggs.cli.screen import hanging
    from raggs.runs.manifests.store import dump_json

    pages = prompt_pages()
    if as_json:
        say_json(dump_json({page.name: {"languages": page.languages, "note": page.note} for page in pages}))
        return
    width = max(len(page.name) for page in pages)
    for page in pages:
        say(hanging(f"{page.name:<{width}}  {', '.join(page.languages)}  ", page.note))


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of `raggs prompts list`.")],
    language: Annotated[str, typer.Option("--language", "-l", metavar="CODE", help="ISO 639-1.")] = "en",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a prompt, word for word.

    The output is a Markdown file that `judge.prompt`, `rank.prompt` and the rewriter's `prompt` take in its place.

    \b
    Examples:
      raggs prompts show grade@1 --language fr
      raggs prompts show grade@1 > mine.en.md
    """
    from raggs.app.prompts import prompt_page
    from raggs.runs.manifests.store import dump_json

    page = prompt_page(name, language)
    if as_json:
        say_json(dump_json(asdict(page)))
    else:
        say_page(page.markdown)
