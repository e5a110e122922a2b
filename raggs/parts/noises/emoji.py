"""Emoji and emoticons behind a question, at times in front of it too."""

from __future__ import annotations

from typing import Literal

import numpy as np

from raggs.parts.noises.base import Asked, Noise, NoiseConfig, one_of

PICTURES = ("🙏", "😊", "🤔", "👋", "😅", "🙈", "❤️", "😂", "✨", "🔥", "😭", "🥺", "👀", "🤷‍♀️", ":-)", ":D", "^^")
IN_FRONT = 0.3  # of the questions have one in front


class Emoji(Noise):
    """One to three emoji or emoticons behind the question; one in front of every third."""

    FROM, ORDER = 3, 80

    class Config(NoiseConfig):
        type: Literal["emoji"] = "emoji"

    def _add(self, text: str, asked: Asked, draw: np.random.Generator) -> str:
        times = int(draw.integers(1, asked.level))
        text = f"{text} {' '.join([one_of(PICTURES, draw)] * times)}"
        return f"{one_of(PICTURES[:-3], draw)} {text}" if draw.random() < IN_FRONT else text
