"""The grades of a golden set as columns, which the measures read, and the origin of lists and grades.

The origin of grades is the corpus, and the retrieved lists that the pool was made from. Ids such as ``finance.md#12``
exist in many corpora. So only the content of the corpora shows whether two runs refer to the same passages.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError

from raggs.base.arrays import Ints
from raggs.base.artifacts import Groups, artifact_file
from raggs.base.errors import DataError
from raggs.base.judge_health import GATE_FAILED_TEXT, HUMAN_SOURCE
from raggs.base.text import shorten
from raggs.base.types import as_object, as_text
from raggs.metrics.columns import GradeScale, Qrels, pair_keys
from raggs.metrics.unjudged import LabelUncertainty
from raggs.parts.file_shapes import sidecar
from raggs.runs.manifests.lineage import VersionName

if TYPE_CHECKING:
    from raggs.runs.manifests.models import RunManifest

SHOWN_HASH_DIGITS = 12  # number of digits of a hash that are shown
MAX_LACKS_CHARS = 400  # maximum length of a text from a sidecar


@dataclass(frozen=True)
class DataOrigin:
    """Origin of lists or grades; unknown values are None.

    Attributes:
        corpus: hash of the passages' content.
        retrieved: sha256 of the retrieved lists that the pool was made from.
    """

    corpus: str | None = None
    retrieved: str | None = None

    def other_corpus(self, other: DataOrigin) -> str:
        """Return the hashes of both corpora as text if they are known and differ, otherwise an empty text."""
        if self.corpus is None or other.corpus is None or self.corpus == other.corpus:
            return ""
        return f"{self.corpus[:SHOWN_HASH_DIGITS]}, there {other.corpus[:SHOWN_HASH_DIGITS]}"


UNKNOWN_ORIGIN = DataOrigin()


def origin_of(manifest: RunManifest) -> DataOrigin:
    """Return the origin of a run's lists and grades."""
    lock = manifest.stages.get("retrieve")
    if lock is None:
        return UNKNOWN_ORIGIN
    corpus, lists = lock.components.get("corpus"), lock.outputs.get(artifact_file("retrieve"))
    return DataOrigin(corpus if isinstance(corpus, str) else None, lists.sha256 if lists else None)


def stated_origin(labels: Path) -> DataOrigin:
    """Return the origin of a file of labels, as stated in the sidecar of the export."""
    stated = as_object(sidecar(labels).get("provenance"))
    corpus, retrieved = stated.get("corpus"), stated.get("retrieved")
    return DataOrigin(*(found if isinstance(found, str) else None for found in (corpus, retrieved)))


def stated_lacks(labels: Path) -> str:
    """Return a text that lists the parts that were missing when the set was exported, as stated in its sidecar. It
    is empty if the set was complete.
    """
    return shorten(as_text(sidecar(labels).get("lacks")) or "", MAX_LACKS_CHARS)


def stated_model_versions(labels: Path) -> tuple[str, ...]:
    """Return sentences about models of which several versions gave the grades, as stated in the sidecar."""
    found = sidecar(labels).get("model_versions")
    said = [text for each in (found if isinstance(found, list) else ()) if (text := as_text(each))]
    return tuple(shorten(text, MAX_LACKS_CHARS) for text in said)


def stated_fall(labels: Path) -> Iterator[str]:
    """Yield a sentence if the judge of the exported run did not reach its required quality, according to the
    sidecar.
    """
    found = as_object(sidecar(labels).get("provenance")).get("gate")
    said = [text for each in (found if isinstance(found, list) else ()) if (text := as_text(each))]
    if said:
        yield f"{labels}: {GATE_FAILED_TEXT}: {shorten('; '.join(said), MAX_LACKS_CHARS)}"


def stated_version(labels: Path) -> VersionName | None:
    """Return the version of the exported set, as stated in the sidecar; None if it is missing or invalid."""
    try:
        found = VersionName.model_validate(as_object(sidecar(labels).get("provenance")).get("version"))
    except ValidationError:
        return None
    return found.model_copy(update={"updated_from": shorten(found.updated_from, MAX_LACKS_CHARS)})


