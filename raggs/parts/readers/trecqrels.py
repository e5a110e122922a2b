"""TREC qrels into columns: the fast way of `raggs.parts.readers.tokens`. It has no slow way of its own; see
`labels`.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raggs.base.arrays import ByteTexts, Ints
from raggs.metrics.ids import IdColumn
from raggs.parts.readers.tokens import OddError, numbers, read_table

COLUMNS, GRADE = 4, 3
DIGITS = 9  # more are no grade


class Labels(NamedTuple):
    """Labels as columns: the sorted queries; each label's query among them, non-decreasing; its grade; its passage."""

    qids: tuple[str, ...]
    query: Ints
    grade: Ints
    docs: IdColumn


def quick_labels(path: Path) -> Labels | None:
    """The labels in a file, or in a ``.gz`` of one; None where it is odd, empty or cannot be read."""
    try:
        known, query, docs, grade, _ = read_table(path, COLUMNS, GRADE, _grades)
    except (OddError, OSError, EOFError, zlib.error):
        return None
    query = _places(known)[query]
    order = np.argsort(query, kind="stable")
    return Labels(
        tuple(name.decode() for name in sorted(known)), query[order], grade[order], IdColumn([docs.take(order)])
    )


def _grades(texts: ByteTexts) -> Ints:
    characters = texts.view(np.uint8).reshape(len(texts), -1)
    figures = (characters >= ord("0")) & (characters <= ord("9"))
    signs = (characters == ord("-")) | (characters == ord("+"))
    if not (figures | signs | (characters == 0)).all() or (figures.sum(axis=1) > DIGITS).any():
        raise OddError
    return numbers(texts).astype(np.int64)


def _places(known: list[bytes]) -> Ints:
    """Shape (queries,): the place of each query in the order of all."""
    places = np.empty(len(known), dtype=np.int64)
    places[np.argsort(np.array(known))] = np.arange(len(known))
    return places
