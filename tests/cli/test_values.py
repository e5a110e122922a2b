"""Plain values are read as typer would read them, and all others by typer itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from raggs.cli.boundary import PlainCommand


def shout(value: str | None) -> str | None:
    """A callback."""
    return value if value is None else value.upper()


def told(cls: type | None, *words: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    """The exit code and the output of a command with values of all kinds."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command(cls=cls)
    def show(
        place: Path,
        word: Annotated[str, typer.Option(envvar="WORD")] = "usual",
        maybe: Annotated[str | None, typer.Option()] = None,
        called: Annotated[str | None, typer.Option(callback=shout)] = None,
        file: Annotated[Path | None, typer.Option()] = None,
        times: Annotated[int, typer.Option(min=0)] = 3,
        limit: Annotated[float | None, typer.Option()] = None,
        many: Annotated[list[str] | None, typer.Option()] = None,
        yes: Annotated[bool, typer.Option("--yes")] = False,
    ) -> None:
        typer.echo(repr((place, word, maybe, called, file, times, limit, many, yes)))

    result = CliRunner().invoke(app, list(words), env=env, prog_name="show")
    return result.exit_code, result.output


@pytest.mark.parametrize(
    "words",
    [
        "",
        "a",
        "a --help",
        "a --word b --maybe c --called d --file e --times 4 --limit 0.5 --many x --many y --yes",
        "a --times -1",
        "a --limit much",
        "a --file",
        "a b",
        "a --wrod b",
    ],
)
def test_a_command_reads_what_typer_reads(words: str) -> None:
    assert told(PlainCommand, *words.split()) == told(None, *words.split())


def test_empty_words_and_variables_are_as_typer_has_them() -> None:
    for words in (["", "--word", "", "--file", ""], [" a/../b "]):
        for env in ({"WORD": "from a variable"}, {"WORD": ""}):
            assert told(PlainCommand, *words, env=env) == told(None, *words, env=env)


def test_what_is_plain_asks_no_validator(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer(add_completion=False)

    @app.command(cls=PlainCommand)
    def show(place: Path, other: str | None = None) -> None:
        typer.echo(f"{place} {other}")

    command = get_command(app)
    for parameter in command.params:
        monkeypatch.setattr(type(parameter), "process_value", None)
    assert isinstance(command, PlainCommand)
    read = {parameter.name: parameter.__dict__["process_value"] for parameter in command.params}
    assert read["place"](None, "a/b") == Path("a/b")
    assert read["other"](None, None) is None
