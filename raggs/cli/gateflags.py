"""The options of `raggs eval` that a CI job sets: what its result must hold, and by which golden set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.base.errors import UsageError
from raggs.cli.evaltexts import INCONCLUSIVE, finite, parse_choice, parse_limit

if TYPE_CHECKING:
    from raggs.app.gating import GateRequest

FailUnder = Annotated[
    list[str] | None,
    typer.Option("--fail-under", metavar="NAME=VALUE", help="Exit with 7 when a mean is below. Repeatable."),
]
FailOn = Annotated[
    Path | None, typer.Option("--fail-on-regression", metavar="EVAL.JSON", help="Exit with 7 when it got worse.")
]
MaxDrop = Annotated[
    float, typer.Option("--max-drop", metavar="X", min=0.0, help="What a mean may lose before that is a regression.")
]
LockFile = Annotated[
    Path | None, typer.Option("--lock", metavar="FILE", help="Exit with 5 where this golden.lock means another set.")
]
AcrossSets = Annotated[
    bool,
    typer.Option("--across-sets", help="Hold it against the earlier result on other judgments too; show what differs."),
]
IfInconclusive = Annotated[
    str,
    typer.Option(
        "--if-inconclusive",
        metavar="fail|pass",
        help="Outcome of a gate that unjudged passages could reverse.",
    ),
]


@dataclass(frozen=True)
class GateFlags:
    """Conditions that the result must hold."""

    fail_under: FailUnder = None
    fail_on_regression: FailOn = None
    max_drop: MaxDrop = 0.01
    across_sets: AcrossSets = False
    lock: LockFile = None
    if_inconclusive: IfInconclusive = "fail"

    def request(self) -> GateRequest:
        """Limits, read.

        Raises:
            UsageError: a limit or the drop is not a number, or an option has no such value.
        """
        from raggs.app.gating import GateRequest

        limits = dict(parsed := [parse_limit(text) for text in self.fail_under or ()])
        if len(limits) < len(parsed):
            twice = next(name for place, (name, _) in enumerate(parsed) if name in dict(parsed[:place]))
            raise UsageError(f"--fail-under {twice} stands twice", remedy="one limit for each measure")
        if self.across_sets and self.fail_on_regression is None:
            raise UsageError("--across-sets is about an earlier result", remedy="add --fail-on-regression EVAL.JSON")
        drop = finite("--max-drop", self.max_drop)
        inconclusive = parse_choice("--if-inconclusive", self.if_inconclusive, INCONCLUSIVE)
        return GateRequest(limits, self.fail_on_regression, drop, self.across_sets, self.lock, inconclusive)
