"""Conversion of golden sets: export a run to another tool's format, and import another tool's files.

An import reports which parts of the set were converted completely, partly or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from raggs.base.cache import Cache
from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.base.types import Notice, ProgressListener, ignore_progress
from raggs.golden import formats
from raggs.golden.base import GOLDEN_CONTENTS, RUNS, GoldenContent, PartStock, contents_of
from raggs.golden.formats import TEST, TRAIN, UNORDERED, Exporter, ExportLoss, ExportOptions, Importer, claimed
from raggs.golden.formats.tables import JsonlExporter
from raggs.golden.formats.training import QuerySplit
from raggs.golden.runs import RunGolden, check_golden
from raggs.golden.sources import lists_in
from raggs.parts.file_shapes import RELEVANT, GradeForm, GradeFormat, stated_labels, stated_name
from raggs.parts.indexes.passages import PassageStore
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.reasons import ungraded
from raggs.runs.manifests.store import RunStore

CorpusPart = Literal["all", "pool"]
TEST_SHARE = 0.2
SPLIT = re.compile(r"\w+(\.\w+)*")  # names of splits that the other tools accept


@dataclass(frozen=True)
class ExportResult:
    """Result of an export.

    Attributes:
        files: all written files, including the sidecar.
        lost: data of the run that the files cannot hold.
    """

    files: tuple[Path, ...]
    lost: tuple[ExportLoss, ...]


def export_run(
    run: OpenedRun,
    format_: str,
    folder: Path,
    *,
    grades: GradeForm = "gain",
    binary_at: int = RELEVANT,
    corpus: CorpusPart = "all",
    split: str | None = None,
    test_share: float = TEST_SHARE,
    eval_queries: Path | None = None,
    allow_test: bool = False,
    force: bool = False,
    hear: ProgressListener = ignore_progress,
) -> ExportResult:
    """Write a run's golden set in the format `format_` to `folder`. A failed export leaves no incomplete file there.

    Args:
        grades: how labels are written: as gains, as grades or as 0 and 1 (see `GradeFormat`).
        binary_at: lowest grade that is written as 1 in a binary export.
        corpus: for formats with a corpus: all passages (only if the workspace's cache has them), or only the pooled
            ones.
        split: name of the split, for formats with splits [default: `train` for training data, otherwise `test`].
        test_share: for training data: share of the queries on the test side.
        eval_queries: for training data: file of the ids of the queries on the test side; None to split by a hash.
        allow_test: whether training data may be written from the test side.
        force: whether to write into a folder that contains other files.
        hear: called with notices on data that the export lacks.

    Raises:
        UsageError: the format is unknown, the binary scale has only one class, the split is not a valid name, the
            folder contains other files, or the format needs a ranking that the run's configuration disables.
        NotFoundError: the judge stage has not run, or the format needs a ranking that does not exist.
        ProviderError: the folder is not writable.
        DataError: the run is not a golden set, or was made by a version that did not store questions.
    """
    kind, scale = formats.EXPORTERS.load(format_), GradeFormat(grades, binary_at)
    split = split or (TRAIN if kind.TRAINING else TEST)
    if not SPLIT.fullmatch(split):
        raise UsageError(f"--split {split!r} is not a valid name", remedy="use letters, digits and _, e.g. --split dev")
    if kind.TRAINING:
        _check_side(split, allow=allow_test)
    _check_finished(run, kind, hear)
    _check_order(run, kind, hear)
    if split != TEST and "{split}" not in kind.LABELS and not kind.TRAINING:
        hear(Notice(f"the format {format_} has no splits, so --split {split} is ignored"))
    golden = RunGolden(run)
    side_of = QuerySplit.of(golden, test_share, eval_queries).side if kind.TRAINING else None
    contents = contents_of(golden)  # reports what an older run lacks before any folder is created
    with (
        claimed(folder, kind, force=force),
        _whole_corpus(run, kind.WHOLE_CORPUS and corpus == "all", hear) as passages,
    ):
        exporter = kind(ExportOptions(scale, passages, split, contents, side_of=side_of, side=split))
        files = exporter.write(golden, folder)
    for path in _strange_lists(files):
        hear(Notice(f"{path} is from another export and was not removed; raggs eval scores it, too"))
    return ExportResult(tuple(files), exporter.losses(contents))


def _check_side(side: str, *, allow: bool) -> None:
    """Check which side of the queries becomes training data.

    Raises:
        UsageError: there is no such side, or it is the test side and the user has not allowed this.
    """
    if side not in (TRAIN, TEST):
        raise UsageError(f"training data has no split {side}", remedy=f"use --split {TRAIN} or --split {TEST}")
    if side == TEST and not allow:
        reason = "a model that is trained on test queries cannot be evaluated on them"
        raise UsageError(f"--split test: {reason}", remedy="pass --allow-test to export them anyway")


def _check_order(run: OpenedRun, kind: type[Exporter], hear: ProgressListener) -> None:
    """Report a missing order file if the rank stage has run, because the export would otherwise silently lack the
    order.
    """
    if "rank" not in run.manifest.stages or (path := run.file("rank")).is_file():
        return
    if kind.NEEDS_ORDER:
        remedy = f"to create it again: {run.command}; {_grades_only()}"
        raise NotFoundError("the file is missing, although the rank stage has run", where=path, remedy=remedy)
    hear(Notice(f"{path} is missing, although the rank stage has run: grades are exported without an order"))


def _grades_only() -> str:
    found = [name for name in formats.EXPORTERS.builtin if not formats.EXPORTERS.load(name).NEEDS_ORDER]
    return f"formats that need no ranking: {', '.join(found)}"


def _strange_lists(files: Sequence[Path]) -> list[Path]:
    """Return the run files of other exports in the folders of the written files."""
    folders = {path.parent.parent for path in files if path.parent.name == RUNS}
    return sorted(path for folder in folders for path in lists_in(folder) if path not in files)


def _check_finished(run: OpenedRun, kind: type[Exporter], hear: ProgressListener) -> None:
    check_golden(run)
    unfinished = [stage for stage in run.pipeline.order if stage not in run.manifest.stages]
    begun = {part.stage for part in run.parts}
    if unfinished and "rank" not in begun and (kind.NEEDS_ORDER or ("judge" in unfinished and "judge" not in begun)):
        remedy = run.command
        if "judge" in begun:
            remedy = f"to rank the queries that are already judged: {remedy} --partial; {_grades_only()}"
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
            run.pipeline.stage("rank")  # raises an error that names the omitted stage
        hear(Notice(f"the golden set has grades but no ranking: {UNORDERED}"))


@contextmanager
def _whole_corpus(run: OpenedRun, wanted: bool, hear: ProgressListener) -> Iterator[PassageStore | None]:
    """Yield the store with all passages of the run's corpus, or None if it is not wanted or not in the workspace's
    cache.
    """
    store = _store(run) if wanted else None
    if wanted and store is None:
        hear(Notice("the workspace's cache has no copy of the corpus: corpus.jsonl contains only the pooled passages"))
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def _store(run: OpenedRun) -> PassageStore | None:
    lock, cache = run.manifest.stages.get("retrieve"), Cache.of(run.folder.absolute().parent).at("corpora")
    store = None if lock is None else PassageStore.find(cache, lock.components.get("corpus"))
    if store is not None and any(cache.faults(store.path.parent.name)):
        store.close()
        return None
    return store


ConversionState = Literal["whole", "changed", "partly", "lost", "read"]


@dataclass(frozen=True)
class ConvertedPart:
    """Result of converting one part of a golden set.

    Attributes:
        part, what: name of the part, and its description.
        came: result of the conversion: "whole" (unchanged), "changed" (other content, but not fewer items), "partly"
            (fewer items), "lost" (no items) or "read" (number of items before the export unknown).
        count: number of items that were read (see `raggs.golden.base`).
        before: number of items before the export; None if unknown.
    """

    part: GoldenContent
    what: str
    came: ConversionState
    count: int
    before: int | None

    @property
    def counted(self) -> str:
        """Return the number of items as text, such as `8 of 10` if two items were lost."""
        return f"{self.count:,}" if self.before in (None, self.count) else f"{self.count:,} of {self.before:,}"


@dataclass(frozen=True)
class ImportResult:
    """Result of an import.

    Attributes:
        format: format of the files that were read.
        files: all written files.
        through: result for each part of the golden set.
        notes: sentences on data that is inconsistent or was not read.
    """

    format: str
    files: tuple[Path, ...]
    through: tuple[ConvertedPart, ...]
    notes: tuple[str, ...] = ()


def import_set(
    path: Path,
    format_: str | None,
    folder: Path,
    *,
    split: str | None = None,
    columns: ColumnNames = NO_COLUMNS,
    force: bool = False,
) -> ImportResult:
    """Read a golden set in another tool's format, and write it into `folder` as JSON lines, which hold all parts.

    Args:
        path: a folder, or a file of labels.
        format_: name of the format; None to take it from the sidecar of an export.
        split: split to read, for formats with splits [default: `test`, or the only one].
        columns: names of columns by role, e.g. ``{"grade": "score"}``.
        force: whether the folder may hold other files.

    Raises:
        UsageError: the format is unknown or cannot be detected, the folder holds other files, or the format has no such
            split or role.
        NotFoundError, DataError: as `Importer.read`; also if the set has no labels.
        PrerequisiteError: a package is missing.
        ProviderError: the folder is not writable.
    """
    if not path.exists():
        raise NotFoundError("no such file or folder", where=path, remedy="check the path")
    name = _format(path, format_)
    importer = formats.IMPORTERS.load(name)
    _check_options(name, importer, split, columns)
    golden = importer(split, columns).read(path)
    contents = contents_of(golden)
    if not contents["grades"].count:
        raise DataError("contains no grades", where=path, remedy="check the file of labels")
    through = _through(contents, golden.stated)
    facts = {"imported": {"format": name, "through": [vars(each) for each in through]}}
    passages = golden.corpus() if golden.corpus else None
    with claimed(folder, JsonlExporter, force=force):
        exporter = JsonlExporter(ExportOptions(corpus=passages, contents=contents, facts=facts))
        files = exporter.write(golden, folder)
    return ImportResult(name, tuple(files), through, golden.notes)


def _check_options(name: str, importer: type[Importer], split: str | None, columns: ColumnNames) -> None:
    if split is not None and not importer.SPLITS:
        parted = ", ".join(each for each in formats.IMPORTERS if formats.IMPORTERS.load(each).SPLITS)
        raise UsageError(f"the format {name} has no splits", remedy=f"omit --split; formats with splits: {parted}")
    for role in columns:
        if role not in importer.ROLES:
            known = ", ".join(importer.ROLES)
            remedy = f"roles: {known}" if known else "omit --column"
            raise UsageError(f"--column: the format {name} has no column for {role}", remedy=remedy)


def _format(path: Path, asked: str | None) -> str:
    """Return the requested format, or the detected format of an export; raise an error if the two contradict each
    other.
    """
    found = stated_name((stated_labels(path) or path) if path.is_dir() else path)
    if asked is not None:
        if found in formats.IMPORTERS and asked in formats.IMPORTERS and found != asked:
            remedy = f"pass --format {found}, or omit --format"
            raise UsageError(f"{path} is an export to {found}, not to {asked}", remedy=remedy)
        return asked
    if found:
        return found
    if RunStore(path).exists:
        raise UsageError(f"{path} is a run of raggs", remedy=f"to export its golden set: raggs export {path}")
    known = ", ".join(formats.IMPORTERS)
    raise UsageError(f"unknown format of {path}", remedy=f"pass --format: {known}")


def _through(
    contents: Mapping[GoldenContent, PartStock], stated: Mapping[GoldenContent, PartStock]
) -> tuple[ConvertedPart, ...]:
    parts = [part for part in GOLDEN_CONTENTS if contents[part].count or (part in stated and stated[part].count)]
    return tuple(_part(part, contents[part], stated.get(part, PartStock()) if stated else None) for part in parts)


def _part(part: GoldenContent, now: PartStock, before: PartStock | None) -> ConvertedPart:
    if before is None:
        came: ConversionState = "read"
    elif now == before:
        came = "whole"
    elif not now.count:
        came = "lost"
    else:
        came = "partly" if now.count < before.count else "changed"
    return ConvertedPart(part, GOLDEN_CONTENTS[part], came, now.count, None if before is None else before.count)
