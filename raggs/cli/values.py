"""Values of the command line that are taken as they come: text, paths, and what was not given.

Typer builds a validator of pydantic for each parameter, even to hear that nothing was given; `raggs init`, which has
one path and two flags, would mostly wait for pydantic. All other values are typer's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption
from typer.utils import get_params_from_function

Parameter = TyperArgument | TyperOption
PLAIN: dict[object, Callable[[str], object]] = {str: str, str | None: str, Path: Path, Path | None: Path}
READ = "process_value"


class PlainCommand(TyperCommand):
    """A command whose plain values are taken plainly."""

    def __init__(self, *args: Any, callback: Any, **kwargs: Any) -> None:
        super().__init__(*args, callback=callback, **kwargs)
        kinds = {name: found.annotation for name, found in get_params_from_function(callback).items()}
        for parameter in self.params:
            take_plainly(parameter, kinds.get(parameter.name or ""))

    def get_help_option(self, ctx: Any) -> Any:
        return take_plainly(super().get_help_option(ctx))


def take_plainly(parameter: object, annotation: object = None) -> object:
    """The parameter, which now reads by itself what needs no reading."""
    if isinstance(parameter, Parameter) and READ not in parameter.__dict__:
        parameter.__dict__[READ] = _reader(parameter, PLAIN.get(annotation))
    return parameter


def _reader(parameter: Parameter, plain: Callable[[str], object] | None) -> Callable[[typer.Context, object], object]:
    of_typer, callback = parameter.process_value, parameter.callback

    def read(context: typer.Context, value: object) -> object:
        if value is None and not parameter.required:
            return None if callback is None else callback(context, parameter, None)
        if plain is not None and callback is None and isinstance(value, str):
            return plain(value)
        return of_typer(context, value)

    return read
