"""What a run has cost, beside what it was expected to: from its ledger and its manifest alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raggs.runs.manifests.costs import Costs, costs
from raggs.runs.manifests.models import Estimate
from raggs.runs.manifests.opened import open_run


@dataclass(frozen=True)
class RunCost:
    """Sums over the ledger, and the dry run's lines when the latest run that could pay began."""

    spent: Costs
    estimates: tuple[Estimate, ...]

    @property
    def estimated_usd(self) -> float | None:
        """What a run without a cache was estimated to cost; None where that is not known."""
        if not self.estimates or any(line.usd is None for line in self.estimates):
            return None
        return sum(line.usd or 0.0 for line in self.estimates)

    @property
    def expected_usd(self) -> float | None:
        """What such a run was expected to cost; None where that is not known."""
        if self.estimated_usd is None:
            return None
        return sum(line.expected_usd or 0.0 for line in self.estimates)


def cost(folder: Path) -> RunCost:
    """What the run in `folder` has cost.

    Raises:
        NotFoundError, DataError: there is no run, or its manifest or ledger is damaged.
    """
    run = open_run(folder)
    return RunCost(costs(run.store), tuple(line for line in run.manifest.estimates if line.input_tokens))
