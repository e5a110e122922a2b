"""The command line: arguments in, calls into `raggs.app`, results on the screen.

The only place that catches `RaggsError`: one sentence to stderr and the exit code of its class.

app                                        the table of commands; each is imported when it is called
boundary, stopping                         errors to exit codes; signals
options, eval_options, diagnose_options    options that several commands share
screen, plain, render, documents, progress output; nothing else prints
runs, evals, sweeps, diagnoses, ...        the commands, one module per group
"""

from __future__ import annotations

STANDARD_ERROR = 2
# Objects that a command imports and reads stay until it ends: a search for garbage after each 700 objects finds none.
OBJECTS = 300_000
# Where the user has not said otherwise.
VARIABLES = {
    # Threads of BLAS sleep when a product is done (after 2^4 cycles) instead of spinning on a processor for 2^26.
    "OPENBLAS_THREAD_TIMEOUT": "4",
    # What listens to pydantic is looked for in all packages there are, and would hear every setting and passage.
    "PYDANTIC_DISABLE_PLUGINS": "1",
}


def main() -> None:
    """The entry point of the `raggs` command."""
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
        # A terminal that cannot show a character shows a question mark; a finished run must not fail over it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    finally:
        gc.freeze()  # the process ends: nobody needs to know which of its objects are garbage


def _open_streams() -> None:
    """What a shell has closed (`2>&-`) swallows what it is given, and no file of ours gets its number."""
    import os
    import sys
    from pathlib import Path

    while (handle := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        pass
    os.close(handle)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open as long as the process
