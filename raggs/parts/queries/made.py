"""What questions say of how they were made, for every report that gives scores over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from raggs.base.artifacts import Query
from raggs.base.text import plural

MADE = "made"  # the key in a question's metadata


def made_notes(queries: Iterable[Query]) -> Iterator[str]:
    """A sentence for each way in which some of the questions were made; none about questions that do not say."""
    counts = Counter(str(query.metadata[MADE]) for query in queries if query.metadata.get(MADE))
    for how, count in counts.items():
        yield f"{plural(count, 'question')} {how}"
