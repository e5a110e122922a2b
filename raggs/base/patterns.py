"""Regular expressions of users, searched with a limit of time: one that backtracks for ever stops nobody.

The language is that of `re`, whose compiler decides what is a pattern; the search is that of the package `regex`, which
can be told when to give up. It must not interpret what a match means.
"""

from __future__ import annotations

import re

PATIENCE_S = 2.0  # a search takes some microseconds
WIDEST = 10_000  # characters of a pattern


class SlowPatternError(Exception):
    """A search took longer than `PATIENCE_S`."""


class Pattern:
    """A compiled pattern; case is ignored.

    Raises:
        ValueError: it is no regular expression.
    """

    def __init__(self, text: str) -> None:
        import regex  # late: few runs search by patterns

        if len(text) > WIDEST:
            raise ValueError(f"{len(text):,} characters")
        try:
            re.compile(text, re.IGNORECASE)
            self._pattern = regex.compile(text, regex.IGNORECASE | regex.VERSION0)
        except (re.error, regex.error, OverflowError, RecursionError, KeyError) as error:
            raise ValueError(str(error)) from error
        self.text = text

    def within(self, text: str) -> bool:
        """Whether it is found in a text.

        Raises:
            SlowPatternError: nobody knows after `PATIENCE_S`.
        """
        try:
            return self._pattern.search(text, timeout=PATIENCE_S) is not None
        except TimeoutError as error:
            raise SlowPatternError(f"a search took longer than {PATIENCE_S:g} s") from error
        except MemoryError as error:
            raise SlowPatternError("a search took more memory than there is") from error
