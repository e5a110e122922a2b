"""What a measure is: a name, a sentence, and a number for each query from a table of hits.

A measure is a frozen object with a cutoff and parameters; its class says what it means. `Linear` measures are sums of
weight times worth of rank over a norm, so their expectation over ties follows; others say theirs, or have none.
Not a number means "not defined for this query". A query without a list scores 0, unless it is undefined for all.

Parameters that several measures have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits

Cutoff = Literal["needed", "possible"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a measure.

    Attributes:
        usual: its value where none is given; None where the scale of the judgments says, or it is off.
        low, high: its least and its largest value.
        whole: whether it is a whole number.
    """

    usual: float | None
    low: float
    high: float
    whole: bool = False


def parameters(**named: Parameter) -> Mapping[str, Parameter]:
    """The parameters of a measure by name."""
    return MappingProxyType(named)


@dataclass(frozen=True)
class Measure(ABC):
    """A measure at a cutoff. The first line of its docstring is its line in `raggs list measures`.

    Args:
        k: how many passages of the list count; None for all.
        params: what `PARAMS` allows; `rel`, where allowed, is the lowest relevant grade.
    """

    k: int | None = None
    params: Mapping[str, float] = field(default_factory=dict, hash=False)

    NAME: ClassVar[str]
    FORMULA: ClassVar[str]
    SOURCE: ClassVar[str]
    RANGE: ClassVar[tuple[float, float]] = (0.0, 1.0)
    HIGHER: ClassVar[bool] = True  # is better
    CUTOFF: ClassVar[Cutoff] = "needed"
    PARAMS: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})
    AT: ClassVar[str | None] = None  # the parameter that is written behind "@", in place of a cutoff
    FIRST: ClassVar[str | None] = None  # the parameter that may stand without its name
    ALIASES: ClassVar[tuple[str, ...]] = ()
    GOLDEN: ClassVar[bool] = False  # whether it needs the grades 1 to 5 of a golden set
    FACETS: ClassVar[bool] = False  # whether it needs to know which facets a list has shown
    TIES: ClassVar[bool] = True  # whether E, range, bias, min and max are known

    def __getitem__(self, name: str) -> float:
        """The value of a parameter that has one.

        Raises:
            KeyError: there is no such parameter, or the scale of the judgments says it.
        """
        value = self.params.get(name, self.PARAMS[name].usual)
        if value is None:
            raise KeyError(name)
        return value

    @property
    def cutoff(self) -> int:
        """`k`, or a number that no list reaches."""
        return w.NO_CUTOFF if self.k is None else self.k

    def table(self, qrels: Qrels) -> Floats:
        """What each grade weighs, shape (queries, grades) or (grades,); it also orders ties for the extremes."""
        rel = self.params.get("rel")
        return w.at_least(qrels, None if rel is None else int(rel))

    def weights(self, hits: Hits) -> Floats:
        """Shape (n,): what each row weighs, by the grade of its passage."""
        return hits.weigh(self.table(hits.qrels))

    def check(self, hits: Hits) -> None:
        """Refuse judgments that the measure is not defined on.

        Raises:
            DataError: they are.
        """
        scale, rel = hits.qrels.scale, self.params.get("rel")
        if self.GOLDEN and not scale.golden:
            raise DataError(
                f"{self.NAME} is defined on grades 1 to 5, and these labels are on {scale.low} to {scale.high}",
                remedy="choose ndcg, recall, map, ..., or judge on the scale 1 to 5",
            )
        if rel is not None and not scale.low < rel <= scale.high:
            raise DataError(f"rel={rel:g} divides nothing on the scale {scale.low} to {scale.high}")

    @abstractmethod
    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): the value of each query, by ranks as they stand."""

    def expected(self, hits: Hits) -> Floats:
        """Shape (queries,): the mean over all orders of tied passages."""
        raise NotImplementedError(self.NAME)

    def extreme(self, hits: Hits, most: bool) -> Floats:
        """Shape (queries,): the largest or least value over all orders of tied passages."""
        weights = self.weights(hits)
        return self.score(hits.arranged(weights if most else -weights))


class Linear(Measure):
    """A measure of the form: sum over the top k of weight(grade) * worth(rank), over a norm."""

    UNDEFINED: ClassVar[float] = 0.0  # the value where the norm is 0
    FIXED: ClassVar[bool] = False  # whether a passage counts what its own grade says, whatever grades others have

    def worth(self, ranks: Floats) -> Floats:
        """What the ranks (from 1) are worth."""
        return w.flat(ranks)

    @abstractmethod
    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Shape (queries,) or a number: what the sum is divided by."""

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): the weighed sum over the ranks as they stand, over its norm."""
        return self._of(hits, w.worth_at(hits, self.cutoff, self._discount))

    def expected(self, hits: Hits) -> Floats:
        """Shape (queries,): the same with the mean worth of the places that tied passages share."""
        return self._of(hits, w.mean_worth(hits, self.cutoff, self._discount))

    def shares(self, hits: Hits, *, expected: bool = False) -> Floats:
        """Shape (n,): what the weight of each row's grade counts in its query's value: worth over norm.

        Args:
            expected: by the mean over all orders of tied passages, rather than by ranks as they stand.
        """
        worth = (w.mean_worth if expected else w.worth_at)(hits, self.cutoff, self._discount)
        norm = np.broadcast_to(self.norm(hits, self.table(hits.qrels)), len(hits.length))
        return w.ratio(worth, norm[hits.query], 0.0)

    @property
    def _discount(self) -> w.Discount:
        # The function itself, so that sets are recognised and cost no logarithms.
        return w.flat if type(self).worth is Linear.worth else self.worth

    def _of(self, hits: Hits, worth: Floats) -> Floats:
        table = self.table(hits.qrels)
        return w.ratio(hits.total(self.weights(hits) * worth), self.norm(hits, table), self.UNDEFINED)


ALPHA = Parameter(1.0, 0, 10)  # how much rarity counts
CAP4 = Parameter(1.0, 0, 1)  # what a grade 4 is worth at most, beside a grade 5
CAP3 = Parameter(0.25, 0, 1)
POOL = Parameter(50, 1, 1e9, whole=True)  # the system's own passages that a ceiling may choose from
REL = Parameter(None, 1, 1e9, whole=True)  # the lowest relevant grade
FLAG = Parameter(None, 0, 1, whole=True)  # 0 unless given; without a usual value it does not change what a lock holds
