"""Command line: parse arguments, call `raggs.app`, and print the results.

This package shows every `RaggsError` to the user: it prints one sentence to stderr and exits with the code of the
error's class.

app                                        the table of commands and their names
boundary, stopping                         exit codes for errors, and the handling of signals
options, eval_options                      options that several commands share
screen, plain_text, documents, progress    output; no other package prints
render, summaries, review_summaries        texts and tables that the commands print
runs, evals, sweeps, diagnoses, ...        the commands, one module per group
"""

from __future__ import annotations

STANDARD_ERROR = 2
# Collect garbage after 300,000 new objects, not after 700: a command needs most of its objects until it ends.
OBJECTS = 300_000
# These are only defaults: variables that the user has set stay unchanged.
VARIABLES = {
    # Idle BLAS threads sleep after 2^4 cycles; by default, they keep a processor busy for 2^26 cycles.
    "OPENBLAS_THREAD_TIMEOUT": "4",
    # Without plugins, pydantic need not search all installed packages, and no plugin sees settings or passages.
    "PYDANTIC_DISABLE_PLUGINS": "1",
}


def main() -> None:
    """Run the `raggs` command."""
    import gc
    import io
    import os
    import sys

    from raggs.cli.stopping import end_at_once

    end_at_once()
    _open_streams()
    gc.set_threshold(OBJECTS)
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)
    from raggs.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot display a character shows "?" instead; a finished run must not fail because of it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    finally:
        gc.freeze()  # no garbage collection while the process exits


def _open_streams() -> None:
    """Connect closed standard streams (as after `2>&-`) to the null device. Otherwise the next opened file would
    replace them.
    """
    import os
    import sys
    from pathlib import Path

    while (handle := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        pass
    os.close(handle)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open as long as the process
