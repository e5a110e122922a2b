"""The manifest of a run: what was done, from what, with which result, at which price.

`manifest.json` holds one lock for each finished stage. A lock names everything that the stage's artifact was
made from (`components`), so a change can be told by name, and the hash of everything that it wrote, so that an
edit by hand can be found. It never holds keys, texts or host names.

What a run's files say may have been edited by anybody: parameters that are none, records that do not fit together.

Stages and the libraries below them trust their inputs and say so by `ValueError` and `KeyError`; here these become
sentences.

What an audit says: one finding a lie, with its file and, where it is known, its line.
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

SCHEMA: Final = 1
MAX_LISTED_FILES = 10  # unreadable files that a manifest names
STATED_PACKAGES = ("numpy", "pydantic", "litellm", "bm25s", "wordllama", "networkx")


class StageOutput(Frozen):
    """One file that a stage wrote."""

    sha256: str
    rows: int = Field(ge=0)
    bytes: int = Field(ge=0)


class LockedAnswerer(Answerer):
    """A model that answered for a stage, by the names that its answers state."""

    answers: int = Field(ge=0, description="records that name it, or answers where no record does")

    @property
    def answerer(self) -> Answerer:
        """The same without its answers."""
        return Answerer(**self.model_dump(exclude={"answers"}))


def snapshots(answerers: Iterable[LockedAnswerer]) -> dict[str, dict[str, int]]:
    """Answers by the model that was asked and by each name that its answers state, if they state any."""
    found: dict[str, dict[str, int]] = {}
    for each in answerers:
        if each.model is not None:
            names = found.setdefault(each.asked, {})
            names[each.model] = names.get(each.model, 0) + each.answers
    return found


class RetrieverCeiling(Frozen):
    """How far a retriever's list, or the fused one, reaches its own ceiling, by the run's grades. Null: not known."""

    measure: str = Field(description="with its cutoff")
    pool: int = Field(ge=1, description="how many passages of the list are its candidates")
    score: float | None = Field(description="of the list as it stands, mean over queries")
    proc: float | None = Field(description="pool-restricted oracle ceiling (PROC): the best order of the candidates")
    pct_proc: float | None = Field(description="%PROC as a ratio of means: score / proc")


class StageLock(Frozen):
    """A finished stage."""

    stage: str
    fingerprint: str = Field(description="hash of `components`")
    components: Mapping[str, Any] = Field(description="everything the result depends on, by name")
    params: Mapping[str, Any] = Field(description="the stage's configuration in full")
    inputs: Mapping[str, str] = Field(description="sha256 of each artifact read")
    outputs: Mapping[str, StageOutput] = Field(description="each file written")
    failed: int = Field(0, ge=0, description="records without a result because the judge failed")
    judge: str | None = Field(None, description="who was asked, as records name it; null where nobody was")
    cost: Spending = Field(Spending(), description="of the stage's latest attempt")
    health: Health | None = Field(
        None,
        description="of the judge that the stage asks: its depth, repeats and panel; or its orders",
    )
    counts: Mapping[str, int] = Field(
        default_factory=dict, exclude_if=not_, description="what the stage counted: questions that were searched deeper"
    )
    started: datetime
    ended: datetime
    versions: Mapping[str, str | None] = Field(default_factory=dict)
    booked: tuple[int, int] | None = Field(
        None, description="the bytes of llm.ledger.jsonl, from and to, in which the attempt's calls are booked"
    )
    answerers: Mapping[str, LockedAnswerer] = Field(
        default_factory=dict, exclude_if=not_, description="the models that answered, by the key that records have"
    )
    ceilings: Mapping[str, tuple[RetrieverCeiling, ...]] = Field(
        default_factory=dict,
        exclude_if=not_,
        description="of the judge stage, by retriever and for their fusion: PROC and %PROC",
    )
    chain: str | None = Field(None, description="hash of this lock and of the chain up to the one before it")


def _is_none(value: object) -> bool:
    return value is None


class CostEstimate(Frozen):
    """What the dry run says of one model in one stage."""

    stage: str
    calls: int = Field(description="without corrections, and without those whose answers are known already")
    cached: int = Field(0, description="calls whose answers are known already, as far as anyone looked")
    input_tokens: int
    output_tokens: int = Field(description="with `hidden_tokens`")
    hidden_tokens: int = Field(0, description="assumed for hidden reasoning in each answer")
    repairs: int = Field(0, description="corrections that an answer may take")
    usd: float | None = Field(description="null where the model's price is not known, 0 where nothing is paid")
    discount_usd: float = Field(
        0.0,
        exclude_if=not_,
        description="of `usd`, what is likely to be less: the provider remembers the prompt's words",
    )
    likely_usd: float | None = Field(
        None,
        exclude_if=_is_none,
        description="what is to be expected of `usd`; see docs/how-to/cut-cost.md for how it is found",
    )
    exact: bool = Field(description="whether the calls are counted rather than bounded")
    least: int | None = Field(
        None, exclude_if=_is_none, description="calls at least, of a model that is asked where another one sends for it"
    )
    expected: int | None = Field(
        None, exclude_if=_is_none, description="calls of such a model by what this run has measured"
    )
    who: str = Field(description="the model, or the judge that nobody pays")
    anew: str = Field("", exclude_if=not_, description="what of the last run's results is asked for again, and why")

    def usd_for(self, calls: int) -> float | None:
        """What so many of its calls cost."""
        return None if self.usd is None else self.usd * calls / max(1, self.calls)

    @property
    def expected_usd(self) -> float | None:
        """What is to be expected; `usd` where nothing better is known."""
        return self.usd if self.likely_usd is None else self.likely_usd

    @property
    def usd_at_most(self) -> float | None:
        """What it costs where each answer takes all of its corrections."""
        return None if self.usd is None else self.usd * (1 + self.repairs)


def total(costs: Iterable[float | None]) -> float | None:
    """The sum of costs in USD; None where one is not known."""
    known = list(costs)
    return None if None in known else sum(usd or 0.0 for usd in known)


class LedgerMark(Frozen):
    """How far the ledger had come, and the hash of all of it up to there."""

    rows: int = Field(0, ge=0)
    bytes: int = Field(0, ge=0)
    sha256: str = hashlib.sha256().hexdigest()


class ManifestSeal(Frozen):
    """Hashes of the manifest's own content; they find edits, not forgers."""

    head: str = Field(description="of the manifest's version, name, pipeline and creation")
    config: str = Field(description="of `config` and `config_file`")
    estimates: str = Field(description="of `estimates`")
    ledger: LedgerMark = Field(description="of llm.ledger.jsonl")
    sha256: str = Field(description="of all that the manifest holds, but for this")


