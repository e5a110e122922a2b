"""Exporters by name: one file and one line each (see `Exporter`).

Importers by name: golden sets in the formats of others, read as typed ones (see `Importer`).

What an exporter is: a golden set in, files of another tool's format out, and word of what the format cannot hold.

What an importer is: files of a format in, a golden set out, with no more in it than they say.

What was read is held in memory: labels, the questions, the texts of judged passages. Lists and the corpus are read when
they are written.

Files that exporters write: lines streamed into files that appear whole.

Formats of the field have no room for comments (many readers split every line on its columns), so a golden set's
provenance stands in a `.meta.json` beside it.

The folder of an export: nothing of others is written over unasked, and what cannot be exported leaves no trace.

An export into the folder of an earlier one of the same format replaces it. While one is being written, a mark stands in
the folder, so that a killed one can be made again.
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
    """What was read.

    Attributes:
        name, source, top, form, sure, provenance, partial, lacks: see `GoldenSet`.
        given: its queries, sorted by id.
        lists: gives what systems returned, each time anew.
        corpus: gives all passages, each time anew; None where there are none.
        stated: what its sidecar says that it held before it was written; empty where none does.
        kept: keeps files alive that were made for reading.
        notes: sentences about what does not fit together, or was not read.
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
    kept: object = None
    notes: tuple[str, ...] = ()

    def queries(self) -> Iterator[Query]:
        """See `GoldenSet.queries`."""
        return (query.query for query in self.given if query.query is not None)

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """See `GoldenSet.by_query`."""
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
        """See `GoldenSet.hits`."""
        return iter(self.lists())

    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        """See `GoldenSet.judgments`."""
        from raggs.golden.judgments import Judgments  # late: it needs numpy
        from raggs.metrics.columns import Qrels

        labels = {
            query.qid: {one.doc_id: one.grade for one in query.grades if one.grade is not None} for query in self.given
        }
        return Judgments(self.source, Qrels.of(labels, scale or (self.form.scale if self.form else None)))


class Importer(ABC):
    """Reads a golden set.

    Args:
        split: the part of the data to read, in formats with parts; if left out, `test`, or the only one.
        columns: by role, the name of its column or field, as `--column` says.

    Attributes:
        FORMAT: its name in the registry.
        ROLES: the roles that `--column` can name.
        SPLITS: whether the format has splits.
    """

    FORMAT = ""
    ROLES: ClassVar[tuple[str, ...]] = LABEL_ROLES
    SPLITS: ClassVar[bool] = False

    def __init__(self, split: str | None = None, columns: ColumnNames = NO_COLUMNS) -> None:
        self.split, self.columns = split, columns

    @abstractmethod
    def read(self, path: Path) -> ImportedSet:
        """The set in a folder, or in a file of labels.

        Raises:
            NotFoundError: nothing of the format is there.
            DataError: a line of a file cannot be right.
        """


def stated_contents(labels: Path) -> dict[GoldenContent, PartStock]:
    """What the sidecar of an export says that the set held before; empty where none speaks of the file."""
    stated = as_object(sidecar(labels).get("contents"))
    found = {part: as_object(stated.get(part)) for part in GOLDEN_CONTENTS}
    stocks = {part: (facts.get("count"), facts.get("digest")) for part, facts in found.items()}
    return {
        part: PartStock(count, digest)
        for part, (count, digest) in stocks.items()
        if isinstance(count, int) and isinstance(digest, str)
    }


