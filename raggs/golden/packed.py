"""What came with a question or a passage as one text, for formats whose rows all have the same columns.

Tables of Arrow and parquet want one type for a column, and what authors write beside a question has any. So it goes
into the column `PACKED` as JSON, which other tools pass over, and comes back from there.
"""

from __future__ import annotations

import json

from pydantic import ValidationError

from raggs.base.artifacts import Passage, Query
from raggs.base.jsonl import decode_json
from raggs.base.jsontypes import as_object
from raggs.parts.queries.writing import query_facts

PACKED = "raggs"


def passage_facts(passage: Passage) -> dict[str, object]:
    """A passage's place in the corpus and its metadata, where there are any."""
    found = passage.model_dump(mode="json", include={"span", "metadata"}, exclude_none=True)
    return {name: value for name, value in found.items() if value}


def packed(found: Query | Passage) -> str:
    """All that came with it, as JSON; empty where nothing did."""
    facts = query_facts(found) if isinstance(found, Query) else passage_facts(found)
    return json.dumps(facts, ensure_ascii=False) if facts else ""


def unpacked_query(query: Query) -> Query:
    """A question whose facts were packed, with them in their places; any other as it is."""
    rest, facts = _facts(query)
    if facts is None:
        return query
    try:
        return Query.model_validate({"qid": query.qid, "text": query.text, **facts})
    except ValidationError:
        return query.model_copy(update={"metadata": rest})


def unpacked_passage(passage: Passage) -> Passage:
    """A passage whose facts were packed, with them in their places; any other as it is."""
    rest, facts = _facts(passage)
    if facts is None:
        return passage
    try:
        return Passage.model_validate({**passage.model_dump(exclude={"span", "metadata"}), **facts})
    except ValidationError:
        return passage.model_copy(update={"metadata": rest})


def _facts(found: Query | Passage) -> tuple[dict[str, object], dict[str, object] | None]:
    """The metadata without what is packed in it, and that; None where nothing is."""
    text = found.metadata.get(PACKED)
    rest = {name: value for name, value in found.metadata.items() if name != PACKED}
    if not isinstance(text, str):
        return rest, None
    try:
        return rest, dict(as_object(decode_json(text or "{}")))
    except ValueError:
        return rest, None