class UnreadableFiles(Frozen):
    """Files of a corpus that could not be read and were skipped."""

    count: int = Field(ge=1)
    files: tuple[str, ...] = Field(description="the first of them, by name")
    sha256: str = Field(description="of all names")

    @classmethod
    def of(cls, names: Sequence[str]) -> UnreadableFiles:
        """What a manifest holds of some names."""
        return cls(count=len(names), files=tuple(names[:MAX_LISTED_FILES]), sha256=hash_value(list(names)))

    def __str__(self) -> str:
        more = f", and {self.count - len(self.files):,} more" if self.count > len(self.files) else ""
        return f"{plural(self.count, 'unreadable file')} of the corpus skipped: {', '.join(self.files)}{more}"


class RunManifest(Frozen):
    """manifest.json: the run and its locks."""

    schema_version: Literal[1] = SCHEMA
    name: str
    pipeline: str = Field("golden", description="which stages made it")
    created: datetime
    raggs: str = __version__
    config_file: str | None = Field(
        None, description="the YAML file, as a path from the run directory, for the next command"
    )
    config: Mapping[str, Any] = Field(
        description="the effective configuration of the latest run that changed something, without secrets"
    )
    estimates: tuple[CostEstimate, ...] = Field(
        (), description="what the latest run that could pay was expected to cost"
    )
    stages: Mapping[str, StageLock] = Field(default_factory=dict)
    seal: ManifestSeal | None = Field(None, description="null in a run of a version that did not seal")

    @property
    def unreadable(self) -> UnreadableFiles | None:
        """The files of the corpus that could not be read and were skipped, as the retrieve stage found them."""
        lock = self.stages.get("retrieve")
        found = None if lock is None else lock.components.get("unreadable")
        return UnreadableFiles.model_validate(found) if isinstance(found, Mapping) else None

    @property
    def skipped_files(self) -> str:
        """A sentence on those files; empty if there are none."""
        return "" if self.unreadable is None else str(self.unreadable)

    @property
    def answerers(self) -> tuple[LockedAnswerer, ...]:
        """The models that answered for all stages; one that answered for several is there several times."""
        return tuple(each for lock in self.stages.values() for each in lock.answerers.values())


def utc_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def versions() -> dict[str, str | None]:
    """Versions of raggs, Python and the packages that results lean on."""
    return {
        "raggs": __version__,
        "python": platform.python_version(),
        **{name: installed(name) for name in STATED_PACKAGES},
    }


C = TypeVar("C", bound=Settings)


def parameters(model: type[C], stage: str, params: Mapping[str, object]) -> C:
    """The configuration that `params` are of.

    Raises:
        DataError: they are none.
    """
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise _misfit(stage, first_fault(error)) from error
    except (RaggsError, OSError) as error:
        raise _misfit(stage, str(error)) from error


@contextmanager
def misfits_as_data_errors(what: str) -> Iterator[None]:
    """A block that computes from records, which may be of different runs.

    Args:
        what: is computed, for the sentence.

    Raises:
        DataError: the records do not fit together.
    """
    try:
        yield
    except KeyError as error:
        raise DataError(f"{what}: the records before it do not fit together: {error} is not among them") from error
    except ValueError as error:
        raise DataError(f"{what}: the records before it do not fit together: {error}") from error


def _misfit(stage: str, why: str) -> DataError:
    remedy = "raggs audit says whether it was edited; running again writes it anew"
    return DataError(f"stage {stage} has parameters in the manifest that it does not take: {why}", remedy=remedy)


MANIFEST = "manifest.json"


FindingRemedy = Literal["run", "copy", "lock", "sign", "told"]


@dataclass(frozen=True)
class AuditFinding:
    """One lie: where, and what was expected.

    Attributes:
        cure: what puts it right: another run; a copy of the file, since no run restores it; another lock or signature,
            if the set is meant as it is; or what the message says.
    """

    file: str
    line: int | None
    message: str
    cure: FindingRemedy = "run"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"