def stated_provenance(labels: Path) -> GoldenProvenance | None:
    """Whence the sidecar says that the grades are; None where none does."""
    try:
        return GoldenProvenance.model_validate(sidecar(labels).get("provenance"))
    except ValidationError:
        return None


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write `lines` (each without its end) to `path`, whole or not at all, and count them.

    Folders are made where missing.

    Raises:
        ProviderError: the disk refuses.
    """
    count = 0
    with _atomic_file(path) as file:
        for line in lines:
            file.write(line.encode() + b"\n")
            count += 1
    return count


def write_routed_lines(lines: Iterable[tuple[Path, str]]) -> dict[Path, int]:
    """Write each line to its own path, as `write_lines` does, and count those of each; paths sorted.

    Raises:
        ProviderError: the disk refuses.
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
    """Write one JSON object a line to `path`, as `write_lines` writes lines, and count them.

    Raises:
        ProviderError: the disk refuses.
    """
    count = 0
    with _atomic_file(path) as file, object_writer(file) as writer:
        for count, each in enumerate(objects, start=1):  # noqa: B007 - how many there were
            writer.write(each)
    return count


def write_list(path: Path, objects: Iterable[Mapping[str, object]]) -> int:
    """Write objects to `path` as one list of JSON, one a line, as `write_lines` writes lines, and count them.

    Raises:
        ProviderError: the disk refuses.
    """
    count = 0
    with _atomic_file(path) as file:
        file.write(b"[")
        for count, each in enumerate(objects, start=1):
            file.write((",\n" if count > 1 else "\n").encode() + _dump(each).encode())
        file.write(b"\n]\n")
    return count


def object_writer(file: IO[bytes]) -> jsonlines.Writer:
    """Writes objects to an open file, keys in the order given, also for readers that split at Unicode's line ends."""
    return jsonlines.Writer(file, dumps=_dump)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).translate(LINE_ENDS)


