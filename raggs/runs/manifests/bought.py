"""What a budget has bought of a run that it ended: how many queries are usable, and what they lack."""

from __future__ import annotations

from dataclasses import dataclass

from raggs.base.artifacts import artifact_file
from raggs.base.text import plural
from raggs.llm.budget import Cap
from raggs.runs.manifests.opened import OpenedRun

JUDGE, RANK = "judge", "rank"


@dataclass(frozen=True)
class Bought:
    """How far the money went.

    Attributes:
        cap: that was reached, and what was spent under it.
        queries: of the run.
        graded: how many of them are graded in full.
        ranked: how many of these have an order; None where ranking was not begun.
        short: how many of these orders would have been asked about further.
    """

    cap: Cap
    queries: int
    graded: int
    ranked: int | None
    short: int

    @property
    def json(self) -> dict[str, object]:
        """As commands print it."""
        cap = {"setting": f"budget.{self.cap.setting}", "limit": self.cap.limit, "spent": self.cap.spent}
        counts = {"queries": self.queries, "graded": self.graded, "ranked": self.ranked, "short": self.short}
        return {"cap": cap, **counts}

    @property
    def sentence(self) -> str:
        """What is done and what helps, for people."""
        return f"the budget ended ({self.cap}): {self}; what was paid is kept, and a higher cap goes on with it"

    def __str__(self) -> str:
        told = f"{self.graded:,} of {plural(self.queries, 'query')} graded in full"
        if self.ranked is None:
            return told
        return f"{told}; {self.ranked - self.short:,} ranked to the end, {self.short:,} with the answers paid for"


def bought(run: OpenedRun) -> Bought | None:
    """What the budget of a run has bought; None where it did not end, or stopped no stage that asks the judge."""
    parts = {part.stage: part for part in run.parts}
    cap = next((part.cap for part in run.parts if part.cap), None)
    first = run.manifest.stages.get(run.pipeline.order[0])
    if cap is None or first is None:
        return None
    total = first.outputs[artifact_file(first.stage)].rows
    graded = total - (len(parts[JUDGE].left) if JUDGE in parts else 0)
    rank = parts.get(RANK)
    ranked = None if rank is None else graded - len(rank.left)
    return Bought(cap, total, graded, ranked, len(rank.short) if rank else 0)
