"""Audit of a version that `raggs update` made: is its lineage possible, and are its carried labels those of its parent?

`chain_findings` follows the lineage from run directory to run directory. Each parent must have the version that its
child names. A parent with another version was forged, or has changed since the update. A version depends on all
versions before it, so a version cannot be its own ancestor. The cause of a cycle is a forged or damaged file, or a run
directory at the path of another one. `carried_findings` compares each carried label with the record of the parent, with
its texts, and with the rules of `raggs.golden.aligning`. If the parent is not at its recorded path, the labels are
compared only with the file that `raggs update` wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from raggs.base.artifacts import JournalRecord, JudgeRecord, MergeRecord, Origin, QueryRecord, Validity, artifact_file
from raggs.base.errors import RaggsError
from raggs.base.files import hash_file, relative_to_cwd
from raggs.golden.aligning import EditedPassage, QueryWords, align, single_spaced
from raggs.parts.reviews import passage_digest
from raggs.runs.manifests.lineage import (
    IDENTIFYING,
    LABELS_FILE,
    MAX_GENERATIONS,
    ORDERS_FILE,
    Lineage,
    count_version,
)
from raggs.runs.manifests.models import MANIFEST, AuditFinding
from raggs.runs.manifests.open_run import ArtifactByQuery, OpenedRun
from raggs.runs.manifests.store import RunStore
from raggs.stages.earlier_version import CarriedLabels, CarriedRankings

JUDGED_FILE, JOURNAL_FILE = artifact_file("judge"), artifact_file("rank.journal")
# fields of a carried label that do not come from its parent; the validity comes from the passage
OF_POOL = {"rank", *Validity.model_fields}
OWN_FIELDS = {"qid", "doc_id", "duplicate_of", "carried", *OF_POOL}
MAX_FINDINGS = 3  # reported lines per file; a last finding counts the others


def parent_of(run: OpenedRun) -> OpenedRun | None:
    """Return the parent of a version; None if the set is a first version, or the parent is not at its recorded path.

    Raises:
        RaggsError: the manifest of the parent cannot be read.
    """
    lineage = run.manifest.lineage
    store = None if lineage is None else RunStore((run.folder / lineage.folder).resolve())
    return None if store is None or not store.exists else OpenedRun(store, store.manifest(), as_found=True)


def unchecked(run: OpenedRun) -> Iterator[str]:
    """Yield a noun phrase if carried labels cannot be verified because the parent is not at its recorded path."""
    if run.manifest.lineage is not None:
        try:
            missing = parent_of(run) is None
        except RaggsError:
            return
        if missing:
            place = run.folder / run.manifest.lineage.folder
            yield f"the carried labels, because the parent version {run.manifest.lineage.origin} is not at {place}"


def lineage_findings(run: OpenedRun) -> Iterator[AuditFinding]:
    """Yield problems with the lineage of a run. If there are none, yield problems with its carried labels and orders.
    In a version without a lineage, a carried label is a problem.
    """
    lineage = run.manifest.lineage
    if lineage is None:
        if "judge" in run.manifest.stages:
            yield from _without_lineage(run)
        return
    broken = [*chain_findings(run), *_file_findings(run, lineage)]
    yield from broken
    if not broken and "judge" in run.manifest.stages:
        yield from carried_findings(run, lineage)


def _without_lineage(run: OpenedRun) -> Iterator[AuditFinding]:
    for number, record in enumerate(run.typed("judge", JudgeRecord), start=1):
        if record.carried is not None:
            message = f"names version {record.carried.version}, but the manifest has no lineage"
            yield AuditFinding(JUDGED_FILE, number, message, "copy")
            return


# --- the chain of versions ---


def chain_findings(run: OpenedRun) -> Iterator[AuditFinding]:
    """Yield the first problem in the lineage of a run: a cycle, too many versions, or a parent that is unreadable or
    differs from its child's statements. The versions before a missing parent are not read.
    """
    seen, folders = {run.manifest.version}, {run.folder.resolve()}
    child = run
    for _ in range(MAX_GENERATIONS):
        lineage = child.manifest.lineage
        if lineage is None:
            return
        names = [lineage.parent, *lineage.ancestors]
        if len(set(names)) < len(names) or child.manifest.version in names or lineage.parent in seen:
            yield _chain_finding(run, child, f"its lineage is a cycle: version {lineage.origin} is its own ancestor")
            return
        try:
            parent = parent_of(child)
        except RaggsError as error:
            yield _chain_finding(run, child, f"its parent cannot be read: {error.message}")
            return
        if parent is None:
            return
        if parent.folder.resolve() in folders:
            yield _chain_finding(
                run, child, f"its lineage is a cycle: {relative_to_cwd(parent.folder)} is its own ancestor"
            )
            return
        if (problem := _parent_problem(lineage, parent)) is not None:
            yield _chain_finding(run, child, problem)
            return
        seen.add(lineage.parent)
        folders.add(parent.folder.resolve())
        child = parent
    yield _chain_finding(run, child, f"its lineage has more than {MAX_GENERATIONS:,} versions")


def _chain_finding(run: OpenedRun, child: OpenedRun, problem: str) -> AuditFinding:
    whose = "" if child is run else f"{relative_to_cwd(child.folder)}: "
    return AuditFinding(MANIFEST, None, f"{whose}{problem}", "copy")


def _parent_problem(lineage: Lineage, parent: OpenedRun) -> str | None:
    """Return how a parent differs from the version that its child names, as a clause; None if it does not."""
    place, before = relative_to_cwd(parent.folder), parent.manifest.lineage
    if parent.manifest.version != lineage.parent:
        return f"its parent {place} is not the version that was updated: it was forged, or has changed since"
    known = () if before is None else (before.parent, *before.ancestors)[:MAX_GENERATIONS]
    if known != lineage.ancestors:
        return f"its ancestors differ from those of its parent {place}"
    for stage in parent.manifest.stages.values():
        for file, output in stage.outputs.items():
            path = parent.folder / file
            if file in IDENTIFYING and (not path.is_file() or hash_file(path) != output.sha256):
                return f"{file} of its parent {place} differs from the parent's manifest: it was forged or edited"
    return None


def _file_findings(run: OpenedRun, lineage: Lineage) -> Iterator[AuditFinding]:
    for file, expected in ((LABELS_FILE, lineage.labels), (ORDERS_FILE, lineage.orders)):
        path = run.folder / file
        if path.is_symlink() or not path.is_file():
            yield AuditFinding(file, None, "the file is missing or not a regular file", "copy")
        elif hash_file(path) != expected:
            yield AuditFinding(file, None, "differs from the file that raggs update wrote", "copy")


# --- carried labels ---


def carried_findings(run: OpenedRun, lineage: Lineage) -> Iterator[AuditFinding]:
    """Compare the carried labels and orders with the files of the update, and the labels with the parent."""
    found = _Findings()
    labels, parent = CarriedLabels(run.folder / LABELS_FILE), parent_of(run)
    check = None if parent is None else _ParentCheck(run, parent)
    for number, record in enumerate(run.typed("judge", JudgeRecord), start=1):
        if record.carried is None or record.duplicate_of is not None:
            continue
        said = next((line.label for line in labels.of(record.qid) if line.doc_id == record.doc_id), None)
        if said is None or said.model_dump(exclude=OF_POOL) != record.model_dump(exclude=OF_POOL):
            found.add(JUDGED_FILE, number, f"query {record.qid}: the label of {record.doc_id} is not in {LABELS_FILE}")
        elif check is not None and (problem := check.problem(record, record.carried)) is not None:
            found.add(JUDGED_FILE, number, f"query {record.qid}, passage {record.doc_id}: {problem}")
    if "rank" in run.manifest.stages:
        _check_orders(run, found)
    yield from found.listed()
    whole = all(name in run.manifest.stages for name in run.pipeline.order)
    if whole and lineage.counts != _counts(run):
        yield AuditFinding(MANIFEST, None, "the counts in the lineage differ from those of the artifacts")


def _counts(run: OpenedRun) -> object:
    orders = run.typed("rank.journal", JournalRecord) if "rank" in run.manifest.stages else iter(())
    return count_version(run.typed("judge", JudgeRecord), orders)


def _check_orders(run: OpenedRun, found: _Findings) -> None:
    orders = CarriedRankings(run.folder / ORDERS_FILE)
    for number, entry in enumerate(run.typed("rank.journal", JournalRecord), start=1):
        if not entry.carried:
            continue
        known = next(iter(orders.of(entry.qid)), None)
        if entry.groups:
            shown = tuple(doc_id for group in entry.groups for doc_id in group)
            made = known is not None and any(
                shown == tuple(doc_id for doc_id in each.order if doc_id in set(shown)) for each in known.orders
            )
        else:
            made = known is not None and any(
                (each.shown, each.order) == (entry.shown, entry.order) for each in known.orders
            )
        if not made:
            found.add(JOURNAL_FILE, number, f"query {entry.qid}: this carried order is not in {ORDERS_FILE}")


class _Findings:
    """Findings by file. The first `MAX_FINDINGS` per file are kept, the others are counted."""

    def __init__(self) -> None:
        self._found: dict[str, list[AuditFinding]] = {}
        self._more: dict[str, int] = {}

    def add(self, file: str, line: int, message: str) -> None:
        held = self._found.setdefault(file, [])
        if len(held) < MAX_FINDINGS:
            held.append(AuditFinding(file, line, message, "copy"))
        else:
            self._more[file] = self._more.get(file, 0) + 1

    def listed(self) -> Iterator[AuditFinding]:
        for file, found in self._found.items():
            yield from found
            if more := self._more.get(file):
                yield AuditFinding(file, None, f"and {more:,} more lines", "copy")


class _ParentCheck:
    """Compares carried labels with the records and texts of a parent, query by query."""

    def __init__(self, run: OpenedRun, parent: OpenedRun) -> None:
        self._judged, self._pools = ArtifactByQuery(parent, "judge"), ArtifactByQuery(parent, "merge")
        self._own = ArtifactByQuery(run, "merge")
        self._queries = QueryWords({query.qid: query for query in parent.typed("queries", QueryRecord)})
        self._qids = ("", "")
        self._records: Mapping[str, JudgeRecord] = {}
        self._texts: Mapping[str, MergeRecord] = {}
        self._mine: Mapping[str, MergeRecord] = {}

    def problem(self, record: JudgeRecord, origin: Origin) -> str | None:
        """Return how a carried label contradicts the parent, as a clause; None if it does not."""
        qid = origin.qid or record.qid
        if self._qids != (qid, record.qid):
            self._qids = (qid, record.qid)
            self._records = {each.doc_id: each for each in self._judged.of(qid, JudgeRecord)}
            self._texts = {each.doc_id: each for each in self._pools.of(qid, MergeRecord)}
            self._mine = {each.doc_id: each for each in self._own.of(record.qid, MergeRecord)}
        first = self._records.get(origin.doc_ids[0])
        if first is None or any(doc_id not in self._texts for doc_id in origin.doc_ids):
            return f"the parent has no label of {', '.join(origin.doc_ids)} for query {qid}"
        if first.model_dump(exclude=OWN_FIELDS) != record.model_dump(exclude=OWN_FIELDS):
            return f"differs from the parent's label of {first.doc_id}"
        mine = self._mine.get(record.doc_id)
        if mine is None:
            return "is not in the pool"
        if origin.how in ("unchanged", "moved"):
            same = passage_digest(mine.passage) == passage_digest(self._texts[first.doc_id].passage)
            return None if same else f"its text differs from that of {first.doc_id}, whose label it has"
        return self._edited_problem(qid, record, origin, mine)

    def _edited_problem(self, qid: str, record: JudgeRecord, origin: Origin, mine: MergeRecord) -> str | None:
        text = single_spaced(mine.passage.content)
        aligned = {each: align(single_spaced(self._texts[each].passage.content), text) for each in origin.doc_ids}
        kept = {each: alignment for each, alignment in aligned.items() if alignment.stretches}
        grades = {each: grade for each in kept if (grade := self._records[each].grade) is not None}
        label = EditedPassage(record.doc_id, text, kept).label(qid, grades, self._queries)
        if label is None or (label.grade, label.how) != (record.grade, origin.how):
            return f"the rules of projection do not give it the label of {origin.doc_ids[0]}"
        return None