@contextmanager
def _atomic_file(path: Path) -> Iterator[IO[bytes]]:
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    try:
        with disk(path, "export to another folder"):
            path.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(path.parent, path.name)  # of an export that was killed
            with atomic_writer(path) as file:
                yield file
    except BaseException:
        for folder in made:  # what was refused leaves no empty folder
            with suppress(OSError):
                folder.rmdir()
        raise


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write one indented JSON object to `path`, as `write_lines` writes lines.

    Raises:
        ProviderError: the disk refuses.
    """
    write_lines(path, [json.dumps(value, indent=2, ensure_ascii=False)])


UNORDERED = "nobody was asked for an order (rank: null); what stands in one is by grade, then by fused rank"
TEST = "test"  # the split that tools evaluate on


@dataclass(frozen=True)
class ExportOptions:
    """What is asked of an export.

    Attributes:
        scale: on which numbers labels are written.
        corpus: all passages, for exporters with `WHOLE_CORPUS`; None where only the pools are wanted, or at hand.
        split: what the part of the data is called that the questions are, in formats with parts.
        contents: what the golden set holds, where it is counted already.
        facts: what else the sidecar is to say.
    """

    scale: GradeFormat = field(default_factory=GradeFormat)
    corpus: Iterable[Passage] | None = None
    split: str = TEST
    contents: Mapping[GoldenContent, PartStock] | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ExportLoss:
    """A part of a golden set that an export does not hold.

    Attributes:
        part, what: its name, and what it is in words.
        count: how much of it is lost, in items of `raggs.golden.base`.
        kept: how much of it is there all the same.
    """

    part: GoldenContent
    what: str
    count: int
    kept: int = 0

    def __str__(self) -> str:
        return f"{self.what} ({self.kept:,} of {self.count + self.kept:,} are there)" if self.kept else self.what


class Exporter(ABC):
    """Writes a golden set. Built as ``cls(options)``, or ``cls()`` for what is usual.

    Attributes:
        FORMAT: its name in the registry.
        SIDECAR: the file beside the data that says whence it is; `raggs eval` goes by it.
        LABELS: the file of its labels, in a form that `raggs.parts` knows; ``{split}`` stands for the split's
            name.
        HOLDS: what of a golden set its files give back whole; None: it does not say.
        NEEDS_ORDER: whether it is nothing without a finished ranking.
        WHOLE_CORPUS: whether it writes all passages where it can.
    """

    FORMAT: ClassVar[str] = ""
    SIDECAR: ClassVar[str] = "meta.json"
    LABELS: ClassVar[str] = ""
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = None
    NEEDS_ORDER: ClassVar[bool] = False
    WHOLE_CORPUS: ClassVar[bool] = False

    def __init__(self, options: ExportOptions | None = None) -> None:
        self.options = options or ExportOptions()

    @property
    def holds(self) -> frozenset[GoldenContent] | None:
        """What of a golden set the files give back whole, with these options."""
        return self.HOLDS - {"grades"} if self.HOLDS and self.options.scale.form == "binary" else self.HOLDS

    def numbers(self, golden: GoldenSet) -> GradeFormat | None:
        """On which numbers the labels of the files stand; None where nobody knows."""
        return self.options.scale

    @property
    def labels(self) -> str:
        """The file of labels, relative to the folder; empty where there is none."""
        return self.LABELS.format(split=self.options.split)

    def losses(self, contents: Mapping[GoldenContent, PartStock]) -> tuple[ExportLoss, ...]:
        """What the set has and the files do not hold; nothing of exporters that do not say what they hold."""
        held = self.holds
        there = self.kept
        lost = () if held is None else [part for part in GOLDEN_CONTENTS if part not in held and contents[part].count]
        kept = {part: min(there.get(part, 0), contents[part].count) for part in lost}
        return tuple(
            ExportLoss(part, GOLDEN_CONTENTS[part], contents[part].count - kept[part], kept[part]) for part in lost
        )

    @property
    def kept(self) -> Mapping[GoldenContent, int]:
        """How many items there are in what was written of parts that the files do not hold whole."""
        return {}

    @abstractmethod
    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files of the format into `folder` (made if missing); each appears whole or not at all.

        Returns:
            The files, in a stable order.
        """

    def write_sidecar(
        self,
        golden: GoldenSet,
        folder: Path,
        files: Mapping[str, Mapping[str, object]],
        **facts: object,
    ) -> Path:
        """Write what the files cannot say themselves: whence they are, on which numbers, and what they do not hold.

        Args:
            files: what was written: by path in the folder, with its number of ``rows``.
            facts: what else the format says of itself.

        Raises:
            ProviderError: the folder cannot be written.
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
            **({"unordered": UNORDERED} if golden.by_grade else {}),
            **({"grades": numbers.described()} if numbers else {}),
            "contents": {part: vars(stock) for part, stock in contents.items() if stock.count},
            "lost": [vars(loss) for loss in self.losses(contents)],
            "provenance": provenance,
        }
        path = folder / self.SIDECAR
        write_json(path, meta)
        return path


MARK_FILE = ".raggs-export"  # holds the name of the format that is being written


@contextmanager
def claimed(folder: Path, kind: type[Exporter], *, force: bool = False) -> Iterator[None]:
    """Keep a folder for an export while it is written.

    Args:
        force: whether it may hold other things, of which those with the names of the export's files are replaced.

    Raises:
        UsageError: it holds something else than an export of this format.
        ProviderError: it cannot be written.
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
    """Take away the labels of another split that the last export wrote here, or tools would find both.

    Args:
        labels: what this one writes, relative to the folder.

    Raises:
        ProviderError: they cannot be removed.
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
    with suppress(OSError):  # what is no folder is said when it is written to
        mark = folder / MARK_FILE
        other = any(path.name != MARK_FILE for path in folder.iterdir())
        begun = mark.is_file() and mark.read_text() == kind.FORMAT
        if other and not begun and stated_format(folder / kind.SIDECAR) not in ("", kind.FORMAT):
            format_ = kind.FORMAT or kind.__name__
            raise UsageError(
                f"{folder} exists and holds something else than a {format_} export",
                remedy="name another --out, or pass --force to write into it",
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
        "promptfoo": "raggs.golden.formats.promptfoo:PromptfooExporter",
        "ragas": "raggs.golden.formats.cases:RagasExporter",
        "ranx": "raggs.golden.formats.trec:RanxExporter",
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
