"""Signals: after Ctrl-C, SIGTERM or SIGHUP a command waits for calls in flight; a second signal stops it at once.

SIGTERM and SIGHUP act like SIGINT: in an event loop they cancel the work, elsewhere they raise `KeyboardInterrupt`.
SIGHUP never counts as a second signal, nor does a signal that arrives together with it, because shells and service
managers send both. Signals that were ignored when raggs started (nohup) stay ignored. So does Ctrl-C in a background
job of a shell, where SIGTERM and SIGHUP still stop the command.

Before and after the work, Ctrl-C ends the process at once. Otherwise an interrupted import or exit would print a stack
trace.
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

SIGNAL_EXIT_BASE = 128  # exit code after a signal: 128 plus its number
HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none
TOGETHER_S = 1.0  # seconds; two different signals within it count as one
SHOW_CURSOR = "\x1b[?25h"
AGAIN_S = 0.05
STANDARD_ERROR = 2
INTERRUPTED = "raggs: interrupted; finished results and paid answers are kept (to resume, run the same command again)"


class StopSignal:
    """The signal that stopped a command.

    Attributes:
        signal: number of the first SIGTERM or SIGHUP; SIGINT if only Ctrl-C was pressed.
        asked: whether SIGTERM or SIGHUP was received.
    """

    def __init__(self) -> None:
        self.signal = int(signal.SIGINT)
        self.asked = False
        self._since = 0.0

    @property
    def exit_code(self) -> int:
        """Exit code: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
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
    """Handle signals while the block runs; only possible in the main thread."""
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
    """Make Ctrl-C end the process at once outside of the work, except during Python's own exit."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _at_once)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # registered first, so it runs last


def _at_once(number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(STANDARD_ERROR, f"{INTERRUPTED}\n".encode())
    _exit_now(SIGNAL_EXIT_BASE + number)


@contextmanager
def _ctrl_c_works() -> Iterator[None]:
    """Use Python's handler for Ctrl-C during the work, which event loops replace."""
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
    """Raise a `KeyboardInterrupt` again if it was swallowed, as extension code does."""
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
    """Block SIGINT instead of ignoring it, with the handler through which an event loop cancels its work.

    Without that handler, SIGTERM could only raise `KeyboardInterrupt` inside some task.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # before unblocking: discards a blocked signal
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt_again() -> None:
    if hasattr(signal, "pthread_kill"):  # wakes a sleeping thread
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def forget() -> None:
    """Reset Python's memory of a caught `KeyboardInterrupt`.

    Python remembers a `KeyboardInterrupt` that leaves code compiled from a string, such as methods of dataclasses. It
    then ends the process by the signal and ignores the exit code. Compiling another string resets this.
    """
    namedtuple("Anything", ())


def _exit_now(code: int) -> None:
    """End the process now; files on disk are complete at any moment."""
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write(SHOW_CURSOR)
            sys.stderr.flush()
    os._exit(code)
