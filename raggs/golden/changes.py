"""Comparison of a corpus and its queries with those of an earlier version of a golden set.

The run directory of the earlier version contains its queries and the texts of its pooled passages, but not its whole
corpus. If the cache of the workspace still has the earlier corpus, all passages are compared. Otherwise, a passage of
the new corpus that was never pooled may be new or old, so the numbers for the whole corpus are unknown. Labels can be
carried over in both cases, because only pooled passages have labels. If the earlier corpus is stored, passages of the
new corpus whose text it contains do not count as edited.

The new corpus is read once to find copies, again for each `CHUNK` pooled passages without a copy, and another time if
the earlier corpus is stored. Texts are compared by hashes. Only the texts of one such group of passages are in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from raggs.base.artifacts import JudgeRecord, MergeRecord, Passage, Query, QueryRecord
from raggs.base.errors import NotFoundError
from raggs.base.hashing import hash_bytes
from raggs.golden.aligning import EditedPassage, KeptLabel, QueryWords, SharedText, single_spaced
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.reviews import passage_digest
from raggs.runs.manifests.lineage import PassageChanges, QueryChanges
from raggs.runs.manifests.open_run import OpenedRun
from raggs.stages.earlier_version import query_digest

CHUNK = 20_000  # pooled passages without a copy in the new corpus that are compared in one pass
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class QueryMatches:
    """Comparison of the queries of a new set with those of an earlier version.

    Attributes:
        earlier: id in the earlier version by id in the new set, for queries with the same content.
        counts: numbers of queries by kind of change.
        new, edited, gone: ids of the other queries, sorted.
    """

    earlier: Mapping[str, str]
    counts: QueryChanges
    new: tuple[str, ...]
    edited: tuple[str, ...]
    gone: tuple[str, ...]


def match_queries(before: Iterable[Query], after: Mapping[str, Query]) -> QueryMatches:
    """Compare queries by id and by everything that a judge may read."""
    digests = {query.qid: query_digest(query) for query in before}
    by_content: dict[str, list[str]] = {}
    for qid in sorted(digests, reverse=True):
        by_content.setdefault(digests[qid], []).append(qid)
    now = {qid: query_digest(query) for qid, query in after.items()}
    same = {qid: qid for qid, digest in now.items() if digests.get(qid) == digest}
    free = {digest: [qid for qid in qids if qid not in same] for digest, qids in by_content.items()}
    renamed = {qid: free[now[qid]].pop() for qid in sorted(now.keys() - same.keys()) if free.get(now[qid])}
    earlier = {**same, **renamed}
    edited = tuple(sorted(qid for qid in now if qid in digests and qid not in earlier))
    new = tuple(sorted(qid for qid in now if qid not in digests and qid not in earlier))
    gone = tuple(sorted(digests.keys() - earlier.values() - set(edited)))
    counts = QueryChanges(unchanged=len(same), renamed=len(renamed), edited=len(edited), new=len(new), gone=len(gone))
    return QueryMatches(earlier, counts, new, edited, gone)


class Target(NamedTuple):
    """A passage of the new corpus with the text of a pooled passage. `same`: whether id and place are the same, too."""

    doc_id: str
    same: bool


class PooledPassage(NamedTuple):
    """A pooled passage of the earlier version: digest of its content, and its place in its document."""

    digest: bytes
    place: str


def _place(passage: Passage) -> str:
    return "" if passage.span is None else f"{passage.span.source}[{passage.span.start}:{passage.span.end}]"


@dataclass
class PassageMatches:
    """Pooled passages of an earlier version in the new corpus.

    Attributes:
        pooled: all pooled passages of the earlier version by id.
        copies: passages of the new corpus with the same text, by id of the pooled passage.
        edited: labels that edited passages keep, by query id of the earlier version and by new passage id.
        related: ids of pooled passages without a copy that share text with a passage of the new corpus.
        reused: ids of pooled passages that name an unrelated text in the new corpus, sorted.
        corpus: numbers of all passages by kind of change; each None if the earlier corpus is not stored.
        total: number of passages of the new corpus.
    """

    pooled: Mapping[str, PooledPassage]
    copies: dict[str, list[Target]] = field(default_factory=dict)
    edited: dict[str, dict[str, KeptLabel]] = field(default_factory=dict)
    related: set[str] = field(default_factory=set)
    reused: tuple[str, ...] = ()
    corpus: PassageChanges = field(default_factory=PassageChanges)
    total: int = 0

    @property
    def counts(self) -> PassageChanges:
        """Numbers of the pooled passages of the earlier version by kind of change."""
        same = sum(any(each.same for each in found) for found in self.copies.values())
        gone = len(self.pooled) - len(self.copies) - len(self.related)
        moved = len(self.copies) - same
        return PassageChanges(unchanged=same, moved=moved, edited=len(self.related), new=None, gone=gone)


def pooled_passages(parent: OpenedRun) -> dict[str, PooledPassage]:
    """Return the pooled passages of a run by id."""
    found: dict[str, PooledPassage] = {}
    for record in parent.typed("merge", MergeRecord):
        if record.doc_id not in found:
            passage = record.passage
            found[record.doc_id] = PooledPassage(bytes.fromhex(passage_digest(passage)), _place(passage))
    return found


def match_passages(
    parent: OpenedRun, before: PassageStore | None, after: PassageStore, queries: QueryWords
) -> PassageMatches:
    """Compare the passages of a corpus with those of an earlier version.

    Args:
        parent: the earlier version.
        before: its corpus; None if it is not stored.
        after: the new corpus.
        queries: words of the queries of the earlier version.
    """
    found = PassageMatches(pooled_passages(parent), total=len(after))
    by_digest: dict[bytes, list[str]] = {}
    for doc_id, each in found.pooled.items():
        by_digest.setdefault(each.digest, []).append(doc_id)
    for passage in after:
        for doc_id in by_digest.get(bytes.fromhex(passage_digest(passage)), ()):
            same = passage.doc_id == doc_id and _place(passage) == found.pooled[doc_id].place
            found.copies.setdefault(doc_id, []).append(Target(passage.doc_id, same))
    old = None if before is None else _Hashes.of(before)
    _find_edited(parent, after, queries, found, old)
    found.reused = _reused(found, after)
    if old is not None:
        found.corpus = _corpus_changes(old, _Hashes.of(after))
    return found


def _find_edited(
    parent: OpenedRun, after: PassageStore, queries: QueryWords, found: PassageMatches, old: _Hashes | None
) -> None:
    """Find new passages that share text with pooled passages without a copy, and store the labels that they keep."""
    left = [doc_id for doc_id in found.pooled if doc_id not in found.copies]
    copied = {found.pooled[doc_id].digest for doc_id in found.copies}
    for start in range(0, len(left), CHUNK):
        wanted = set(left[start : start + CHUNK])
        texts: dict[str, str] = {}
        for record in parent.typed("merge", MergeRecord):
            if record.doc_id in wanted and record.doc_id not in texts:
                texts[record.doc_id] = single_spaced(record.passage.content)
        labels = _labels(parent, wanted)
        index = SharedText(texts)
        for passage in after:
            digest = passage_digest(passage)
            if bytes.fromhex(digest) in copied or (old is not None and old.knows(digest)):
                continue
            edited = index.aligned(passage.doc_id, single_spaced(passage.content))
            if edited is not None:
                found.related.update(edited.alignments)
                _keep(edited, labels, queries, found)


def _labels(parent: OpenedRun, wanted: set[str]) -> dict[str, dict[str, int]]:
    """Return the grades of some passages: by passage id, then query id."""
    found: dict[str, dict[str, int]] = {}
    for record in parent.typed("judge", JudgeRecord):
        if record.doc_id in wanted and record.grade is not None:
            found.setdefault(record.doc_id, {})[record.qid] = record.grade
    return found


def _keep(
    edited: EditedPassage, labels: Mapping[str, Mapping[str, int]], queries: QueryWords, found: PassageMatches
) -> None:
    by_query: dict[str, dict[str, int]] = {}
    for doc_id in edited.alignments:
        for qid, grade in labels.get(doc_id, {}).items():
            by_query.setdefault(qid, {})[doc_id] = grade
    for qid, grades in by_query.items():
        kept = edited.label(qid, grades, queries)
        if kept is None:
            continue
        mine = found.edited.setdefault(qid, {})
        before = mine.get(edited.doc_id)
        if before is None or kept.grade > before.grade:
            mine[edited.doc_id] = kept


def _reused(found: PassageMatches, after: PassageStore) -> tuple[str, ...]:
    """Return the ids of pooled passages that name an unrelated text in the new corpus, sorted."""
    lost = [doc_id for doc_id in found.pooled if doc_id not in found.copies and doc_id not in found.related]
    return tuple(sorted(after.known(lost)))


@dataclass(frozen=True)
class _Hashes:
    """Hashes of the passages of a corpus, 32 bytes per passage.

    Attributes:
        text, name, both: shape (passages,), hashes of the texts, of the ids, and of ids with texts and places.
        sorted: `text`, ascending.
    """

    text: Hashes
    name: Hashes
    both: Hashes
    sorted: Hashes

    @classmethod
    def of(cls, store: PassageStore) -> _Hashes:
        """Return the hashes of all passages."""
        columns = np.empty((3, len(store)), dtype=np.uint64)
        for place, passage in enumerate(store):
            digest, doc_id = passage_digest(passage), passage.doc_id
            said = (digest, hash_bytes(doc_id.encode()), hash_bytes(f"{doc_id}\0{digest}\0{_place(passage)}".encode()))
            columns[:, place] = [int(each[:16], 16) for each in said]
        return cls(columns[0], columns[1], columns[2], np.sort(columns[0]))

    def knows(self, digest: str) -> bool:
        """Return whether the corpus contains a text with this digest."""
        value = np.uint64(int(digest[:16], 16))
        at = int(np.searchsorted(self.sorted, value))
        return at < len(self.sorted) and bool(self.sorted[at] == value)


def _corpus_changes(old: _Hashes, new: _Hashes) -> PassageChanges:
    """Return the numbers of all passages by kind of change. An edited passage has an id of the old corpus and a new
    text.
    """
    text, name = np.isin(new.text, old.text), np.isin(new.name, old.name)
    both = np.isin(new.both, old.both)
    gone = ~np.isin(old.text, new.text) & ~np.isin(old.name, new.name)
    return PassageChanges(
        unchanged=int(both.sum()),
        moved=int((text & ~both).sum()),
        edited=int((~text & name).sum()),
        new=int((~text & ~name).sum()),
        gone=int(gone.sum()),
    )


def dependent_queries(
    queries: Iterable[Query], before: Iterable[Passage], after: Iterable[Passage], *, whole: bool
) -> dict[str, tuple[str, ...]]:
    """Return the ids of queries that depend on changed documents, with the names of these documents, sorted by query.

    A query depends on the documents in `depends_on` and on the passages of its evidence sets. A document is a source of
    passages, or a single passage. It has changed if it lost a text, or if the new corpus does not contain it.

    Args:
        queries: the queries of the new set.
        before: passages of the earlier version: its corpus, or only its pools.
        after: passages of the new corpus.
        whole: whether `before` is the whole corpus. Then a document has also changed if it gained a text.
    """
    wanted = {query.qid: tuple(dict.fromkeys((*query.depends_on, *chain(*query.evidence)))) for query in queries}
    names = {name for documents in wanted.values() for name in documents}
    if not names:
        return {}
    old, new = (_document_texts(passages, names) for passages in (before, after))
    changed = names - new.keys()
    for name in names & old.keys() & new.keys():
        if old[name] - new[name] or (whole and new[name] - old[name]):
            changed.add(name)
    found = {qid: tuple(name for name in documents if name in changed) for qid, documents in wanted.items()}
    return {qid: documents for qid, documents in sorted(found.items()) if documents}


def _document_texts(passages: Iterable[Passage], names: set[str]) -> dict[str, set[str]]:
    """Return the digests of the texts of each named document, by its name."""
    found: dict[str, set[str]] = {}
    for passage in passages:
        for name in {passage.doc_id, passage.span.source if passage.span else passage.doc_id} & names:
            found.setdefault(name, set()).add(passage_digest(passage))
    return found


def queries_of_run(parent: OpenedRun) -> Iterator[Query]:
    """Yield the queries of a run.

    Raises:
        NotFoundError: the run does not store its queries, because an older version of raggs made it.
    """
    if not parent.file("queries").is_file():
        raise NotFoundError("the run does not store its queries", where=parent.folder, remedy=parent.command)
    yield from parent.typed("queries", QueryRecord)
