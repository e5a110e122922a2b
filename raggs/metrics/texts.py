"""Whether an expected answer stands in a text: Unicode, case and white space do not matter."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable

from raggs.base.errors import DataError
from raggs.base.text import one_line


def folded(text: str) -> str:
    """`text` in NFKC, case-folded, with each run of white space as one blank."""
    return one_line(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))


def answer_rank(answer: str, texts: Iterable[str]) -> float:
    """The first rank (from 1) whose text contains `answer`; inf for none.

    Raises:
        DataError: the answer is empty, and so would be found in every text.
    """
    wanted = folded(answer)
    if not wanted:
        raise DataError("the expected answer is empty", remedy="leave it out, or say what to look for")
    return next((float(rank) for rank, text in enumerate(texts, start=1) if wanted in folded(text)), math.inf)
