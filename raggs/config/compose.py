"""The wiring: from a configuration to working parts. The only place that puts adapters together.

Each part is made when it is first asked for, so that a run with nothing to do opens no index, loads no model and
imports no provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from raggs import corpora, embedders, judges, queries, retrievers, rewriters
from raggs.arrays import Vectors
from raggs.artifacts import Passage, Query
from raggs.config.models import RunConfig
from raggs.corpora.base import Corpus, Remote
from raggs.embedders.base import Embedder, EmbedderContext
from raggs.errors import DataError, PrerequisiteError
from raggs.hashing import hash_value
from raggs.indexes.passages import FORMAT, Passages, PassageStore
from raggs.judges.base import Judge, JudgeContext, Task
from raggs.llm import LLM, CallLedger
from raggs.pipeline.events import Building, Listener, Notice, Waiting, silent
from raggs.prompts import Prompt, load_prompt
from raggs.queries.load import load_queries
from raggs.retrievers.base import Retriever, RetrieverContext, name_of
from raggs.rewriters.base import Rewriter, RewriterContext
from raggs.settings import causes_of
from raggs.spending import Spending
from raggs.text import plural

CACHE = ".cache"


class RunServices:
    """The parts that a configuration asks for (see `raggs.pipeline.runner.RunServices`).

    Args:
        config: the configuration.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.cache = config.workspace / CACHE
        self._ledger = CallLedger()
        self._listen: Listener = silent

    # --- what stages see ---

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        spec = self.config.queries
        return load_queries(queries.REGISTRY.of(spec)(spec), self._place(spec))

    @cached_property
    def passages(self) -> Passages:
        """The corpus; as its source gives it, where it can give single passages and nobody needs all of them."""
        corpus = self._corpus
        return corpus.remote() if isinstance(corpus, Remote) and not self._all_needed else self.store

    @cached_property
    def store(self) -> PassageStore:
        """All passages of the corpus, on this disk."""
        spec, corpus = self.config.corpus, self._corpus
        source = corpus.source_hash()
        key = hash_value([FORMAT, corpus.causes(), source])[:24]
        path = self.cache / "corpora" / f"{spec.type}-{key}.sqlite"
        if path.exists():
            return PassageStore.open(path)
        make_folder(path.parent)
        store = PassageStore.build(path, self._some(corpus), source, progress=self.building)
        self._notice_empty(corpus)
        if corpus.source_hash() != source:
            store.close()
            path.unlink()
            raise DataError("the corpus changed while it was read", where=self._place(spec), remedy="run again")
        return store

    @cached_property
    def embedder(self) -> Embedder | None:
        spec = self.config.embed.embedder
        if spec is None:
            return None
        return embedders.REGISTRY.of(spec)(spec, EmbedderContext(self.llm, lambda: self.loop))

    @cached_property
    def rewriter(self) -> Rewriter:
        spec = self.config.embed.rewrite
        return rewriters.REGISTRY.of(spec)(spec, RewriterContext(self.llm))

    @cached_property
    def retrievers(self) -> Mapping[str, Retriever]:
        context = RetrieverContext(
            passages=self.passages,
            queries=self.queries.keys(),
            embed=self._embed,
            embedder="" if self.embedder is None else self.embedder.identity,
            dims=0 if self.embedder is None else self.embedder.dims,
            cache=self.cache,
            progress=self.building,
        )
        return {name_of(spec): retrievers.REGISTRY.of(spec)(spec, context) for spec in self.config.retrieve.retrievers}

    @cached_property
    def prompts(self) -> Mapping[Task, Prompt]:
        """The judge's prompts by task."""
        return {
            "grade": load_prompt(self.config.judge.prompt, "grade"),
            "order": load_prompt(self.config.rank.prompt, "order"),
        }

    @cached_property
    def judge(self) -> Judge:
        spec = self.config.judge.judge
        context = JudgeContext(llm=self.llm, grade_prompt=self.prompts["grade"], order_prompt=self.prompts["order"])
        return judges.REGISTRY.of(spec)(spec, context)

    @cached_property
    def loop(self) -> asyncio.Runner:
        return asyncio.Runner()

    @property
    def concurrency(self) -> int:
        return self.config.llm.concurrency

    def causes(self, part: str, task: Task | None = None) -> Any:
        match part:
            case "queries":
                return hash_value([query.model_dump(mode="json") for query in self.queries.values()])
            case "corpus":
                return self.passages.content_hash
            case "embedder":
                return None if self.embedder is None else self.embedder.causes()
            case "rewriter":
                return self.rewriter.causes()
            case "retrievers":
                return {f"retriever {name}": retriever.causes() for name, retriever in self.retrievers.items()}
            case "judge":
                found = {**self.judge.causes(task or "grade")}
                return {**found, "llm": causes_of(self.config.llm)} if self.judge.models else found
        raise ValueError(f"no part {part!r}")

    # --- what the runner sees ---

    def spent(self) -> Spending:
        return self._ledger.spent

    def attach(self, listen: Listener, stage: str, ledger: Path | None = None) -> None:
        self._ledger.turn_to(ledger, stage)
        self._listen = listen

    def check(self) -> None:
        """Find what is wrong with the inputs before anything is paid for.

        Raises:
            DataError: a question lacks what the judge needs, or refers to a passage that does not exist.
            RaggsError: a retriever's server is down, or has not what the retriever needs.
        """
        self.judge.check(self.queries.values())
        if not len(self.passages):
            raise self._no_passages()
        wanted = {ref.doc_id: query.qid for query in self.queries.values() for ref in query.references if ref.doc_id}
        for doc_id in sorted(wanted.keys() - self.passages.known(wanted)):
            raise DataError(
                f"query {wanted[doc_id]} refers to passage {doc_id}, which the corpus does not have",
                where=self._place(self.config.queries),
                remedy="correct the reference's doc_id, or leave it out",
            )
        for retriever in self.retrievers.values():
            retriever.check()
            if retriever.NEEDS_VECTORS and self.embedder is None:
                name = retriever.config.type
                raise DataError(
                    f"retriever {name} needs embed.embedder, which is null",
                    remedy=f"name an embedder, or leave {name} out",
                )

    def close(self) -> None:
        """Close what is open; a closed set of services is not used again."""
        if "llm" in self.__dict__:
            self.loop.run(self.llm.close())
        if "loop" in self.__dict__:
            self.loop.close()
        for retriever in self.__dict__.get("retrievers", {}).values():
            retriever.close()
        for part in ("passages", "store"):
            if part in self.__dict__:
                self.__dict__[part].close()

    # --- inside ---

    @cached_property
    def _corpus(self) -> Corpus:
        return corpora.REGISTRY.of(self.config.corpus)(self.config.corpus)

    @property
    def _all_needed(self) -> bool:
        return any(retrievers.REGISTRY.of(spec).WHOLE_CORPUS for spec in self.config.retrieve.retrievers)

    @cached_property
    def llm(self) -> LLM:
        judge = self.config.judge
        batch = judge.batch if judge.mode == "batch" else None
        return LLM(self.config.llm, self.config.budget, self.cache / "llm", self._ledger, batch, self._waiting)

    def _some(self, corpus: Corpus) -> Iterator[Passage]:
        """The passages of a corpus that has any."""
        number = 0
        for number, passage in enumerate(corpus.passages(), start=1):  # noqa: B007 - counted for the check below
            yield passage
        if not number:
            raise self._no_passages()

    def _no_passages(self) -> DataError:
        return DataError(
            "the corpus holds no passages", where=self._place(self.config.corpus), remedy="add at least one"
        )

    @staticmethod
    def _place(spec: Any) -> Path | str:
        return getattr(spec, "path", None) or getattr(spec, "shown", None) or str(spec.type)

    def _notice_empty(self, corpus: Corpus) -> None:
        if corpus.left_out:
            shown = ", ".join(f"{found.doc_id} (line {found.line})" for found in corpus.left_out[:3])
            more = ", …" if len(corpus.left_out) > 3 else ""
            self._listen(Notice(f"{plural(len(corpus.left_out), 'passage')} without text left out: {shown}{more}"))

    def _embed(self, texts: Sequence[str]) -> Vectors:
        if self.embedder is None:
            raise PrerequisiteError("no embedder is configured", remedy="set embed.embedder")
        return self.embedder.embed(texts)

    def _waiting(self, what: str, done: int, total: int) -> None:
        self._listen(Waiting(what, done, total))

    def building(self, what: str, done: int, total: int) -> None:
        """Tell the listener how far something is that is made once."""
        self._listen(Building(what, done, total))


def make_folder(path: Path) -> None:
    """Make a folder and its parents.

    Raises:
        PrerequisiteError: the place cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrerequisiteError(
            f"cannot be written ({error.strerror})", where=path, remedy="choose another workspace"
        ) from error
