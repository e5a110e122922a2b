"""Shared context of all systems of a sweep: golden set, queries, corpus, chunkings, and the parts of the workspace.

If the golden set was made from another corpus, raggs raises an error, because equal ids would mean different texts.
Each chunking is a corpus in the workspace. Its passages, vectors and indexes are stored by their hash, so that systems,
sweeps and runs share them. The chunking of the golden set is recognised by the content of its passages. For
every other chunking, the documents must contain each judged text at the position of its passage.

External runs are never copied. A sweep of only external runs needs no corpus, unless it uses other chunks. Ties are
ordered as in trec_eval, so that a run has the same scores as in `raggs eval`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from raggs.base.adapter import AdapterConfig
from raggs.base.arrays import Ints
from raggs.base.artifacts import Query
from raggs.base.cache import OnceCache
from raggs.base.errors import ConfigError, DataError, NotFoundError
from raggs.base.files import disk, hash_file
from raggs.base.hashing import hash_value
from raggs.base.jsonl import first_fault
from raggs.base.text import plural
from raggs.base.types import Notice, ProgressListener, ignore_progress
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.places import PassagePlaces, judged_places, project_onto
from raggs.golden.sources import open_golden
from raggs.llm import LLMSettings
from raggs.llm.ledger import LEDGER_FILE
from raggs.llm.settings import Price
from raggs.metrics.columns import GradeScale, IdColumn, Run
from raggs.parts.chunkers import ChunkerConfig
from raggs.parts.corpora import RechunkableConfig
from raggs.parts.indexes.passages import Passages, PassageStore
from raggs.parts.run_files import read_run
from raggs.parts.workspace import OpenCorpus, Workspace, open_queries
from raggs.runs.manifests.store import RunStore
from raggs.sweeps.config import CorpusSpec, SweepConfig
from raggs.sweeps.grid import cut_labels, make_grid
from raggs.sweeps.judgments import ChunkingGrades, of_queries, references_of, with_holes
from raggs.sweeps.models import CutPart
from raggs.sweeps.outputs import Lists


def read_foreign(path: Path, sha256: str, k: int) -> Run:
    """Return the first `k` of each list.

    Raises:
        NotFoundError: the file no longer exists.
        DataError: the file changed, or is not a run.
    """
    run = read_run(path)
    if hash_file(path) != sha256:
        raise DataError("is not the run that the sweep read", where=path, remedy="run the sweep again")
    return first_hits(run, k)


def sha256_of(path: Path) -> str:
    """Return the hash of the file.

    Raises:
        NotFoundError: it cannot be read.
    """
    try:
        return hash_file(path)
    except OSError as error:
        raise NotFoundError(f"cannot be read ({error.strerror})", where=path, remedy="correct its path") from error


def check_known(lists: Lists, passages: Passages, path: Path) -> None:
    """Raise an error if lists come from another corpus than that of the other systems.

    Raises:
        DataError: the corpus lacks a passage.
    """
    shown = {doc for hits in lists.values() for doc, _ in hits}
    if strange := sorted(shown - passages.known(shown)):
        raise DataError(f"the corpus has no passage {strange[0]!r}", where=path, remedy="use a run over this corpus")


def first_hits(run: Run, k: int) -> Run:
    """Return the first `k` of each list, ties by descending id as in trec_eval; rows keep their order."""
    length = np.bincount(run.query, minlength=len(run.qids))
    if length.max(initial=0) <= k:
        return run
    rows = np.sort(_best_rows(run, k))
    return Run(run.qids, run.query[rows], run.score[rows], IdColumn([run.docs.take(rows)]))


def lists_of(run: Run, k: int) -> Lists:
    """Return the first `k` of each list with their scores, best first."""
    rows = _best_rows(run, k)
    found: dict[str, list[tuple[str, float]]] = {qid: [] for qid in run.qids}
    columns = run.query[rows].tolist(), run.docs.take(rows).tolist(), run.score[rows].tolist()
    for query, doc, score in zip(*columns, strict=True):
        found[run.qids[query]].append((doc.decode(), score))
    return found


def _best_rows(run: Run, k: int) -> Ints:
    """Return the rows of the first `k` of each list, best first."""
    _, name = np.unique(run.docs.take(np.arange(len(run.docs))), return_inverse=True)
    order = np.lexsort((-name, -run.score, run.query))
    length = np.bincount(run.query, minlength=len(run.qids))
    offset = np.cumsum(length) - length
    place = np.arange(len(order)) - offset[run.query[order]]
    rows: Ints = order[place < k]
    return rows


CORPUS = "corpus.jsonl"  # Next to labels in the layout of BEIR.
MIN_KNOWN_SHARE = 0.5  # if the corpus contains a smaller share of the judged passages, it is another corpus
SAMPLE = 1000  # about as many judged passages are looked up in the corpus, always fewer than twice as many
SHOWN_HASH_DIGITS = 12
GENERATOR = "generator"
NAME_IT = "name it: corpus: {type: jsonl, path: ...}"


def scale_of(config: SweepConfig) -> GradeScale | None:
    """Return the grade scale that a sweep sets, or None if the labels determine it."""
    return None if config.ends is None else GradeScale.of(*config.ends)


class SweepContext:
    """Context of one sweep. Each part is opened when it is first needed.

    Args:
        config: the sweep.
        hear: receives progress.
    """

    def __init__(self, config: SweepConfig, hear: ProgressListener = ignore_progress) -> None:
        self.config, self.hear = config, hear
        self.workspace = Workspace(config.workspace, _priced(config), config.budget, hear=hear)

    @cached_property
    def golden(self) -> GoldenSet:
        """The golden set.

        Raises:
            NotFoundError, DataError: there is none.
        """
        if not self.config.golden.exists():
            remedy = "name a run directory or labels under `golden`; raggs run makes a golden set"
            raise NotFoundError("no golden set", where=self.config.golden, remedy=remedy)
        return open_golden(self.config.golden)

    @cached_property
    def judgments(self) -> Judgments:
        """Grades of all queries of the golden set.

        Raises:
            DataError: the labels have no grade that can be scored.
        """
        found = self.golden.judgments(scale_of(self.config))
        if note := found.unscorable():
            self.hear(Notice(note))
        return found

    @cached_property
    def given(self) -> Judgments:
        """Grades of the golden set for the queries of the sweep."""
        return of_queries(self.judgments, self.queries)

    @cached_property
    def labels(self) -> Judgments:
        """Grades for scoring: those of the golden set and later grades of unjudged passages."""
        return with_holes(self.given, self.folder)

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """Judged queries by id, sorted. Queries without grades are reported and omitted.

        Raises:
            DataError: there are none.
        """
        spec, judged = self.config.queries, set(self.judgments.qrels.qids)
        found = {query.qid: query for query in self.golden.queries()} if spec is None else open_queries(spec, self.hear)
        if not found and not make_grid(self.config).searched:
            # The texts are placeholders, because they are not used.
            found = {qid: Query(qid=qid, text=qid) for qid in judged}
        kept = {qid: query for qid, query in sorted(found.items()) if qid in judged}
        if not found:
            raise DataError(
                "a file of labels contains no queries",
                where=self.golden.source,
                remedy="name them: queries: {type: jsonl, path: ...}",
            )
        if not kept:
            first, other = next(iter(found)), next(iter(sorted(judged)), "none")
            raise DataError(
                f"has no judgments for any of the queries (id of a query: {first}, judged id: {other})",
                where=self.golden.source,
                remedy="set `queries` to the queries that were judged",
            )
        if strange := len(found) - len(kept):
            self.hear(Notice(f"{plural(strange, 'query')} without grades omitted"))
        if lost := len(judged) - len(kept):
            self.hear(Notice(f"{plural(lost, 'judged query')} without a text omitted"))
        return kept

    @cached_property
    def corpus(self) -> OpenCorpus:
        """The corpus, not read yet.

        Raises:
            DataError: its location is unknown.
        """
        return self.workspace.corpus(self.named)

    @cached_property
    def named(self) -> AdapterConfig:
        """Settings of the corpus.

        Raises:
            DataError: its location is unknown.
        """
        found = self.config.corpus or corpus_of(self.config.golden)
        if found is None:
            raise DataError("does not say where its corpus is", where=self.config.golden, remedy=NAME_IT)
        return found

    @cached_property
    def passages(self) -> Passages:
        """Passages of the corpus, after checking that they are those of the golden set.

        Raises:
            DataError: the golden set was made from other passages.
        """
        found = self.corpus.passages(whole=True)
        refuse_foreign(found, self.judgments, self.golden.source, self.corpus.place)
        return found

    @cached_property
    def cuts(self) -> CorpusChunkings:
        """All chunkings of the corpus that systems use."""
        return CorpusChunkings(self)

    def passages_of(self, chunker: ChunkerConfig | None) -> Passages:
        """Return the passages of a chunker; None: those of the corpus.

        Raises:
            DataError: they do not match the golden set, or the chunker returns none.
            ConfigError: the corpus already consists of chunks.
        """
        return self.cuts.passages(chunker) if self.config.recuts else self.passages

    @cached_property
    def atlas(self) -> ChunkingGrades | None:
        """Judgments for the systems of each chunking; None if all systems use the chunks of the corpus."""
        return self.cuts.atlas.graded(self.labels) if self.config.recuts else None

    def fingerprint_of(self, chunker: ChunkerConfig | None) -> str:
        """Return the hash of the queries and of the passages of one chunking."""
        return self._hashed(self.passages_of(chunker).content_hash)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the queries and passages; of all chunkings, unless all systems use the chunks of the corpus."""
        if not self.config.recuts:
            return self.fingerprint_of(None)
        return hash_value([self.fingerprint_of(chunker) for chunker in self.config.cuts])

    @property
    def asked(self) -> str:
        """Hash of what rewriting depends on: the queries, and the corpus if all systems use its chunks."""
        return self._hashed(None) if self.config.recuts else self.fingerprint

    def _hashed(self, passages: str | None) -> str:
        def make() -> str:
            return hash_value([passages, *(query.model_dump(mode="json") for query in self.queries.values())])

        return self._hashes(passages, make)

    @cached_property
    def _hashes(self) -> OnceCache[str]:
        return OnceCache()

    def narrowed(self, qids: Collection[str]) -> SweepContext:
        """Return the same context with some of its queries; caches are shared."""
        return _NarrowedContext(self, qids)

    def book(self, what: str) -> None:
        """Record the next calls under the name of this part of the work, in the sweep's ledger.

        Raises:
            ProviderError: the sweep's folder cannot be created.
        """
        with disk(self.folder, "choose another `folder`, or check its permissions"):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.workspace.ledger.turn_to(self.ledger, what)

    @property
    def folder(self) -> Path:
        """Folder of the sweep."""
        return self.config.folder / self.config.name

    @property
    def ledger(self) -> Path:
        """Ledger of the sweep's calls."""
        return self.folder / LEDGER_FILE

    def close(self) -> None:
        """Close the workspace."""
        self.workspace.close()


