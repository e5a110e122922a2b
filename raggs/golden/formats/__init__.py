"""Exporters and importers, which are found by name. Each has a line in the registry (see `Exporter` and `Importer`).

An exporter writes a golden set to the files of another tool's format, and reports which parts the format cannot
contain. An importer reads such files as a golden set that has only the data in the files.

Imported labels, queries and texts of judged passages are held in memory. The systems' lists and the rest of the corpus
are not: they are read from their files whenever they are needed.

Exporters stream lines into files that are written completely or not at all. Exchange formats cannot contain comments,
because many readers split every line into columns. The provenance of a golden set is therefore stored next to the files
of the format, in a sidecar (`.meta.json`).

Without `--force`, an export does not write into a folder with other files. A failed export leaves no incomplete file,
but files that it finished before stay. If the folder contains an earlier export in the same format, its files are
overwritten. During an export, the folder contains a mark file. It allows an export to be repeated after a kill.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, ClassVar, get_args

import jsonlines
from pydantic import ValidationError

from raggs.base.artifacts import Passage, Query, RetrieveRecord
from raggs.base.errors import UsageError
from raggs.base.files import atomic_writer, disk, read_lines, remove_leftovers
from raggs.base.registry import Registry
from raggs.base.tables import LABEL_ROLES, NO_COLUMNS, ColumnNames
from raggs.base.types import as_object, as_text
from raggs.golden.base import (
    GOLDEN_CONTENTS,
    GoldenContent,
    GoldenProvenance,
    GoldenQuery,
    GoldenSet,
    PartStock,
    SetPart,
    contents_of,
)
from raggs.parts.file_shapes import GradeFormat, read_sidecar, sidecar, stated_format
from raggs.parts.queries.writing import LINE_ENDS

if TYPE_CHECKING:
    from raggs.golden.judgments import Judgments
    from raggs.metrics.columns import GradeScale


@dataclass
class ImportedSet(GoldenSet):
    """An imported golden set.

    Attributes:
        name, source, top, form, sure, provenance, partial, lacks: see `GoldenSet`.
        model_versions: see `GoldenSet`.
        given: the queries, sorted by id.
        lists: function that returns the systems' lists and reads them again at each call.
        corpus: function that returns all passages and reads them again at each call; None if there is no corpus.
        stated: parts of the exported set before the export, as stated in its sidecar; empty if unknown.
        kept: object that must exist as long as temporary files are needed.
        notes: sentences about data that is inconsistent or was not read.
    """

    name: str
    source: str
    given: tuple[GoldenQuery, ...]
    top: int = 0
    form: GradeFormat | None = None
    sure: bool = True
    provenance: GoldenProvenance | None = None
    lists: Callable[[], Iterable[RetrieveRecord]] = field(default=tuple)
    corpus: Callable[[], Iterable[Passage]] | None = None
    stated: Mapping[GoldenContent, PartStock] = field(default_factory=dict)
    partial: bool = True
    lacks: str = ""
    model_versions: tuple[str, ...] = ()
    kept: object = None
    notes: tuple[str, ...] = ()

    def queries(self) -> Iterator[Query]:
        """Yield the queries; see `GoldenSet.queries`."""
        return (query.query for query in self.given if query.query is not None)

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """Yield the queries with their parts; see `GoldenSet.by_query`."""
        wanted = parts or get_args(SetPart)
        for query in self.given:
            yield GoldenQuery(
                query.qid,
                query.query,
                query.pool if "pool" in wanted else (),
                query.grades if "grades" in wanted else (),
                query.order if "order" in wanted else (),
            )

    def hits(self) -> Iterator[RetrieveRecord]:
        """Yield the retrieved lists; see `GoldenSet.hits`."""
        return iter(self.lists())

    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        """Return the grades; see `GoldenSet.judgments`."""
        from raggs.golden.judgments import Judgments  # imported lazily: needs numpy
        from raggs.metrics.columns import Qrels

        labels = {
            query.qid: {one.doc_id: one.grade for one in query.grades if one.grade is not None} for query in self.given
        }
        qrels = Qrels.of(labels, scale or (self.form.scale if self.form else None))
        version = None if self.provenance is None else self.provenance.version
        return Judgments(self.source, qrels, evidence=self.evidence(), version=version)


class Importer(ABC):
    """Reader of golden sets in one format.

    Args:
        split: split to read, if the format has splits (default: `test`, or the only split).
        columns: mapping of roles to the names of columns or fields, as in `--column`.

    Attributes:
        FORMAT: name in the registry.
        ROLES: roles that `--column` accepts.
        SPLITS: whether the format has splits.
    """

    FORMAT = ""
    ROLES: ClassVar[tuple[str, ...]] = LABEL_ROLES
    SPLITS: ClassVar[bool] = False

    def __init__(self, split: str | None = None, columns: ColumnNames = NO_COLUMNS) -> None:
        self.split, self.columns = split, columns

    @abstractmethod
    def read(self, path: Path) -> ImportedSet:
        """Read the set in a folder, or in a file of labels.

        Raises:
            NotFoundError: no file of the format exists.
            DataError: a line of a file is invalid.
        """


def stated_contents(labels: Path) -> dict[GoldenContent, PartStock]:
    """Return the parts of the exported set before the export, as stated in its sidecar. The mapping is empty if the
    file has no sidecar.
    """
    stated = as_object(sidecar(labels).get("contents"))
    found = {part: as_object(stated.get(part)) for part in GOLDEN_CONTENTS}
    stocks = {part: (facts.get("count"), facts.get("digest")) for part, facts in found.items()}
    return {
        part: PartStock(count, digest)
        for part, (count, digest) in stocks.items()
        if isinstance(count, int) and isinstance(digest, str)
    }


def stated_provenance(labels: Path) -> GoldenProvenance | None:
    """Return the provenance that the sidecar states; None if it is missing or invalid."""
    try:
        return GoldenProvenance.model_validate(sidecar(labels).get("provenance"))
    except ValidationError:
        return None


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write `lines`, which have no line breaks, to `path`, and return their number. The file is written completely or
    not at all.

    Missing folders are created.

    Raises:
        ProviderError: the disk failed.
    """
    count = 0
    with _atomic_file(path) as file:
        for line in lines:
            file.write(line.encode() + b"\n")
            count += 1
    return count


