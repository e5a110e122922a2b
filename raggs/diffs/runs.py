"""Two runs' configurations, setting by setting, with what the stages made of them and what each cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from raggs.diffs.models import MadePart, SettingPart
from raggs.diffs.settings import by_name, made, settings
from raggs.frozen import Frozen
from raggs.manifests.costs import Costs, LedgerSum
from raggs.manifests.models import RunManifest
from raggs.manifests.reasons import differences
from raggs.version import __version__

INPUTS = ("corpus", "queries")  # sections of a configuration that count by what they read


class RunSetting(SettingPart):
    """A setting that differs."""

    counts: bool = Field(description="whether results depend on it; of a file, whether its content differs")


class SpentPart(Frozen):
    """What a stage, or all of them, cost over all invocations."""

    calls: int
    usd: float


class StagePart(Frozen):
    """One stage of both runs."""

    stage: str
    result: Literal["same", "other", "one only"] = Field(description="whether both wrote the same bytes")
    reasons: tuple[str, ...] = Field(description="what its results were made from that differs, as sentences")
    first: SpentPart
    second: SpentPart


class RunsReport(Frozen):
    """compare.json: two runs."""

    v: Literal[1] = 1
    raggs: str = __version__
    first: str = Field(description="the run directory")
    second: str
    settings: tuple[RunSetting, ...]
    made: tuple[MadePart, ...] = Field(description="what else results were made from: code, prompts, models, corpus")
    stages: tuple[StagePart, ...]
    total: tuple[SpentPart, SpentPart]


def runs_report(
    places: tuple[str, str], manifests: tuple[RunManifest, RunManifest], spent: tuple[Costs, Costs]
) -> RunsReport:
    """Compare two runs of one pipeline by what their manifests and ledgers say."""
    one, two = manifests
    told = settings(one, two)
    counting = set(_counting(one, two))
    stages = dict.fromkeys([*one.stages, *two.stages])
    return RunsReport(
        first=places[0],
        second=places[1],
        settings=tuple(RunSetting(**part.__dict__, counts=_counts(part.name, counting)) for part in told),
        made=made(one, two, told),
        stages=tuple(_stage(name, manifests, spent) for name in stages),
        total=(_spent(spent[0].total), _spent(spent[1].total)),
    )


def _counting(one: RunManifest, two: RunManifest) -> Iterator[str]:
    """The places of settings that some stage's result depends on, and the sections whose content differs."""
    for stage in one.stages.keys() & two.stages.keys():
        first, second = (side.stages[stage].components for side in (one, two))
        found = [each.component for each in differences(by_name(first.get("config")), by_name(second.get("config")))]
        yield from (f"{stage}.{name}" if name else stage for name in found)
        yield from (name for name in INPUTS if first.get(name) != second.get(name))


def _counts(name: str, counting: set[str]) -> bool:
    """Whether a setting, or what holds it, is among those that count."""
    parts = name.split(".")
    return any(".".join(parts[:count]) in counting for count in range(1, len(parts) + 1))


def _stage(name: str, manifests: tuple[RunManifest, RunManifest], spent: tuple[Costs, Costs]) -> StagePart:
    one, two = (side.stages.get(name) for side in manifests)
    costs = [_spent(side.stage.get(name, LedgerSum())) for side in spent]
    if one is None or two is None:
        return StagePart(stage=name, result="one only", reasons=(), first=costs[0], second=costs[1])
    alike = {file: out.sha256 for file, out in one.outputs.items()} == {f: out.sha256 for f, out in two.outputs.items()}
    return StagePart(
        stage=name,
        result="same" if alike else "other",
        reasons=tuple(_reasons(one.components, two.components)),
        first=costs[0],
        second=costs[1],
    )


def _reasons(one: Mapping[str, object], two: Mapping[str, object]) -> Iterator[str]:
    """Each difference once: adapters repeat their settings among what they depend on."""
    told: set[tuple[str, str, str]] = set()
    for found in differences(by_name(one), by_name(two)):
        sign = found.component.rpartition(".")[2], repr(found.old), repr(found.new)
        if sign not in told:
            yield str(found)
        told.add(sign)


def _spent(found: LedgerSum) -> SpentPart:
    return SpentPart(calls=found.calls, usd=found.usd)
