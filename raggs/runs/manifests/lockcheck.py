"""Does each lock say what happened? Held against its own components, the other locks, the ledger and the files.

A lock's fingerprint is the hash of its components, its inputs are the outputs of the stages before it, its parameters
are those of its components and of the configuration. Failures and the judge's health are counted again by the
records, the cost by the lines of the ledger that were booked while the stage ran. Numbers are compared exactly; money
to the digits that the ledger keeps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from raggs.base.artifacts import artifact_file
from raggs.base.frozen import Frozen
from raggs.base.hashing import hash_value
from raggs.base.health import JudgeHealth
from raggs.base.settings import Settings, causes_of
from raggs.base.spending import Spending
from raggs.base.text import shorten
from raggs.llm.ledger import LedgerLine
from raggs.runs.manifests.filecheck import Tally, artifacts_of
from raggs.runs.manifests.findings import MANIFEST, Finding
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.outdated import outdated
from raggs.runs.manifests.params import parameters
from raggs.runs.manifests.reasons import differences
from raggs.stages.base import AnyStage

TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens")
COUNTED = ("calls", "cached", *TOKENS, "usd", "discount_usd", "saved_usd", "own_usd")  # `repaired` is in no ledger
USD = 1e-9  # relative and absolute: lines keep twelve digits after the point
HASH = re.compile(r"[0-9a-f]{64}")


def lock_findings(run: OpenedRun, name: str, lock: StageLock) -> Iterator[Finding]:
    """What contradicts a lock without a look into the files."""
    if lock.stage != name:
        yield _said(name, f"its lock is of stage {lock.stage!r}")
    if lock.fingerprint != hash_value(lock.components):
        yield _said(name, "the fingerprint is not the hash of its components")
    if lock.components.get("inputs", {}) != lock.inputs:
        yield _said(name, "its components name other inputs than its lock")
    for file, expected in lock.inputs.items():
        written = next((other.outputs[file] for other in run.manifest.stages.values() if file in other.outputs), None)
        if written is None or written.sha256 != expected:
            yield Finding(MANIFEST, None, f"stage {name} was made from another {file} than the one here")
    if lock.ended < lock.started:
        yield _said(name, f"it ended ({lock.ended}) before it started ({lock.started})")
    yield from _outputs(run, name, lock)


def agreement(run: OpenedRun, lock: StageLock, config: Settings) -> Iterator[Finding]:
    """How a stage's parameters differ from its components, and from the configuration of the run."""
    stage: AnyStage = run.pipeline.stage(lock.stage)
    causes = causes_of(config)
    for told in _differences(lock.components.get("config"), causes):
        yield _said(lock.stage, f"its components and its parameters differ: {told}")
    section = run.manifest.config.get(lock.stage)
    if not isinstance(section, Mapping):
        if lock.booked is not None:
            yield Finding(MANIFEST, None, f"config says nothing of stage {lock.stage}")
        return
    for told in _differences(causes, causes_of(parameters(stage.Config, lock.stage, section))):
        yield Finding(MANIFEST, None, f"config.{lock.stage} is not what the stage ran with: {told}")


def answerers(stage: AnyStage, lock: StageLock, tally: Tally) -> Iterator[Finding]:
    """Who answered by the records, against the table of the lock; for files that can be believed."""
    for key, each in lock.answerers.items():
        if each.asked and key != each.key:
            yield _said(lock.stage, f"answerer {key} is not the hash of its names")
    if not stage.names_answerers:
        return
    for key in sorted(tally.answered.keys() | lock.answerers.keys()):
        told = lock.answerers[key].answers if key in lock.answerers else 0
        if told != (found := tally.answered[key]):
            yield _said(lock.stage, f"{found:,} records name the answerer {key}, its lock says {told:,}")


def tallied(lock: StageLock, tally: Tally) -> Iterator[Finding]:
    """What the records say of the stage against what its lock says; for files that can be believed."""
    if lock.failed != tally.failed:
        yield _said(lock.stage, f"failed is {lock.failed}, its records have {tally.failed} failures")
    if outdated(lock) is None and lock.booked is not None:
        told = lock.health
        if isinstance(told, JudgeHealth):
            tally.statistics.probed, tally.statistics.people = told.canaries, told.people  # no record tells of them
            tally.statistics.noise = told.noise
        found = tally.statistics.health()
        if _figures(found) != _figures(told):
            changes = [str(each) for each in differences(_figures(told), _figures(found))]
            yield _said(lock.stage, f"health is not what its records say: {shorten('; '.join(changes), 160)}")
        if (counted := dict(tally.statistics.counts())) != dict(lock.counts):
            changes = [str(each) for each in differences(dict(lock.counts), counted)]
            yield _said(lock.stage, f"counts are not what its records say: {shorten('; '.join(changes), 160)}")
    if lock.judge is not None and (others := sorted(name for name in tally.judges if not _asked(name, lock.judge))):
        yield _said(lock.stage, f"{lock.judge!r} was asked, its records name {others[0]!r}")


def cost(lock: StageLock, lines: Mapping[int, LedgerLine]) -> Iterator[Finding]:
    """A lock's cost against the ledger.

    Args:
        lines: of the ledger, by the byte at which each begins.
    """
    if lock.booked is None:
        return
    start, end = lock.booked
    found = sum((line.spent for at, line in lines.items() if start <= at < end), Spending())
    for name in COUNTED:
        told, booked = getattr(lock.cost, name), getattr(found, name)
        if not math.isclose(told, booked, rel_tol=USD, abs_tol=USD):
            yield _said(lock.stage, f"cost.{name} is {told:,}, the calls in llm.ledger.jsonl sum to {booked:,}")
    if not 0 <= lock.cost.repaired <= max(lock.cost.calls, 0):
        yield _said(lock.stage, f"cost.repaired is {lock.cost.repaired:,} of {lock.cost.calls:,} calls")


def _outputs(run: OpenedRun, name: str, lock: StageLock) -> Iterator[Finding]:
    expected = {artifact_file(artifact) for artifact in artifacts_of(run.pipeline.stage(name))}
    for file in sorted(lock.outputs.keys() - expected):
        yield _said(name, f"it does not write {file!r}")
    if lock.booked is not None and outdated(lock) is None:
        for file in sorted(expected - lock.outputs.keys()):
            yield Finding(file, None, f"stage {name} writes it, and its lock does not name it")


def _differences(old: object, new: object) -> list[str]:
    """How two configurations differ, apart from hashes of input files, which need not be here."""
    found = differences(old, new, "")
    return [str(each) for each in found if not (_is_hash(each.old) or _is_hash(each.new))]


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and HASH.fullmatch(value) is not None


def _asked(name: str, judge: str) -> bool:
    """Whether who gave a grade was among those who were asked: a member of a panel, a person of the judge `human`."""
    return name == judge or name.split(": ")[0] in judge


def _figures(health: Frozen | None) -> object:
    """Health in plain values, without its sentences, which another version may word otherwise."""
    return _unworded(None if health is None else health.model_dump(mode="json"))


def _unworded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _unworded(each) for name, each in value.items() if name != "warnings"}
    return [_unworded(each) for each in value] if isinstance(value, list) else value


def _said(stage: str, message: str) -> Finding:
    return Finding(MANIFEST, None, f"stage {stage}: {message}")
