"""What `--golden` and `--run` name: a run directory of raggs, or a file in a format of the field."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.errors import UsageError
from raggs.metrics.columns import Qrels, Run, Scale
from raggs.metrics.uncertainty import Doubt
from raggs.readers.labels import read_judgments
from raggs.readers.runs import read_run


@dataclass(frozen=True)
class Golden:
    """Judgments, and what is known of their doubt."""

    source: str
    qrels: Qrels
    doubt: Doubt | None
    facets: dict[str, str]  # passages of a group of near-duplicates, by its representative

    @property
    def digest(self) -> str:
        """sha256 over the judgments, whatever file they came from."""
        qrels = self.qrels
        order = np.lexsort(
            (qrels.keys, qrels.query)
        )  # by hashes, for any order will do that does not depend on the file
        docs = qrels.docs.take(order).tolist()
        parts = ("\0".join(qrels.qids).encode(), qrels.query.astype("<i8").tobytes(), b"\0".join(docs))
        found = hashlib.sha256()
        for part in (*parts, qrels.grade[order].astype("<i8").tobytes()):
            found.update(len(part).to_bytes(8, "little") + part)
        return found.hexdigest()


@dataclass(frozen=True)
class System:
    """A run with the name that reports give it."""

    name: str
    source: str
    run: Run


def open_golden(path: Path, scale: Scale | None) -> Golden:
    """The judgments that `path` holds.

    Raises:
        NotFoundError: there is nothing, or the run has no grades yet.
        DataError: something in it cannot be right.
    """
    if path.is_dir():
        from raggs.evaluation.runfolders import golden_of  # late: files need no manifests

        qrels, doubt, facets = golden_of(path, scale or Scale.of(1, 5))
        return Golden(str(path), qrels, doubt, facets)
    return Golden(str(path), read_judgments(path, scale), None, {})


def open_systems(specs: list[str]) -> Iterator[System]:
    """The systems that ``[NAME=]PATH`` specifications name; a run directory holds its retrievers and their fusion.

    Raises:
        UsageError: two systems of one name.
        NotFoundError, DataError: as the readers.
    """
    taken: set[str] = set()
    for spec in specs:
        name, _, place = ("", "", spec) if Path(spec).exists() else spec.partition("=")
        if not place:
            name, place = "", spec
        path = Path(place)
        folder = path.is_dir()
        for own, run in _runs_of(path) if folder else [(_stem(path), read_run(path))]:
            label = f"{name}.{own}" if name and folder else name or own
            if label in taken:
                raise UsageError(f"two systems are called {label}", remedy=f"name one: --run NAME={path}")
            taken.add(label)
            yield System(label, str(path), run)


def _runs_of(folder: Path) -> Iterator[tuple[str, Run]]:
    from raggs.evaluation.runfolders import systems_of  # late: files need no manifests

    return systems_of(folder)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name
