"""Measures of multi-part answers: which passages of an evidence set are in the top k.

An evidence set is a minimal combination of passages that suffices for an answer. A query may have several sets. A
near-duplicate of a passage counts as the passage. Only the order within the tie group at the cutoff matters. The top
holds a random subset of this group, and the probability of each subset follows from hypergeometric counts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import comb, nan
from typing import ClassVar, NamedTuple

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.errors import DataError
from raggs.base.types import MAX_EVIDENCE_PASSAGES
from raggs.metrics.columns import IdColumn, Qrels, Run
from raggs.metrics.hits import EvidenceHits, Hits, Ties, find_hits
from raggs.metrics.measure import Measure


def find_evidence(
    qrels: Qrels,
    run: Run,
    evidence: Mapping[str, Sequence[Sequence[str]]],
    ties: Ties = "trec",
    duplicates: Mapping[str, str] | None = None,
) -> EvidenceHits:
    """Look up the passages of evidence sets in the complete lists of a run.

    Args:
        qrels: the judgments; sets of other queries are ignored.
        run: the run.
        evidence: evidence sets by query.
        ties: order of equal scores, as in `find_hits`.
        duplicates: representative of the near-duplicates of each passage; None: no near-duplicates are known.

    Raises:
        DataError: a query has a set without passages, or more than `MAX_EVIDENCE_PASSAGES` passages in its sets.
    """
    group_of = duplicates or {}
    groups: dict[str, list[str]] = {}
    for doc_id, group in group_of.items():
        groups.setdefault(group, []).append(doc_id)
    wanted: dict[tuple[int, str], list[int]] = {}  # query and passage -> members for which the passage counts
    set_query: list[int] = []
    member_set: list[int] = []
    for number, qid in enumerate(qrels.qids):
        sets = evidence.get(qid, ())
        _check_sets(qid, sets)
        for members in sets:
            for doc_id in members:
                for same in {doc_id, *groups.get(group_of.get(doc_id, doc_id), ())}:
                    wanted.setdefault((number, same), []).append(len(member_set))
                member_set.append(len(set_query))
            set_query.append(number)
    rows = sorted(wanted)
    query = np.array([number for number, _ in rows], dtype=np.int64)
    low = np.full(len(rows), qrels.scale.low)
    passages = Qrels(qrels.qids, query, low, IdColumn.of(doc_id for _, doc_id in rows), qrels.scale)
    hits = find_hits(passages, run, ties)
    counted = [wanted[rows[item]] for item in hits.item.tolist()]
    row = np.repeat(np.arange(len(counted)), [len(each) for each in counted])
    member = np.array([number for each in counted for number in each], dtype=np.int64)
    places = (hits.rank[row], hits.start[row], hits.size[row])
    return EvidenceHits(np.array(set_query, dtype=np.int64), np.array(member_set, dtype=np.int64), member, *places)


def _check_sets(qid: str, sets: Sequence[Sequence[str]]) -> None:
    if not all(sets):
        raise DataError(f"query {qid} has an empty evidence set", remedy="remove the set")
    if (passages := len({doc_id for members in sets for doc_id in members})) > MAX_EVIDENCE_PASSAGES:
        said = f"the evidence sets of query {qid} have {passages} passages, more than {MAX_EVIDENCE_PASSAGES}"
        raise DataError(said, remedy="keep the sets with the fewest passages")


class _Subsets(NamedTuple):
    """Values of a query by the subset of its evidence passages that the top takes from the tie group at the cutoff.

    Attributes:
        value: shape (subsets,), value of the query for each subset.
        probability: shape (subsets,), probability of each subset if every order is equally likely.
        possible: shape (subsets,), whether any order yields the subset.
    """

    value: Floats
    probability: Floats
    possible: Flags


class _Evidence(Measure):
    """A value of the best evidence set of each query; undefined for queries without sets."""

    SOURCE: ClassVar[str] = "sufficient evidence sets of multi-hop questions (Yang et al. 2018)"
    EVIDENCE: ClassVar[bool] = True

    def check(self, hits: Hits) -> None:
        """Check the judgments as every measure does, and that evidence sets are known.

        Raises:
            DataError: the measure is not defined on the judgments, or evidence sets are unknown.
        """
        super().check(hits)
        if hits.evidence is None:
            raise DataError(
                f"{self.NAME} needs queries with evidence sets, and complete lists",
                remedy='add evidence to the queries, e.g. [["a", "b"], ["c"]]; omit --condensed and --project',
            )

    @abstractmethod
    def worth(self, share: Floats) -> Floats:
        """Return the value of sets, given the share of their passages in the top, in 0 to 1."""

    def score(self, hits: Hits) -> Floats:
        """Return the value of the best set of each query, shape (queries,); NaN without sets."""
        if (found := hits.evidence) is None:
            return np.full(len(hits.length), nan)
        return self._best(hits, found, found.rank <= self.cutoff)

    def expected(self, hits: Hits) -> Floats:
        """Return the mean over all orders of tied passages, shape (queries,); NaN without sets."""
        return self._over_ties(hits, "mean")

    def extreme(self, hits: Hits, most: bool) -> Floats:
        """Return the largest or smallest value over all orders of tied passages, shape (queries,)."""
        return self._over_ties(hits, "most" if most else "least")

    def _best(self, hits: Hits, found: EvidenceHits, shown: Flags) -> Floats:
        """Return the value of each query, given which of the retrieved passages are in the top."""
        sizes = np.bincount(found.member_set, minlength=len(found.set_query))
        present = np.zeros(len(found.member_set), dtype=np.bool_)
        present[found.member[shown]] = True
        held = np.bincount(found.member_set[present], minlength=len(found.set_query))
        best = np.full(len(hits.length), nan)
        best[found.set_query] = 0.0
        np.maximum.at(best, found.set_query, self.worth(held / sizes))
        return best

    def _over_ties(self, hits: Hits, mode: str) -> Floats:
        if (found := hits.evidence) is None:
            return np.full(len(hits.length), nan)
        sure = found.start + found.size <= self.cutoff
        values = self._best(hits, found, sure)
        query = found.set_query[found.member_set[found.member]]
        for number in np.unique(query[(found.start < self.cutoff) & ~sure]).tolist():
            subsets = self._subsets(found, np.flatnonzero(query == number), sure)
            possible = subsets.value[subsets.possible]
            mean = float(subsets.value @ subsets.probability)
            values[number] = {"mean": mean, "most": possible.max(), "least": possible.min()}[mode]
        return values

    def _subsets(self, found: EvidenceHits, rows: Ints, sure: Flags) -> _Subsets:
        """Return the values of one query with passages in the tie group at the cutoff.

        Args:
            rows: rows of the query in `found`.
            sure: shape (n,), which rows are in the top in every order.
        """
        held = set(found.member[rows[sure[rows]]].tolist())
        edge = rows[~sure[rows] & (found.start[rows] < self.cutoff)]
        counts_for: dict[int, set[int]] = {}  # rank of a tied passage -> members for which it counts
        for row in edge.tolist():
            counts_for.setdefault(int(found.rank[row]), set()).add(int(found.member[row]))
        classes: dict[frozenset[int], int] = {}  # members -> number of tied passages that count for exactly these
        for same in map(frozenset, counts_for.values()):
            classes[same] = classes.get(same, 0) + 1
        start, size = int(found.start[edge[0]]), int(found.size[edge[0]])
        chance, possible = _subset_chances(list(classes.values()), size, self.cutoff - start)
        subset = np.arange(len(chance))
        value = np.zeros(len(chance))
        number = found.set_query[found.member_set[found.member[rows[0]]]]
        for each in np.flatnonzero(found.set_query == number).tolist():
            members = np.flatnonzero(found.member_set == each).tolist()
            present = np.zeros(len(chance))
            for member in members:
                bits = sum(1 << place for place, counted in enumerate(classes) if member in counted)
                present += 1.0 if member in held else (subset & bits) > 0
            value = np.maximum(value, self.worth(present / len(members)))
        return _Subsets(value, chance, possible)


def _subset_chances(counts: Sequence[int], size: int, drawn: int) -> tuple[Floats, Flags]:
    """Return the probability of each subset of classes of which the top holds at least one passage.

    Args:
        counts: number of passages of each class in the tie group.
        size: number of passages in the tie group.
        drawn: number of its passages that are in the top.

    Returns:
        Probability and possibility of each subset, shape (2^classes,); bit c of the index stands for class c.
    """
    total = sum(counts)
    ways = np.zeros((1, total + 1))  # subset, number of its passages in the top -> number of choices
    ways[0, 0] = 1.0
    for count in counts:
        some = np.zeros_like(ways)
        for taken in range(1, count + 1):
            some[:, taken:] += comb(count, taken) * ways[:, : total + 1 - taken]
        ways = np.concatenate([ways, some])
    # Python divides large integers exactly; their floating-point values could be infinite
    rest = [comb(size - total, drawn - taken) if taken <= drawn else 0 for taken in range(total + 1)]
    chance = np.array([each / comb(size, drawn) for each in rest])
    return ways @ chance, ways @ (np.array(rest, dtype=object) > 0) > 0


class EvidenceRecall(_Evidence):
    """Largest share of an evidence set that is in the top k."""

    NAME = "evidence_recall"
    FORMULA = "max over evidence sets E of |E in the top k| / |E|"

    def worth(self, share: Floats) -> Floats:
        """Return the shares themselves."""
        return share


class Complete(_Evidence):
    """Whether an evidence set is in the top k as a whole."""

    NAME = "complete"
    FORMULA = "1 if the top k contains all passages of an evidence set, else 0"

    def worth(self, share: Floats) -> Floats:
        """Return 1 for complete sets, else 0."""
        return (share >= 1.0).astype(np.float64)
