"""Groups of options become one command, as if it had been written with all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from raggs.cli.options import with_option_groups


@dataclass(frozen=True)
class Where:
    place: Annotated[str, typer.Option("--place", help="Where.")]
    far: Annotated[bool, typer.Option("--far")] = False


@dataclass(frozen=True)
class When:
    hour: Annotated[int, typer.Option("--hour", min=0, max=23)] = 12


app = typer.Typer()


@app.command()
@with_option_groups
def meet(where: Where, when: When, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
    """Meet."""
    typer.echo(f"{where} {when} {loud}")


def test_each_field_is_an_option_with_its_default():
    done = CliRunner().invoke(app, ["--place", "here"])
    assert (done.exit_code, done.stdout) == (0, "Where(place='here', far=False) When(hour=12) False\n")
    done = CliRunner().invoke(app, ["--loud", "--hour", "7", "--far", "--place", "there"])
    assert done.stdout == "Where(place='there', far=True) When(hour=7) True\n"


def test_limits_and_missing_options_are_refused_as_ever():
    assert CliRunner().invoke(app, ["--hour", "24", "--place", "x"]).exit_code == 2
    assert CliRunner().invoke(app, []).exit_code == 2


def test_help_shows_all_options_in_the_order_of_their_groups():
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert "Meet." in shown
    assert shown.index("--place") < shown.index("--far") < shown.index("--hour") < shown.index("--loud")