def write_routed_lines(lines: Iterable[tuple[Path, str]]) -> dict[Path, int]:
    """Write each line to the path given with it, as `write_lines` does. Return the number of lines of each path, sorted
    by path.

    Raises:
        ProviderError: the disk failed.
    """
    counts: dict[Path, int] = {}
    files: dict[Path, IO[bytes]] = {}
    with ExitStack() as stack:
        for path, line in lines:
            if path not in files:
                files[path] = stack.enter_context(_atomic_file(path))
            files[path].write(line.encode() + b"\n")
            counts[path] = counts.get(path, 0) + 1
    return dict(sorted(counts.items()))


def write_objects(path: Path, objects: Iterable[Mapping[str, object]]) -> int:
    """Write one JSON object per line to `path`, as `write_lines` does, and return their number.

    Raises:
        ProviderError: the disk failed.
    """
    count = 0
    with _atomic_file(path) as file, object_writer(file) as writer:
        for count, each in enumerate(objects, start=1):  # noqa: B007 - counts the objects
            writer.write(each)
    return count


def write_list(path: Path, objects: Iterable[Mapping[str, object]]) -> int:
    """Write objects to `path` as one JSON list, with one object per line, and return their number. The file is written
    as by `write_lines`.

    Raises:
        ProviderError: the disk failed.
    """
    count = 0
    with _atomic_file(path) as file:
        file.write(b"[")
        for count, each in enumerate(objects, start=1):
            file.write((",\n" if count > 1 else "\n").encode() + _dump(each).encode())
        file.write(b"\n]\n")
    return count


def object_writer(file: IO[bytes]) -> jsonlines.Writer:
    """Return a writer of JSON lines to an open file. The writer keeps the order of keys and escapes Unicode line
    separators.
    """
    return jsonlines.Writer(file, dumps=_dump)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).translate(LINE_ENDS)


@contextmanager
def _atomic_file(path: Path) -> Iterator[IO[bytes]]:
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    try:
        with disk(path, "export to another folder"):
            path.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(path.parent, path.name)  # left by an export that was killed
            with atomic_writer(path) as file:
                yield file
    except BaseException:
        for folder in made:  # a failed export must not leave empty folders
            with suppress(OSError):
                folder.rmdir()
        raise


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write one indented JSON object to `path`, as `write_lines` does.

    Raises:
        ProviderError: the disk failed.
    """
    write_lines(path, [json.dumps(value, indent=2, ensure_ascii=False)])


UNORDERED = "this set has no judged order (rank: null); lists are sorted by grade, then by fused rank"


TEST = "test"  # the split that tools evaluate on
TRAIN = "train"


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export.

    Attributes:
        scale: numeric format of the labels.
        corpus: all passages, for exporters with `WHOLE_CORPUS`. If None, only the pooled passages are exported.
        split: name of the exported split, if the format has splits.
        contents: parts of the golden set, if they are already counted.
        facts: additional entries of the sidecar.
        side_of: for exporters of training data: returns the side of a query's text; None if all are for training.
        side: the exported side: `train` or `test`.
    """

    scale: GradeFormat = field(default_factory=GradeFormat)
    corpus: Iterable[Passage] | None = None
    split: str = TEST
    contents: Mapping[GoldenContent, PartStock] | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    side_of: Callable[[str], str] | None = None
    side: str = TRAIN


