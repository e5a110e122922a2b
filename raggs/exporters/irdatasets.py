"""A data set of ir_datasets: the files, and a Python module that registers them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import ClassVar

from raggs.exporters.base import Exporter
from raggs.exporters.files import write_lines, write_objects
from raggs.exporters.lists import write_lists
from raggs.exporters.passages import write_passages
from raggs.exporters.trec import write_qrels
from raggs.golden.base import GoldenSet
from raggs.golden.parts import ASKED_AND_READ, Part
from raggs.queries.writing import query_object

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


class IrDatasetsExporter(Exporter):
    """ir_datasets: passages, questions, qrels, and a module that registers them.

    `golden_NAME.py` registers `raggs/NAME` when it is imported; `corpus.jsonl` and `queries.jsonl` are those of the
    format beir, `qrels.txt` that of trec.
    """

    FORMAT: ClassVar[str] = "ir_datasets"
    LABELS: ClassVar[str] = "qrels.txt"
    HOLDS: ClassVar[frozenset[Part] | None] = ASKED_AND_READ | {"grades", "order", "lists"}
    WHOLE_CORPUS: ClassVar[bool] = True

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        corpus, queries, whole = folder / "corpus.jsonl", folder / "queries.jsonl", self.options.corpus
        rows = {
            corpus.name: write_passages(golden, corpus, whole),
            queries.name: write_objects(queries, map(query_object, golden.queries())),
            self.labels: write_qrels(golden, folder / self.labels, self.options.scale),
        }
        lists = write_lists(golden, folder, folder / self.labels)
        files = {**{name: {"rows": count} for name, count in rows.items()}, **lists}
        plain = re.sub(r"[^a-z0-9]+", "_", golden.name.lower()).strip("_") or "set"
        module = folder / f"golden_{plain}.py"
        write_lines(module, [MODULE.format(name=json.dumps(f"raggs/{plain}"), labels=self._meaning())])
        held = "pool" if whole is None else "all"
        known = f"raggs/{plain}"
        sidecar = self.write_sidecar(golden, folder, files, corpus=held, module=module.name, dataset=known)
        return [*(folder / name for name in files), module, sidecar]

    def _meaning(self) -> str:
        """What each label says, as Python writes it."""
        scale = self.options.scale
        said: dict[int, list[str]] = {}
        for grade, meaning in enumerate(MEANING, start=1):
            said.setdefault(scale.written(grade), []).append(meaning)
        return repr({label: " or ".join(meanings) for label, meanings in said.items()})
