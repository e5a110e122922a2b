"""Settings of the rank stage, and the ranking process of a pool with these settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import not_
from typing import Annotated, Literal

from pydantic import Field, model_validator

from raggs import ranking
from raggs.base.adapter import NameOf
from raggs.base.hashing import derive_seed, hash_value
from raggs.base.settings import AddedInputPath, AddedLater, PromptName, Settings, causes_of
from raggs.parts.judges import KnownOrder
from raggs.ranking import Ranker, engine_options, engine_switches, make_ranker
from raggs.ranking.base import TYPICAL_LENGTH
from raggs.stages.replay import KeptPool, RankingProcess, part_pool
from raggs.stages.waves import SetBudget

DEFAULT_MAX_CALLS = 80
# Limit of one query if all queries share a budget: three times `DEFAULT_MAX_CALLS`.
DEFAULT_SHARED_MAX_CALLS = 240
# Settings that decide how many rounds follow, not what they contain; carried orders are part of the state themselves.
NOT_OF_THE_COURSE = frozenset(("budget", "min_best_grade", "carry"))
MAX_BATCH_SIZE = 20  # maximum number of passages that a judge orders at a time


class RankConfig(Settings):
    """Settings of the rank stage. With `rank: null`, the stage is omitted and the golden set contains only grades.

    docs/concepts/ranking.md explains the method. docs/how-to/cut-cost.md explains its benefit and cost.
    """

    engine: Annotated[str, NameOf(ranking.REGISTRY)] = Field(
        "bayes", description="ranking engine: chooses the batches and turns their orders into one ranking"
    )
    top: int = Field(20, ge=1, description="number of top positions whose order must be stable")
    batch_size: Annotated[int, Field(ge=2, le=MAX_BATCH_SIZE)] | Literal["auto"] = Field(
        5,
        description='number of passages that the judge orders per call; "auto": choose the length (5 to 20) with the '
        "most information per cost for each call, from a profile of the judge estimated on a dozen "
        "queries",
    )
    max_calls: int = Field(
        DEFAULT_MAX_CALLS,
        ge=0,
        description='maximum number of judge calls per query; with batch_size "auto", the cost of so many lists of '
        f"five passages. If all queries share a budget, the default is {DEFAULT_SHARED_MAX_CALLS}",
    )
    budget: AddedLater[SetBudget | None] = Field(
        None,
        description="budget shared by all queries, spent on the queries whose order is expected to improve most per "
        "cost. null: each query may use max_calls",
    )
    parallel: int = Field(4, ge=1, description="maximum number of batches of a query that are judged concurrently")
    floor: AddedLater[int] = Field(
        1,
        ge=1,
        le=5,
        description="minimum grade of passages that are ranked; passages below it come last, by grade and fused rank",
    )
    min_best_grade: int = Field(
        3, ge=1, le=5, description="rank a query only if a passage has at least this grade; 1: rank every query"
    )
    prompt: PromptName = Field(
        "order@1", description="prompt for ordering passages: name of a prompt or path of a Markdown file"
    )
    seed: int = Field(7, ge=0, description="random seed of the rank stage")
    options: Mapping[str, int | float | bool] = Field(
        default_factory=dict, description="options of the ranking engine, by name"
    )

    carry: AddedInputPath = Field(
        None,
        exclude_if=not_,
        description="file with orders of an earlier version of the set; written and set by raggs update only",
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_room_to_those_that_need_it(cls, values: object) -> object:
        if isinstance(values, Mapping) and values.get("budget") is not None and "max_calls" not in values:
            return {**values, "max_calls": DEFAULT_SHARED_MAX_CALLS}
        return values

    @model_validator(mode="after")
    def _options_fit(self) -> RankConfig:
        if self.batch_size == "auto" and not ranking.REGISTRY.load(self.engine).LEARNS:
            raise ValueError(
                f'engine {self.engine} cannot choose the length of lists: set batch_size to a number instead of "auto"'
            )
        if self.options:
            known = engine_options(self.engine)
            unknown = sorted(self.options.keys() - known)
            if unknown:
                raise ValueError(f"engine {self.engine} has no option {unknown[0]!r}; known: {', '.join(known)}")
            switches = engine_switches(self.engine)
            for name, value in self.options.items():
                if isinstance(value, bool) and name not in switches:
                    raise ValueError(f"options.{name}: expected a number, not true or false")
            self.ranker(("a", "b"), (1, 2), self.seed)  # raises an error for an invalid value
        return self

    @property
    def alone(self) -> RankConfig:
        """The same settings for a query that is ranked without a shared budget. If there is one, `max_calls` is reduced
        to at most its usual default.
        """
        if self.budget is None:
            return self
        return self.model_copy(update={"budget": None, "max_calls": min(DEFAULT_MAX_CALLS, self.max_calls)})

    @property
    def list_length(self) -> int:
        """Number of passages per call. With "auto", the list length that `max_calls` is based on."""
        return TYPICAL_LENGTH if self.batch_size == "auto" else self.batch_size

    def ranker(
        self,
        ids: Sequence[str],
        grades: Sequence[int],
        seed: int,
        distributions: Sequence[Sequence[float] | None] | None = None,
    ) -> Ranker:
        """Return a new ranker over a pool, with these settings. The other arguments are those of `make_ranker`.

        Raises:
            ValueError: a setting is invalid.
        """
        return make_ranker(
            self.engine,
            ids,
            grades,
            top=self.top,
            batch_size=None if self.batch_size == "auto" else self.batch_size,
            seed=seed,
            max_calls=self.max_calls,
            distributions=distributions,
            **self.options,
        )

    def course(self, pool: KeptPool) -> RankingProcess | None:
        """Return the ranking process of a pool at its start, or None for an empty pool."""
        if not pool.ids:
            return None
        found = part_pool(tuple(zip(pool.ids, pool.grades, strict=True)), self.floor, self.min_best_grade)
        ids, grades = zip(*found.ordered, strict=True)
        stated = dict(zip(pool.ids, pool.distributions, strict=True)) if pool.distributions else {}
        distributions = [stated.get(doc_id) for doc_id in ids] if stated else None
        ranker = self.ranker(ids, grades, derive_seed(self.seed, "rank", pool.qid), distributions)
        return RankingProcess(ranker, self.parallel, found, self.top)

    def state(self, pool: KeptPool, judge: object, known: Sequence[KnownOrder] = ()) -> str:
        """Return a hash of everything that determines the course of a ranking. Journal entries with another hash are
        ignored.

        Args:
            pool: the passages to rank.
            judge: everything that can change the judge's answers.
            known: orders that exist before the judge is called.
        """
        mine = {name: value for name, value in causes_of(self).items() if name not in NOT_OF_THE_COURSE}
        version = engine_version(self.engine, self.batch_size)
        parts = [pool.qid, pool.ids, pool.grades, mine, version, judge]
        parts += [[order.groups, order.sharpness, order.by] for order in known]
        parts += [{"distributions": pool.distributions}] if pool.distributions else []
        return hash_value(parts)[:16]


def engine_version(engine: str, batch_size: object) -> str:
    """Return the engine and its version for locks and journals. With batch size "auto", a second version is added."""
    edition = ranking.REGISTRY.edition(engine)
    return f"{edition} lists/{int(ranking.REGISTRY.load(engine).LEARNS)}" if batch_size == "auto" else edition
