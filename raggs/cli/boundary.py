"""The error boundary: whatever goes wrong in a command leaves as one sentence and an exit code.

Exit codes: 0 ok, 2 usage, 3 prerequisite missing, 4 not found, 5 invalid config or data, 6 provider or runtime
failure, 7 finished in part, 130 interrupted (143 by SIGTERM, 129 by SIGHUP). `--debug` shows the stack trace of an
error; one that is not ours is a bug, and says so.

Values of the command line that are taken as they come: text, paths, and what was not given.

Typer builds a validator of pydantic for each parameter, even to hear that nothing was given; `raggs init`, which has
one path and two flags, would mostly wait for pydantic. All other values are typer's.

How a command is stopped: Ctrl-C, SIGTERM and SIGHUP let calls on their way arrive, a second signal stops at once.

SIGTERM and SIGHUP do what SIGINT would do at the same moment, so that there is one way to stop: in an event loop the
work is cancelled, elsewhere `KeyboardInterrupt` is raised. A hang-up is never a second signal, nor is another one that
comes with it: shells and service managers send both. A signal that was ignored when raggs began (nohup) stays ignored;
so does Ctrl-C in a shell's background job, where the other two stop as they do elsewhere.

Before and after the work Ctrl-C ends the process at once: an import or an exit that it breaks would end in a stack
trace, and by the signal.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
import traceback
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.utils import get_params_from_function

from raggs.base.errors import RaggsError
from raggs.base.files import HANDLES, MORE_HANDLES
from raggs.base.secrets import mask
from raggs.base.text import shorten
from raggs.cli.plain import end_quiet, say

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


FIRST = 128  # a shell's exit code of a signal is 128 and its number
HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none
TOGETHER_S = 1.0  # two different signals so close are one wish
SHOW_CURSOR = "\x1b[?25h"
AGAIN_S = 0.05
STANDARD_ERROR = 2
INTERRUPTED = "raggs: interrupted; what is finished and what was paid for is kept, run again to go on"


class Stop:
    """What stopped a command.

    Attributes:
        signal: the first signal that came; SIGINT where none did, for whoever asks after a `KeyboardInterrupt`.
        asked: whether SIGTERM or SIGHUP came.
    """

    def __init__(self) -> None:
        self.signal = int(signal.SIGINT)
        self.asked = False
        self._since = 0.0

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
        return FIRST + self.signal

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM or SIGHUP."""
        if self.asked:
            together = number != self.signal and time.monotonic() - self._since < TOGETHER_S
            if number != HANG_UP and not together:
                _leave(FIRST + number)
            return
        self.asked, self.signal, self._since = True, number, time.monotonic()
        usual = signal.getsignal(signal.SIGINT)
        if callable(usual):
            usual(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt


@contextmanager
def stopping() -> Iterator[Stop]:
    """Hear signals while the block runs. In a thread other than the first one nothing can be heard."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    heard = {number: signal.getsignal(number) for number in (signal.SIGTERM, HANG_UP) if number is not None}
    heard = {number: usual for number, usual in heard.items() if usual is signal.SIG_DFL}
    for number in heard:
        signal.signal(number, stop.hear)
    try:
        with ExitStack() as during:
            for manner in (_ctrl_c_deaf, _ctrl_c_insists, _ctrl_c_works):
                during.enter_context(manner())
            yield stop
    finally:
        for number, usual in heard.items():
            signal.signal(number, usual)


def end_at_once() -> None:
    """From now on, but for the work, Ctrl-C ends the process at once; Python's own end it lets pass."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _at_once)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the first to be registered is the last to run


def _at_once(number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(STANDARD_ERROR, f"{INTERRUPTED}\n".encode())
    _leave(FIRST + number)


@contextmanager
def _ctrl_c_works() -> Iterator[None]:
    """By the handler of Python, which event loops know."""
    if signal.getsignal(signal.SIGINT) is not _at_once:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _at_once)


@contextmanager
def _ctrl_c_insists() -> Iterator[None]:
    """Where a `KeyboardInterrupt` is swallowed, as code beneath Python does, it comes again."""
    usual = sys.unraisablehook

    def hear(told: sys.UnraisableHookArgs) -> None:
        if not issubclass(told.exc_type, KeyboardInterrupt):
            usual(told)
            return
        threading.Timer(AGAIN_S, _again).start()

    sys.unraisablehook = hear
    try:
        yield
    finally:
        sys.unraisablehook = usual


@contextmanager
def _ctrl_c_deaf() -> Iterator[None]:
    """Where Ctrl-C is ignored: it is held back instead, and has the handler by which an event loop cancels its work.

    Without one, a signal could only raise `KeyboardInterrupt` in the midst of some task.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # first: one that was held back is forgotten
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _again() -> None:
    if hasattr(signal, "pthread_kill"):  # wakes one that sleeps
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def forget() -> None:
    """Make Python forget a `KeyboardInterrupt` that is caught.

    It remembers one that leaves code compiled from a string, as the methods of dataclasses are, and would end the
    process by the signal, whatever exit code it has. It forgets when it next compiles a string.
    """
    namedtuple("Anything", ())


def _leave(code: int) -> None:
    """End the process now; what is on disk is whole at any moment."""
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write(SHOW_CURSOR)
            sys.stderr.flush()
    os._exit(code)


# What typer itself turns into words and codes; its base class has no public name that all versions share.
OF_TYPER = (typer.Exit, *(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"))
BUG = 6
MOST_TOLD = 300  # characters of an unknown error's message


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

    def get_help_option(self, ctx: Any) -> Any:
        return take_plainly(super().get_help_option(ctx))

    def invoke(self, ctx: Any) -> Any:
        _State.debug = False
        end_quiet()
        with stopping() as stop:
            try:
                return super().invoke(ctx)
            except RaggsError as error:
                _say(error, f"raggs: {error}")
                from raggs.cli.plain import annotate  # late: most commands end well

                annotate(error)
                raise typer.Exit(error.exit_code) from error
            except KeyboardInterrupt as error:
                raise _interrupted(stop) from error
            except typer.Abort as error:
                if not isinstance(error.__context__, KeyboardInterrupt):  # the answers to a question have an end
                    raise
                raise _interrupted(stop) from error
            except BrokenPipeError as error:
                # The reader of our output has gone (`raggs ... | head`): nothing is wrong, and nothing is left to say.
                sys.stdout = None
                raise typer.Exit(0) from error
            except OSError as error:
                if stop.asked:  # a terminal that has hung up cannot be written to
                    raise _interrupted(stop) from error
                told = f"raggs: {error.filename or 'the system'}: {error.strerror or error}"
                _say(error, f"{told} — {MORE_HANDLES}" if error.errno in HANDLES else told)
                raise typer.Exit(BUG) from error
            except MemoryError as error:
                _say(error, "raggs: there is not enough memory — take a larger machine, or less at once")
                raise typer.Exit(BUG) from error
            except Exception as error:
                if isinstance(error, OF_TYPER):
                    raise
                told = shorten(f"{type(error).__name__}: {error}", MOST_TOLD)
                _say(error, f"raggs: this is a bug in raggs: {told} — run again with --debug and report what it shows")
                raise typer.Exit(BUG) from error


def _interrupted(stop: Stop) -> typer.Exit:
    forget()
    with suppress(OSError):
        say(INTERRUPTED, err=True)
    return typer.Exit(stop.exit_code)


def _say(error: BaseException, sentence: str) -> None:
    if _State.debug:
        say(mask("".join(traceback.format_exception(error))), err=True, nl=False)
    say(mask(sentence), err=True)
