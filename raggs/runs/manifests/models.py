"""Models of a run's manifest: the stages, their inputs, results and cost.

`manifest.json` has one lock for each finished stage. A lock lists everything that the stage's result depends on
(`components`), so raggs can name each change. It also contains the hash of every file that the stage wrote, so manual
edits are detected. A lock contains no API keys, and no texts of queries or passages.

The files of a run may have been edited, so parameters may be invalid and records inconsistent. Stages and lower layers
do not check their inputs again. If these are inconsistent, they raise `ValueError` or `KeyError`.
`misfits_as_data_errors` turns these into readable errors.

An `AuditFinding` is one finding of an audit. It names the file and, if known, the line.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import not_
from typing import Any, Final, Literal, TypeVar

from pydantic import Field, ValidationError

from raggs.base import __version__
from raggs.base.artifacts import Frozen, Spending
from raggs.base.errors import DataError, RaggsError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import first_fault
from raggs.base.judge_health import Health
from raggs.base.registry import installed
from raggs.base.settings import Settings
from raggs.base.text import plural
from raggs.llm.messages import Answerer
from raggs.runs.manifests.lineage import Lineage, VersionName, version_of

SCHEMA: Final = 1
MAX_LISTED_FILES = 10  # maximum number of unreadable files whose names are stored in a manifest
STATED_PACKAGES = ("numpy", "pydantic", "litellm", "bm25s", "wordllama", "networkx")


class StageOutput(Frozen):
    """One file that a stage wrote."""

    sha256: str
    rows: int = Field(ge=0)
    bytes: int = Field(ge=0)


class LockedAnswerer(Answerer):
    """A model that answered for a stage, identified by the names in its answers."""

    answers: int = Field(
        ge=0,
        description="number of records that name the model, or of its answers if the records name no models",
    )

    @property
    def answerer(self) -> Answerer:
        """The model, without the number of its answers."""
        return Answerer(**self.model_dump(exclude={"answers"}))


def snapshots(answerers: Iterable[LockedAnswerer]) -> dict[str, dict[str, int]]:
    """Return, for each requested model, the number of answers by the model name that they state. Answers without a
    model name are not counted.
    """
    found: dict[str, dict[str, int]] = {}
    for each in answerers:
        if each.model is not None:
            names = found.setdefault(each.asked, {})
            names[each.model] = names.get(each.model, 0) + each.answers
    return found


class RetrieverCeiling(Frozen):
    """Score of a retriever's list, or of the fused list, by the run's grades, and the best score that reordering could
    reach. Null if unknown.
    """

    measure: str = Field(description="name of the measure, with its cutoff")
    pool: int = Field(ge=1, description="number of passages at the top of the list that may be reordered")
    score: float | None = Field(description="mean score of the list over queries")
    proc: float | None = Field(
        description="pool-restricted oracle ceiling (PROC): score of the best order of the candidates"
    )
    pct_proc: float | None = Field(description="%PROC: mean score divided by mean PROC")


class StageLock(Frozen):
    """Lock of a finished stage: everything that its result depends on, and everything that the stage wrote."""

    stage: str
    fingerprint: str = Field(description="hash of `components`")
    components: Mapping[str, Any] = Field(description="everything that the result depends on, by name")
    params: Mapping[str, Any] = Field(description="the stage's complete configuration")
    inputs: Mapping[str, str] = Field(description="sha256 of each artifact that the stage read")
    outputs: Mapping[str, StageOutput] = Field(description="each file that the stage wrote")
    failed: int = Field(0, ge=0, description="number of records without a result because the judge failed")
    judge: str | None = Field(
        None, description="name of the judge that was called, as in the records; null if no judge was called"
    )
    cost: Spending = Field(Spending(), description="cost of the attempt that finished the stage")
    health: Health | None = Field(
        None,
        description="health of the judge: statistics of its grades (judge stage) or orders (rank stage)",
    )
    counts: Mapping[str, int] = Field(
        default_factory=dict,
        exclude_if=not_,
        description="counts of the stage, for example of queries that were searched deeper",
    )
    started: datetime
    ended: datetime
    versions: Mapping[str, str | None] = Field(default_factory=dict)
    booked: tuple[int, int] | None = Field(
        None,
        description="start and end byte of the lines in llm.ledger.jsonl that record the calls behind `cost`",
    )
    answerers: Mapping[str, LockedAnswerer] = Field(
        default_factory=dict, exclude_if=not_, description="models that answered, with the same keys as in the records"
    )
    ceilings: Mapping[str, tuple[RetrieverCeiling, ...]] = Field(
        default_factory=dict,
        exclude_if=not_,
        description="for the judge stage: PROC and %PROC by retriever and for their fusion",
    )
    chain: str | None = Field(
        None,
        description="hash of this lock and of the previous lock's chain, so that earlier changes are detected, too",
    )


def _is_none(value: object) -> bool:
    return value is None


class CostEstimate(Frozen):
    """Dry-run estimate for one model in one stage."""

    stage: str
    calls: int = Field(description="number of new calls; cached calls and requests for corrections are not included")
    cached: int = Field(0, description="number of calls whose answers are already cached, as far as raggs has checked")
    input_tokens: int
    output_tokens: int = Field(description="number of output tokens, including `hidden_tokens`")
    hidden_tokens: int = Field(0, description="assumed number of hidden reasoning tokens")
    repairs: int = Field(0, description="maximum number of requests for a correction per answer")
    usd: float | None = Field(
        description="maximum cost in USD without corrections; null if the model's price is unknown, 0 if it is free"
    )
    discount_usd: float = Field(
        0.0,
        exclude_if=not_,
        description="expected saving in USD through prompt caching by the provider",
    )
    likely_usd: float | None = Field(
        None,
        exclude_if=_is_none,
        description="expected cost in USD, at most `usd`; see docs/how-to/cut-cost.md for the method",
    )
    exact: bool = Field(description="true if the number of calls is exact, false if it is an upper bound")
    least: int | None = Field(
        None,
        exclude_if=_is_none,
        description="minimum number of calls, if this model is called only for passages that another model passes on, "
        "or again only for uncertain grades",
    )
    expected: int | None = Field(
        None,
        exclude_if=_is_none,
        description="expected number of calls if `least` is set, from the share that the last run in this directory "
        "measured; null if there was none",
    )
    again: bool = Field(
        False,
        exclude_if=not_,
        description="whether `least` is below `calls` only because just uncertain grades get further samples",
    )
    who: str = Field(description="name of the model, or of the judge if that calls no model")
    anew: str = Field("", exclude_if=not_, description="which results of the last run must be requested again, and why")

    def usd_for(self, calls: int) -> float | None:
        """Return the cost of `calls` calls of this model in USD, or None if its price is unknown."""
        return None if self.usd is None else self.usd * calls / max(1, self.calls)

    @property
    def expected_usd(self) -> float | None:
        """Expected cost in USD: `likely_usd` if it is known, otherwise `usd`."""
        return self.usd if self.likely_usd is None else self.likely_usd

    @property
    def usd_at_most(self) -> float | None:
        """Cost in USD if every answer needs the maximum number of corrections."""
        return None if self.usd is None else self.usd * (1 + self.repairs)


def total(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs in USD, or None if one of them is unknown."""
    known = list(costs)
    return None if None in known else sum(usd or 0.0 for usd in known)


