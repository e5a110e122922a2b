"""How deep the judge went, how far it agrees with itself, and how far the members of a panel agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import JudgeRecord, Record
from raggs.base.health import PEOPLE, Depth, JudgeHealth, Member, PairAgreement, Panel, Samples, rounded, source_of
from raggs.base.text import REPLACED
from raggs.stages.statistics import Statistics, rate_of
from raggs.stats.agreement import count_pairs

if TYPE_CHECKING:
    from raggs.stages.cascades import CascadeStatistics
    from raggs.stages.companymoves import CompanyMoves

BEYOND = "not judged, after"  # begins the reason why the end of a pool was not looked at
SILENT = 0.05  # a larger share of failures is worth a warning

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
        company: CompanyMoves | None = None,
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
        if record.skipped is not None and record.skipped.startswith(BEYOND):
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
        self._replaced += any(REPLACED in said for said in (record.reason, record.error or "", record.raw or ""))
        self._compare_samples([grade for grade in record.grades if grade is not None])
        if self._cascade is None:
            people = source_of(record.judge) == PEOPLE  # labels may have been given after the model's grade was seen
            self._compare_members({PEOPLE: record.votes[PEOPLE]} if people and PEOPLE in record.votes else record.votes)
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
            sources=dict(sorted(self._sources.items())) if PEOPLE in self._sources else {},
        )
        return None if found == JudgeHealth() else found

    def _depth(self, stop_after: int) -> Depth:
        return Depth(
            stop_after=stop_after,
            asked=self._asked * self._samples,
            saved=self._skipped * self._samples,
            stopped=len(self._stopped),
        )

    def _self_consistency(self) -> Samples:
        found = count_pairs(self._repeats)
        return Samples(
            asked=self._samples,
            passages=self._repeated,
            unanimous=rounded(self._unanimous / self._repeated) if self._repeated else None,
            exact=rounded(found.observed),
            kappa=rounded(found.kappa("quadratic")),
            company=None if self._company is None else self._company.company(),
        )

    def _panel(self) -> Panel:
        silent = [(name, votes[None], votes.total()) for name, votes in self._votes.items()]
        return Panel(
            members={name: _member(votes) for name, votes in self._votes.items()},
            agreement=tuple(_agreement(names, pairs) for names, pairs in self._pairs.items()),
            warnings=tuple(
                f"{name} gave no grade {missing:,} of {asked:,} times"
                for name, missing, asked in silent
                if missing > SILENT * asked
            ),
        )


def cascade_statistics(spec: AdapterConfig) -> CascadeStatistics | None:
    """Who counts how a cascade's judges stand to each other, where a judge is one or holds one."""
    if spec.type not in ("cascade", "panel"):
        return None
    from raggs.stages.cascades import CascadeStatistics, cascade_of  # late: few runs have one

    found = cascade_of(spec)
    return None if found is None else CascadeStatistics(found)


def votes_settled(spec: AdapterConfig) -> Callable[[JudgeRecord, int], int | None]:
    """What gives the grade that a sample of a record comes to, by its votes where these alone tell it."""
    statistics = cascade_statistics(spec)
    return (lambda record, sample: record.grades[sample]) if statistics is None else statistics.settled


def _member(votes: Counter[int | None]) -> Member:
    given = votes.total() - votes[None]
    total = sum(grade * count for grade, count in votes.items() if grade is not None)
    return Member(mean=rounded(total / given) if given else None, given=given, missing=votes[None])


def _agreement(names: tuple[str, str], pairs: Pairs) -> PairAgreement:
    found = count_pairs(pairs)
    return PairAgreement(
        judges=names, pairs=found.total, exact=rounded(found.observed), kappa=rounded(found.kappa("quadratic"))
    )
