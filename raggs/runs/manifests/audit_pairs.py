"""Compare facts that a run stores in more than one place, and that cannot be recomputed.

- The locks of embed, judge and rank all have the hash of the queries in `queries.jsonl`.
- All vectors in `embed.jsonl` have the embedder and the dimension that the lock of embed names.
- `retrieve.jsonl` contains only known queries and configured retrievers. The ranks of each list are 1 to n, and n is at
  most the retriever's depth.
- The locks of embed, retrieve and judge name the types of their components twice: in the parameters and in the
  components.
- The name of a judge that calls models contains the names of these models. No two stages claim the same lines of the
  ledger.

Artifacts that can be recomputed from others are compared in `raggs.runs.manifests.derive`.

`text_findings` compares the texts of the pools with the corpus, if the cache has the corpus in a passage store. A store
is identified by the hash of its content, which is in the lock of merge. The store is opened read-only. raggs does not
compute this hash again, so the check is only as reliable as the stored rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import groupby, pairwise

from raggs.base.artifacts import EmbedRecord, MergeRecord, QueryRecord, RetrieveRecord
from raggs.base.errors import RaggsError
from raggs.base.hashing import hash_value
from raggs.base.text import shorten
from raggs.base.types import as_list, as_object
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.judges import REGISTRY as JUDGES
from raggs.parts.retrievers import name_of
from raggs.runs.manifests.models import MANIFEST, AuditFinding, StageLock, parameters
from raggs.runs.manifests.open_run import OpenedRun
from raggs.stages import GOLDEN
from raggs.stages.retrieve import RetrieveConfig

QUESTIONS, EMBED, RETRIEVE = "queries.jsonl", "embed.jsonl", "retrieve.jsonl"
HASH_DIGITS = 12  # number of digits of a hash that are shown
PART_SETTINGS = {
    "embed": {"embedder": "embedder", "rewriter": "rewrite"},
    "judge": {"judge": "judge"},
}  # name of the setting for each component, by stage


def pair_findings(run: OpenedRun, damaged: Set[str]) -> Iterator[AuditFinding]:
    """Yield findings about contradictions, for vectors and for lists only the first one. Files in `damaged` are not
    read. For a pipeline other than golden, only the claimed lines of the ledger are compared.
    """
    locks = {name: run.manifest.stages[name] for name in run.pipeline.order if name in run.manifest.stages}
    yield from _bookings(locks)
    if run.manifest.pipeline != GOLDEN.name:
        return
    for lock in locks.values():
        yield from _parts(lock)
        yield from _models(lock)
    yield from _corpora(locks)
    try:
        if _readable(locks.get("embed"), QUESTIONS, damaged):
            yield from _questions(run, locks)
        if _readable(locks.get("embed"), EMBED, damaged):
            yield from _vectors(run, locks["embed"])
            if _readable(locks.get("retrieve"), RETRIEVE, damaged):
                yield from _lists(run, locks["retrieve"])
    except RaggsError as error:
        yield AuditFinding(MANIFEST, None, f"the queries and retrieved lists cannot be compared: {error}")


def _readable(lock: StageLock | None, file: str, damaged: Set[str]) -> bool:
    return lock is not None and file in lock.outputs and file not in damaged


def _questions(run: OpenedRun, locks: Mapping[str, StageLock]) -> Iterator[AuditFinding]:
    """Compare the queries with the hash in the lock of each stage that read them."""
    records = run.typed("queries", QueryRecord)
    found = hash_value([record.model_dump(mode="json", exclude={"v"}) for record in records])
    for name, lock in locks.items():
        stated = lock.components.get("queries")
        if stated is not None and stated != found:
            said = f"holds other queries than stage {name} read: their hash is {found[:HASH_DIGITS]},"
            yield AuditFinding(QUESTIONS, None, f"{said} but {str(stated)[:HASH_DIGITS]} in the lock")


def _vectors(run: OpenedRun, lock: StageLock) -> Iterator[AuditFinding]:
    """Yield the first line of embed.jsonl with a vector that is not from the lock's embedder."""
    part = as_object(lock.components.get("embedder"))
    identity, dims = part.get("identity"), part.get("dims")
    for number, record in enumerate(run.typed("embed", EmbedRecord), start=1):
        if lock.components.get("embedder") is None and (record.embedder or record.embedding):
            yield AuditFinding(EMBED, number, f"has a vector of {record.embedder!r}, but the lock has no embedder")
        elif isinstance(identity, str) and record.embedder != identity:
            yield AuditFinding(EMBED, number, f"its embedder is {record.embedder!r}, but {identity!r} in the lock")
        elif isinstance(dims, int) and len(record.embedding) != dims:
            yield AuditFinding(
                EMBED, number, f"its vector has {len(record.embedding):,} values, but {dims:,} in the lock"
            )
        else:
            continue
        return


