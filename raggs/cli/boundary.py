"""The error boundary: whatever goes wrong in a command leaves as one sentence and an exit code.

Exit codes: 0 ok, 2 usage, 3 prerequisite missing, 4 not found, 5 invalid config or data, 6 provider or runtime
failure, 7 finished in part, 130 interrupted. `--debug` shows the stack trace of an error of ours; an error that
is not ours is a bug, and always says so.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from raggs.errors import RaggsError

INTERRUPTED = 130
BUG = 6


class _State:
    debug = False


def _remember(value: bool) -> bool:
    _State.debug = _State.debug or value
    return value


Debug = Annotated[
    bool, typer.Option("--debug", help="Show the stack trace of an error.", callback=_remember, is_eager=True)
]


class BoundaryGroup(TyperGroup):
    """The root command, which turns errors into sentences and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        _State.debug = False
        try:
            return super().invoke(ctx)
        except RaggsError as error:
            _say(error, f"raggs: {error}")
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as error:
            typer.echo(
                "raggs: interrupted; what is finished and what was paid for is kept, run again to go on", err=True
            )
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            # The reader of our output has gone (`raggs ... | head`): nothing is wrong, and nothing is left to say.
            sys.stdout = None
            raise typer.Exit(0) from error
        except OSError as error:
            _say(error, f"raggs: {error.filename or 'the system'}: {error.strerror or error}")
            raise typer.Exit(BUG) from error


def _say(error: BaseException, sentence: str) -> None:
    if _State.debug:
        traceback.print_exception(error, file=sys.stderr)
    typer.echo(sentence, err=True)
