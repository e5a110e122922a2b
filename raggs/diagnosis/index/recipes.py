"""Which indexes are tried, and how far: families of recipes that differ in the effort of a search alone.

A family is named as on the command line, by what differs from the defaults: ``hnsw:m=32``. Efforts go up from the least
that differs from smaller ones, each some 1.4 times the one before, until the mean recall of all questions is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from raggs.base.errors import UsageError
from raggs.base.text import did_you_mean
from raggs.diagnosis.index.settings import IndexSettings
from raggs.parts import indexes
from raggs.parts.indexes.base import Index, IndexConfig

STEP = 2**0.5
MOST_STEPS = 24  # from 10 to some 40,000
QUARTER = 4  # dimensions of a part of a vector that is coded, where nothing is said
TYPE = "type"


@dataclass(frozen=True)
class Family:
    """An index at any effort.

    Attributes:
        name: of its settings.
        config: its settings, with whatever effort.
        varied: efforts that were asked for; empty: as many as are needed.
    """

    name: str
    config: IndexConfig
    varied: tuple[int, ...] = ()

    @property
    def effort(self) -> str:
        """The name of the setting by which a search looks at more; empty where it has none."""
        return self._recipe(self.config).EFFORT

    def at(self, effort: int) -> Index:
        """The recipe at one effort."""
        return self._recipe(self.config.model_copy(update={self.effort: effort}) if self.effort else self.config)

    def named(self, effort: int) -> str:
        """The name of a point, as on the command line."""
        return f"{self.name}:{self.effort}={effort}" if self.effort else self.name

    def efforts(self, k: int) -> list[int]:
        """Efforts in ascending order; the caller stops when it has enough."""
        if not self.effort:
            return [1]
        least = self._recipe(self.config).least_effort(k)
        if self.varied:
            return sorted({max(each, least) for each in self.varied})
        return sorted({round(least * STEP**step) for step in range(MOST_STEPS)})

    @staticmethod
    def _recipe(config: IndexConfig) -> Index:
        return indexes.REGISTRY.of(config)(config)


def families(settings: IndexSettings, dims: int) -> list[Family]:
    """Each index with each combination of the varied settings that it has, once.

    Raises:
        UsageError: no index has a setting that is to be varied, or a value does not fit.
    """
    bases = list(settings.indexes) or _usual(dims)
    for name in settings.vary:
        if not any(name in type(base).model_fields for base in bases):
            known = sorted({field for base in bases for field in type(base).model_fields} - {TYPE})
            raise UsageError(f"no index has a setting {name!r}", remedy=did_you_mean(name, known))
    found: dict[str, Family] = {}
    for base in bases:
        for each in _varied(base, settings.vary):
            found.setdefault(each.name, each)
    return list(found.values())


def _usual(dims: int) -> list[IndexConfig]:
    """A graph, lists, and lists of coded vectors."""
    hnsw, ivf = indexes.REGISTRY.load("hnsw").Config, indexes.REGISTRY.load("ivf").Config
    plain = [hnsw.model_validate({TYPE: "hnsw"}), ivf.model_validate({TYPE: "ivf"})]
    return plain if dims % QUARTER else [*plain, ivf.model_validate({TYPE: "ivf", "pq": dims // QUARTER})]


def _varied(base: IndexConfig, vary: Mapping[str, Sequence[int]]) -> Iterator[Family]:
    effort = indexes.REGISTRY.of(base).EFFORT
    own = {name: values for name, values in vary.items() if name in type(base).model_fields and name != effort}
    for values in product(*own.values()):
        update = dict(zip(own, values, strict=True))
        config = _validated(base, update)
        yield Family(_name(config, effort, own), config, tuple(vary.get(effort, ())))


def _validated(base: IndexConfig, update: Mapping[str, int]) -> IndexConfig:
    try:
        return type(base).model_validate({**base.model_dump(), **update})
    except ValueError as error:
        told = ", ".join(f"{name}={value}" for name, value in update.items())
        raise UsageError(f"{base.type} does not take {told}", remedy="see: raggs list indexes") from error


def _name(config: IndexConfig, effort: str, varied: Mapping[str, object]) -> str:
    fields = type(config).model_fields
    told = [
        f":{name}={'null' if value is None else value}"
        for name, value in config.model_dump().items()
        if name not in (TYPE, effort) and (name in varied or value != fields[name].default)
    ]
    return config.type + "".join(told)


def bisected(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The least whole number above `low`, which does not fit, up to `high`, which does, that fits."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
