"""`--help` of every command on a terminal of 80 columns, and the variables that stand for options."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import invoke
from typer.core import TyperGroup
from typer.main import get_command

from raggs.cli.app import app
from raggs.diagnosis import REGISTRY

ROOT = get_command(app)
assert isinstance(ROOT, TyperGroup)
COMMANDS = [
    *([name] for name in ROOT.commands),
    *(
        ["chunks", "eval"],
        ["chunks", "place"],
        ["chunks", "show"],
        ["config", "show"],
        ["cache", "stats"],
        ["cache", "clear"],
        ["prompts", "list"],
        ["prompts", "show"],
        ["questions", "calibrate"],
        ["questions", "import"],
        *(["diagnose", kind] for kind in ("list", "all", *REGISTRY.builtin)),
        ["review", "serve"],
        ["review", "export"],
        ["review", "import"],
    ),
]


def help_of(*words: str) -> str:
    result = invoke(*words, "--help", env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("words", [[], *COMMANDS], ids=" ".join)
def test_help_fits_80_columns_and_lists_no_variables(words: list[str]) -> None:
    shown = help_of(*words)
    assert not [line for line in shown.splitlines() if len(line) > 80]
    for rubbish in ("env var", "<float", "<int", "[[", "\\b"):
        assert rubbish not in shown
    assert not [line for line in shown.splitlines() if line.startswith("  ") and line.endswith("...")], "a line was cut"


def test_one_line_says_the_rule_for_variables() -> None:
    rule = " ".join(help_of().split()).count("RAGGS_<COMMAND>_<OPTION>")
    assert rule == 1
    assert help_of("cache", "clear").count("RAGGS_CACHE_CLEAR_<OPTION>") == 1


def test_a_variable_is_named_by_the_option_as_it_is_written(tmp_path: Path) -> None:
    for variable, value, message in [
        ("RAGGS_RUN_FROM", "jugde", "did you mean 'judge'"),
        ("RAGGS_RUN_SET", "rank.max_cals=4", "rank.max_cals"),
    ]:
        folder = tmp_path / variable
        assert invoke("init", folder).exit_code == 0
        env = {"RAGGS_RUN_CONFIG": str(folder / "raggs.yaml"), variable: value}
        result = invoke("run", env=env)
        assert result.exit_code != 0
        assert message in result.output


def test_the_option_wins_over_its_variable() -> None:
    result = invoke("prompts", "show", "grade@1", "-l", "en", env={"RAGGS_PROMPTS_SHOW_LANGUAGE": "fr"})
    assert "# system\n\nYou grade" in result.stdout
