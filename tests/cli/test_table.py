"""The table of commands: each is made when it is asked for, and nothing else with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup

from raggs.cli import VARIABLES
from raggs.cli.app import COMMANDS, CommandGroup, Commands

ROOT = Path(__file__).parents[2]


def test_a_name_is_looked_at_without_its_command() -> None:
    table = Commands({"lost": "nowhere:lost", "group": CommandGroup("Help.", {"lost": "nowhere:lost"})})
    assert list(table) == ["lost", "group"]
    assert "lost" in table
    assert table.get("other") is None
    group = table["group"]
    assert isinstance(group, TyperGroup)
    assert list(group.commands) == ["lost"]
    for each in (table, group.commands):
        with pytest.raises(ModuleNotFoundError, match="nowhere"):
            each["lost"]


def test_a_command_is_made_once() -> None:
    table = Commands(COMMANDS)
    made = table["run"]
    assert isinstance(made, TyperCommand)
    assert table["run"] is made
    assert isinstance(COMMANDS["run"], str)


def test_a_command_below_a_word_has_both_in_its_variables() -> None:
    group = Commands(COMMANDS)["cache"]
    assert isinstance(group, TyperGroup)
    names = {option.envvar for option in group.commands["clear"].params}
    assert "RAGGS_CACHE_CLEAR_WHAT" in names


@pytest.mark.parametrize("given", [{}, {"OPENBLAS_THREAD_TIMEOUT": "9", "PYDANTIC_DISABLE_PLUGINS": ""}])
def test_a_command_lets_nobody_spin_or_listen_and_its_end_alone(given: dict[str, str]) -> None:
    """Unless the user wants it so; and no garbage is looked for when all ends."""
    code = (
        "import gc, os, sys\nfrom raggs.cli import main, VARIABLES\nsys.argv = ['raggs', '--version']\n"
        "try: main()\n"
        "except SystemExit: print({name: os.environ[name] for name in VARIABLES}, gc.get_freeze_count() > 0)"
    )
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=clean | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == f"{VARIABLES | given} True"
