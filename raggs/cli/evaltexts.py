"""What the options of `raggs eval` write as texts, read into values: cutoffs, scales, gains, limits, names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal, TypeVar

from raggs.base.errors import UsageError

V = TypeVar("V")

CUTOFF = re.compile(r"[1-9][0-9]{0,8}")
SCALE = re.compile(r"([0-9]{1,3})\s*(?:-|\.\.)\s*([0-9]{1,3})")
INCONCLUSIVE: dict[str, Literal["fail", "pass"]] = {"fail": "fail", "pass": "pass"}
TIES: dict[str, Literal["trec", "file"]] = {"trec": "trec", "file": "file"}
LIMIT = re.compile(r"(.+)=\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?)", re.ASCII)


def parse_cutoffs(text: str) -> tuple[int, ...]:
    """``5,10``, ascending and each once.

    Raises:
        UsageError: one is no whole number from 1 on.
    """
    pieces = split(text)
    for piece in pieces:
        if not CUTOFF.fullmatch(piece):
            raise UsageError(f"--k {piece} is no cutoff", remedy="write e.g. --k 5,10,20")
    return tuple(sorted(set(map(int, pieces))))


def parse_scale(text: str) -> tuple[int, int]:
    """``1-5`` or ``0..3``: the lowest and the highest grade.

    Raises:
        UsageError: not of this form.
    """
    ends = SCALE.fullmatch(text.strip())
    if not ends:
        raise UsageError(f"--scale {text} is no scale", remedy="write e.g. --scale 1-5 or --scale 0-3")
    return int(ends[1]), int(ends[2])


def parse_gains(text: str) -> dict[int, float]:
    """``5=4,4=2``: gains by grade.

    Raises:
        UsageError: a grade or a gain is no number.
    """
    gains = {}
    for piece in filter(None, text.split(",")):
        grade, _, gain = piece.partition("=")
        try:
            gains[int(grade)] = float(gain)
        except ValueError:
            raise UsageError(f"--gains: {piece!r} is no grade=gain", remedy="write e.g. --gains 5=4,4=2") from None
    return gains


def parse_limit(text: str) -> tuple[str, float]:
    """``ndcg@10=0.55`` as a canonical measure and its limit.

    Raises:
        UsageError: not of this form.
    """
    from raggs.metrics.names import parse_measure  # late: most commands measure nothing

    found = LIMIT.fullmatch(text.strip())
    if not found:
        raise UsageError(f"--fail-under {text}: no number after =", remedy="write e.g. ndcg@10=0.55")
    return parse_measure(found[1]).name, float(found[2])


def parse_ties(text: str) -> Literal["trec", "file"]:
    """``trec`` or ``file``.

    Raises:
        UsageError: neither.
    """
    return parse_choice("--ties", text, TIES)


def parse_choice(option: str, text: str, choices: Mapping[str, V]) -> V:
    """One of the values of an option.

    Raises:
        UsageError: it is none of them.
    """
    if (found := choices.get(text)) is None:
        raise UsageError(f"{option} {text} is not known", remedy=" or ".join(choices))
    return found


def finite(option: str, value: float) -> float:
    """`value`, which ranges of options let be no number.

    Raises:
        UsageError: it is none.
    """
    if not math.isfinite(value):
        raise UsageError(f"{option} is a number", remedy=f"write e.g. {option} 0.9")
    return value


def split(text: str) -> list[str]:
    """What stands between commas, without white space and empty pieces."""
    return [piece for piece in (part.strip() for part in text.split(",")) if piece]
