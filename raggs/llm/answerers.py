"""Which model answered: the names that a provider states in its answers, and whether they are those of before.

A model is asked by a name that may be an alias ("gpt-5-mini"). The answer states the snapshot ("gpt-5-mini-2025-08-07")
in `model`, often a `system_fingerprint`, and from a router the provider that it chose. These names are the answerer.

Another snapshot is another name in `model`, and nothing else:

- A name that is not stated is unknown, not different. Servers that state no model never stop a run.
- A fingerprint is of the servers' configuration. OpenAI changes it for the same snapshot, also between two calls of
  one minute, so that it says nothing about the weights. It is recorded and shown, and it never stops a run.
- A router chooses its provider for each call, so that is recorded and shown, too.
- A provider that states the alias itself ("gpt-5-mini") hides its snapshots. Only a fingerprint can tell then.

Records, journals and ledgers name an answerer by `key`, a hash of its names. Equal names have equal keys in every
process, so a resumed run writes the bytes of an undisturbed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field

from raggs.base.artifacts import Frozen
from raggs.base.errors import SnapshotError
from raggs.base.hashing import hash_value
from raggs.base.secrets import mask
from raggs.base.text import one_line, sound
from raggs.base.types import as_text
from raggs.llm.prices import provider_of

KEY_LENGTH = 10  # hexadecimal digits: two of 200 answerers share a key once in 50 million runs
LONGEST_NAME = 200  # characters of a name that a server states
MOST_ANSWERERS = 200  # of a run; a server may state another fingerprint in each answer
OTHERS = "(others)"  # the fingerprint, or the model, of those beyond that


class Answerer(Frozen):
    """Who answered a call, by the names that the answer states. All but `asked` are null where none was recorded."""

    asked: str = Field(description="the model's name in the configuration")
    provider: str | None = Field(None, description="that the answer states, else that of the model's name")
    model: str | None = Field(None, description="the name in the answer; null where it states none")
    fingerprint: str | None = Field(None, description="`system_fingerprint`, where the answer states one")

    @classmethod
    def of(cls, asked: str, answer: Mapping[str, object]) -> Answerer:
        """Who gave an `answer`, which is a JSON object as it came."""
        stated = {name: _name(answer.get(field)) for name, field in FIELDS.items()}
        return cls(asked=asked, **{**stated, "provider": stated["provider"] or provider_of(asked)})

    @property
    def key(self) -> str:
        """The name in records: a hash of all names."""
        return hash_value([self.asked, self.provider, self.model, self.fingerprint])[:KEY_LENGTH]

    @property
    def recorded(self) -> bool:
        """Whether anything is known. Of an answer that an earlier version cached, nothing is."""
        return self.provider is not None

    @property
    def stated(self) -> dict[str, str]:
        """The names that are known, but for `asked`, as the cache keeps them."""
        return {name: value for name in FIELDS if (value := getattr(self, name)) is not None}


FIELDS: Mapping[str, str] = {"provider": "provider", "model": "model", "fingerprint": "system_fingerprint"}


def _name(found: object) -> str | None:
    """A name in an answer, on one line and of bounded length; None where there is none."""
    text = as_text(found)
    return mask(one_line(sound(text[: 2 * LONGEST_NAME])))[:LONGEST_NAME] or None if text else None


class Answerers:
    """All answerers of a run, by key.

    Args:
        allow_mixed: whether other snapshots than those of before may go on with the run.
    """

    def __init__(self, *, allow_mixed: bool = False) -> None:
        self._allow_mixed = allow_mixed
        self._known: dict[str, Answerer] = {}
        self._before: dict[str, set[str]] = {}  # by the model that is asked, the names of the snapshots of before

    def learn(self, answerers: Iterable[Answerer]) -> None:
        """Take those that some file names."""
        self._known.update((each.key, each) for each in answerers)

    def expect(self, answerers: Iterable[Answerer]) -> None:
        """From now on, only these snapshots may go on with the run, of each model that has any."""
        for each in answerers:
            if each.model is not None:
                self._before.setdefault(each.asked, set()).add(each.model)

    def note(self, answerer: Answerer) -> str:
        """The key of an answerer; beyond `MOST_ANSWERERS` that of all others of the same snapshot."""
        if (key := answerer.key) in self._known:
            return key
        found = self._bounded(answerer)
        self._known[found.key] = found
        return found.key

    def _bounded(self, answerer: Answerer) -> Answerer:
        if len(self._known) < MOST_ANSWERERS:
            return answerer
        asked, model = answerer.asked, answerer.model
        if any((each.asked, each.model) == (asked, model) for each in self._known.values()):
            return answerer.model_copy(update={"provider": OTHERS, "fingerprint": OTHERS})
        return Answerer(asked=asked, provider=OTHERS, model=OTHERS)

    def named(self, key: str) -> Answerer:
        """The answerer of a key; one of which nothing is known where its names are lost."""
        return self._known.get(key) or Answerer(asked="")

    def another(self, answerer: Answerer) -> bool:
        """Whether it is another snapshot than those of before, and such a one may not go on."""
        before = self._before.get(answerer.asked)
        return not self._allow_mixed and bool(before) and answerer.model not in (None, *(before or ()))

    def require(self, answerer: Answerer | None) -> None:
        """Find out whether an answer may be used.

        Raises:
            SnapshotError: it is of another snapshot than the answers of before.
        """
        if answerer is not None and self.another(answerer):
            before = " and ".join(sorted(self._before[answerer.asked]))
            raise SnapshotError(
                f"{answerer.asked} now answers as {answerer.model}, and this run was answered by {before}",
                remedy="pass --allow-mixed to go on with both, or name one as the model: then all is asked again",
            )