class LedgerMark(Frozen):
    """Length of the ledger when the manifest was written, and the hash of its content at that time."""

    rows: int = Field(0, ge=0)
    bytes: int = Field(0, ge=0)
    sha256: str = hashlib.sha256().hexdigest()


class ManifestSeal(Frozen):
    """Hashes of the manifest's content. They detect edits, but not forgery."""

    head: str = Field(description="hash of the manifest's version, name, pipeline and creation time")
    config: str = Field(description="hash of `config` and `config_file`")
    estimates: str = Field(description="hash of `estimates`")
    ledger: LedgerMark = Field(description="length and hash of llm.ledger.jsonl")
    sha256: str = Field(description="hash of the whole manifest except this field")


class UnreadableFiles(Frozen):
    """Files of a corpus that were skipped because they could not be read."""

    count: int = Field(ge=1)
    files: tuple[str, ...] = Field(description="names of the first of these files")
    sha256: str = Field(description="hash of the names of all these files")

    @classmethod
    def of(cls, names: Sequence[str]) -> UnreadableFiles:
        """Return the count, the first names and the hash of these file names."""
        return cls(count=len(names), files=tuple(names[:MAX_LISTED_FILES]), sha256=hash_value(list(names)))

    def __str__(self) -> str:
        more = f", and {self.count - len(self.files):,} more" if self.count > len(self.files) else ""
        return f"{plural(self.count, 'unreadable file')} of the corpus skipped: {', '.join(self.files)}{more}"


