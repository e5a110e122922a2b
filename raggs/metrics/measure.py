"""Base classes of measures. A measure computes one value per query from hits (`raggs.metrics.hits`).

A measure is a frozen object with a cutoff and parameters; its class docstring describes it. A `Linear` measure is a sum
over ranks, divided by a norm. Each term is the weight of a grade times the worth of its rank. The mean of such a sum
over tied orders has a closed form; other measures implement `expected` themselves, or not at all. NaN means "undefined
for this query". A query without a list scores 0, unless its value is the same for every list (NaN, or a constant, such
as 1 for hit_all with `vacuous`).

The module also defines parameters that several measures share.
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
        usual: default value; None if the parameter is off by default, or its default depends on the scale of the
            judgments.
        low, high: smallest and largest allowed value.
        whole: whether the value must be a whole number.
    """

    usual: float | None
    low: float
    high: float
    whole: bool = False


def parameters(**named: Parameter) -> Mapping[str, Parameter]:
    """Return the parameters of a measure by name."""
    return MappingProxyType(named)


@dataclass(frozen=True)
class Measure(ABC):
    """A measure at a cutoff. The first line of its docstring is its description in `raggs list measures`.

    Args:
        k: how many passages at the top of a list count; None: all passages.
        params: values of the parameters in `PARAMS`; `rel`, if allowed, is the lowest relevant grade.
    """

    k: int | None = None
    params: Mapping[str, float] = field(default_factory=dict, hash=False)

    NAME: ClassVar[str]
    FORMULA: ClassVar[str]
    SOURCE: ClassVar[str]
    RANGE: ClassVar[tuple[float, float]] = (0.0, 1.0)
    HIGHER: ClassVar[bool] = True  # whether a higher value is better
    CUTOFF: ClassVar[Cutoff] = "needed"
    PARAMS: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})
    AT: ClassVar[str | None] = None  # the parameter written after "@" in place of a cutoff
    FIRST: ClassVar[str | None] = None  # the parameter whose name may be omitted
    ALIASES: ClassVar[tuple[str, ...]] = ()
    GOLDEN: ClassVar[bool] = False  # whether the measure needs the grades 1 to 5 of a golden set
    FACETS: ClassVar[bool] = False  # whether the measure needs the facets of passages
    EVIDENCE: ClassVar[bool] = False  # whether the measure needs evidence sets
    TIES: ClassVar[bool] = True  # whether the modes for ties (E, min, max, range, range_at_k, bias) are implemented

    def __getitem__(self, name: str) -> float:
        """Return the value of a parameter.

        Raises:
            KeyError: the parameter does not exist, or its default depends on the scale of the judgments.
        """
        value = self.params.get(name, self.PARAMS[name].usual)
        if value is None:
            raise KeyError(name)
        return value

    @property
    def cutoff(self) -> int:
        """`k`, or a number larger than any list."""
        return w.NO_CUTOFF if self.k is None else self.k

    def table(self, qrels: Qrels) -> Floats:
        """Return the weight of each grade, shape (queries, grades) or (grades,).

        `extreme` sorts tied passages by these weights.
        """
        rel = self.params.get("rel")
        return w.at_least(qrels, None if rel is None else int(rel))

    def weights(self, hits: Hits) -> Floats:
        """Return the weight of each row's passage, shape (n,)."""
        return hits.weigh(self.table(hits.qrels))

    def check(self, hits: Hits) -> None:
        """Check that the measure is defined on the judgments.

        Raises:
            DataError: the measure is not defined on the judgments.
        """
        scale, rel = hits.qrels.scale, self.params.get("rel")
        if self.GOLDEN and not scale.golden:
            raise DataError(
                f"{self.NAME} needs grades 1 to 5, but these labels have the scale {scale.low} to {scale.high}",
                remedy="use ndcg, recall, map or similar, or judge on the scale 1 to 5",
            )
        if rel is not None and not scale.low < rel <= scale.high:
            raise DataError(f"rel={rel:g} must be above {scale.low} and at most {scale.high}")

    @abstractmethod
    def score(self, hits: Hits) -> Floats:
        """Return the value of each query for the order of its list, shape (queries,)."""

    def expected(self, hits: Hits) -> Floats:
        """Return the mean over all orders of tied passages, shape (queries,)."""
        raise NotImplementedError(self.NAME)

    def extreme(self, hits: Hits, most: bool) -> Floats:
        """Return the largest or smallest value over all orders of tied passages, shape (queries,)."""
        weights = self.weights(hits)
        return self.score(hits.arranged(weights if most else -weights))


class Linear(Measure):
    """A measure of the form: sum over the top k of weight(grade) * worth(rank), divided by a norm."""

    UNDEFINED: ClassVar[float] = 0.0  # the value if the norm is 0
    # whether a passage's weight depends only on its own grade, not on the grades of the query's other passages
    FIXED: ClassVar[bool] = False

    def worth(self, ranks: Floats) -> Floats:
        """Return the factor of each rank, such as a discount; ranks start at 1."""
        return w.flat(ranks)

    @abstractmethod
    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the divisor of each query's sum, shape (queries,), or one divisor for all queries."""

    def score(self, hits: Hits) -> Floats:
        """Return the weighted sum over the list in its order, divided by the norm, shape (queries,)."""
        return self._of(hits, w.worth_at(hits, self.cutoff, self._discount))

    def expected(self, hits: Hits) -> Floats:
        """Return the mean over all orders of tied passages, shape (queries,)."""
        return self._of(hits, w.mean_worth(hits, self.cutoff, self._discount))

    def shares(self, hits: Hits, *, expected: bool = False) -> Floats:
        """Return each row's worth divided by the norm, shape (n,): the factor of the row's weight in the query's value.

        Args:
            expected: whether to use the mean worth over all orders of tied passages instead of the ranks in the list.
        """
        worth = (w.mean_worth if expected else w.worth_at)(hits, self.cutoff, self._discount)
        norm = np.broadcast_to(self.norm(hits, self.table(hits.qrels)), len(hits.length))
        return w.ratio(worth, norm[hits.query], 0.0)

    @property
    def _discount(self) -> w.Discount:
        # Return `w.flat` itself if `worth` is not overridden: its callers then skip the computation of discounts.
        return w.flat if type(self).worth is Linear.worth else self.worth

    def _of(self, hits: Hits, worth: Floats) -> Floats:
        table = self.table(hits.qrels)
        return w.ratio(hits.total(self.weights(hits) * worth), self.norm(hits, table), self.UNDEFINED)


ALPHA = Parameter(1.0, 0, 10)  # exponent of a grade's rarity in its weight; 0: rarity is ignored
CAP4 = Parameter(1.0, 0, 1)  # maximum weight of grade 4, relative to grade 5
CAP3 = Parameter(0.25, 0, 1)  # maximum weight of grade 3, relative to grade 5
# number of the system's first passages, from which a ceiling chooses the best ones
POOL = Parameter(50, 1, 1e9, whole=True)
REL = Parameter(None, 1, 1e9, whole=True)  # the lowest relevant grade
# Off by default. `usual` is None, so that the parameter does not change a measure's definition in a lock.
FLAG = Parameter(None, 0, 1, whole=True)
