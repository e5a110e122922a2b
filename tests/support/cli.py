"""The `raggs` command in this process: it costs its work alone, and what it raises can be seen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import typer.testing
from click.testing import Result
from typer.main import get_command
from typer.testing import CliRunner

from raggs.cli.app import app
from raggs.cli.plain_text import end_quiet

typer.testing._get_command = cache(get_command)  # the tree of commands is made once, as in a process


def invoke(*arguments: object, env: Mapping[str, str] | None = None, input: str | None = None) -> Result:
    """However it ends. `input`: what is typed."""
    words = [str(argument) for argument in arguments]
    try:
        return CliRunner().invoke(app, words, env=env, input=input, prog_name="raggs")
    finally:
        end_quiet()


def call(*arguments: object, code: int = 0, env: Mapping[str, str] | None = None) -> Result:
    """What must end with `code`."""
    result = invoke(*arguments, env=env)
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}\n{result.exception!r}"
    return result
