"""Commands with many options: each group of options is one frozen value, and the command takes a few groups.

Typer wants one function with every option as a parameter; `grouped` makes it from a function of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import get_type_hints


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """A command with an option for each field of the dataclasses that `function` takes.

    Other parameters stay options themselves. Names must be unique over all groups.
    """
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}

    @wraps(function)
    def command(**given: object) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        function(**made, **given)

    single = signature(function).parameters
    parameters = [
        option
        for name in single
        for option in (
            _options(groups[name])
            if name in groups
            else [Parameter(name, Parameter.KEYWORD_ONLY, default=single[name].default, annotation=hints[name])]
        )
    ]
    command.__dict__["__signature__"] = Signature(parameters)
    return command


def _options(group: type) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