def stated_sources(labels: Path) -> Mapping[str, int]:
    """Return the number of grades by source, as stated in the sidecar of an export. The mapping is empty if no grade
    comes from a human.
    """
    found = as_object(as_object(sidecar(labels).get("provenance")).get("sources"))
    counts = {who: count for who, count in found.items() if isinstance(count, int) and count >= 0}
    return counts if HUMAN_SOURCE in counts else {}


@dataclass(frozen=True)
class Judgments:
    """Grades and their uncertainty.

    Attributes:
        source: path of the file or run directory, for messages.
        qrels: the grades. Passages without a grade are missing or have a negative grade.
        doubt: uncertainty of each grade; None if unknown.
        facets: maps each passage to the representative of its group of near-duplicates.
        origin: origin of the judged passages.
        warnings: sentences about a judge that did not reach its required quality.
        sources: number of grades by source, without copied grades of near-duplicates; empty if no grade comes from a
            human.
        evidence: evidence sets by query, for the queries that have any.
        evidence_notes: sentences about evidence sets by annotators.
        version: version of a set that `raggs update` made; None for other sets.
    """

    source: str
    qrels: Qrels
    doubt: LabelUncertainty | None = None
    facets: Mapping[str, str] = field(default_factory=dict)
    origin: DataOrigin = UNKNOWN_ORIGIN
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, Groups] = field(default_factory=dict)
    evidence_notes: tuple[str, ...] = ()
    version: VersionName | None = None

    def on_scale(self, relevant: int | None = None, gains: Mapping[int, float] | None = None) -> Judgments:
        """Return the same grades with another threshold of relevance, or with other gains.

        Args:
            relevant: lowest relevant grade; None for the present one.
            gains: gain by grade, for the grades whose gain changes.

        Raises:
            DataError: the threshold is outside the scale, or a gain is invalid.
        """
        scale = self.qrels.scale
        known = dict(zip(scale.grades().tolist(), scale.gains, strict=True))
        tuned = GradeScale.of(
            scale.low, scale.high, scale.relevant if relevant is None else relevant, {**known, **(gains or {})}
        )
        return replace(self, qrels=replace(self.qrels, scale=tuned))

    def facets_of(self, more: Mapping[str, str]) -> Ints | None:
        """Return the facet number of each judged passage, shape (m,), as in `Qrels.facets`; None if no facet is known.

        Args:
            more: facets of passages, which override those of the set.
        """
        if not more:
            return self._own_facets
        return self.qrels.facets({**self.facets, **more})

    @cached_property
    def _own_facets(self) -> Ints | None:
        # computed only once, because every system needs it
        return self.qrels.facets(self.facets) if self.facets else None

    def unscorable(self) -> str:
        """Return a warning if no passage is relevant, otherwise an empty text.

        Raises:
            DataError: passages have labels, but none is relevant or has a gain above 0, so every system would score 0.
        """
        qrels = self.qrels
        judged = qrels.grade[qrels.grade >= 0]
        highest = int(judged.max(initial=qrels.scale.low))
        if highest >= qrels.scale.relevant:
            return ""
        scale = f"{qrels.scale.low} to {qrels.scale.high}"
        if len(judged) and not max(qrels.scale.gains[: highest - qrels.scale.low + 1]):
            said = f"no passage is relevant: the highest grade is {highest} on the scale {scale}"
            raise DataError(said, where=self.source, remedy="check the labels, or use another scale with --scale")
        return (
            f"{self.source}: no passage is relevant (grade {qrels.scale.relevant} or more on the scale "
            f"{scale}): measures that count relevant passages are 0 or undefined"
        )

    @property
    def digest(self) -> str:
        """sha256 of the grades and evidence sets. It does not depend on the file format."""
        qrels = self.qrels
        # Sorted by hashes, because any order will do that does not depend on the file.
        order = np.lexsort((pair_keys(qrels.query, qrels.docs.lasting_keys()), qrels.query))
        docs = qrels.docs.take(order).tolist()
        parts = ("\0".join(qrels.qids).encode(), qrels.query.astype("<i8").tobytes(), b"\0".join(docs))
        found = hashlib.sha256()
        known = frozenset(qrels.qids)
        sets = [json.dumps([qid, each]).encode() for qid, each in sorted(self.evidence.items()) if qid in known]
        for part in (*parts, qrels.grade[order].astype("<i8").tobytes(), *sets):
            found.update(len(part).to_bytes(8, "little") + part)
        return found.hexdigest()
