"""How often the cheap judge of a cascade errs, counted while the records pass.

The passages on which only the draw decided that the good judge be asked are a fair sample of all those that the cheap
one keeps to itself; the others that it was asked about are known to the last. Together they give, for each cheap grade,
how often both agree. A rate warns only when its whole interval does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord
from raggs.base.health import PEOPLE, Cascade, CascadeGrade, Rate, Share, rounded, source_of
from raggs.parts.judges.cascade import CascadeConfig
from raggs.parts.judges.consensus import lower_median
from raggs.parts.judges.exactness import may_abstain
from raggs.parts.judges.panel import PanelConfig
from raggs.stages.statistics import rate_of

GRADES = range(MIN_GRADE, MAX_GRADE + 1)
UNSEEN = 0.1  # of what the good judge finds useful, the share that the cheap one keeps from it
FAR, APART = 0.05, 2  # of what the cheap judge keeps, the share on which both are so many grades apart


def cascade_of(spec: AdapterConfig) -> CascadeConfig | None:
    """The cascade that a judge is, or that speaks where people have not; None where there is none."""
    if isinstance(spec, PanelConfig) and spec.rule == "first":
        machines = [each for each in spec.judges if each.type != PEOPLE]
        return cascade_of(machines[0]) if len(machines) == 1 else None
    return spec if isinstance(spec, CascadeConfig) else None


class CascadeStatistics:
    """Counted sample by sample; memory does not grow with passages."""

    def __init__(self, config: CascadeConfig) -> None:
        self._config = config
        self._by_rule: Counter[tuple[int, int]] = Counter()  # cheap grade, good grade
        self._by_chance: Counter[tuple[int, int]] = Counter()
        self._left: Counter[int] = Counter()
        self._lost = 0  # passages on which the cheap judge gave no grade, or the good one failed

    def see(self, record: JudgeRecord) -> None:
        """Take notice of the votes on one passage; where people spoke, there are none but theirs."""
        for number, given in enumerate(record.grades if source_of(record.judge) != PEOPLE else ()):
            self._take([said[number] for said in record.votes.values()], failed=given is None)

    def settled(self, record: JudgeRecord, sample: int) -> int | None:
        """The grade that a sample's votes come to, None where they cannot be; the record's where they do not tell."""
        config, votes = self._config, [said[sample] for said in record.votes.values()]
        cheap, good = votes[: config.cheap_answers], votes[config.cheap_answers :]
        silent = not any(good) and may_abstain(config.judges[-1].model_dump(mode="json"))
        if silent or source_of(record.judge) == PEOPLE:
            return record.grades[sample]
        if not config.sends(record.qid, record.doc_id, cheap):
            return None if any(good) else lower_median(cheap)
        return good[0] if good else None

    def _take(self, said: Sequence[int | None], *, failed: bool) -> None:
        cheap = said[: self._config.cheap_answers]
        grade, ruled = lower_median(cheap), self._config.asks_good(cheap)
        good = next((each for each in said[len(cheap) :] if each is not None), None)
        if grade is None or failed:
            self._lost += 1
        elif good is None:
            self._left[grade] += 1
        else:
            (self._by_rule if ruled else self._by_chance)[grade, good] += 1

    def health(self) -> Cascade | None:
        """Over the passages so far; None before the first."""
        ruled, drawn, left = self._by_rule.total(), self._by_chance.total(), self._left.total()
        total = ruled + drawn + left + self._lost
        if not total:
            return None
        both = self._by_rule + self._by_chance
        missed = sum(count for (_, good), count in self._by_chance.items() if good >= self._least)
        return Cascade(
            asked=rate_of(ruled + drawn, ruled + drawn + left),
            by_rule=ruled,
            by_chance=drawn,
            lost=self._lost,
            overruled=rate_of(sum(count for (cheap, good), count in both.items() if cheap != good), both.total()),
            missed=rate_of(missed, drawn),
            unseen=self._unseen(rate_of(missed, drawn)),
            grades={str(grade): self._grade(grade) for grade in GRADES if self._given(grade)},
            ask_from=self._config.ask_from,
            warnings=tuple(self._warnings(rate_of(missed, drawn))),
        )

    def _unseen(self, missed: Rate) -> Share:
        """Of all that the good judge finds useful what it never saw, by the rate among what nobody need have asked."""
        both = self._by_rule + self._by_chance
        seen = sum(count for (_, good), count in both.items() if good >= self._least)

        def share(rate: float) -> float:
            unseen = rate * self._left.total()
            return round(unseen / (unseen + seen), 4) if unseen else 0.0

        low, high = map(share, missed.interval)
        return Share(share=None if missed.rate is None else share(missed.rate), interval=(low, high))

    @property
    def _least(self) -> int:
        """From which of the good judge's grades on a passage that the cheap one kept is missed."""
        return self._config.ask_from or MAX_GRADE + 1

    def _given(self, grade: int) -> int:
        return self._left[grade] + sum(map(sum, (self._row(self._by_rule, grade), self._row(self._by_chance, grade))))

    @staticmethod
    def _row(counts: Counter[tuple[int, int]], grade: int) -> tuple[int, ...]:
        return tuple(counts[grade, good] for good in GRADES)

    def _grade(self, grade: int) -> CascadeGrade:
        ruled, drawn = self._row(self._by_rule, grade), self._row(self._by_chance, grade)
        total, agreed = self._given(grade), ruled[grade - MIN_GRADE]
        rest = total - sum(ruled)
        rate = rate_of(drawn[grade - MIN_GRADE], sum(drawn))
        low, high = ((agreed + rest * bound) / total for bound in rate.interval)
        known = rate.rate is not None or not rest
        return CascadeGrade(
            given=total,
            by_rule=ruled,
            by_chance=drawn,
            agree=rounded((agreed + rest * (rate.rate or 0.0)) / total) if known else None,
            interval=(round(low, 4), round(high, 4)),
        )

    def _warnings(self, missed: Rate) -> Iterator[str]:
        least, (low, high) = self._config.ask_from, self._unseen(missed).interval
        if least is not None and low > UNSEEN:
            yield (
                f"{low:.0%} to {high:.0%} of what the good judge would grade {least} or more was kept from it "
                f"({missed.count:,} of {missed.total:,} asked at random were such); lower ask_from, "
                "or take a better cheap judge"
            )
        apart = sum(count for (cheap, good), count in self._by_chance.items() if abs(cheap - good) >= APART)
        far = rate_of(apart, self._by_chance.total())
        if far.interval[0] > FAR:
            yield f"of what was asked at random, {far.rate:.0%} lies {APART} grades or more from the cheap grade"
