"""Whether a run's judge is as good as the run asked for: `judge.gate` against the health in the locks.

Read off the manifest alone, so that status, exports and evaluations say the same. What could not be looked at has
failed: a gate is never passed over. A judge that answers by rule has no errors to be held to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from raggs.base.judge_health import FALLEN as FALLEN
from raggs.base.judge_health import JudgeHealth, RankHealth
from raggs.base.text import plural
from raggs.base.types import as_object
from raggs.parts.judges.base import is_exact
from raggs.runs.manifests.models import RunManifest

OWN = "where people decide it is not asked: keep words apart for it by judge.gate.reviews"


def fallen(manifest: RunManifest) -> tuple[str, ...]:
    """A clause for each figure of the judge that is beyond its limit; none of stages that have not run."""
    section = as_object(manifest.config.get("judge"))
    limits = {
        name: float(limit) for name, limit in as_object(section.get("gate")).items() if isinstance(limit, int | float)
    }
    found = (*_judge(manifest, limits), *_people(manifest, limits), *_rank(manifest, limits)) if limits else ()
    return tuple(found)


def _judge(manifest: RunManifest, limits: Mapping[str, float]) -> Iterator[str]:
    lock, least = manifest.stages.get("judge"), limits.get("canaries")
    if lock is None or least is None or is_exact(lock.components.get("judge")):
        return
    asked = lock.health.canaries if isinstance(lock.health, JudgeHealth) else None
    rate = None if asked is None else asked.passed.rate
    if rate is None:
        yield "no canary was asked, though a share of them is to be as expected"
    elif rate < least:
        yield f"{rate:.0%} of the canaries are as expected, less than the {least:.0%} asked for"


def _people(manifest: RunManifest, limits: Mapping[str, float]) -> Iterator[str]:
    """Also of a judge that answers by rule: people may think otherwise. The value is held to the limit."""
    lock, least = manifest.stages.get("judge"), limits.get("kappa")
    if lock is None or least is None:
        return
    from raggs.stats.agreement.labels import FEWEST_CASES, FEWEST_CLUSTERS  # late: few runs have such a gate

    found = lock.health.people if isinstance(lock.health, JudgeHealth) else None
    if found is None:
        yield "its grades were not held against people's yet"
    elif found.grades < FEWEST_CASES or found.questions < FEWEST_CLUSTERS:
        compared = f"{plural(found.grades, 'grade')} of {plural(found.questions, 'question')}"
        own = f" ({OWN})" if found.by_people and not found.grades else ""
        yield (
            f"only {compared} can be held against people's{own}: kappa is believed from {FEWEST_CASES} of "
            f"{FEWEST_CLUSTERS} questions on"
        )
    elif found.kappa is None:
        yield "kappa with people is not defined, since all gave one and the same grade"
    elif found.kappa < least:
        of = plural(found.grades, "grade")
        yield f"kappa with people is {found.kappa:.2f} ({of}), less than the {least:g} asked for"


def _rank(manifest: RunManifest, limits: Mapping[str, float]) -> Iterator[str]:
    lock = manifest.stages.get("rank")
    if lock is None or not isinstance(lock.health, RankHealth) or is_exact(lock.components.get("judge")):
        return
    flips, bias = lock.health.flips.rate, lock.health.position_bias
    if (most := limits.get("flips")) is not None:
        if flips is None:
            yield "no pair was shown twice, so that flips are not known"
        elif flips > most:
            yield f"{flips:.0%} of the pairs flip, more than the {most:.0%} allowed"
    if (most := limits.get("position_bias")) is not None:
        if bias is None:
            yield "the engine does not estimate the position bias"
        elif abs(bias) > most:
            yield f"the position bias is {abs(bias):.2f} grades, more than the {most:g} allowed"
