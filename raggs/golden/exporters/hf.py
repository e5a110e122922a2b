"""A data set of Hugging Face's `datasets`, in the configurations by which MTEB knows a retrieval task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import yaml

from raggs.base.artifacts import Passage, Query
from raggs.base.atomic import disk
from raggs.base.hashing import hash_file
from raggs.base.text import one_line
from raggs.golden.base import GoldenSet
from raggs.golden.exporters.corpora import CORPUS, QUERIES, CorpusExporter, Guide
from raggs.golden.exporters.files import write_lines, write_objects
from raggs.golden.packed import PACKED, packed
from raggs.parts.readers.scales import GradeScale

CARD = "README.md"
TEXTS = {"_id": "string", "title": "string", "text": "string", PACKED: "string"}
ASKED = {"_id": "string", "text": "string", PACKED: "string"}
SCORES = {"query-id": "string", "corpus-id": "string", "score": "int32"}


class HfExporter(CorpusExporter):
    """Hugging Face data set with MTEB's configurations: corpus, queries, default.

    `README.md` names the files and their types to `datasets.load_dataset`. Each row has the same columns; what came
    with a question or a passage is JSON in the column `raggs`.
    """

    FORMAT: ClassVar[str] = "hf"
    LABELS: ClassVar[str] = "qrels/{split}.jsonl"

    def passage(self, passage: Passage) -> Mapping[str, object]:
        """See `CorpusExporter.passage`."""
        return {"_id": passage.doc_id, "title": passage.title, "text": passage.text, PACKED: packed(passage)}

    def query(self, query: Query) -> Mapping[str, object]:
        """See `CorpusExporter.query`."""
        return {"_id": query.qid, "text": query.text, PACKED: packed(query)}

    def write_labels(self, golden: GoldenSet, path: Path) -> int:
        """See `CorpusExporter.write_labels`."""
        return write_objects(path, _labels(golden, self.options.scale))

    def guide(self, golden: GoldenSet, folder: Path) -> Guide:
        """See `CorpusExporter.guide`: the card."""
        with disk(folder, "export to another folder", "cannot be read again"):
            content = {name: hash_file(folder / name) for name in (CORPUS, QUERIES, self.labels)}
        write_lines(folder / CARD, self._card(golden, content))
        return Guide((folder / CARD,))

    def _card(self, golden: GoldenSet, content: Mapping[str, str]) -> Iterator[str]:
        """The lines of the page on the hub, whose head is what `datasets` goes by.

        It keeps what it has read of a folder until the head changes; so the head holds a hash of each file.
        """
        configs = [
            _config("corpus", "corpus", CORPUS),
            _config("queries", "queries", QUERIES),
            {**_config("default", self.options.split, self.labels), "default": True},
        ]
        types = zip(("corpus", "queries", "default"), (TEXTS, ASKED, SCORES), content.items(), strict=True)
        info = [
            {"config_name": name, "description": f"{file} sha256:{sha256}", "features": _features(columns)}
            for name, columns, (file, sha256) in types
        ]
        head = {"configs": configs, "dataset_info": info, "tags": ["mteb"], "task_categories": ["text-retrieval"]}
        yield "---"
        yield yaml.safe_dump(head, sort_keys=False, allow_unicode=True).rstrip("\n")
        yield "---"
        yield f"# {one_line(golden.name)}"
        yield ""
        yield f"A golden set for retrieval, made with raggs. Scores: {self.options.scale.described()['meaning']}."
        yield f"Whence it is, and what these files cannot hold, stands in `{self.SIDECAR}`."


def _config(name: str, split: str, path: str) -> dict[str, object]:
    return {"config_name": name, "data_files": [{"split": split, "path": path}]}


def _features(columns: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "dtype": dtype} for name, dtype in columns.items()]


def _labels(golden: GoldenSet, scale: GradeScale) -> Iterator[dict[str, object]]:
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                score = scale.written(graded.grade)
                yield {"query-id": query.qid, "corpus-id": graded.doc_id, "score": score}
