"""How the golden order is found, as settings; and the course of a pool's ranking by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from raggs import ranking
from raggs.base.adapter import NameOf
from raggs.base.hashing import derive_seed, hash_value
from raggs.base.settings import AddedLater, PromptName, Settings, causes_of
from raggs.parts.judges import KnownOrder
from raggs.ranking import Ranker, engine_options, engine_switches, make_ranker
from raggs.ranking.base import TYPICAL_LENGTH
from raggs.stages.replay import KeptPool, RankingProcess, part_pool
from raggs.stages.waves import SetBudget

DEFAULT_MAX_CALLS = 80
DEFAULT_SHARED_MAX_CALLS = (
    240  # calls of one question where all share a budget: some three times what it gets on average
)
NOT_OF_THE_COURSE = frozenset(("budget", "min_best_grade"))  # they decide whether rounds follow, not which
MAX_BATCH_SIZE = 20  # passages that a judge orders at a time, at most


class RankConfig(Settings):
    """How the golden order is found; `rank: null` leaves it out, and the golden set is one of grades alone.

    How it works is in docs/concepts/ranking.md, what it brings and costs in docs/how-to/cut-cost.md.
    """

    engine: Annotated[str, NameOf(ranking.REGISTRY)] = Field(
        "bayes", description="how batches are chosen and answers become an order"
    )
    top: int = Field(20, ge=1, description="the part of the order that must be stable")
    batch_size: Annotated[int, Field(ge=2, le=MAX_BATCH_SIZE)] | Literal["auto"] = Field(
        5,
        description='passages the judge orders at a time; "auto": each time as many (5 to 20) as tell most for their'
        " price, by what a dozen questions teach of the judge",
    )
    max_calls: int = Field(
        DEFAULT_MAX_CALLS,
        ge=0,
        description='judge calls a query may use; with batch_size "auto", what so many lists of five cost; '
        f"{DEFAULT_SHARED_MAX_CALLS} where a budget is named and this is not",
    )
    budget: AddedLater[SetBudget | None] = Field(
        None,
        description="what all questions together may use, each next round where it removes most expected wrong pairs; "
        "null: each question may use max_calls",
    )
    parallel: int = Field(4, ge=1, description="batches of a query that are judged at once")
    floor: AddedLater[int] = Field(
        1, ge=1, le=5, description="passages of a lower grade are not ordered, but stand below by grade and fused rank"
    )
    min_best_grade: int = Field(
        3, ge=1, le=5, description="rank a query only if a passage has at least this grade; 1: rank every query"
    )
    prompt: PromptName = Field("order@1", description="a prompt's name, or the path of a Markdown file")
    seed: int = Field(7, ge=0, description="of all random numbers of this stage")
    options: Mapping[str, int | float | bool] = Field(default_factory=dict, description="of the engine, by name")

    @model_validator(mode="before")
    @classmethod
    def _leave_room_to_those_that_need_it(cls, values: object) -> object:
        if isinstance(values, Mapping) and values.get("budget") is not None and "max_calls" not in values:
            return {**values, "max_calls": DEFAULT_SHARED_MAX_CALLS}
        return values

    @model_validator(mode="after")
    def _options_fit(self) -> RankConfig:
        if self.batch_size == "auto" and not ranking.REGISTRY.load(self.engine).LEARNS:
            raise ValueError(f'engine {self.engine} does not choose the length of lists: name a batch_size, not "auto"')
        if self.options:
            known = engine_options(self.engine)
            unknown = sorted(self.options.keys() - known)
            if unknown:
                raise ValueError(f"engine {self.engine} has no option {unknown[0]!r}; known: {', '.join(known)}")
            switches = engine_switches(self.engine)
            for name, value in self.options.items():
                if isinstance(value, bool) and name not in switches:
                    raise ValueError(f"options.{name}: a number belongs here, not true or false")
            self.ranker(("a", "b"), (1, 2), self.seed)  # says what is wrong with a value
        return self

    @property
    def alone(self) -> RankConfig:
        """The same for a question that is ordered by itself."""
        if self.budget is None:
            return self
        return self.model_copy(update={"budget": None, "max_calls": min(DEFAULT_MAX_CALLS, self.max_calls)})

    @property
    def list_length(self) -> int:
        """Passages that the judge orders at a time; where that is open, those of the calls that `max_calls` counts."""
        return TYPICAL_LENGTH if self.batch_size == "auto" else self.batch_size

    def ranker(self, ids: Sequence[str], grades: Sequence[int], seed: int) -> Ranker:
        """A fresh ranker over a pool, with these settings.

        Raises:
            ValueError: a setting cannot be right.
        """
        return make_ranker(
            self.engine,
            ids,
            grades,
            top=self.top,
            batch_size=None if self.batch_size == "auto" else self.batch_size,
            seed=seed,
            max_calls=self.max_calls,
            **self.options,
        )

    def course(self, pool: KeptPool) -> RankingProcess | None:
        """The ranking of a pool at its start; None for an empty one."""
        if not pool.ids:
            return None
        found = part_pool(tuple(zip(pool.ids, pool.grades, strict=True)), self.floor, self.min_best_grade)
        ids, grades = zip(*found.ordered, strict=True)
        ranker = self.ranker(ids, grades, derive_seed(self.seed, "rank", pool.qid))
        return RankingProcess(ranker, self.parallel, found, self.top)

    def state(self, pool: KeptPool, judge: object, known: Sequence[KnownOrder] = ()) -> str:
        """A hash of all that decides a ranking's course; journal entries of another state say nothing here.

        Args:
            judge: all that can change its answers, as it states them.
            known: orders that are there before anything is asked.
        """
        mine = {name: value for name, value in causes_of(self).items() if name not in NOT_OF_THE_COURSE}
        version = engine_version(self.engine, self.batch_size)
        parts = [pool.qid, pool.ids, pool.grades, mine, version, judge]
        parts += [[order.groups, order.sharpness, order.by] for order in known]
        return hash_value(parts)[:16]


def engine_version(engine: str, batch_size: object) -> str:
    """The engine and its version, as locks and journals name it; for lists of open length with a version of theirs."""
    edition = ranking.REGISTRY.edition(engine)
    return f"{edition} lists/{int(ranking.REGISTRY.load(engine).LEARNS)}" if batch_size == "auto" else edition