def _lists(run: OpenedRun, lock: StageLock) -> Iterator[AuditFinding]:
    """Yield the first line of retrieve.jsonl that the lock's retrievers cannot have returned."""
    config = parameters(RetrieveConfig, lock.stage, lock.params)
    depths = {name_of(spec): spec.k for spec in config.deepest}
    known = {record.qid for record in run.typed("embed", EmbedRecord)}
    number = 0
    for (qid, retriever), hits in groupby(
        run.typed("retrieve", RetrieveRecord), key=lambda record: (record.qid, record.retriever)
    ):
        if qid not in known:
            yield AuditFinding(RETRIEVE, number + 1, f"query {qid} is not in {EMBED}")
            return
        if retriever not in depths:
            yield AuditFinding(RETRIEVE, number + 1, f"the lock has no retriever {retriever!r}")
            return
        seen = set[str]()
        for rank, hit in enumerate(hits, start=1):
            number += 1
            if hit.rank != rank or hit.doc_id in seen:
                said = f"rank {hit.rank} is at position {rank}" if hit.rank != rank else f"{hit.doc_id} occurs twice"
                yield AuditFinding(RETRIEVE, number, f"query {qid}: {said}")
                return
            seen.add(hit.doc_id)
        if len(seen) > depths[retriever]:
            said = f"{retriever} returned {len(seen):,} passages, but its depth is {depths[retriever]:,}"
            yield AuditFinding(RETRIEVE, number, f"query {qid}: {said}")
            return


def _parts(lock: StageLock) -> Iterator[AuditFinding]:
    """Compare the types in a lock's parameters with those of its components."""
    pairs = {part: lock.params.get(setting) for part, setting in PART_SETTINGS.get(lock.stage, {}).items()}
    if lock.stage == "retrieve":
        for spec in map(as_object, as_list(lock.params.get("retrievers"))):
            pairs[f"retriever {spec.get('name') or spec.get('type')}"] = spec
    for part, setting in pairs.items():
        if part not in lock.components:
            continue
        stated, used = as_object(setting).get("type"), as_object(lock.components[part]).get("type")
        if stated != used:
            said = f"{part} is {stated!r} in its parameters, but {used!r} in its components"
            yield AuditFinding(MANIFEST, None, f"stage {lock.stage}: {said}")


def _models(lock: StageLock) -> Iterator[AuditFinding]:
    """Compare the name of a built-in judge with the models of its components."""
    judge = as_object(lock.components.get("judge"))
    if lock.judge is None or judge.get("type") not in JUDGES.builtin:
        return
    for member in (judge, *map(as_object, as_list(judge.get("judges")))):
        model = member.get("model")
        if isinstance(model, str) and model not in lock.judge:
            said = f"its judge is {lock.judge!r}, but its components call {model!r}"
            yield AuditFinding(MANIFEST, None, f"stage {lock.stage}: {said}")


def _corpora(locks: Mapping[str, StageLock]) -> Iterator[AuditFinding]:
    stated = {name: lock.components["corpus"] for name, lock in locks.items() if "corpus" in lock.components}
    if len(set(map(str, stated.values()))) > 1:
        said = ", ".join(f"{name} read {str(found)[:HASH_DIGITS]}" for name, found in stated.items())
        yield AuditFinding(MANIFEST, None, f"stage {list(stated)[-1]}: the stages used different corpora: {said}")


def _bookings(locks: Mapping[str, StageLock]) -> Iterator[AuditFinding]:
    """Yield the stages that claim the same lines of the ledger."""
    ranges = {name: lock.booked for name, lock in locks.items() if lock.booked and lock.booked[0] < lock.booked[1]}
    claimed = sorted((start, end, name) for name, (start, end) in ranges.items())
    for (_, end, one), (start, _, other) in pairwise(claimed):
        if start < end:
            said = f"stage {other}: it claims calls in llm.ledger.jsonl that stage {one} also claims"
            yield AuditFinding(MANIFEST, None, said)


FILE = "merge.jsonl"
BATCH = 500
MAX_SHOWN = 3


def text_findings(run: OpenedRun, store: PassageStore) -> Iterator[AuditFinding]:
    """Yield the first lines of merge.jsonl whose passages differ from the corpus."""
    count = 0
    try:
        for finding in _differences(run, store):
            count += 1
            if count <= MAX_SHOWN:
                yield finding
    except RaggsError as error:
        yield AuditFinding(FILE, error.line, f"cannot be compared with the corpus: {error.message}")
    if count > MAX_SHOWN:
        yield AuditFinding(FILE, None, f"and {count - MAX_SHOWN:,} more lines differ from the corpus")


def _differences(run: OpenedRun, store: PassageStore) -> Iterator[AuditFinding]:
    batch: list[tuple[int, MergeRecord]] = []
    for numbered in enumerate(run.typed("merge", MergeRecord), start=1):
        batch.append(numbered)
        if len(batch) == BATCH:
            yield from _batch_differences(batch, store)
            batch = []
    yield from _batch_differences(batch, store)


def _batch_differences(batch: Sequence[tuple[int, MergeRecord]], store: PassageStore) -> Iterator[AuditFinding]:
    known = store.get(store.known(record.doc_id for _, record in batch))
    for number, record in batch:
        passage = known.get(record.doc_id)
        if passage is None:
            yield AuditFinding(FILE, number, f"the corpus has no passage {record.doc_id!r}")
        elif passage != record.passage:
            mine, theirs = record.passage.model_dump(), passage.model_dump()
            field = next(name for name in mine if mine[name] != theirs[name])
            told = f"{shorten(str(mine[field]), 60)!r}, but {shorten(str(theirs[field]), 60)!r} in the corpus"
            yield AuditFinding(FILE, number, f"{field} of {record.doc_id} is {told}")
