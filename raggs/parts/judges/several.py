"""What judges have in common that are made of others: a panel, a cascade.

What a member depends on, lacks, knows or has to say counts for the whole; who of them is asked, and what comes of their
answers, is for each kind to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage, Query
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes
from raggs.base.types import as_list
from raggs.parts.judges.base import Calls, Judge, JudgeContext, KnownOrder, Task, is_exact, may_abstain


class SeveralJudge(Judge):
    """A judge made of others.

    Attributes:
        members: by name, in the order of the settings.
    """

    def __init__(self, config: AdapterConfig, context: JudgeContext, specs: Sequence[AdapterConfig]) -> None:
        super().__init__(config, context)
        made = [context.judge(spec) for spec in specs]
        self.members: Mapping[str, Judge] = dict(zip(_names(made), made, strict=True))

    @classmethod
    def exact(cls, causes: Causes) -> bool:
        """See `Judge.exact`: if all members are."""
        return all(is_exact(member) for member in as_list(causes.get("judges")))

    @classmethod
    def abstains(cls, settings: Causes) -> bool:
        """See `Judge.abstains`: if all members may."""
        return all(may_abstain(member) for member in as_list(settings.get("judges")))

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model for member in self.members.values() for model in member.models)

    def calls(self, task: Task) -> Mapping[str, Calls]:
        """See `Judge.calls`: those of all members."""
        return Calls.together([member.calls(task) for member in self.members.values()])

    @property
    def alone(self) -> frozenset[str]:
        return frozenset(model for member in self.members.values() for model in member.alone)

    @property
    def reads(self) -> bool:
        return any(member.reads for member in self.members.values())

    @property
    def central(self) -> bool:
        return any(member.central for member in self.members.values())

    def check(self, queries: Iterable[Query]) -> None:
        asked = list(queries)
        for member in self.members.values():
            member.check(asked)

    @property
    def by_place(self) -> bool:
        return any(member.by_place for member in self.members.values())

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        """See `Judge.apart`; where one process answers for all, near-duplicates stay together whoever is asked."""
        return not self.central and any(member.apart(query, one, other) for member in self.members.values())

    def remarks(self) -> Iterator[str]:
        for member in self.members.values():
            yield from member.remarks()

    @property
    def told(self) -> str | None:
        found = [member.told for member in self.members.values() if member.told is not None]
        return hash_value(found) if found else None

    async def known(self, query: Query, passages: Sequence[Passage]) -> Sequence[KnownOrder]:
        """See `Judge.known`: of all members, whoever is asked, since they are facts and no answers."""
        return [order for member in self.members.values() for order in await member.known(query, passages)]


def reasons(said: Mapping[str, str | None]) -> str:
    """What each had to say, after its name; nothing of those who said nothing."""
    return "; ".join(f"{name}: {reason}" for name, reason in said.items() if reason is not None)


def _names(members: Sequence[Judge]) -> list[str]:
    """Each member's own name; of those with the same name, the later ones numbered."""
    seen: Counter[str] = Counter()
    found = []
    for member in members:
        seen[member.name] += 1
        found.append(member.name if seen[member.name] == 1 else f"{member.name} #{seen[member.name]}")
    return found
