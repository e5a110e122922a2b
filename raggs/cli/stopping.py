"""How a command is stopped: Ctrl-C, SIGTERM and SIGHUP let calls on their way arrive, a second signal stops at once.

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
from collections import namedtuple
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType

SIGNAL_EXIT_BASE = 128  # a shell's exit code of a signal is 128 and its number
HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none
TOGETHER_S = 1.0  # two different signals so close are one wish
SHOW_CURSOR = "\x1b[?25h"
AGAIN_S = 0.05
STANDARD_ERROR = 2
INTERRUPTED = "raggs: interrupted; what is finished and what was paid for is kept, run again to go on"


class StopSignal:
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
        return SIGNAL_EXIT_BASE + self.signal

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM or SIGHUP."""
        if self.asked:
            together = number != self.signal and time.monotonic() - self._since < TOGETHER_S
            if number != HANG_UP and not together:
                _exit_now(SIGNAL_EXIT_BASE + number)
            return
        self.asked, self.signal, self._since = True, number, time.monotonic()
        usual = signal.getsignal(signal.SIGINT)
        if callable(usual):
            usual(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt


@contextmanager
def stopping() -> Iterator[StopSignal]:
    """Hear signals while the block runs. In a thread other than the first one nothing can be heard."""
    stop = StopSignal()
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
    _exit_now(SIGNAL_EXIT_BASE + number)


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
        threading.Timer(AGAIN_S, _interrupt_again).start()

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


def _interrupt_again() -> None:
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


def _exit_now(code: int) -> None:
    """End the process now; what is on disk is whole at any moment."""
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write(SHOW_CURSOR)
            sys.stderr.flush()
    os._exit(code)
