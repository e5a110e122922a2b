"""Lists as TREC runs: the golden top, what each retriever returned, and their fusion.

A later export into the same folder takes away what an earlier one wrote there and it does not; whatever else lies there
is somebody's own and stays.

Files of one JSON object ``{qid: {doc_id: number}}``, a query a line, so that none waits in memory.

The passages of a golden set, each once, in the form that `corpus: {type: jsonl}` reads.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from raggs.base.artifacts import Passage
from raggs.base.errors import RaggsError
from raggs.base.files import disk, read_lines, read_whole
from raggs.base.types import as_object
from raggs.golden.base import RUNS, GoldenSet
from raggs.golden.files import passage_facts
from raggs.golden.formats.base import object_writer, write_lines, write_objects, write_routed_lines
from raggs.parts.readers.scales import sidecar


@dataclass(frozen=True)
class Row:
    """The numbers of one query in one file."""

    path: Path
    qid: str
    numbers: Mapping[str, float]


def write_nested(rows: Iterable[Row], *always: Path) -> dict[Path, int]:
    """Write each query to its file, and count the numbers of each; rows of one file come one after another or not.

    Args:
        always: files that are written even where nothing is in them.

    Raises:
        ProviderError: the disk refuses.
    """
    counts: Counter[Path] = Counter(dict.fromkeys(always, 0))
    write_routed_lines(_lines(rows, counts))
    return dict(sorted(counts.items()))


def count_nested(path: Path) -> int | None:
    """How many numbers such a file holds; None where it is none."""
    try:
        found = json.loads(read_whole(path))
    except (RaggsError, ValueError, RecursionError):
        return None
    return sum(len(as_object(numbers)) for numbers in as_object(found).values())


def _lines(rows: Iterable[Row], counts: Counter[Path]) -> Iterator[tuple[Path, str]]:
    begun: set[Path] = set()
    for row in rows:
        sign = "," if row.path in begun else "{"
        begun.add(row.path)
        counts[row.path] += len(row.numbers)
        yield row.path, f"{sign}{_dump(row.qid)}: {_dump(row.numbers)}"
    for path in sorted(counts):
        yield path, "}" if path in begun else "{}"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


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


Form = Callable[[Passage], Mapping[str, object]]


def passage_object(passage: Passage) -> dict[str, object]:
    """A passage as `corpus: {type: jsonl}` reads it again."""
    return {"_id": passage.doc_id, "title": passage.title, "text": passage.text, **passage_facts(passage)}


def write_passages(golden: GoldenSet, path: Path, whole: Iterable[Passage] | None, form: Form = passage_object) -> int:
    """Write the corpus in its own order, or every passage of any query's pool once, sorted by id; count them.

    Args:
        whole: all passages, where they are wanted and at hand.
        form: what is written of a passage.

    Raises:
        ProviderError: the disk refuses.
    """
    if whole is not None:
        return write_objects(path, map(form, whole))
    return write_lines(path, _pooled(golden, form))


def _pooled(golden: GoldenSet, form: Form) -> Iterator[str]:
    """Each passage once, sorted by id. Texts wait in a temporary file, so that memory holds ids and offsets only."""
    places: dict[str, int] = {}
    with tempfile.TemporaryFile() as spill, object_writer(spill) as writer:
        for passage in (passage for query in golden.by_query("pool") for passage in query.pool):
            if passage.doc_id not in places:
                places[passage.doc_id] = spill.tell()
                writer.write(form(passage))
        for doc_id in sorted(places):
            spill.seek(places[doc_id])
            yield spill.readline()[:-1].decode()
