"""Short ways to questions, passages and judges that need no language model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from raggs.base.artifacts import Passage, Query
from raggs.parts.judges import REGISTRY, Judgment, Ordering

NO_CONTEXT = SimpleNamespace(judge=lambda spec: REGISTRY.of(spec)(spec, NO_CONTEXT), questions=None)


def passage(doc_id: str, text: str, title: str = "") -> Passage:
    return Passage(doc_id=doc_id, text=text, title=title)


def query(qid: str = "q1", **fields: Any) -> Query:
    return Query.model_validate({"qid": qid, "text": "What is it?", **fields})


def judge(name: str, **settings: Any) -> Any:
    adapter: Any = REGISTRY.load(name)
    return adapter(adapter.Config(**settings), NO_CONTEXT)


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def graded(who: Any, question: Query, text: Passage, sample: int = 0) -> Judgment:
    answer: Judgment = asyncio.run(who.grade(question, text, sample=sample))
    return answer


def ordered(who: Any, question: Query, passages: Sequence[Passage]) -> list[str]:
    """The ids, best first; the judge must not fail."""
    answer: Ordering = asyncio.run(who.order(question, passages))
    assert answer.order is not None, answer.error
    assert sorted(answer.order) == list(range(len(passages)))
    return [passages[place].doc_id for place in answer.order]
