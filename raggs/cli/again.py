"""The command that goes on with a run: the one that was given, with all of its flags."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.inputs import near

if TYPE_CHECKING:
    from raggs.llm.budget import Cap


@dataclass(frozen=True)
class Asked:
    """The flags of `raggs run`, or of another `verb`, that say which run is meant, and what of it."""

    config: Path
    overrides: Sequence[str] = ()
    run_id: str | None = None
    start: str | None = None
    stop: str | None = None
    only: str | None = None
    verb: str = "run"

    def command(self, settings: Mapping[str, str] | None = None) -> str:
        """The same command again, with some settings given anew."""
        changed = settings or {}
        kept = [text for text in self.overrides if text.partition("=")[0].strip() not in changed]
        named = {"--run-id": self.run_id, "--from": self.start, "--to": self.stop, "--only": self.only}
        words = ["raggs", self.verb, "--config", str(self.config)]
        for flag, value in named.items():
            words += [flag, value] if value else []
        for override in (*kept, *(f"{name}={value}" for name, value in changed.items())):
            words += ["--set", override]
        return shlex.join(words)

    def going_on(self) -> str:
        """The command that does all stages of the same run."""
        return replace(self, start=None, stop=None, only=None).command()


def enough(cap: Cap, left: float | None) -> str:
    """A cap that suffices for what was spent and is left to do, in USD or calls; twice as much where nobody knows."""
    most = 2 * cap.limit if left is None else cap.spent + left
    return f"{math.ceil(100 * most) / 100 or 0.01:.2f}" if cap.money else str(math.ceil(most))


def typed(path: Path) -> str:
    """A path as it can be typed here: from the working directory on where it lies below, else as it is."""
    found = str(near(path))
    return shlex.quote(str(path) if found.startswith("-") else found)
