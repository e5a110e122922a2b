"""Questions that both sets judge, with the ids of the new set put into the words of the old one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from raggs.evaluation.diffs.sides import Ranked, Side


@dataclass(frozen=True)
class Pairing:
    """Ids of the new set that mean something of the old one under another id.

    Attributes:
        questions, passages: by new id, the old one, where these differ.
    """

    questions: Mapping[str, str] = field(default_factory=dict)
    passages: Mapping[str, str] = field(default_factory=dict)

    def shared(self, old: Side, new: Side) -> dict[str, str]:
        """By old id, the new one: the questions that both judge, sorted."""
        found = {self.questions.get(qid, qid): qid for qid in new.grades}
        return {qid: found[qid] for qid in sorted(found) if qid in old.grades}

    def grades(self, new: Side, qid: str) -> dict[str, int]:
        """The grades of a question of the new set, by old ids."""
        return {self.passages.get(doc, doc): grade for doc, grade in new.grades[qid].items()}

    def order(self, new: Side, qid: str) -> Ranked | None:
        """The order of a question of the new set, by old ids."""
        found = new.orders.get(qid)
        if found is None or not self.passages:
            return found
        return Ranked(tuple(self.passages.get(doc, doc) for doc in found.docs), found.score, found.sigma)
