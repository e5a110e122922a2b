"""The command line: arguments in, calls into the library, results on the screen. No logic of its own.

The only place that catches `RaggsError`: one sentence to stderr and the exit code of its class.

Imports: app, sweeps, config, evaluation, pipeline, manifests, stages, metrics, leaves.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the `raggs` command."""
    import io
    import sys

    from raggs.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark; a finished run must not fail over it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