class RunManifest(Frozen):
    """manifest.json: the run and its locks."""

    schema_version: Literal[1] = SCHEMA
    name: str
    pipeline: str = Field("golden", description="pipeline of the run")
    created: datetime
    raggs: str = __version__
    config_file: str | None = Field(
        None,
        description="path of the YAML file, relative to the run directory; used in suggested commands",
    )
    config: Mapping[str, Any] = Field(
        description="complete configuration of the latest invocation that changed something, without secrets"
    )
    estimates: tuple[CostEstimate, ...] = Field(
        (), description="cost estimates, made at the start of the latest invocation that could spend money"
    )
    stages: Mapping[str, StageLock] = Field(default_factory=dict)
    lineage: Lineage | None = Field(
        None, exclude_if=not_, description="earlier version that the set was updated from; missing for a first version"
    )
    seal: ManifestSeal | None = Field(None, description="seal of the manifest; null if an older raggs wrote it")

    @property
    def version(self) -> str:
        """Version of the golden set: a hash of its content and of its lineage (see `raggs.runs.manifests.lineage`)."""
        locks = self.stages.values()
        outputs = {file: output.sha256 for lock in locks for file, output in lock.outputs.items()}
        return version_of(outputs, self.lineage)

    @property
    def version_name(self) -> VersionName | None:
        """Name of the version for reports; None for a first version."""
        return None if self.lineage is None else VersionName.of(self.version, self.lineage)

    @property
    def unreadable(self) -> UnreadableFiles | None:
        """The files of the corpus that the retrieve stage skipped because they could not be read."""
        lock = self.stages.get("retrieve")
        found = None if lock is None else lock.components.get("unreadable")
        return UnreadableFiles.model_validate(found) if isinstance(found, Mapping) else None

    @property
    def skipped_files(self) -> str:
        """A sentence about the unreadable files of the corpus; empty if there are none."""
        return "" if self.unreadable is None else str(self.unreadable)

    @property
    def answerers(self) -> tuple[LockedAnswerer, ...]:
        """The models that answered, stage by stage. A model that answered for several stages occurs several times."""
        return tuple(each for lock in self.stages.values() for each in lock.answerers.values())


def utc_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def versions() -> dict[str, str | None]:
    """Return the versions of raggs, Python and the packages that affect results."""
    return {
        "raggs": __version__,
        "python": platform.python_version(),
        **{name: installed(name) for name in STATED_PACKAGES},
    }


C = TypeVar("C", bound=Settings)


def parameters(model: type[C], stage: str, params: Mapping[str, object]) -> C:
    """Return `params` as a validated configuration.

    Raises:
        DataError: `params` are invalid.
    """
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise _misfit(stage, first_fault(error)) from error
    except (RaggsError, OSError) as error:
        raise _misfit(stage, str(error)) from error


@contextmanager
def misfits_as_data_errors(what: str) -> Iterator[None]:
    """Convert the errors of a computation whose input records may be from different runs.

    Args:
        what: name of the computed item, such as a stage, for the error message.

    Raises:
        DataError: the records are inconsistent.
    """
    try:
        yield
    except KeyError as error:
        raise DataError(f"{what}: its input records are inconsistent: {error} is missing") from error
    except ValueError as error:
        raise DataError(f"{what}: its input records are inconsistent: {error}") from error


def _misfit(stage: str, why: str) -> DataError:
    remedy = "use raggs audit to see whether the manifest was edited, or run again to replace it"
    return DataError(f"stage {stage} has invalid parameters in the manifest: {why}", remedy=remedy)


MANIFEST = "manifest.json"


FindingRemedy = Literal["run", "copy", "lock", "sign", "told"]


@dataclass(frozen=True)
class AuditFinding:
    """One finding of an audit: the file, the line, and what is wrong.

    Attributes:
        cure: how to resolve the finding. "run": run again. "copy": restore the file from a copy, because a run cannot
            restore it. "lock" and "sign": make a new lock or signature, if the set is as intended. "told": follow the
            message.
    """

    file: str
    line: int | None
    message: str
    cure: FindingRemedy = "run"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"
