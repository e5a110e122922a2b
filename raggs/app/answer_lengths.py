"""How long the answers of models are, for whoever says what they would cost.

It is learned from a run's ledger; until that holds `LEARNED` of a kind, answers of models that reason are taken to hold
`HIDDEN` tokens that nobody sees, or as many as the first ones held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raggs.app.services import RunServices
from raggs.base.jsonl import read_torn
from raggs.llm.ledger import LEDGER_REMEDY, LedgerLine
from raggs.llm.prices import HIDDEN, reasons
from raggs.runs.manifests.store import RunStore
from raggs.stages.waves import ORDERED

ANSWER = {"rewrite": 40, "grade": 60, "order": ORDERED, "ask": 200}  # tokens of an answer
LEARNED = 8  # answers from which on the ledger knows better; fewer can only lengthen what is assumed


@dataclass(frozen=True)
class AnswerLengths:
    """How long answers are, and how many are of no use.

    Attributes:
        seen: how many the ledger holds by model and task, and their tokens together.
        unusable: how many of all these could not be used.
    """

    services: RunServices
    seen: Mapping[tuple[str, str], tuple[int, int]]
    unusable: int = 0

    def repaired(self, otherwise: float) -> float:
        """The share of answers that were asked for once more; `otherwise` while too few are known."""
        answers = sum(count for count, _ in self.seen.values())
        return self.unusable / answers if answers >= LEARNED else otherwise

    def length(self, model: str, task: str) -> tuple[int, int]:
        """Tokens of an answer, and how many of them are a guess at hidden reasoning."""
        count, tokens = self.seen.get((model, task), (0, 0))
        if count >= LEARNED:
            return -(-tokens // count), 0
        hidden = HIDDEN if reasons(model, self.services.config.llm.parameters_of(model)) else 0
        if (longer := self._beyond(model)) > hidden:
            return self._assumed(task) + longer, 0
        hidden *= self.services.config.judge.group if task == "grades" else 1
        return self._assumed(task) + hidden, hidden

    def _assumed(self, task: str) -> int:
        """Tokens of an answer of which nothing is known yet."""
        return self.services.config.judge.group * ANSWER["grade"] if task == "grades" else ANSWER.get(task, 0)

    def _beyond(self, model: str) -> int:
        """By how much a model's answers of any kind were longer than assumed, in tokens; 0 if they were not."""
        kinds = [(*sums, self._assumed(task)) for (who, task), sums in self.seen.items() if who == model]
        return max([0, *(-(-tokens // count) - assumed for count, tokens, assumed in kinds)])


def learned(services: RunServices, store: RunStore) -> AnswerLengths:
    """What the ledger of a run tells of the length of answers."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    unusable = 0
    for line in read_torn(store.ledger, LedgerLine, LEDGER_REMEDY):
        if line.outcome in ("answered", "unusable"):
            count, tokens = sums.get((line.model, line.task), (0, 0))
            sums[line.model, line.task] = count + 1, tokens + line.completion_tokens
            unusable += line.outcome == "unusable"
    return AnswerLengths(services, sums, unusable)
