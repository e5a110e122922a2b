"""Whence lists and grades are: the corpus that they are about, and the lists that a pool was made of.

Ids such as ``finance.md#12`` exist in many corpora; only the content says whether two runs mean the same passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.artifacts import artifact_file
from raggs.base.health import FALLEN, PEOPLE
from raggs.base.jsontypes import as_object, as_text
from raggs.base.text import shorten
from raggs.parts.readers.scales import sidecar

if TYPE_CHECKING:
    from raggs.runs.manifests.models import RunManifest

SHOWN = 12  # digits of a hash
MOST_SAID = 400  # characters that a sidecar says of a gate


@dataclass(frozen=True)
class Origin:
    """What is known of whence something is; None where its files do not say.

    Attributes:
        corpus: hash of the passages' content.
        retrieved: sha256 of the lists that the run retrieved, which its pool was made of.
    """

    corpus: str | None = None
    retrieved: str | None = None

    def other_corpus(self, other: Origin) -> str:
        """The two corpora, where both are known and differ; else empty."""
        if self.corpus is None or other.corpus is None or self.corpus == other.corpus:
            return ""
        return f"{self.corpus[:SHOWN]}, there {other.corpus[:SHOWN]}"


UNKNOWN = Origin()


def origin_of(manifest: RunManifest) -> Origin:
    """Of a run's lists and of the grades of its pool."""
    lock = manifest.stages.get("retrieve")
    if lock is None:
        return UNKNOWN
    corpus, lists = lock.components.get("corpus"), lock.outputs.get(artifact_file("retrieve"))
    return Origin(corpus if isinstance(corpus, str) else None, lists.sha256 if lists else None)


def stated_origin(labels: Path) -> Origin:
    """What the sidecar of an export says of the run that a file of labels is from."""
    stated = as_object(sidecar(labels).get("provenance"))
    corpus, retrieved = stated.get("corpus"), stated.get("retrieved")
    return Origin(*(found if isinstance(found, str) else None for found in (corpus, retrieved)))


def stated_lacks(labels: Path) -> str:
    """What the sidecar of an export says that the set did not hold when it was written; empty where it was whole."""
    return shorten(as_text(sidecar(labels).get("lacks")) or "", MOST_SAID)


def stated_fall(labels: Path) -> Iterator[str]:
    """What the sidecar of an export says of a gate that the judge of its run fell below; one sentence at most."""
    found = as_object(sidecar(labels).get("provenance")).get("gate")
    said = [text for each in (found if isinstance(found, list) else ()) if (text := as_text(each))]
    if said:
        yield f"{labels}: {FALLEN}: {shorten('; '.join(said), MOST_SAID)}"


def stated_sources(labels: Path) -> Mapping[str, int]:
    """What the sidecar of an export says of who gave the grades, where people gave some."""
    found = as_object(as_object(sidecar(labels).get("provenance")).get("sources"))
    counts = {who: count for who, count in found.items() if isinstance(count, int) and count >= 0}
    return counts if PEOPLE in counts else {}
