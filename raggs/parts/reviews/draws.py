"""draws.jsonl beside reviews.jsonl: which items chance chose to be read, and with which probabilities.

A line is a whole draw, so that it is known whether it was read to its end, and what somebody had read before counts
where chance hits it. Draws by one seed grow: the latest holds the earlier ones, and its chances are those of all of it.
Lines are added, never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from raggs.base.atomic import disk
from raggs.base.errors import BusyError
from raggs.base.frozen import Frozen
from raggs.base.jsonl import Appender, read_torn
from raggs.parts.reviews.models import Digest, Key
from raggs.parts.reviews.store import LOCK, PATIENCE

FILE = "draws.jsonl"
REMEDY = "nobody but raggs should write here; delete the line, or bring the file back from a copy"

Unit = Literal["passage", "question"]


class DrawnItem(Frozen):
    """A passage that chance chose, for its question."""

    query: Digest = Field(description="digest of the question's text")
    passage: Digest = Field(description="digest of the passage's title and text")
    chance: float = Field(gt=0, le=1, description="probability with which it was drawn")

    @property
    def key(self) -> Key:
        """What its reviews are filed under."""
        return self.query, self.passage


class Draw(Frozen):
    """All that chance chose at once."""

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line's form")
    unit: Unit = Field(description="what was drawn: passages, or questions with all their passages")
    seed: int = Field(description="of the numbers by which it was drawn")
    items: tuple[DrawnItem, ...] = Field(min_length=1, description="questions in the order of their numbers")


@dataclass(frozen=True)
class Finished:
    """What of a draw was read to its end.

    Attributes:
        chance: by item.
        unread: how many items of the draw nobody has read; what was begun after the first of them does not count.
        among: how many items it was drawn from; each that was drawn stands for one over its chance.
    """

    chance: dict[Key, float]
    unread: int
    among: int = 0


def read_draws(folder: Path) -> list[Draw]:
    """All draws, oldest first; none where there was none.

    Raises:
        DataError: a line cannot be right; names it.
    """
    return list(read_torn(folder / FILE, Draw, REMEDY))


def note_draw(folder: Path, draw: Draw) -> None:
    """Add a draw, unless it is the last one.

    Raises:
        ProviderError: the disk refuses, or the folder is read-only.
        BusyError: another process has held the folder for 10 s.
    """
    from filelock import FileLock, Timeout  # late: from then on it listens to all that is opened; readers lock nothing

    with disk(folder, "name a folder that can be written: --reviews DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / LOCK, timeout=PATIENCE):
                if read_draws(folder)[-1:] != [draw]:
                    with Appender(folder / FILE) as file:
                        file.append(draw)
                        file.sync()
        except Timeout as error:
            raise BusyError("another process holds the reviews", where=folder, remedy="try again") from error


def finished(draw: Draw, present: Collection[Key], read: Collection[Key]) -> Finished:
    """What of a draw can be counted: all of it once it is read; of questions, those before the first that is not.

    The questions of a draw stand in the order of the numbers that drew them: the first ones are a smaller draw.

    Args:
        present: items of the pools; others have gone, or their text is another one now.
        read: items on which somebody said something.
    """
    items = [item for item in draw.items if item.key in present]
    unread = [item for item in items if item.key not in read]
    if not unread:
        among = round(sum(1 / item.chance for item in draw.items))
        return Finished({item.key: item.chance for item in items}, 0, among)
    if draw.unit == "passage":
        return Finished({}, len(unread))
    order = list(dict.fromkeys(item.query for item in items))
    open_ = {item.query for item in unread}
    first = next(place for place, query in enumerate(order) if query in open_)
    whole = set(order[:first])
    share = first / len(order)
    return Finished({item.key: item.chance * share for item in items if item.query in whole}, len(unread))


def latest(
    draws: Sequence[Draw], unit: Unit, present: Collection[Key], read: Collection[Key]
) -> tuple[Finished | None, int]:
    """What counts of the draws of a kind, and how many items of the latest are unread.

    The latest of which all was read counts; of questions, the one with the most that were read whole.
    """
    mine = [draw for draw in draws if draw.unit == unit and any(item.key in present for item in draw.items)]
    found = [finished(draw, present, read) for draw in reversed(mine)]
    counting = [each for each in found if each.chance]
    best = max(counting, key=lambda each: len(each.chance) if unit == "question" else 0, default=None)
    return best, found[0].unread if found else 0


def ever_drawn(draws: Sequence[Draw], present: Collection[Key], read: Collection[Key]) -> set[Key]:
    """Every item of draws that were read to their end; of one that was not, what was read before would be too many."""
    return {key for draw in draws for key in finished(draw, present, read).chance}
