"""Statistics of the judge stage: judging depth, self-consistency, and agreement between the members of a panel.

For a cascade, the error rate of the cheap judge is estimated while the records are written.

Some passages go to the good judge by a random draw and not by a rule. These passages are an unbiased sample of all
passages whose cheap grade the rule would keep. For passages that go to the good judge by a rule, both grades are known
unless a judge failed. Together, the two groups of passages show how often both judges agree, for each cheap grade. A
rate causes a warning only if its whole interval is beyond the limit.
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
MAX_MISSED_SHARE = 0.1  # maximum share of passages that the good judge never sees, among those it would find useful
# maximum share of passages with a kept cheap grade on which both judges differ by at least this number of grades
MAX_DISTANT_SHARE, DISTANT_GRADES = 0.05, 2


def cascade_of(spec: AdapterConfig) -> CascadeConfig | None:
    """Return the cascade in a judge's settings: the judge itself, or the fallback behind human labels. None if the
    settings contain no cascade.
    """
    if isinstance(spec, PanelConfig) and spec.rule == "first":
        machines = [each for each in spec.judges if each.type != HUMAN_SOURCE]
        return cascade_of(machines[0]) if len(machines) == 1 else None
    return spec if isinstance(spec, CascadeConfig) else None


class CascadeStatistics:
    """Statistics of a cascade, counted sample by sample. Memory use is independent of the number of passages."""

    def __init__(self, config: CascadeConfig) -> None:
        self._config = config
        self._by_rule: Counter[tuple[int, int]] = Counter()  # keyed by cheap grade, good grade
        self._by_chance: Counter[tuple[int, int]] = Counter()
        self._left: Counter[int] = Counter()
        self._lost = 0  # passages without a grade of the cheap judge, or on which the good judge failed

    def see(self, record: JudgeRecord) -> None:
        """Count the votes on one passage. A human label excludes all other votes."""
        for number, given in enumerate(record.grades if source_of(record.judge) != HUMAN_SOURCE else ()):
            self._take([said[number] for said in record.votes.values()], failed=given is None)

    def settled(self, record: JudgeRecord, sample: int) -> int | None:
        """Return the grade that a sample's votes imply, or None if they imply no grade or are inconsistent.

        If the votes do not determine the grade, return the recorded grade of this sample.
        """
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
        """Return the statistics of the passages so far, or None if no votes were counted."""
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
        """Estimate which share of the useful passages the good judge never saw, from the rate among randomly sent
        passages.
        """
        both = self._by_rule + self._by_chance
        seen = sum(count for (_, good), count in both.items() if good >= self._least)

        def share(rate: float) -> float:
            unseen = rate * self._left.total()
            return round(unseen / (unseen + seen), 4) if unseen else 0.0

        low, high = map(share, missed.interval)
        return ShareEstimate(share=None if missed.rate is None else share(missed.rate), interval=(low, high))

    @property
    def _least(self) -> int:
        """Lowest grade of the good judge that counts as missed if the cheap judge kept the passage."""
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
                f"the good judge never saw {low:.0%} to {high:.0%} of the passages that it would grade "
                f"{least} or more ({missed.count:,} of {missed.total:,} passages sent at random have "
                "such a grade). Lower ask_from, or use a more accurate cheap judge"
            )
        apart = sum(count for (cheap, good), count in self._by_chance.items() if abs(cheap - good) >= DISTANT_GRADES)
        far = rate_of(apart, self._by_chance.total())
        if far.interval[0] > MAX_DISTANT_SHARE:
            yield (
                f"the grades of both judges differ by {DISTANT_GRADES} or more on {far.rate:.0%} of "
                "the passages sent at random"
            )


NOT_JUDGED_PREFIX = "not judged, after"  # start of the reason for unjudged passages after an early stop
MAX_MISSING_SHARE = 0.05  # a higher share of failures causes a warning

# pairs of values that two judges, or two samples, gave to the same passages
Pairs = Counter[tuple[float | None, float | None]]


class JudgeStatistics(Statistics):
    """Statistics of the judge stage, updated while the records of one run pass.

    Args:
        samples: grades per passage.
        stop_after: number of low grades in a row that ends the grading of a pool, or None for no early stop.
        cascade: collects the votes if the judge is a cascade, possibly behind human labels.
        company: collects the grades if several passages are graded in one call.
        chosen: whether the first sample of a passage decides about further ones.
    """

    def __init__(
        self,
        samples: int,
        stop_after: int | None,
        cascade: CascadeStatistics | None = None,
        company: GroupContextMoves | None = None,
        *,
        chosen: bool = False,
    ) -> None:
        self._cascade, self._company, self._chosen = cascade, company, chosen
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
        """Process one judged passage. Near-duplicates are ignored."""
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
        if record.grade is not None:
            self._sources[source_of(record.judge)] += 1
        if record.carried is not None:
            return  # an earlier version asked for this label
        self._asked += 1
        if self.label is not None and (label := self.label(record.qid, record.doc_id)) and record.grade is not None:
            self._labelled, self._slipped = self._labelled + 1, self._slipped + (record.grade != label)
        self._replaced += any(
            REPLACEMENT_CHAR in said for said in (record.reason, record.error or "", record.raw or "")
        )
        self._compare_samples([grade for grade in record.grades if grade is not None])
        if self._cascade is None:
            # if a human label decides, models' votes are not compared with it: the annotator may have seen them
            people = source_of(record.judge) == HUMAN_SOURCE
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
        """Return the statistics of the records so far, or None if there is nothing to report."""
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
        each = 1 if self._chosen else self._samples  # it is unknown how many samples a skipped passage would get
        return JudgingDepth(
            stop_after=stop_after,
            asked=self._asked * each,
            saved=self._skipped * each,
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
            judged=self._asked if self._chosen else None,
        )

    def _panel(self) -> PanelHealth:
        silent = [(name, votes[None], votes.total()) for name, votes in self._votes.items()]
        return PanelHealth(
            members={name: _member(votes) for name, votes in self._votes.items()},
            agreement=tuple(_agreement(names, pairs) for names, pairs in self._pairs.items()),
            warnings=tuple(
                f"{name} gave no grade in {missing:,} of {asked:,} cases"
                for name, missing, asked in silent
                if missing > MAX_MISSING_SHARE * asked
            ),
        )


def cascade_statistics(spec: AdapterConfig) -> CascadeStatistics | None:
    """Return the collector of cascade statistics if the settings contain a cascade (see `cascade_of`), else None."""
    if spec.type not in ("cascade", "panel"):
        return None

    found = cascade_of(spec)
    return None if found is None else CascadeStatistics(found)


def votes_settled(spec: AdapterConfig) -> Callable[[JudgeRecord, int], int | None]:
    """Return a function that computes the grade of a sample from its votes (see `CascadeStatistics.settled`). Without a
    cascade, the function returns the recorded grade of the sample.
    """
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
