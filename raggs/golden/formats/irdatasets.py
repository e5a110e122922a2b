"""A data set of ir_datasets: the files, and a Python module that registers them.

What raggs wrote for ir_datasets.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import ClassVar

from raggs.golden.base import GoldenSet
from raggs.golden.formats.base import ImportedSet, Importer, write_lines
from raggs.golden.formats.cases import CorpusExporter, Guide
from raggs.golden.formats.pieces import first_of, labels_alone, missing, with_runs
from raggs.golden.formats.trec import write_qrels
from raggs.parts.readers.scales import stated_labels

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
    """Where ir_datasets keeps its index of the passages: another place once they change."""
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
    """ir_datasets: passages, questions, qrels, and a module that registers them.

    `golden_NAME.py` registers `raggs/NAME` when it is imported; `corpus.jsonl` and `queries.jsonl` are those of the
    format beir, `qrels.txt` that of trec.
    """

    FORMAT: ClassVar[str] = "ir_datasets"
    LABELS: ClassVar[str] = "qrels.txt"

    def write_labels(self, golden: GoldenSet, path: Path) -> int:
        """See `CorpusExporter.write_labels`."""
        return write_qrels(golden, path, self.options.scale)

    def guide(self, golden: GoldenSet, folder: Path) -> Guide:
        """See `CorpusExporter.guide`: the module."""
        plain = re.sub(r"[^a-z0-9]+", "_", golden.name.lower()).strip("_") or "set"
        module, known = folder / f"golden_{plain}.py", f"raggs/{plain}"
        write_lines(module, [MODULE.format(name=json.dumps(known), labels=self._meaning())])
        return Guide((module,), {"module": module.name, "dataset": known})

    def _meaning(self) -> str:
        """What each label says, as Python writes it."""
        scale = self.options.scale
        said: dict[int, list[str]] = {}
        for grade, meaning in enumerate(MEANING, start=1):
            said.setdefault(scale.written(grade), []).append(meaning)
        return repr({label: " or ".join(meanings) for label, meanings in said.items()})


class IrDatasetsImporter(Importer):
    """A folder that was written for ir_datasets: corpus.jsonl, queries.jsonl, qrels.txt."""

    FORMAT = "ir_datasets"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        if not path.is_dir():
            return labels_alone(path, self.columns)
        labels = stated_labels(path) or first_of(path, "qrels.txt")
        if labels is None:
            raise missing(path, self.FORMAT, "qrels.txt")
        questions, corpus = first_of(path, "queries.jsonl"), first_of(path, "corpus.jsonl")
        return with_runs(path, labels, questions, corpus, self.columns)
