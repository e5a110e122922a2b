"""Systems whose depth hangs on the question: whom signals send deep, and what that takes.

Lists are searched as deep as any question needs and cut for the others. A reranker's entropy is known when it has read
the first `base` candidates; a question that it alone sends deep is read twice, and waits for both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from raggs.base.artifacts import EmbedRecord
from raggs.parts.rerankers.base import Reranking
from raggs.parts.retrievers import REGISTRY
from raggs.parts.retrievers.depth import Reads, RoutedDepth, Seen, readings
from raggs.stats.probes.uncertainty import Readings, fired
from raggs.sweeps.grid import System
from raggs.sweeps.partstore import Final, Lists

if TYPE_CHECKING:
    from raggs.sweeps.parts import Parts

ENTROPY, REWRITE = "entropy", "rewrite"
Fired = Mapping[str, tuple[str, ...]]  # by question, the signals; none where it stays shallow


class Router:
    """Decides for one system.

    Args:
        parts: of the sweep.
        system: with a depth that is routed.
        depth: that depth.
    """

    def __init__(self, parts: Parts, system: System, depth: RoutedDepth) -> None:
        self._parts, self._system, self._depth = parts, system, depth
        self._deep = parts.candidates(replace(system, depth=None))
        self._shallow: Lists = {qid: hits[: depth.base] for qid, hits in self._deep.items()}

    def signals(self, wanted: Collection[str]) -> Mapping[str, Readings]:
        """The readings of some signals, by question."""
        parts, system = self._parts, self._system
        lists: dict[Reads, Lists] = {}
        for search in parts.searches(system):
            if (reads := REGISTRY.of(search.retriever).reads(search.retriever)) is not None:
                lists.setdefault(reads, parts.hits(search))
        scores = self._scores() if ENTROPY in wanted else {}
        asked, rewritten = self._vectors() if REWRITE in wanted else ({}, {})
        vectors, words = lists.get("vectors", {}), lists.get("words", {})
        return {
            record.qid: readings(
                Seen(
                    text=record.text,
                    language=record.language,
                    base=self._depth.base,
                    vectors=vectors.get(record.qid),
                    words=words.get(record.qid),
                    candidates=scores.get(record.qid),
                    question=asked.get(record.qid),
                    rewrite=rewritten.get(record.qid),
                ),
                wanted,
            )
            for record in parts.prepared(system.rewrite)
        }

    @cached_property
    def fired(self) -> Fired:
        """By question, the signals that reach their thresholds."""
        when = self._depth.when.thresholds
        return {qid: fired(found, when) for qid, found in self.signals(when).items()}

    @property
    def pays(self) -> bool:
        """Whether an embedder is paid for vectors that tell signals alone."""
        embedder = self._system.embedder
        return REWRITE in self._depth.when.thresholds and bool(embedder and self._parts.embedder(embedder).models)

    @property
    def share(self) -> float:
        """Of the questions that go deep."""
        return sum(map(bool, self.fired.values())) / len(self.fired)

    @cached_property
    def lists(self) -> Lists:
        """The candidates of each question."""
        return {qid: self._deep[qid] if self.fired[qid] else hits for qid, hits in self._shallow.items()}

    def rounds(self) -> Iterator[Lists]:
        """What a reranker is given, one after the other: all shallow lists where its scores decide, then the rest."""
        if ENTROPY in self._depth.when.thresholds:
            yield self._shallow
        if rest := self._unread():
            yield rest

    def final(self) -> Final:
        """What the system returns."""
        parts, system, found = self._parts, self._system, self.lists
        if system.reranker is None:
            return Final(found)
        read: dict[str, Reranking] = {}
        for lists in self.rounds():
            made = parts.reranked(system, lists)
            read |= {qid: made[qid] for qid, hits in lists.items() if len(hits) == len(found[qid])}
        read = self._read_before() | read
        independent = parts.reranker(system.reranker).reader.INDEPENDENT
        for qid in (qid for qid, why in self.fired.items() if why == (ENTROPY,)):  # which only its shallow list told
            read[qid] = twice(parts.reranked(system, self._shallow)[qid], read[qid], independent=independent)
        return Final.of({qid: read[qid] for qid in found})

    def _unread(self) -> Lists:
        """The lists that no fixed depth had read, where those are not kept together."""
        if self._parts.store.has(self._parts.rerank_causes(self._system, self.lists)):
            return self.lists
        known = self._read_before()
        return {qid: hits for qid, hits in self.lists.items() if qid not in known}

    def _read_before(self) -> dict[str, Reranking]:
        """What the reranker made of lists of a fixed depth that are lists of this system too; nobody is asked."""
        found: dict[str, Reranking] = {}
        for deep, lists in ((False, self._shallow), (True, self._deep)):
            if self._parts.store.has(self._parts.rerank_causes(self._system, lists)):
                made = self._parts.reranked(self._system, lists)
                found |= {qid: made[qid] for qid, why in self.fired.items() if bool(why) == deep}
        return found

    def _scores(self) -> Mapping[str, Sequence[float]]:
        found = self._parts.reranked(self._system, self._shallow)
        return {qid: [each.score for each in one.ranked] for qid, one in found.items()}

    def _vectors(self) -> tuple[Mapping[str, Sequence[float]], Mapping[str, Sequence[float]]]:
        """Vectors of the questions as they were asked, and as they are searched for."""
        parts, system = self._parts, self._system
        if system.embedder is None:
            return {}, {}
        records = parts.embedded(system.rewrite, system.embedder)
        rewritten = {record.qid: record.embedding for record in records}
        changed: list[EmbedRecord] = [record for record in records if record.rewrite != record.text]
        asked: dict[str, Sequence[float]] = {**rewritten}
        if changed:
            made = parts.embedder(system.embedder).embed_queries([record.text for record in changed])
            asked |= {record.qid: vector.tolist() for record, vector in zip(changed, made, strict=True)}
        return asked, rewritten


def twice(shallow: Reranking, deep: Reranking, *, independent: bool) -> Reranking:
    """A deep reranking after a shallow one: what both take.

    A reranker whose scores hang on nothing else reads only what is new the second time: money and tokens are those of
    the deep list, and the second call is taken to last as long as the first, or longer where it reads more. Any other
    reranker reads everything again.
    """
    few, many = len(shallow.ranked), len(deep.ranked)
    if not independent:
        return replace(
            deep,
            tokens=shallow.tokens + deep.tokens,
            ms=None if shallow.ms is None or deep.ms is None else shallow.ms + deep.ms,
            calls=shallow.calls + deep.calls,
            usd=shallow.usd + deep.usd,
            searches=shallow.searches + deep.searches,
        )
    if shallow.ms is None or not 0 < few < many:
        return deep
    return replace(deep, ms=shallow.ms * (1.0 + max(1.0, (many - few) / few)))
