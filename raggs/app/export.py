"""From a run to another tool's files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.progress import Hear, Notice, deaf
from raggs.golden import exporters
from raggs.golden.base import RUNS
from raggs.golden.exporters.base import TEST, UNORDERED, Exporter, ExportOptions, Loss
from raggs.golden.exporters.folders import claimed
from raggs.golden.parts import contents_of
from raggs.golden.runs import RunGolden, check_golden
from raggs.golden.systems import lists_in
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.places import Places
from raggs.parts.readers.scales import RELEVANT, GradeForm, GradeScale
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.ungraded import ungraded

CorpusPart = Literal["all", "pool"]
SPLIT = re.compile(r"\w+(\.\w+)*")  # as the tools name parts of data


@dataclass(frozen=True)
class Exported:
    """What an export wrote.

    Attributes:
        files: all of them, the sidecar among them.
        lost: what the run has and the files do not hold.
    """

    files: tuple[Path, ...]
    lost: tuple[Loss, ...]


def export_run(
    run: OpenedRun,
    format_: str,
    folder: Path,
    *,
    grades: GradeForm = "gain",
    binary_at: int = RELEVANT,
    corpus: CorpusPart = "all",
    split: str = TEST,
    force: bool = False,
    hear: Hear = deaf,
) -> Exported:
    """Write a run's golden set as `format_` into `folder`. What cannot be exported leaves no trace there.

    Args:
        grades: on which numbers labels are written (see `GradeScale`).
        binary_at: the lowest grade that a binary label takes for 1.
        corpus: for formats with a corpus, all passages where the workspace's cache has them, or those of the pools.
        split: what the part of the data is called that the questions are, in formats with parts.
        force: whether the folder may hold other things.
        hear: is told what the export lacks.

    Raises:
        UsageError: an unknown format, a binary scale that divides nothing, a split that is no name, or a folder that
            holds something else.
        NotFoundError: the run has no grades, or no ranking and the format needs one.
        UsageError: the run leaves ranking out, and the format needs it.
        DataError: the run was made before questions were kept.
    """
    kind, scale = exporters.REGISTRY.load(format_), GradeScale(grades, binary_at)
    if not SPLIT.fullmatch(split):
        raise UsageError(f"{split!r} is no name of a split", remedy="letters, figures and _, such as --split dev")
    _check_finished(run, kind, hear)
    _check_order(run, kind, hear)
    if split != TEST and "{split}" not in kind.LABELS:
        hear(Notice(f"{format_} has no parts: the split {split} is not written"))
    golden = RunGolden(run)
    contents = contents_of(golden)  # says what an older run lacks before a folder is made
    with (
        claimed(folder, kind, force=force),
        _whole_corpus(run, kind.WHOLE_CORPUS and corpus == "all", hear) as passages,
    ):
        exporter = kind(ExportOptions(scale, passages, split, contents))
        files = exporter.write(golden, folder)
    for path in _strange_lists(files):
        hear(Notice(f"{path} is not of this export and stays; raggs eval takes it for a system of the folder"))
    return Exported(tuple(files), exporter.losses(contents))


def _check_order(run: OpenedRun, kind: type[Exporter], hear: Hear) -> None:
    """An order that was lost is not an order of nothing."""
    if "rank" not in run.manifest.stages or (path := run.file("rank")).is_file():
        return
    if kind.NEEDS_ORDER:
        remedy = f"{run.command} makes it again; {_grades_only()}"
        raise NotFoundError("the file is missing, though its stage has run", where=path, remedy=remedy)
    hear(Notice(f"{path} is missing, though its stage has run: grades are exported without an order"))


def _grades_only() -> str:
    found = [name for name in exporters.REGISTRY.builtin if not exporters.REGISTRY.load(name).NEEDS_ORDER]
    return f"formats that need grades only: {', '.join(found)}"


def _strange_lists(files: Sequence[Path]) -> list[Path]:
    """Lists beside those that were written."""
    folders = {path.parent.parent for path in files if path.parent.name == RUNS}
    return sorted(path for folder in folders for path in lists_in(folder) if path not in files)


def _check_finished(run: OpenedRun, kind: type[Exporter], hear: Hear) -> None:
    check_golden(run)
    unfinished = [stage for stage in run.pipeline.order if stage not in run.manifest.stages]
    begun = {part.stage for part in run.parts}
    if unfinished and "rank" not in begun and (kind.NEEDS_ORDER or ("judge" in unfinished and "judge" not in begun)):
        remedy = run.command
        if "judge" in begun:
            remedy = f"{remedy} --partial ranks the queries that are judged; {_grades_only()}"
        elif "judge" not in unfinished:
            remedy += f"; {_grades_only()}"
        raise NotFoundError(f"stage {unfinished[0]} has not finished", where=run.folder, remedy=remedy)
    if not run.graded:
        hear(Notice(f"{(found := ungraded(run))}: {found.remedy}"))
    if run.lacks:
        hear(Notice(run.lacks))
    elif unfinished:
        hear(Notice(f"stage {unfinished[0]} has not finished: grades are exported without an order"))
    if "rank" in run.pipeline.left_out:
        if kind.NEEDS_ORDER:
            run.pipeline.stage("rank")  # says that it is left out
        hear(Notice(f"a set of grades alone: {UNORDERED}"))


@contextmanager
def _whole_corpus(run: OpenedRun, wanted: bool, hear: Hear) -> Iterator[PassageStore | None]:
    """The passages that the run searched, where its workspace has a copy of them."""
    store = _store(run) if wanted else None
    if wanted and store is None:
        hear(Notice("the workspace's cache has no copy of the corpus: corpus.jsonl holds the pooled passages only"))
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def _store(run: OpenedRun) -> PassageStore | None:
    lock = run.manifest.stages.get("retrieve")
    content = lock and lock.components.get("corpus")
    for path in sorted(Places.of(run.folder.absolute().parent).corpora.glob("*.sqlite")):
        try:
            store = PassageStore.open(path)
        except (DataError, NotFoundError):
            continue  # damaged, or of another version: as good as none
        if store.content_hash == content:
            return store
        store.close()
    return None
