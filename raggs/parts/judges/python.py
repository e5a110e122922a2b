"""Python functions as a judge: rules, a model of one's own, or somebody else's service.

    def grade(query: str, passage: str) -> int: ...                    # 1 to 5
    def order(query: str, passages: list[str]) -> list[int]: ...       # optional: positions, best first

Either may be a coroutine function; then many are asked at once. A passage is its title and text. Without `order`
passages go by their grades, equal ones by a hash of their content that no order of showing can bend. A function that
raises or gives anything else has failed on that passage or batch: the answer says so and holds no grade and no order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Literal, SupportsIndex

from pydantic import Field

from raggs.base.adapter import CallableConfig, Target, UserFunction
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Passage, Query
from raggs.base.errors import ProviderError
from raggs.base.hashing import hash_bytes
from raggs.base.settings import Causes
from raggs.base.text import shorten
from raggs.parts.judges.base import Judge, JudgeContext, Judgment, Ordering, Task


class PythonJudge(Judge):
    """Python functions of yours: grade(query, passage) gives 1 to 5; order(query, passages) is optional."""

    class Config(CallableConfig):
        type: Literal["python"] = "python"
        order: Target | None = Field(None, description='"module:function" that orders; null: by the grades')

    config: Config

    def __init__(self, config: Config, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._grade = UserFunction(config.callable, config.folder)
        self._order = None if config.order is None else UserFunction(config.order, config.folder)

    @property
    def name(self) -> str:
        return f"python {self.config.callable}"

    @property
    def reads(self) -> bool:
        return True

    def causes(self, task: Task) -> Causes:
        function = self._order if task == "order" and self._order is not None else self._grade
        found = {**self.own_causes(), **function.causes()}
        return found if task == "order" else {key: value for key, value in found.items() if key != "order"}

    def check(self, queries: Iterable[Query]) -> None:
        """Find the functions."""
        for function in (self._grade, self._order):
            if function is not None:
                function.load()

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        about = f"query {query.qid}, passage {passage.doc_id}"
        try:
            grade = await self._grade.ask(about, query.text, passage.content)
        except ProviderError as error:
            return Judgment(None, error=error.message)
        whole = _whole(grade)
        if whole is None or not MIN_GRADE <= whole <= MAX_GRADE:
            said = shorten(repr(grade), 60)
            problem = f"gave {said} on {about}, not a whole number from {MIN_GRADE} to {MAX_GRADE}"
            return Judgment(None, error=f"{self.config.callable} {problem}", raw=said)
        return Judgment(whole)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        if self._order is None:
            return await self._by_grades(query, passages)
        about = f"query {query.qid}, passages {', '.join(passage.doc_id for passage in passages)}"
        try:
            found = await self._order.ask(about, query.text, [passage.content for passage in passages])
        except ProviderError as error:
            return Ordering(None, error=error.message)
        order = [_whole(place) for place in found] if isinstance(found, Iterable) else []
        places = tuple(place for place in order if place is not None)
        if len(order) != len(places) or sorted(places) != list(range(len(passages))):
            said = shorten(repr(found), 60)
            problem = f"gave {said} on {about}, not each position from 0 to {len(passages) - 1} once"
            return Ordering(None, error=f"{self._order.target} {problem}", raw=said)
        return Ordering(places)

    async def _by_grades(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        grades: list[int] = []
        for passage in passages:
            judgment = await self.grade(query, passage)
            if judgment.grade is None:
                return Ordering(None, error=judgment.error, raw=judgment.raw)
            grades.append(judgment.grade)

        def key(place: int) -> tuple[int, str, str]:
            return -grades[place], hash_bytes(passages[place].content.encode()), passages[place].doc_id

        return Ordering(tuple(sorted(range(len(passages)), key=key)))


def _whole(value: object) -> int | None:
    """The whole number that `value` is, NumPy's among them; None where it is none."""
    return None if isinstance(value, bool) or not isinstance(value, SupportsIndex) else index(value)
