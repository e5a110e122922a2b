"""Write the labels and orders of an earlier version that a new version carries over.

Labels are copied from the judge's records of the earlier version, with their origin. Failed judgments, passages that
were not judged, and abstentions are not copied. A judge that reads human labels reads them again. For such a judge,
human labels are not copied, nor are other labels of passages that have a human label now.

An order by the judge is copied for passages whose text is unchanged. If a passage of it was edited or removed, the
order of the remaining passages is copied, if there are at least two. The ranking of a query can be repeated without
calls if the id of the query, its passages, their grades and the settings of the rank stage are unchanged. This does not
apply to rankings with a budget, with `batch_size: auto` or with probabilities of grades.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import (
    CarryReason,
    JournalRecord,
    JudgeRecord,
    Origin,
    PruneRecord,
    Query,
    RankingRecord,
    Validity,
)
from raggs.base.jsonl import write_records
from raggs.base.settings import causes_of
from raggs.golden.changes import PassageMatches, QueryMatches
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.judges import by_people
from raggs.parts.judges.composite import PanelConfig
from raggs.parts.judges.human import HumanConfig
from raggs.parts.reviews import Key, passage_digest, question_digest
from raggs.runs.manifests.lineage import LABELS_FILE, ORDERS_FILE
from raggs.runs.manifests.open_run import ArtifactByQuery, OpenedRun
from raggs.stages.earlier_version import CarriedLabel, CarriedOrder, CarriedOrders, query_digest
from raggs.stages.rank_config import NOT_OF_THE_COURSE, RankConfig
from raggs.stages.replay import kept_pool

DEFAULT_SHARPNESS = 3.0  # if a ranking estimated none; passages one grade apart are ordered correctly in 95% of cases
LOOKUP = 2_000  # passages whose texts are read at a time


def human_judges(spec: AdapterConfig) -> list[HumanConfig]:
    """Return the settings of all judges that read human labels: the judge itself, or members of a panel."""
    held = spec.judges if isinstance(spec, PanelConfig) else ()
    own = [spec] if isinstance(spec, HumanConfig) else []
    return [*own, *(each for member in held for each in human_judges(member))]


@dataclass(frozen=True)
class CarriedOver:
    """Labels and orders of an earlier version for the passages and queries of a new one.

    Attributes:
        parent: the earlier version.
        origin: first digits of its version.
        queries, passages: its queries and pooled passages, matched with those of the new version.
        now: queries of the new version by id.
        store: corpus of the new version.
        rank: settings of the new version's ranking; None if it is not ranked.
        human: whether the new judge reads human labels.
        reviewed: digests of query and passage of all human labels that this judge reads.
    """

    parent: OpenedRun
    origin: str
    queries: QueryMatches
    passages: PassageMatches
    now: Mapping[str, Query]
    store: PassageStore
    rank: RankConfig | None
    human: bool = False
    reviewed: Collection[Key] = ()

    def write(self, folder: Path) -> tuple[str, str]:
        """Write the files of labels and of orders into a run directory, and return their sha256."""
        labels = write_records(folder / LABELS_FILE, self.labels())
        orders = write_records(folder / ORDERS_FILE, self.orders())
        return labels.sha256, orders.sha256

    # --- labels ---

    def labels(self) -> Iterator[CarriedLabel]:
        """Yield the carried labels, sorted by query and passage."""
        judged = ArtifactByQuery(self.parent, "judge")
        for qid in sorted(self.queries.earlier):
            records = {each.doc_id: each for each in judged.of(self.queries.earlier[qid], JudgeRecord)}
            yield from self._labels_of(self.now[qid], self._kept(qid, records))

    def _kept(self, qid: str, records: Mapping[str, JudgeRecord]) -> dict[str, JudgeRecord]:
        """Return the labels of a query by passage id in the new corpus; an exact copy has priority."""
        earlier = self.queries.earlier[qid]
        named = None if earlier == qid else earlier
        found: dict[str, JudgeRecord] = {}

        def keep(doc_id: str, doc_ids: tuple[str, ...], how: CarryReason) -> None:
            record = records[doc_ids[0]]
            if record.grade is not None and not (self.human and by_people(record)):
                origin = Origin(version=self.origin, qid=named, doc_ids=doc_ids, how=how)
                update = {"qid": qid, "doc_id": doc_id, "duplicate_of": None, "carried": origin, **dict(Validity())}
                found[doc_id] = record.model_copy(update=update)

        for doc_id, label in self.passages.edited.get(earlier, {}).items():
            keep(doc_id, label.doc_ids, label.how)
        for old in sorted(records):
            for target in self.passages.copies.get(old, ()):
                before = found.get(target.doc_id)
                if (
                    target.same
                    or before is None
                    or before.carried is None
                    or before.carried.how in ("kept", "irrelevant")
                ):
                    keep(target.doc_id, (old,), "unchanged" if target.same else "moved")
        return found

    def _labels_of(self, query: Query, kept: Mapping[str, JudgeRecord]) -> Iterator[CarriedLabel]:
        asked, words, names = query_digest(query), question_digest(query), sorted(kept)
        for start in range(0, len(names), LOOKUP):
            part = names[start : start + LOOKUP]
            texts = self.store.get(part)
            for doc_id in part:
                passage = passage_digest(texts[doc_id])
                if (words, passage) not in self.reviewed:
                    yield CarriedLabel(qid=query.qid, doc_id=doc_id, query=asked, passage=passage, label=kept[doc_id])

    # --- orders ---

    def orders(self) -> Iterator[CarriedOrders]:
        """Yield the carried orders, sorted by query."""
        if self.rank is None or "rank" not in self.parent.manifest.stages:
            return
        journal, told = ArtifactByQuery(self.parent, "rank.journal"), ArtifactByQuery(self.parent, "rank.queries")
        pools = ArtifactByQuery(self.parent, "prune")
        for qid in sorted(self.queries.earlier):
            earlier = self.queries.earlier[qid]
            entries = [entry for entry in journal.of(earlier, JournalRecord) if entry.asked and entry.order]
            ranking = next(iter(told.of(earlier, RankingRecord)), None)
            sharpness = ranking.sharpness if ranking is not None else None
            found = self._orders_of(qid, entries, pools.of(earlier, PruneRecord), sharpness or DEFAULT_SHARPNESS)
            if found is not None:
                yield found

    def _orders_of(
        self, qid: str, entries: Sequence[JournalRecord], pruned: Sequence[PruneRecord], sharpness: float
    ) -> CarriedOrders | None:
        pool = kept_pool(qid, pruned)
        names = {doc_id: name for doc_id in pool.ids if (name := self._copy_of(doc_id)) is not None}
        orders = tuple(order for entry in entries if (order := _renamed(entry, names)) is not None)
        if not orders:
            return None
        again = (
            self._same_course
            and self.queries.earlier[qid] == qid
            and not pool.distributions
            and len(names) == len(pool.ids)
        )
        texts = self.store.get(names.values())
        return CarriedOrders(
            qid=qid,
            version=self.origin,
            query=query_digest(self.now[qid]),
            passages={doc_id: passage_digest(texts[doc_id]) for doc_id in sorted(texts)},
            ids=tuple(names[doc_id] for doc_id in pool.ids) if again else (),
            grades=pool.grades if again else (),
            sharpness=sharpness,
            orders=orders,
        )

    def _copy_of(self, doc_id: str) -> str | None:
        """Return the id of a passage of the new corpus with the same text, or None. A passage with the same id and
        place has priority.
        """
        found = self.passages.copies.get(doc_id, ())
        return next((each.doc_id for each in found if each.same), found[0].doc_id if found else None)

    @cached_property
    def _same_course(self) -> bool:
        """Whether the same pool would be ranked by the same batches as in the earlier version."""
        before = self.parent.manifest.stages["rank"].components.get("config")
        rank = self.rank
        if rank is None or not isinstance(before, Mapping) or rank.batch_size == "auto" or rank.budget is not None:
            return False
        now = {name: value for name, value in causes_of(rank).items() if name not in NOT_OF_THE_COURSE}
        return now == {name: value for name, value in before.items() if name not in NOT_OF_THE_COURSE}


def _renamed(entry: JournalRecord, names: Mapping[str, str]) -> CarriedOrder | None:
    """Return an order with the ids of the new corpus, without passages that it lacks. Return None if the entry has no
    order, if fewer than two passages remain, or if two of them have the same id.
    """
    shown = tuple(names[doc_id] for doc_id in entry.shown if doc_id in names)
    if len(shown) < 2 or entry.order is None or len(set(shown)) < len(shown):
        return None
    whole = len(shown) == len(entry.shown)
    return CarriedOrder(
        shown=shown,
        order=tuple(names[doc_id] for doc_id in entry.order if doc_id in names),
        whole=whole,
        by=entry.by,
        best=entry.best if whole else None,
        answerers=entry.answerers,
    )
