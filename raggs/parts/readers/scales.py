"""On which numbers an export writes grades, and how its sidecar says so to whoever reads it again.

The tools of the field take a label for a gain and any label above 0 for relevant, so grades 1 to 5 as they are would
count "not relevant" as relevant. Exports therefore hold gains, and `eval` gets the grades back by the sidecar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, get_args

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE
from raggs.base.errors import RaggsError, UsageError
from raggs.base.files import read_whole
from raggs.base.types import as_object, as_text

if TYPE_CHECKING:
    from raggs.metrics.columns import Scale

GradeForm = Literal["gain", "raw", "binary"]
RELEVANT = 4  # the lowest grade that counts where relevance is yes or no


@dataclass(frozen=True)
class GradeScale:
    """How a grade is written.

    Attributes:
        form: gain: grade - 1, so 0 to 4; raw: the grade, 1 to 5; binary: 1 for grades from `binary_at` on, else 0.
        binary_at: 2 to 5.

    Raises:
        UsageError: `binary_at` divides nothing.
    """

    form: GradeForm = "gain"
    binary_at: int = RELEVANT

    def __post_init__(self) -> None:
        if not MIN_GRADE < self.binary_at <= MAX_GRADE:
            said = f"relevance from grade {self.binary_at} on divides nothing"
            raise UsageError(said, remedy=f"--binary-at {MIN_GRADE + 1} to {MAX_GRADE}")

    @property
    def offset(self) -> int:
        """What a written number lacks to its grade; 0 for numbers that are no grades."""
        return MIN_GRADE if self.form == "gain" else 0

    def written(self, grade: int) -> int:
        """The number that stands for `grade`."""
        return int(grade >= self.binary_at) if self.form == "binary" else grade - self.offset

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest number."""
        return self.written(MIN_GRADE), self.written(MAX_GRADE)

    @property
    def scale(self) -> Scale:
        """What the numbers in a file mean to measures."""
        from raggs.metrics.columns import Scale  # late: an export needs no columns

        return Scale.of(*self.ends)

    def described(self) -> dict[str, object]:
        """What a sidecar says of the numbers."""
        low, high = self.ends
        relevant = self.written(RELEVANT) or 1
        known: dict[str, object] = {"scale": self.form, "minimum": low, "maximum": high}
        if self.form == "binary":
            return {**known, "binary_at": self.binary_at, "meaning": f"1: grade {self.binary_at} or more of 5; 0: less"}
        what = "gain = grade - 1" if self.form == "gain" else "grade"
        threshold = f"give binary measures a threshold: P(rel={relevant})@10 counts grades {RELEVANT} and {MAX_GRADE}"
        note = (
            threshold if self.form == "gain" else f"tools take a label for a gain, and {low} for relevant; {threshold}"
        )
        meaning = f"{what}: utility for answering the query; {low} = not relevant, {high} = answers it"
        return {**known, "relevant": relevant, "meaning": meaning, "note": note}


AS_GRADED = GradeScale("raw")  # of a run, and of labels that are read as its grades


def stated_scale(labels: Path) -> GradeScale | None:
    """The scale that an export's sidecar states for a file of labels; None where none speaks of it."""
    return _scale(as_object(sidecar(labels).get("grades")))


def sidecar(labels: Path) -> Mapping[str, object]:
    """What an export's sidecar says of a file of labels; empty where none speaks of it."""
    for path in _sidecars(labels):
        meta = read_sidecar(path)
        if labels.relative_to(path.parent).as_posix() in as_object(meta.get("files")):
            return meta
    return {}


def stated_labels(folder: Path) -> Path | None:
    """The file of labels that the sidecar of an export names in its folder; None where none does."""
    for path in sorted(folder.glob("*meta.json")):
        name = as_text(read_sidecar(path).get("labels"))
        parts = PurePosixPath(name or "..").parts
        if ".." not in parts and not PurePosixPath(*parts).is_absolute() and (folder / Path(*parts)).is_file():
            return folder / Path(*parts)
    return None


def stated_name(labels: Path) -> str | None:
    """The format of the export that a file of labels is of; None where no sidecar says."""
    return as_text(sidecar(labels).get("format"))


def stated_format(path: Path) -> str | None:
    """The format of the export that a sidecar is of, empty where it does not say; None where it is no sidecar."""
    meta = read_sidecar(path)
    return (as_text(meta.get("format")) or "") if as_object(meta.get("files")) else None


def read_sidecar(path: Path) -> Mapping[str, object]:
    """What a sidecar says; nothing where it is missing, or no object of JSON."""
    try:
        return as_object(json.loads(read_whole(path)))
    except (RaggsError, ValueError, RecursionError):
        return {}


def _sidecars(labels: Path) -> tuple[Path, ...]:
    folder = labels.parent
    return (
        folder / f"{labels.name}.meta.json",
        folder / "golden.jsonl.meta.json",
        folder / "meta.json",
        folder.parent / "meta.json",
    )


def _scale(stated: object) -> GradeScale | None:
    found = as_object(stated)
    at = found.get("binary_at", RELEVANT)
    for form in get_args(GradeForm):
        if found.get("scale") == form and isinstance(at, int) and MIN_GRADE < at <= MAX_GRADE:
            return GradeScale(form, at)
    return None
