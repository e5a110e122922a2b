"""The error boundary: every error of a command becomes one sentence and an exit code.

Exit codes: 0 ok, 1 no input at a prompt, 2 usage, 3 prerequisite missing, 4 not found, 5 invalid config or data, 6
provider or runtime failure, 7 partly finished or gate failed, 130 interrupted (143 by SIGTERM, 129 by SIGHUP).
`--debug` shows the stack trace of an error. An unexpected error is reported as a bug.

Texts, paths and missing values on the command line are read without typer's validators. Typer builds a pydantic
validator for each parameter, even for one that is not given. In `raggs init`, this would take most of the time.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.utils import get_params_from_function

from raggs.base.errors import RaggsError
from raggs.base.files import HANDLES, MORE_HANDLES
from raggs.base.secrets import mask
from raggs.base.text import shorten
from raggs.cli.plain_text import end_quiet, say
from raggs.cli.stopping import INTERRUPTED, StopSignal, forget, stopping

Parameter = TyperArgument | TyperOption
PLAIN_READERS: dict[object, Callable[[str], object]] = {str: str, str | None: str, Path: Path, Path | None: Path}
READ = "process_value"


class PlainCommand(TyperCommand):
    """Command that reads texts and paths without a pydantic validator."""

    def __init__(self, *args: Any, callback: Any, **kwargs: Any) -> None:
        super().__init__(*args, callback=callback, **kwargs)
        kinds = {name: found.annotation for name, found in get_params_from_function(callback).items()}
        for parameter in self.params:
            take_plainly(parameter, kinds.get(parameter.name or ""))

    def get_help_option(self, ctx: Any) -> Any:
        return take_plainly(super().get_help_option(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options; in sections if the command defines them (`raggs.cli.options.with_help_sections`)."""
        sections: Mapping[str, Sequence[str]] = getattr(self.callback, "help_sections", {})
        if not sections:
            super().format_options(ctx, formatter)
        known = {parameter.name: parameter.get_help_record(ctx) for parameter in self.get_params(ctx)}
        for title, names in sections.items():
            with formatter.section(title):
                formatter.write_dl([known[name] for name in names])


def take_plainly(parameter: object, annotation: object = None) -> object:
    """Change a parameter so that texts, paths and missing values are read without a validator, and return it."""
    if isinstance(parameter, Parameter) and READ not in parameter.__dict__:
        parameter.__dict__[READ] = _reader(parameter, PLAIN_READERS.get(annotation))
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


# Exceptions that typer prints itself. No public name of their base class exists in all supported versions.
OF_TYPER = (typer.Exit, *(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"))
BUG = 6
MAX_ERROR_CHARS = 300  # maximum number of characters of an unexpected error's message


class _BoundaryState:
    debug = False


def _remember_debug(value: bool) -> bool:
    _BoundaryState.debug = _BoundaryState.debug or value
    return value


Debug = Annotated[
    bool, typer.Option("--debug", help="Show the stack trace of an error.", callback=_remember_debug, is_eager=True)
]


class BoundaryGroup(TyperGroup):
    """The root command, which converts errors to sentences and exit codes."""

    def get_help_option(self, ctx: Any) -> Any:
        return take_plainly(super().get_help_option(ctx))

    def invoke(self, ctx: Any) -> Any:
        _BoundaryState.debug = False
        end_quiet()
        with stopping() as stop:
            try:
                return super().invoke(ctx)
            except RaggsError as error:
                _say(error, f"raggs: {error}")
                from raggs.cli.plain_text import annotate  # imported lazily: only for errors

                annotate(error)
                raise typer.Exit(error.exit_code) from error
            except KeyboardInterrupt as error:
                raise _interrupted(stop) from error
            except typer.Abort as error:
                if not isinstance(error.__context__, KeyboardInterrupt):  # end of the input at a prompt
                    raise
                raise _interrupted(stop) from error
            except BrokenPipeError as error:
                # The reader closed the pipe (`raggs ... | head`), which is not an error.
                sys.stdout = None
                raise typer.Exit(0) from error
            except OSError as error:
                if stop.asked:  # the terminal was closed, so nothing can be written to it
                    raise _interrupted(stop) from error
                told = f"raggs: {error.filename or 'the system'}: {error.strerror or error}"
                _say(error, f"{told} — {MORE_HANDLES}" if error.errno in HANDLES else told)
                raise typer.Exit(BUG) from error
            except MemoryError as error:
                _say(error, "raggs: out of memory — use a larger machine or a smaller input")
                raise typer.Exit(BUG) from error
            except Exception as error:
                if isinstance(error, OF_TYPER):
                    raise
                told = shorten(f"{type(error).__name__}: {error}", MAX_ERROR_CHARS)
                _say(error, f"raggs: this is a bug in raggs: {told} — run again with --debug and report what it shows")
                raise typer.Exit(BUG) from error


def _interrupted(stop: StopSignal) -> typer.Exit:
    forget()
    with suppress(OSError):
        say(INTERRUPTED, err=True)
    return typer.Exit(stop.exit_code)


def _say(error: BaseException, sentence: str) -> None:
    if _BoundaryState.debug:
        say(mask("".join(traceback.format_exception(error))), err=True, nl=False)
    say(mask(sentence), err=True)
