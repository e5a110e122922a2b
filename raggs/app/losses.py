"""Paid results that a run would replace, because a setting of who is asked, or how, is another one now.

What was asked before stays cached, so nothing is lost for good; but the same questions would be paid for again. Not
meant are retries, more questions, deeper pools or more samples, which keep what they can use (see also
`raggs.app.regrouped`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raggs.base.health import PEOPLE
from raggs.base.jsontypes import as_list, as_object
from raggs.runs.manifests.reasons import Changed
from raggs.runs.pipeline.plan import Selection
from raggs.runs.pipeline.runner import Runner

COURSE = ("engine", "batch_size", "parallel", "seed", "options")  # settings on which each batch of a ranking depends
# What of a stage's causes decides what its judge is asked, by the beginning of its name.
ASKING: Mapping[str, tuple[str, ...]] = {
    "judge": ("judge", "config.judge", "config.group"),
    "rank": (
        "judge",
        "engine",
        *(f"config.{name}" for name in COURSE),
    ),
}


PANEL = ("type", "rule", "weights", "version", "ask_all")  # what a panel of people and a judge adds to that judge
HUMAN_FIRST = ("human_first", "judge")  # settings that put people first


@dataclass(frozen=True)
class Loss:
    """Results of a stage that would be replaced: why, and what they have cost in USD, cached answers included."""

    stage: str
    reason: Changed
    usd: float

    def __str__(self) -> str:
        paid = f"{self.usd:.4f} USD"
        return f"{self.stage} would run again ({self.reason}), and replace results for which {paid} were paid"


def _machine(components: Mapping[str, object]) -> object:
    """Return what of a stage's components decides what its judge is asked, without people who come before it."""
    judge = dict(as_object(components.get("judge")))
    members = as_list(judge.pop("judges", None))
    if judge.get("type") == "panel" and len(members) == 2 and as_object(members[0]).get("type") == PEOPLE:
        rest = {name: value for name, value in judge.items() if name not in PANEL}
        judge = {**as_object(members[1]), **rest}
    elif members:
        judge["judges"] = members
    config = {name: value for name, value in as_object(components.get("config")).items() if name not in HUMAN_FIRST}
    return {**components, "judge": judge, "config": config, "inputs": None}


def losses(runner: Runner, selection: Selection) -> list[Loss]:
    """Paid results that the selected stages would replace. Touches nothing."""
    locks = runner.store.manifest().stages if runner.store.exists else {}
    found = []
    for name, beginnings in ASKING.items():
        lock = locks.get(name)
        if lock is None or name not in selection.stages or not (usd := lock.cost.usd + lock.cost.saved_usd):
            continue
        stage = runner.pipeline.stage(name)
        if _machine(lock.components) == _machine(runner.components(stage)):
            continue  # human labels come first, or no longer: what the model is asked is the same
        reasons = runner.standing.reasons(stage, lock)
        changed = (reason for reason in reasons if isinstance(reason, Changed))
        if why := next((reason for reason in changed if reason.component.startswith(beginnings)), None):
            found.append(Loss(name, why, usd))
    return found
