"""Noise in levels from 0, the question itself, to 4: each level has all noises of the one below, and more of them.

1  a greeting, at times thanks
2  and a filler                                              ("moderate")
3  and a digression, personal context, emoji, a second filler
4  and typing errors and words of the other language         ("high")
"""

from __future__ import annotations

from collections.abc import Sequence

from raggs.base.text import one_line
from raggs.parts.noises import REGISTRY
from raggs.parts.noises.base import Asked, Noise, speaks

LEVELS = (0, 1, 2, 3, 4)


def noisy(text: str, asked: Asked, noises: Sequence[Noise] | None = None) -> str:
    """A question with the noise of a level.

    Args:
        text: the question.
        asked: its id, language and level; level 0 leaves it as it is.
        noises: those that may be added; all that there are where none is named.

    Raises:
        UsageError: no noise speaks the language.
    """
    speaks(asked.language)
    for noise in sorted(noises if noises is not None else all_noises(), key=lambda each: each.ORDER):
        if asked.level >= noise.FROM:
            text = noise.noisy(text, asked)
    return one_line(text)


def all_noises() -> list[Noise]:
    """Every noise that is registered, with its own settings, in the order in which they are added."""
    found = [REGISTRY.load(name)() for name in REGISTRY]
    return sorted(found, key=lambda noise: (noise.ORDER, noise.config.type))
