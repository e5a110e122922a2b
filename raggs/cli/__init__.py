"""The command line: arguments in, calls into the library, results on the screen. No logic of its own.

The only place that catches `RaggsError`: one sentence to stderr and the exit code of its class.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the `raggs` command."""
    from raggs.cli.app import app

    app()
