"""Pools whose texts say their grades, and the judge stage over them with a judge that reads these."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from raggs.base.artifacts import JudgeRecord, MergeRecord
from raggs.parts.judges import Judgment
from raggs.stages.base import StageWork
from raggs.stages.judge import STAGE, JudgeConfig
from raggs.stats.grade_distribution import canonical
from support.judging import query

NUGGETS = {"type": "nuggets"}


class Listed:
    """Grades each passage as its text says ("-" fails), after as many turns of the loop as its title says."""

    name = "listed"
    alone = frozenset[str]()

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.together: list[tuple[int, tuple[str, ...]]] = []
        self.running = self.most = 0

    def calls(self, task: str) -> dict[str, Any]:
        return {}

    def apart(self, question: Any, one: Any, other: Any) -> bool:
        return "apart" in other.text

    async def grades(self, question: Any, passages: Sequence[Any], *, sample: int = 0) -> Sequence[Judgment]:
        self.together.append((sample, tuple(passage.doc_id for passage in passages)))
        return await asyncio.gather(*(self.grade(question, passage, sample=sample) for passage in passages))

    async def grade(self, question: Any, passage: Any, *, sample: int = 0) -> Judgment:
        self.asked.append((question.qid, passage.doc_id, sample))
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(int(passage.title)):
            await asyncio.sleep(0)
        self.running -= 1
        text = passage.text.split()[sample % len(passage.text.split())]
        if text == "~":
            return Judgment(None, silent="no annotator has labelled it")
        return Judgment(None, error="no answer", raw="?") if text == "-" else Judgment(int(text), f"said {text}")


def pool(qid: str, texts: Sequence[str], delays: Sequence[int], twins: Sequence[int] = ()) -> list[MergeRecord]:
    """One passage for each text; those whose place is in `twins` are near-duplicates of the first."""
    return [
        MergeRecord(
            qid=qid,
            rank=place + 1,
            doc_id=f"d{place}",
            score=0.0,
            sources={},
            duplicate_of="d0" if place in twins else None,
            title=str(delay),
            text=text,
        )
        for place, (text, delay) in enumerate(zip(texts, delays, strict=True))
    ]


class Stating(Listed):
    """Reads "4:0.7" as grade 4 with a probability of 0.7; the other grades share the rest."""

    async def grade(self, question: Any, passage: Any, *, sample: int = 0) -> Judgment:
        texts = passage.text.split()
        plain = passage.model_copy(update={"text": " ".join(text.split(":")[0] for text in texts)})
        said = await super().grade(question, plain, sample=sample)
        _, _, share = texts[sample % len(texts)].partition(":")
        if not share:
            return said
        shares = [(1 - float(share)) / 4] * 5
        shares[(said.grade or 1) - 1] = float(share)
        return replace(said, distribution=canonical(shares), distribution_source="logprobs")


def judged(
    pools: Sequence[list[MergeRecord]], who: Listed | None = None, **config: Any
) -> tuple[list[JudgeRecord], Listed, Any]:
    """The stage's records, the judge that was asked, and the health that the manifest would keep."""
    who, config_ = who or Listed(), JudgeConfig(judge=NUGGETS, **config)
    records = [record for each in pools for record in each]
    with asyncio.Runner() as loop:
        services: Any = SimpleNamespace(
            workspace=SimpleNamespace(loop=loop, concurrency=8, affords=lambda: float("inf")),
            judge=who,
            queries={record.qid: query(record.qid) for record in records},
        )
        found = list(STAGE.run(StageWork({"merge": lambda: iter(records)}), config_, services))
    statistics = STAGE.statistics(config_)
    for record in found:
        statistics.see(record)
    return found, who, statistics.health()
