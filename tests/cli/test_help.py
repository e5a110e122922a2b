"""`--help` of every command on a terminal of 80 columns, and the variables that stand for options."""

from __future__ import annotations

import re
from collections.abc import Iterator
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


def options(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """Command, short flag and long flag of every option in the CLI that has a short one."""
    if isinstance(command, TyperGroup):
        for name in list(command.commands):
            yield from options(command.commands[name], (*words, name))
        return
    for parameter in command.params:  # type: ignore[attr-defined]
        long = max(parameter.opts, key=len)
        yield from ((" ".join(words), flag, long) for flag in parameter.opts if re.fullmatch("-[a-z]", flag))


def test_a_short_flag_has_one_meaning_in_all_commands() -> None:
    meanings: dict[str, set[str]] = {}
    for _, short, long in options(ROOT):
        same = {"--k": "cutoff", "-k": "cutoff", "--measures": "measure", "--systems": "system"}
        meanings.setdefault(short, set()).add(same.get(long, long.lstrip("-")))
    assert len(meanings) > 10
    assert {short: found for short, found in meanings.items() if len(found) > 1} == {}
    assert meanings["-q"] == {"quiet"}


def test_eval_lists_the_usual_options_first_and_all_others_under_a_title() -> None:
    from raggs.cli.eval_options import HELP_SECTIONS

    command = ROOT.commands["eval"]
    named = [name for names in HELP_SECTIONS.values() for name in names]
    assert sorted(named) == sorted({parameter.name for parameter in command.params} | {"help"})
    assert len(HELP_SECTIONS["Options"]) == 12
    shown = help_of("eval")
    assert [line for line in shown.splitlines() if line in {f"{title}:" for title in HELP_SECTIONS}] == [
        f"{title}:" for title in HELP_SECTIONS
    ]
    first = shown.partition("\nOptions:\n")[2].partition("\n\n")[0]
    assert {"--golden", "--run", "--fail-under", "--details", "--help"} <= set(re.findall("--[a-z-]+", first))
    assert "--junit" not in first
