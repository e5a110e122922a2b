"""Lists as TREC runs: the golden top, what each retriever returned, and their fusion.

A later export into the same folder takes away what an earlier one wrote there and it does not; whatever else lies there
is somebody's own and stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from raggs.base.atomic import disk
from raggs.base.inputs import read_lines
from raggs.base.jsontypes import as_object
from raggs.golden.base import RUNS, GoldenSet
from raggs.golden.exporters.files import write_lines, write_routed_lines
from raggs.golden.exporters.nested import count_nested
from raggs.parts.readers.scales import sidecar

COLUMNS = "qid Q0 docid rank score tag"
TAG = "raggs-"
TOP = "run.trec"
BY_GRADE = "by_grade"  # marks what stands by grade, then by fused rank, since nobody is asked for an order

Files = Mapping[str, Mapping[str, object]]  # by path in the folder, what a sidecar says of each


def write_lists(golden: GoldenSet, folder: Path, labels: Path) -> Files:
    """The ranked top, and what the systems returned: see `write_top` and `write_systems`.

    Raises:
        ProviderError: the folder cannot be written.
    """
    return {**write_top(golden, folder), **write_systems(golden, folder, labels)}


def write_top(golden: GoldenSet, folder: Path) -> Files:
    """The ranked top as a run, with falling scores that say nothing but the order.

    Of a set of grades alone all graded passages, whose scores are their grades: equals are tied, and nobody broke them.

    Raises:
        ProviderError: the folder cannot be written.
    """
    rows = write_lines(folder / TOP, top_lines(golden))
    score = {"score": "grade", BY_GRADE: True} if golden.by_grade else {"score": "top + 1 - rank"}
    return {TOP: {"columns": COLUMNS, "rows": rows, **score}}


def write_systems(golden: GoldenSet, folder: Path, labels: Path) -> Files:
    """What each retriever returned, and their fusion, as runs in `RUNS`.

    Args:
        labels: the file whose sidecar says what was written there before.

    Raises:
        ProviderError: the folder cannot be written.
    """
    counts = write_routed_lines(_systems(golden, folder))
    remove_old(folder, labels, counts)
    return {path.relative_to(folder).as_posix(): {"columns": COLUMNS, "rows": rows} for path, rows in counts.items()}


def top_lines(golden: GoldenSet) -> Iterator[str]:
    """The lines of the golden top; of a set of grades alone all that are graded, with their grades as scores."""
    tag = _tag(golden.name)
    for query in golden.by_query("grades") if golden.by_grade else ():
        for rank, each in enumerate(query.by_grade, start=1):
            yield f"{query.qid} Q0 {each.doc_id} {rank} {each.grade} {tag}-{BY_GRADE}"
    for record in (record for query in golden.by_query("order") for record in query.order):
        if record.rank <= golden.top:
            yield f"{record.qid} Q0 {record.doc_id} {record.rank} {golden.top + 1 - record.rank} {tag}"


def list_name(retriever: str) -> str:
    """A retriever's name as the name of a file; `urllib.parse.unquote` gives it back."""
    return quote(retriever, safe=" ")


def _systems(golden: GoldenSet, folder: Path) -> Iterator[tuple[Path, str]]:
    """Each line of each retriever's run with its file, which is named as the retriever is."""
    for hit in golden.hits():
        path = folder / RUNS / f"{list_name(hit.retriever)}.trec"
        yield path, f"{hit.qid} Q0 {hit.doc_id} {hit.rank} {hit.score!r} {_tag(hit.retriever)}"


def remove_old(folder: Path, labels: Path, systems: Collection[Path]) -> None:
    """Take away the lists that the last export wrote here, as its sidecar says, and this one did not.

    Args:
        labels: the file that the sidecar speaks of.
        systems: the lists that this one wrote.

    Raises:
        ProviderError: one cannot be removed.
    """
    for name, facts in as_object(sidecar(labels).get("files")).items():
        path = folder / name
        known = PurePosixPath(name).parts[:-1] == (RUNS,) and path not in systems
        if known and _is_ours(path, as_object(facts).get("rows")):
            with disk(path, "export to another folder", "cannot be removed"):
                path.unlink()


def _is_ours(path: Path, rows: object) -> bool:
    """Whether a file has as many lines as were written, each with a tag of ours; of JSON, as many numbers."""
    if path.is_symlink() or not path.is_file():
        return False
    if path.suffix == ".json":
        return count_nested(path) == rows
    count = 0
    for count, line in enumerate(read_lines(path), start=1):  # noqa: B007 - how many there are
        if not b"".join(line.split()[-1:]).startswith(TAG.encode()):
            return False
    return count == rows


def _tag(name: str) -> str:
    return TAG + re.sub(r"\s+", "-", name.strip())
