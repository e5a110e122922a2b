"""Provenance: what made every number, in full: fingerprints, prompts, models, seeds, versions, and the command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from raggs.base.errors import RaggsError
from raggs.base.types import as_object
from raggs.base.version import __version__
from raggs.evaluation.models import Part, Report
from raggs.prompts import Prompt, PromptUse, load_prompt
from raggs.reporting.base import Facts, ReportSection
from raggs.runs.manifests.models import RunManifest, StageLock
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.store import content_hash, dump_json

# By stage: the setting that names a prompt, the component that holds its hash, and what it is for.
PROMPTS: Mapping[str, tuple[tuple[str, str, PromptUse], ...]] = {
    "judge": (("prompt", "judge", "grade"), ("group_prompt", "group", "grades")),
    "rank": (("prompt", "judge", "order"),),
}


class Named(Part):
    """A fact by its name."""

    name: str
    text: str


class PromptText(Part):
    """One language of a prompt as it is sent."""

    name: str
    language: str
    system: str
    user: str


class PromptPart(Part):
    """The prompt of a stage that asks a model."""

    stage: str
    name: str
    fault: str = Field(description="why it is not shown, or not the one that was sent; empty where it is")
    texts: tuple[PromptText, ...]


class StagePart(Part):
    """A stage's lock."""

    stage: str
    facts: tuple[Named, ...]
    components: str = Field(description="everything that the result depends on, as JSON")


class ProvenancePart(Part):
    """All of the section; `config`: the effective configuration as JSON, empty for a file of labels."""

    command: str
    facts: tuple[Named, ...]
    stages: tuple[StagePart, ...]
    prompts: tuple[PromptPart, ...]
    config: str


class Provenance(ReportSection):
    """What was each number made from, and how is it made again?"""

    NAME = "provenance"
    TITLE = "Provenance"

    def data(self, facts: Facts) -> ProvenancePart:
        """Every report has one."""
        manifest = None if facts.run is None else facts.run.manifest
        locks = {} if manifest is None else manifest.stages
        return ProvenancePart(
            command=facts.command,
            facts=tuple(_facts(facts)),
            stages=tuple(_stage(name, lock) for name, lock in locks.items()),
            prompts=tuple(_prompts(manifest)) if manifest else (),
            config=dump_json(manifest.config) if manifest else "",
        )


def _facts(facts: Facts) -> Iterator[Named]:
    yield Named(name="this file", text=f"made by raggs {__version__}")
    yield Named(name="golden set", text=facts.golden.source)
    if facts.run is not None:
        yield from _of_run(facts.run)
    if facts.report is not None:
        yield from _of_report(facts.report)
    for sweep in facts.sweeps:
        text = f"raggs {sweep.raggs}, judgments {sweep.golden.digest}, seed {sweep.seed}"
        yield Named(name=f"sweep {sweep.name}", text=text)


def _of_run(run: OpenedRun) -> Iterator[Named]:
    manifest = run.manifest
    yield Named(name="run", text=f"{manifest.name}, begun {manifest.created.isoformat()} by raggs {manifest.raggs}")
    yield Named(name="manifest", text=content_hash(run.store.content()))
    if manifest.config_file:
        yield Named(name="configuration", text=f"{manifest.config_file} (from the run directory)")
    if manifest.skipped_files:
        yield Named(name="corpus", text=manifest.skipped_files)


def _of_report(report: Report) -> Iterator[Named]:
    yield Named(name="judgments", text=report.golden.digest)
    yield Named(
        name="evaluation",
        text=f"raggs {report.raggs}, ties as {report.ties}, seed {report.seed}, {report.confidence:.0%} intervals"
        + (", condensed lists" if report.condensed else ""),
    )
    for system in report.systems:
        yield Named(name=system.name, text=system.source)


def _stage(name: str, lock: StageLock) -> StagePart:
    found = [
        Named(name="fingerprint", text=lock.fingerprint),
        Named(name="ended", text=lock.ended.isoformat()),
        *([Named(name="judge", text=lock.judge)] if lock.judge else []),
        *(Named(name=file, text=f"{each.sha256}, {each.rows:,} lines") for file, each in lock.outputs.items()),
        Named(name="versions", text=", ".join(f"{key} {value}" for key, value in lock.versions.items() if value)),
    ]
    return StagePart(stage=name, facts=tuple(found), components=dump_json(lock.components))


# --- prompts --------------------------------------------------------------------------------------------------


def _prompts(manifest: RunManifest) -> Iterator[PromptPart]:
    """Those of the stages that asked a model by one."""
    for stage, prompts in PROMPTS.items():
        lock = manifest.stages.get(stage)
        for setting, component, use in prompts:
            sent = set() if lock is None else set(_hashes(lock.components.get(component)))
            name = as_object(manifest.config.get(stage)).get(setting)
            if sent and isinstance(name, str):
                yield _prompt(stage, name, use, sent)


def _prompt(stage: str, name: str, use: PromptUse, sent: set[str]) -> PromptPart:
    try:
        found = load_prompt(name, use)
    except RaggsError as error:
        return PromptPart(stage=stage, name=name, fault=f"cannot be read here: {error.message}", texts=())
    fault = "" if found.sha256 in sent else "another text now than the one that was sent"
    return PromptPart(stage=stage, name=name, fault=fault, texts=() if fault else tuple(_texts(found)))


def _texts(prompt: Prompt) -> Iterator[PromptText]:
    for language, part in prompt.templates.items():
        yield PromptText(name=prompt.name, language=language, system=part.system, user=part.user)


def _hashes(causes: object) -> Iterator[str]:
    """The hashes of prompts among what a judge depends on; a panel's members have their own."""
    if isinstance(causes, list | tuple):
        for each in causes:
            yield from _hashes(each)
    for name, value in as_object(causes).items():
        if name == "prompt" and isinstance(value, str):
            yield value
        else:
            yield from _hashes(value)
