"""Command line: parse arguments, call `raggs.app`, and print the results.

Only this package catches `RaggsError`. It prints one sentence to stderr and exits with the code of the error's class.

app                                        the table of commands; each is imported when it is called
boundary, stopping                         errors to exit codes, and signals
options, eval_options, diagnose_options    options that several commands share
screen, plain, render, documents, progress output; no other module prints
runs, evals, sweeps, diagnoses, ...        the commands, one module per group
"""

from __future__ import annotations

STANDARD_ERROR = 2
# Collect garbage after 300,000 new objects, not after 700: what a command imports and reads lives until it ends.
OBJECTS = 300_000
# Defaults; variables that the user has set are not changed.
VARIABLES = {
    # BLAS threads sleep 2^4 cycles after a product instead of spinning on a processor for 2^26.
    "OPENBLAS_THREAD_TIMEOUT": "4",
    # Pydantic searches all installed packages for plugins, and a plugin would see every setting and passage.
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
    """Open closed standard streams (`2>&-`) on the null device, so that no file of raggs gets their numbers."""
    import os
    import sys
    from pathlib import Path

    while (handle := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        pass
    os.close(handle)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open as long as the process
