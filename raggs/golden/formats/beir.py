"""The BEIR layout (corpus, queries and graded qrels) and data sets of ir_datasets: exporters and importers.

The exporter for ir_datasets writes files, and a Python module that registers them as a data set.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.golden.base import GoldenSet
from raggs.golden.formats import ImportedSet, Importer, write_lines
from raggs.golden.formats.cases import CorpusExporter, ToolGuide
from raggs.golden.formats.labelled_files import TEST, first_of, labels_alone, missing_file_error, with_runs
from raggs.golden.formats.trec import write_qrels
from raggs.parts.file_shapes import GradeFormat, stated_labels


class BeirExporter(CorpusExporter):
    """BEIR folder: corpus, queries, and graded qrels of a split.

    `corpus.jsonl` contains the whole corpus in its original order if it is available. Otherwise, it contains every
    pooled passage once, sorted by id. `queries.jsonl` contains the original queries with all additional data, sorted by
    id. `qrels/test.tsv` (or another split name) contains each graded passage with its label: by default, its gain from
    0 to 4.
    """

    FORMAT: ClassVar[str] = "beir"
    LABELS: ClassVar[str] = "qrels/{split}.tsv"

    def write_labels(self, golden: GoldenSet, path: Path) -> int:
        """Write the labels; see `CorpusExporter.write_labels`."""
        return write_lines(path, table_lines(golden, self.options.scale)) - 1


def table_lines(golden: GoldenSet, scale: GradeFormat) -> Iterator[str]:
    """Yield the labels as lines of a table, header first."""
    yield "query-id\tcorpus-id\tscore"
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                yield _row(query.qid, graded.doc_id, str(scale.written(graded.grade)))


def _row(*cells: str) -> str:
    """Return a row of a table. A cell that contains a quotation mark is quoted, as table readers expect."""
    if not any('"' in cell for cell in cells):
        return "\t".join(cells)
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="").writerow(cells)
    return text.getvalue()


class BeirImporter(Importer):
    """BEIR folder: corpus.jsonl, queries.jsonl, and qrels/SPLIT.tsv."""

    FORMAT = "beir"

    SPLITS = True

    def read(self, path: Path) -> ImportedSet:
        """Read the set; see `Importer.read`."""
        if not path.is_dir():
            return labels_alone(path, self.columns)
        tables = sorted((path / "qrels").glob("*.tsv*"))
        stated = stated_labels(path)
        alone = stated or (tables[0] if len(tables) == 1 else None)
        labels = first_of(path / "qrels", f"{self.split or TEST}.tsv") or (None if self.split else alone)
        if labels is None:
            there = ", ".join(dict.fromkeys(table.name.partition(".tsv")[0] for table in tables))
            wanted = f"qrels/{self.split or TEST}.tsv" + (f"; --split names one of {there}" if there else "")
            raise missing_file_error(path, self.FORMAT, wanted)
        questions, corpus = first_of(path, "queries.jsonl"), first_of(path, "corpus.jsonl")
        return with_runs(path, labels, questions, corpus, self.columns)


MEANING = ("not relevant", "weakly relevant", "partially relevant", "highly relevant", "answers the question")

MODULE = '''"""A golden set for ir_datasets, written by raggs. Importing it registers it: ir_datasets.load(NAME)."""

from pathlib import Path
from typing import NamedTuple

import ir_datasets
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import GenericQuery, JsonlDocs, JsonlQueries, TrecQrels
from ir_datasets.util import LocalDownload, home_path

NAME = {name}
LABELS = {labels}
FOLDER = Path(__file__).resolve().parent


class Passage(NamedTuple):
    doc_id: str
    title: str
    text: str

    def default_text(self):
        return f"{{self.title}} {{self.text}}".strip()


def _file(name):
    return LocalDownload(FOLDER / name, mkdir=False)


def _store():
    """Return the path of ir_datasets' index of the passages. If they change, the path is another one."""
    state = (FOLDER / "corpus.jsonl").stat()
    return home_path() / NAME / f"{{state.st_size:x}}-{{state.st_mtime_ns:x}}.pklz4"


DATASET = Dataset(
    JsonlDocs(
        _file("corpus.jsonl"),
        doc_cls=Passage,
        mapping={{"doc_id": "_id", "title": "title", "text": "text"}},
        docstore_path=_store(),
    ),
    JsonlQueries(_file("queries.jsonl"), query_cls=GenericQuery, mapping={{"query_id": "_id", "text": "text"}}),
    TrecQrels(_file("qrels.txt"), LABELS),
)
if NAME not in ir_datasets.registry:
    ir_datasets.registry.register(NAME, DATASET)'''


class IrDatasetsExporter(CorpusExporter):
    """ir_datasets: passages, queries, qrels, and a module that registers them.

    `golden_NAME.py` registers `raggs/NAME` when it is imported. `corpus.jsonl` and `queries.jsonl` are the same as in
    the format beir, and `qrels.txt` is the same as in the format trec.
    """

    FORMAT: ClassVar[str] = "ir_datasets"
    LABELS: ClassVar[str] = "qrels.txt"

    def write_labels(self, golden: GoldenSet, path: Path) -> int:
        """Write the labels; see `CorpusExporter.write_labels`."""
        return write_qrels(golden, path, self.options.scale)

    def guide(self, golden: GoldenSet, folder: Path) -> ToolGuide:
        """Write the module; see `CorpusExporter.guide`."""
        plain = re.sub(r"[^a-z0-9]+", "_", golden.name.lower()).strip("_") or "set"
        module, known = folder / f"golden_{plain}.py", f"raggs/{plain}"
        write_lines(module, [MODULE.format(name=json.dumps(known), labels=self._meaning())])
        return ToolGuide((module,), {"module": module.name, "dataset": known})

    def _meaning(self) -> str:
        """Return the source code of a Python dictionary with the meaning of each label."""
        scale = self.options.scale
        said: dict[int, list[str]] = {}
        for grade, meaning in enumerate(MEANING, start=1):
            said.setdefault(scale.written(grade), []).append(meaning)
        return repr({label: " or ".join(meanings) for label, meanings in said.items()})


class IrDatasetsImporter(Importer):
    """A folder written for ir_datasets: corpus.jsonl, queries.jsonl, qrels.txt."""

    FORMAT = "ir_datasets"

    def read(self, path: Path) -> ImportedSet:
        """Read the set; see `Importer.read`."""
        if not path.is_dir():
            return labels_alone(path, self.columns)
        labels = stated_labels(path) or first_of(path, "qrels.txt")
        if labels is None:
            raise missing_file_error(path, self.FORMAT, "qrels.txt")
        questions, corpus = first_of(path, "queries.jsonl"), first_of(path, "corpus.jsonl")
        return with_runs(path, labels, questions, corpus, self.columns)
