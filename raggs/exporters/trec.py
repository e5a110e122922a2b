"""TREC files: qrels of all graded passages, the golden top as a run, and what each retriever returned as runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import ClassVar
from urllib.parse import quote

from raggs.atomic import disk
from raggs.exporters.base import Exporter
from raggs.exporters.files import write_lines, write_meta, write_routed_lines
from raggs.golden.base import RUNS, GoldenSet
from raggs.golden.scales import sidecar
from raggs.inputs import read_lines
from raggs.jsontypes import as_object

COLUMNS = "qid Q0 docid rank score tag"
TAG = "raggs-"


class TrecExporter(Exporter):
    """TREC qrels with gains, the ranked top as a run, and each retriever's.

    `qrels.txt` holds `qid 0 docid gain` for each graded passage, near-duplicates included; passages without a
    grade are left out. `run.trec` holds `qid Q0 docid rank score tag`. Readers sort by score and break ties by
    docid, ignoring ranks, so the score is top + 1 - rank: whole, positive, and falling with every rank. It says
    nothing but the order; the ranker's own scores are in the run's artifacts and in the `jsonl` export. `runs/` holds
    what each retriever returned, and their fusion, with their own scores.
    """

    NEEDS_ORDER: ClassVar[bool] = False

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """See `Exporter.write`.

        Raises:
            ProviderError: the folder cannot be written.
        """
        qrels, run = folder / "qrels.txt", folder / "run.trec"
        sidecar = folder / "qrels.txt.meta.json"
        judged = write_lines(qrels, self._qrels(golden))
        ranked = write_lines(run, _run(golden))
        systems = write_routed_lines(_systems(golden, folder))
        _remove_old(folder, qrels, systems)
        facts = {
            "files": {
                qrels.name: {"columns": f"qid 0 docid {self.options.scale.form}", "rows": judged},
                run.name: {"columns": COLUMNS, "rows": ranked, "score": "top + 1 - rank"},
                **{
                    path.relative_to(folder).as_posix(): {"columns": COLUMNS, "rows": rows}
                    for path, rows in systems.items()
                },
            },
            "top": golden.top,
        }
        write_meta(sidecar, golden, self.options.scale, facts)
        return [qrels, sidecar, run, *systems]

    def _qrels(self, golden: GoldenSet) -> Iterator[str]:
        for query in golden.by_query("grades"):
            for graded in query.grades:
                if graded.grade is not None:
                    yield f"{query.qid} 0 {graded.doc_id} {self.options.scale.written(graded.grade)}"


def _run(golden: GoldenSet) -> Iterator[str]:
    tag = _tag(golden.name)
    for record in (record for query in golden.by_query("order") for record in query.order):
        if record.rank <= golden.top:
            yield f"{record.qid} Q0 {record.doc_id} {record.rank} {golden.top + 1 - record.rank} {tag}"


def _systems(golden: GoldenSet, folder: Path) -> Iterator[tuple[Path, str]]:
    """Each line of each retriever's run with its file, which is named as the retriever is."""
    for hit in golden.hits():
        path = folder / RUNS / f"{quote(hit.retriever, safe=' ')}.trec"
        yield path, f"{hit.qid} Q0 {hit.doc_id} {hit.rank} {hit.score!r} {_tag(hit.retriever)}"


def _remove_old(folder: Path, qrels: Path, systems: Collection[Path]) -> None:
    """Take away the lists that the last export wrote here, as its sidecar says, and this one did not.

    Whatever else lies there is somebody's own, also under a name that raggs once wrote.
    """
    for name, facts in as_object(sidecar(qrels).get("files")).items():
        path = folder / name
        known = PurePosixPath(name).parts[:-1] == (RUNS,) and path not in systems
        if known and _is_ours(path, as_object(facts).get("rows")):
            with disk(path, "export to another folder", "cannot be removed"):
                path.unlink()


def _is_ours(path: Path, rows: object) -> bool:
    """Whether a file has as many lines as were written, each with a tag of ours."""
    if path.is_symlink() or not path.is_file():
        return False
    count = 0
    for count, line in enumerate(read_lines(path), start=1):  # noqa: B007 - how many there are
        if not b"".join(line.split()[-1:]).startswith(TAG.encode()):
            return False
    return count == rows


def _tag(name: str) -> str:
    return TAG + re.sub(r"\s+", "-", name.strip())