class _NarrowedContext(SweepContext):
    def __init__(self, whole: SweepContext, qids: Collection[str]) -> None:
        self.config, self.hear, self.workspace = whole.config, whole.hear, whole.workspace
        self.golden, self.judgments = whole.golden, whole.judgments
        if self.config.recuts:
            self.cuts = whole.cuts
        else:
            self.passages = whole.passages
        self.queries = {qid: query for qid, query in whole.queries.items() if qid in set(qids)}


def _priced(config: SweepConfig) -> LLMSettings:
    """Return the settings of language models with the sweep's prices."""
    stated = {
        model: Price.model_validate(price.model_dump(exclude_none=True))
        for model, price in config.prices.items()
        if model != GENERATOR
    }
    return config.llm.model_copy(update={"prices": {**config.llm.prices, **stated}})


def refuse_foreign(found: Passages, judgments: Judgments, source: str, place: Path | str) -> None:
    """Raise an error if a golden set was made from other passages.

    Args:
        source: source of the golden set.
        place: location of the corpus.

    Raises:
        DataError: it was made from other passages.
    """
    known = judgments.origin.corpus
    how = None
    if known is not None and known != found.content_hash:
        how = f"content {known[:SHOWN_HASH_DIGITS]}, here {found.content_hash[:SHOWN_HASH_DIGITS]}"
    if known is None:
        docs = judgments.qrels.docs
        ids = {docs.text(row) for row in range(0, len(docs), max(1, len(docs) // SAMPLE))}
        met = len(found.known(ids))
        if met < MIN_KNOWN_SHARE * len(ids):
            how = f"of {plural(len(ids), 'judged passage')} it has {met:,}"
    if how is not None:
        raise DataError(
            f"is about another corpus than {place} ({how}), so equal ids mean other texts",
            where=source,
            remedy="name the corpus that it was made of under `corpus`, or make a golden set of this one",
        )


def llm_of(golden: Path) -> LLMSettings | None:
    """Return the `llm` settings of the run that made a golden set; None if it was not made by a run.

    Raises:
        DataError: its manifest no longer holds valid settings.
    """
    store = RunStore(golden)
    if not golden.is_dir() or not store.exists:
        return None
    try:
        return LLMSettings.model_validate(store.manifest().config.get("llm", {}))
    except ValidationError as error:
        said = f"its manifest has invalid model settings: {first_fault(error)}"
        raise DataError(said, where=golden, remedy="run raggs run again") from error


def corpus_of(golden: Path) -> AdapterConfig | None:
    """Return the corpus of a golden set: the one in the manifest of its run, or else `corpus.jsonl` next to the labels.
    Return None if there is neither a run nor such a file.

    Raises:
        DataError: the manifest records no valid corpus.
    """
    beside = (golden if golden.is_dir() else golden.parent) / CORPUS
    store = RunStore(golden)
    if golden.is_dir() and store.exists:
        adapter: TypeAdapter[AdapterConfig] = TypeAdapter(CorpusSpec)
        try:
            return adapter.validate_python(store.manifest().config.get("corpus"))
        except ValidationError as error:
            said = "its manifest names no corpus that can be opened"
            raise DataError(said, where=golden, remedy=NAME_IT) from error
    return TypeAdapter(CorpusSpec).validate_python({"type": "jsonl", "path": str(beside)}) if beside.is_file() else None


REMEDY = "name documents under `corpus`, {type: folder, path: ...}, or take `chunker` out"


class CorpusChunkings:
    """All chunkings of one corpus.

    Args:
        world: context of the sweep.
    """

    def __init__(self, world: SweepContext) -> None:
        self._world = world
        self._stores = OnceCache[PassageStore]()
        self._labels = cut_labels(world.config)

    def passages(self, chunker: ChunkerConfig | None) -> PassageStore:
        """Return the passages of one chunking.

        Raises:
            ConfigError: the corpus already consists of chunks.
            DataError: the chunker returns none.
        """
        return self._stores(chunker, lambda: self._made(chunker))

    @cached_property
    def atlas(self) -> ChunkingGrades:
        """Return all chunkings by position, with the grades of the golden set.

        Raises:
            DataError: the judged passages have no positions, or the documents are not the judged ones.
        """
        world = self._world
        stores = [(chunker, self.passages(chunker)) for chunker in world.config.cuts]
        judged = judged_places(world.golden, world.judgments)
        found: list[tuple[CutPart, PassagePlaces]] = []
        for chunker, passages in stores:
            places = project_onto(judged, passages, passages.content_hash, world.corpus.place)
            found.append((self._part(chunker, passages), places.cut))
        return ChunkingGrades(judged, world.labels, found, references_of(world.golden.queries()))

    def _part(self, chunker: ChunkerConfig | None, passages: PassageStore) -> CutPart:
        content = passages.content_hash
        return CutPart(
            label=self._labels[repr(chunker)],
            chunker="as `corpus` says" if chunker is None else _chunker_text(chunker),
            content=content,
            passages=len(passages),
            seconds=passages.cutting_s,
            golden=content == self._world.judgments.origin.corpus,
        )

    def _made(self, chunker: ChunkerConfig | None) -> PassageStore:
        spec = self._recut(self._world.named, chunker)
        try:
            return self._world.workspace.corpus(spec).store
        except ConfigError:
            raise
        except DataError as error:
            if chunker is None:
                raise
            said = f"chunked by {self._labels[repr(chunker)]}: {error.message}"
            raise DataError(said, where=error.where, line=error.line, remedy=error.remedy) from error

    def _recut(self, spec: AdapterConfig, chunker: ChunkerConfig | None) -> AdapterConfig:
        if not isinstance(spec, RechunkableConfig):
            said = f"a corpus {spec.type} consists of passages already, so it cannot be chunked (axis `chunker`)"
            raise ConfigError(said, where=self._world.corpus.place, remedy=REMEDY)
        return spec if chunker is None else spec.recut(chunker)


def _chunker_text(chunker: ChunkerConfig) -> str:
    """Return a chunker and its settings that are not defaults, in one line."""
    given = chunker.model_dump(mode="json", exclude_defaults=True, exclude={"type"})
    parts = {key: getattr(chunker, key) for key in given}
    told = (f"{key} {part.type if isinstance(part, AdapterConfig) else given[key]}" for key, part in parts.items())
    return ", ".join([chunker.type, *told])
