"""The grades of a golden set as columns: all that measures need of it.

Whence lists and grades are: the corpus that they are about, and the lists that a pool was made of.

Ids such as ``finance.md#12`` exist in many corpora; only the content says whether two runs mean the same passages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from raggs.base.arrays import Ints
from raggs.base.artifacts import artifact_file
from raggs.base.errors import DataError
from raggs.base.judge_health import GATE_FAILED_TEXT, HUMAN_SOURCE
from raggs.base.text import shorten
from raggs.base.types import as_object, as_text
from raggs.metrics.columns import Qrels, pair_keys
from raggs.metrics.unjudged import LabelUncertainty
from raggs.parts.file_shapes import sidecar

if TYPE_CHECKING:
    from raggs.runs.manifests.models import RunManifest

SHOWN_HASH_DIGITS = 12  # digits of a hash
MAX_LACKS_CHARS = 400  # characters that a sidecar says of a gate


@dataclass(frozen=True)
class DataOrigin:
    """What is known of whence something is; None where its files do not say.

    Attributes:
        corpus: hash of the passages' content.
        retrieved: sha256 of the lists that the run retrieved, which its pool was made of.
    """

    corpus: str | None = None
    retrieved: str | None = None

    def other_corpus(self, other: DataOrigin) -> str:
        """The two corpora, where both are known and differ; else empty."""
        if self.corpus is None or other.corpus is None or self.corpus == other.corpus:
            return ""
        return f"{self.corpus[:SHOWN_HASH_DIGITS]}, there {other.corpus[:SHOWN_HASH_DIGITS]}"


UNKNOWN_ORIGIN = DataOrigin()


def origin_of(manifest: RunManifest) -> DataOrigin:
    """Of a run's lists and of the grades of its pool."""
    lock = manifest.stages.get("retrieve")
    if lock is None:
        return UNKNOWN_ORIGIN
    corpus, lists = lock.components.get("corpus"), lock.outputs.get(artifact_file("retrieve"))
    return DataOrigin(corpus if isinstance(corpus, str) else None, lists.sha256 if lists else None)


def stated_origin(labels: Path) -> DataOrigin:
    """What the sidecar of an export says of the run that a file of labels is from."""
    stated = as_object(sidecar(labels).get("provenance"))
    corpus, retrieved = stated.get("corpus"), stated.get("retrieved")
    return DataOrigin(*(found if isinstance(found, str) else None for found in (corpus, retrieved)))


def stated_lacks(labels: Path) -> str:
    """What the sidecar of an export says that the set did not hold when it was written; empty where it was whole."""
    return shorten(as_text(sidecar(labels).get("lacks")) or "", MAX_LACKS_CHARS)


def stated_fall(labels: Path) -> Iterator[str]:
    """What the sidecar of an export says of a gate that the judge of its run fell below; one sentence at most."""
    found = as_object(sidecar(labels).get("provenance")).get("gate")
    said = [text for each in (found if isinstance(found, list) else ()) if (text := as_text(each))]
    if said:
        yield f"{labels}: {GATE_FAILED_TEXT}: {shorten('; '.join(said), MAX_LACKS_CHARS)}"


def stated_sources(labels: Path) -> Mapping[str, int]:
    """What the sidecar of an export says of who gave the grades, where people gave some."""
    found = as_object(as_object(sidecar(labels).get("provenance")).get("sources"))
    counts = {who: count for who, count in found.items() if isinstance(count, int) and count >= 0}
    return counts if HUMAN_SOURCE in counts else {}


@dataclass(frozen=True)
class Judgments:
    """Grades, and what is known of their doubt.

    Attributes:
        source: the file or run directory, for messages.
        qrels: the grades; passages without one are not in it.
        doubt: of each of them; None where nothing is known.
        origin: what is known of whence the judged passages are.
        warnings: sentences on a judge that fell below its gate.
        sources: where people gave grades, by who gave them, how many; near-duplicates left out.
        facets: groups of near-duplicates: by passage, the representative of its group.
    """

    source: str
    qrels: Qrels
    doubt: LabelUncertainty | None = None
    facets: Mapping[str, str] = field(default_factory=dict)
    origin: DataOrigin = UNKNOWN_ORIGIN
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)

    def facets_of(self, more: Mapping[str, str]) -> Ints | None:
        """Shape (m,): the number of each judged passage's facet, as `Qrels.facets`; None where no facet is known.

        Args:
            more: facets of passages that go before those of the set.
        """
        if not more:
            return self._own_facets
        return self.qrels.facets({**self.facets, **more})

    @cached_property
    def _own_facets(self) -> Ints | None:
        return self.qrels.facets(self.facets) if self.facets else None  # once, whatever number of systems is scored

    def unscorable(self) -> str:
        """Say that no passage is relevant, though some have a gain; empty if one is relevant.

        Raises:
            DataError: no passage has a gain above 0, so that every system scores 0.
        """
        qrels = self.qrels
        judged = qrels.grade[qrels.grade >= 0]
        highest = int(judged.max(initial=qrels.scale.low))
        if highest >= qrels.scale.relevant:
            return ""
        scale = f"{qrels.scale.low} to {qrels.scale.high}"
        if len(judged) and not max(qrels.scale.gains[: highest - qrels.scale.low + 1]):
            said = f"no passage is relevant: the highest grade is {highest} on the scale {scale}"
            raise DataError(said, where=self.source, remedy="check the labels; name another scale with --scale")
        return (
            f"{self.source}: no passage is relevant (grade {qrels.scale.relevant} or more on the scale {scale}): "
            "measures that count relevant passages are 0 or not defined"
        )

    @property
    def digest(self) -> str:
        """sha256 over the judgments, whatever file they came from."""
        qrels = self.qrels
        # By hashes, for any order will do that does not depend on the file.
        order = np.lexsort((pair_keys(qrels.query, qrels.docs.lasting_keys()), qrels.query))
        docs = qrels.docs.take(order).tolist()
        parts = ("\0".join(qrels.qids).encode(), qrels.query.astype("<i8").tobytes(), b"\0".join(docs))
        found = hashlib.sha256()
        for part in (*parts, qrels.grade[order].astype("<i8").tobytes()):
            found.update(len(part).to_bytes(8, "little") + part)
        return found.hexdigest()
