"""How deep the judge went, how far it agrees with itself, and how far the members of a panel agree.

How often the cheap judge of a cascade errs, counted while the records pass.

The passages on which only the draw decided that the good judge be asked are a fair sample of all those that the cheap
one keeps to itself; the others that it was asked about are known to the last. Together they give, for each cheap grade,
how often both agree. A rate warns only when its whole interval does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord, Record
from raggs.base.judge_health import (
    HUMAN_SOURCE,
    CascadeGrade,
    CascadeHealth,
    JudgeHealth,
    JudgingDepth,
    PairAgreement,
    PanelHealth,
    PanelMemberHealth,
    SelfAgreement,
    ShareEstimate,
    WilsonRate,
    round_rate,
    source_of,
)
from raggs.base.text import REPLACEMENT_CHAR
from raggs.parts.judges import lower_median, may_abstain
from raggs.parts.judges.composite import CascadeConfig, PanelConfig
from raggs.stages.base import Statistics, rate_of
from raggs.stats.agreement import count_pairs

if TYPE_CHECKING:
    from raggs.stages.judge import GroupContextMoves

GRADES = range(MIN_GRADE, MAX_GRADE + 1)
MAX_MISSED_SHARE = 0.1  # of what the good judge finds useful, the share that the cheap one keeps from it
MAX_DISTANT_SHARE, DISTANT_GRADES = (
    0.05,
    2,
)  # of what the cheap judge keeps, the share on which both are so many grades apart


def cascade_of(spec: AdapterConfig) -> CascadeConfig | None:
    """The cascade that a judge is, or that speaks where people have not; None where there is none."""
    if isinstance(spec, PanelConfig) and spec.rule == "first":
        machines = [each for each in spec.judges if each.type != HUMAN_SOURCE]
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
        for number, given in enumerate(record.grades if source_of(record.judge) != HUMAN_SOURCE else ()):
            self._take([said[number] for said in record.votes.values()], failed=given is None)

    def settled(self, record: JudgeRecord, sample: int) -> int | None:
        """The grade that a sample's votes come to, None where they cannot be; the record's where they do not tell."""
        config, votes = self._config, [said[sample] for said in record.votes.values()]
        cheap, good = votes[: config.cheap_answers], votes[config.cheap_answers :]
        silent = not any(good) and may_abstain(config.judges[-1].model_dump(mode="json"))
        if silent or source_of(record.judge) == HUMAN_SOURCE:
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

    def health(self) -> CascadeHealth | None:
        """Over the passages so far; None before the first."""
        ruled, drawn, left = self._by_rule.total(), self._by_chance.total(), self._left.total()
        total = ruled + drawn + left + self._lost
        if not total:
            return None
        both = self._by_rule + self._by_chance
        missed = sum(count for (_, good), count in self._by_chance.items() if good >= self._least)
        return CascadeHealth(
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

    def _unseen(self, missed: WilsonRate) -> ShareEstimate:
        """Of all that the good judge finds useful what it never saw, by the rate among what nobody need have asked."""
        both = self._by_rule + self._by_chance
        seen = sum(count for (_, good), count in both.items() if good >= self._least)

        def share(rate: float) -> float:
            unseen = rate * self._left.total()
            return round(unseen / (unseen + seen), 4) if unseen else 0.0

        low, high = map(share, missed.interval)
        return ShareEstimate(share=None if missed.rate is None else share(missed.rate), interval=(low, high))

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
            agree=round_rate((agreed + rest * (rate.rate or 0.0)) / total) if known else None,
            interval=(round(low, 4), round(high, 4)),
        )

    def _warnings(self, missed: WilsonRate) -> Iterator[str]:
        least, (low, high) = self._config.ask_from, self._unseen(missed).interval
        if least is not None and low > MAX_MISSED_SHARE:
            yield (
                f"{low:.0%} to {high:.0%} of what the good judge would grade {least} or more was kept from it "
                f"({missed.count:,} of {missed.total:,} asked at random were such); lower ask_from, "
                "or take a better cheap judge"
            )
        apart = sum(count for (cheap, good), count in self._by_chance.items() if abs(cheap - good) >= DISTANT_GRADES)
        far = rate_of(apart, self._by_chance.total())
        if far.interval[0] > MAX_DISTANT_SHARE:
            yield (
                f"of what was asked at random, {far.rate:.0%} lies {DISTANT_GRADES} grades or more from the cheap grade"
            )


NOT_JUDGED_PREFIX = "not judged, after"  # begins the reason why the end of a pool was not looked at
MAX_MISSING_SHARE = 0.05  # a larger share of failures is worth a warning

Pairs = Counter[tuple[float | None, float | None]]  # what two gave to the same passages


class JudgeStatistics(Statistics):
    """Counted while the records of one run of the stage pass.

    Args:
        samples: grades that are asked of each passage.
        stop_after: low grades in a row that end the walk down a pool; None where it never ends early.
        cascade: takes the votes, where they are those of a cascade and of no panel.
        company: is told of all passages that were asked about, where several are shown together.
    """

    def __init__(
        self,
        samples: int,
        stop_after: int | None,
        cascade: CascadeStatistics | None = None,
        company: GroupContextMoves | None = None,
    ) -> None:
        self._cascade, self._company = cascade, company
        self._samples, self._stop_after = samples, stop_after
        self._asked = self._skipped = self._silent = self._replaced = 0
        self._labelled = self._slipped = 0
        self._sources: Counter[str] = Counter()
        self._stopped: set[str] = set()
        self._unanimous = self._repeated = 0
        self._repeats: Pairs = Counter()
        self._votes: dict[str, Counter[int | None]] = {}
        self._pairs: dict[tuple[str, str], Pairs] = {}

    def see(self, record: Record) -> None:
        """Take notice of one judged passage; near-duplicates are not."""
        if not isinstance(record, JudgeRecord) or record.duplicate_of is not None:
            return
        if record.skipped is not None and record.skipped.startswith(NOT_JUDGED_PREFIX):
            self._skipped += 1
            self._stopped.add(record.qid)
            return
        if self._company is not None:
            self._company.see(record)
        if record.skipped is not None:
            self._silent += 1
            return
        self._asked += 1
        if record.grade is not None:
            self._sources[source_of(record.judge)] += 1
        if self.label is not None and (label := self.label(record.qid, record.doc_id)) and record.grade is not None:
            self._labelled, self._slipped = self._labelled + 1, self._slipped + (record.grade != label)
        self._replaced += any(
            REPLACEMENT_CHAR in said for said in (record.reason, record.error or "", record.raw or "")
        )
        self._compare_samples([grade for grade in record.grades if grade is not None])
        if self._cascade is None:
            people = (
                source_of(record.judge) == HUMAN_SOURCE
            )  # labels may have been given after the model's grade was seen
            self._compare_members(
                {HUMAN_SOURCE: record.votes[HUMAN_SOURCE]} if people and HUMAN_SOURCE in record.votes else record.votes
            )
        else:
            self._cascade.see(record)

    def _compare_samples(self, grades: Sequence[int]) -> None:
        for first, second in combinations(grades, 2):
            self._repeats.update([(first, second), (second, first)])  # samples have no order
        if len(grades) > 1:
            self._repeated += 1
            self._unanimous += len(set(grades)) == 1

    def _compare_members(self, votes: Mapping[str, Sequence[int | None]]) -> None:
        for name, grades in votes.items():
            self._votes.setdefault(name, Counter()).update(grades)
        for first, second in combinations(votes, 2):
            pairs = self._pairs.setdefault((first, second), Counter())
            pairs.update(zip(votes[first], votes[second], strict=True))

    def health(self) -> JudgeHealth | None:
        """Over the records so far; None where neither depth nor repeats nor a panel were asked for."""
        found = JudgeHealth(
            depth=None if self._stop_after is None else self._depth(self._stop_after),
            samples=self._self_consistency() if self._samples > 1 else None,
            place=None if self._company is None else self._company.place(),
            panel=self._panel() if self._votes else None,
            cascade=None if self._cascade is None else self._cascade.health(),
            canaries=self.probed,
            people=self.people,
            replaced=self._replaced,
            noise=rate_of(self._slipped, self._labelled) if self._labelled else self.noise,
            silent=self._silent,
            sources=dict(sorted(self._sources.items())) if HUMAN_SOURCE in self._sources else {},
        )
        return None if found == JudgeHealth() else found

    def _depth(self, stop_after: int) -> JudgingDepth:
        return JudgingDepth(
            stop_after=stop_after,
            asked=self._asked * self._samples,
            saved=self._skipped * self._samples,
            stopped=len(self._stopped),
        )

    def _self_consistency(self) -> SelfAgreement:
        found = count_pairs(self._repeats)
        return SelfAgreement(
            asked=self._samples,
            passages=self._repeated,
            unanimous=round_rate(self._unanimous / self._repeated) if self._repeated else None,
            exact=round_rate(found.observed),
            kappa=round_rate(found.kappa("quadratic")),
            company=None if self._company is None else self._company.company(),
        )

    def _panel(self) -> PanelHealth:
        silent = [(name, votes[None], votes.total()) for name, votes in self._votes.items()]
        return PanelHealth(
            members={name: _member(votes) for name, votes in self._votes.items()},
            agreement=tuple(_agreement(names, pairs) for names, pairs in self._pairs.items()),
            warnings=tuple(
                f"{name} gave no grade {missing:,} of {asked:,} times"
                for name, missing, asked in silent
                if missing > MAX_MISSING_SHARE * asked
            ),
        )


def cascade_statistics(spec: AdapterConfig) -> CascadeStatistics | None:
    """Who counts how a cascade's judges stand to each other, where a judge is one or holds one."""
    if spec.type not in ("cascade", "panel"):
        return None

    found = cascade_of(spec)
    return None if found is None else CascadeStatistics(found)


def votes_settled(spec: AdapterConfig) -> Callable[[JudgeRecord, int], int | None]:
    """What gives the grade that a sample of a record comes to, by its votes where these alone tell it."""
    statistics = cascade_statistics(spec)
    return (lambda record, sample: record.grades[sample]) if statistics is None else statistics.settled


def _member(votes: Counter[int | None]) -> PanelMemberHealth:
    given = votes.total() - votes[None]
    total = sum(grade * count for grade, count in votes.items() if grade is not None)
    return PanelMemberHealth(mean=round_rate(total / given) if given else None, given=given, missing=votes[None])


def _agreement(names: tuple[str, str], pairs: Pairs) -> PairAgreement:
    found = count_pairs(pairs)
    return PairAgreement(
        judges=names, pairs=found.total, exact=round_rate(found.observed), kappa=round_rate(found.kappa("quadratic"))
    )