@dataclass(frozen=True)
class ExportLoss:
    """A part of a golden set that an export does not contain.

    Attributes:
        part, what: name and description of the part.
        count: number of lost items (see `raggs.golden.base`).
        kept: number of items of this part that the export contains.
    """

    part: GoldenContent
    what: str
    count: int
    kept: int = 0

    def __str__(self) -> str:
        return f"{self.what} ({self.kept:,} of {self.count + self.kept:,} are exported)" if self.kept else self.what


class Exporter(ABC):
    """Writer of golden sets in one format. Call ``cls(options)`` to create an exporter, or ``cls()`` for the default
    options.

    Attributes:
        FORMAT: name in the registry.
        SIDECAR: name of the sidecar, which `raggs eval` reads.
        LABELS: path of the file of labels, in a format that `raggs.parts` reads; ``{split}`` is replaced by the split's
            name.
        HOLDS: parts of a golden set that can be restored from the files; None if unknown.
        NEEDS_ORDER: whether the format requires a finished ranking.
        WHOLE_CORPUS: whether the exporter writes all passages of the corpus if they are available.
        TRAINING: whether the files are training data, of only one side of the split, and not a golden set.
    """

    FORMAT: ClassVar[str] = ""
    SIDECAR: ClassVar[str] = "meta.json"
    LABELS: ClassVar[str] = ""
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = None
    NEEDS_ORDER: ClassVar[bool] = False
    WHOLE_CORPUS: ClassVar[bool] = False
    TRAINING: ClassVar[bool] = False

    def __init__(self, options: ExportOptions | None = None) -> None:
        self.options = options or ExportOptions()

    @property
    def holds(self) -> frozenset[GoldenContent] | None:
        """Parts of a golden set that can be restored from files written with the current options; None if unknown."""
        return self.HOLDS - {"grades"} if self.HOLDS and self.options.scale.form == "binary" else self.HOLDS

    def numbers(self, golden: GoldenSet) -> GradeFormat | None:
        """Return the numeric format of the labels in the files, or None if unknown."""
        return self.options.scale

    @property
    def labels(self) -> str:
        """Path of the labels, relative to the folder; empty if there are none."""
        return self.LABELS.format(split=self.options.split)

    def losses(self, contents: Mapping[GoldenContent, PartStock]) -> tuple[ExportLoss, ...]:
        """Return the parts of the set that the files do not contain. The tuple is empty for exporters without
        `HOLDS`.
        """
        held = self.holds
        there = self.kept
        lost = () if held is None else [part for part in GOLDEN_CONTENTS if part not in held and contents[part].count]
        kept = {part: min(there.get(part, 0), contents[part].count) for part in lost}
        return tuple(
            ExportLoss(part, GOLDEN_CONTENTS[part], contents[part].count - kept[part], kept[part]) for part in lost
        )

    @property
    def kept(self) -> Mapping[GoldenContent, int]:
        """For each part that the files contain only in part: the number of written items."""
        return {}

    @abstractmethod
    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files of the format into `folder`, which is created if missing. Each file is written completely or
        not at all.

        Returns:
            The paths of the files, in a stable order.
        """

    def write_sidecar(
        self,
        golden: GoldenSet,
        folder: Path,
        files: Mapping[str, Mapping[str, object]],
        **facts: object,
    ) -> Path:
        """Write the sidecar, with the facts that the other files cannot contain: provenance, numeric format, and
        which parts the format cannot store.

        Args:
            golden: the golden set.
            folder: folder of the export.
            files: for each written file, by its path in the folder: facts such as its number of ``rows``.
            facts: additional facts about the format.

        Raises:
            ProviderError: the folder is not writable.
        """
        contents = self.options.contents or contents_of(golden)
        provenance = golden.provenance and golden.provenance.model_dump(mode="json")
        numbers = self.numbers(golden)
        meta: dict[str, object] = {
            "name": golden.name,
            "format": self.FORMAT,
            "labels": self.labels,
            "files": files,
            "top": golden.top,
            **facts,
            **self.options.facts,
            **({"lacks": golden.lacks} if golden.lacks else {}),
            **({"model_versions": list(golden.model_versions)} if golden.model_versions else {}),
            **({"unordered": UNORDERED} if golden.by_grade else {}),
            **({"grades": numbers.described()} if numbers else {}),
            "contents": {part: vars(stock) for part, stock in contents.items() if stock.count},
            "lost": [vars(loss) for loss in self.losses(contents)],
            "provenance": provenance,
        }
        path = folder / self.SIDECAR
        write_json(path, meta)
        return path


MARK_FILE = ".raggs-export"  # contains the name of the format that is being written


@contextmanager
def claimed(folder: Path, kind: type[Exporter], *, force: bool = False) -> Iterator[None]:
    """Reserve a folder for an export while it is written.

    Args:
        folder: the folder.
        kind: the exporter.
        force: whether the folder may contain other files. Of these, only files with the same names as the export's
            files are replaced.

    Raises:
        UsageError: without `force`, the folder contains something other than an export of this format.
        ProviderError: the folder is not writable.
    """
    if not force:
        _check(folder, kind)
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    mark = folder / MARK_FILE
    try:
        with disk(folder, "export to another folder"):
            folder.mkdir(parents=True, exist_ok=True)
            mark.write_text(kind.FORMAT)
        yield
    except BaseException:
        _unmark(mark)
        for each in made:
            with suppress(OSError):
                each.rmdir()
        raise
    _unmark(mark)


def remove_other_split(folder: Path, kind: type[Exporter], labels: str) -> None:
    """Delete the labels that the last export wrote for another split, because tools would find both files. They stay if
    their number of rows has changed since.

    Args:
        folder: folder of the export.
        kind: the exporter.
        labels: path of the labels of this export, relative to the folder.

    Raises:
        ProviderError: the labels cannot be deleted.
    """
    meta = read_sidecar(folder / kind.SIDECAR)
    old = as_text(meta.get("labels")) or labels
    path, rows = folder / old, as_object(as_object(meta.get("files")).get(old)).get("rows")
    known = old != labels and PurePosixPath(old).parts[:-1] == PurePosixPath(kind.LABELS).parts[:-1]
    if known and path.is_file() and not path.is_symlink():
        found = sum(1 for _ in read_lines(path)) - (path.suffix == ".tsv")  # a table has a header
        if found == rows:
            with disk(path, "export to another folder", "cannot be removed"):
                path.unlink()


def _unmark(mark: Path) -> None:
    with suppress(OSError):
        mark.unlink()


def _check(folder: Path, kind: type[Exporter]) -> None:
    with suppress(OSError):  # if the path is not a folder, the export itself reports this
        mark = folder / MARK_FILE
        other = any(path.name != MARK_FILE for path in folder.iterdir())
        begun = mark.is_file() and mark.read_text() == kind.FORMAT
        if other and not begun and stated_format(folder / kind.SIDECAR) not in ("", kind.FORMAT):
            format_ = kind.FORMAT or kind.__name__
            raise UsageError(
                f"{folder} exists and contains something other than a {format_} export",
                remedy="choose another --out, or pass --force to write into it",
            )


EXPORTERS: Registry[Exporter] = Registry(
    "exporter",
    "exporters",
    "raggs.golden.formats:Exporter",
    {
        "autorag": "raggs.golden.formats.hf:AutoRagExporter",
        "beir": "raggs.golden.formats.beir:BeirExporter",
        "csv": "raggs.golden.formats.tables:CsvExporter",
        "deepeval": "raggs.golden.formats.cases:DeepEvalExporter",
        "hf": "raggs.golden.formats.hf:HfExporter",
        "ir_datasets": "raggs.golden.formats.beir:IrDatasetsExporter",
        "jsonl": "raggs.golden.formats.tables:JsonlExporter",
        "langsmith": "raggs.golden.formats.cases:LangSmithExporter",
        "pairs-jsonl": "raggs.golden.formats.training:PairsExporter",
        "promptfoo": "raggs.golden.formats.promptfoo:PromptfooExporter",
        "ragas": "raggs.golden.formats.cases:RagasExporter",
        "ranx": "raggs.golden.formats.trec:RanxExporter",
        "sentence-transformers": "raggs.golden.formats.training:SentenceTransformersExporter",
        "trec": "raggs.golden.formats.trec:TrecExporter",
    },
)


IMPORTERS: Registry[Importer] = Registry(
    "importer",
    "importers",
    "raggs.golden.formats:Importer",
    {
        "autorag": "raggs.golden.formats.hf:AutoRagImporter",
        "beir": "raggs.golden.formats.beir:BeirImporter",
        "csv": "raggs.golden.formats.tables:CsvImporter",
        "deepeval": "raggs.golden.formats.cases:DeepEvalImporter",
        "hf": "raggs.golden.formats.hf:HfImporter",
        "ir_datasets": "raggs.golden.formats.beir:IrDatasetsImporter",
        "jsonl": "raggs.golden.formats.tables:JsonlImporter",
        "langsmith": "raggs.golden.formats.cases:LangSmithImporter",
        "ragas": "raggs.golden.formats.cases:RagasImporter",
        "ranx": "raggs.golden.formats.trec:RanxImporter",
        "trec": "raggs.golden.formats.trec:TrecImporter",
    },
)
