"""Stage 1: clean each query, detect its language, rewrite it and embed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, ClassVar

from pydantic import Field

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.arrays import Vectors, shortest_floats, unit_rows
from raggs.base.artifacts import EmbedRecord, Query, QueryRecord, Record
from raggs.base.languages import detect_language
from raggs.base.settings import Causes, Settings
from raggs.base.text import FOLDING, clean_unicode, fold_quotes, one_line, plural
from raggs.parts import embedders, rewriters
from raggs.parts.embedders import Embedder, EmbedderConfig, default_embedder
from raggs.parts.rewriters import Rewriter
from raggs.stages.base import Services, Stage, StageWork
from raggs.stages.ordered import run_ordered

BATCH = 256

EmbedderSpec = Annotated[EmbedderConfig, OneOf(embedders.REGISTRY)]
RewriterSpec = Annotated[AdapterConfig, OneOf(rewriters.REGISTRY)]


class EmbedConfig(Settings):
    """Settings of the embed stage: how queries are prepared."""

    embedder: EmbedderSpec | None = Field(
        default_factory=default_embedder,
        validate_default=True,
        description="model that embeds queries and passages; null: no embeddings",
    )
    rewrite: RewriterSpec = Field(
        {"type": "clean"},
        validate_default=True,
        description="rewriter that turns each query into the text to search for; none: search for the query itself",
    )
    language: str = Field(
        "en", description="language assumed for queries whose language cannot be detected (ISO 639-1 code)"
    )


class EmbedStage(Stage[EmbedConfig]):
    NAME = "embed"
    VERSION = 2
    BESIDE: ClassVar[Mapping[str, type[Record]]] = {"queries": QueryRecord}
    Config = EmbedConfig
    RECORD = EmbedRecord

    def by_query(self, config: EmbedConfig) -> bool:
        return False  # the last bits of a vector may depend on the rest of its batch

    def causes(self, config: EmbedConfig, services: Services) -> Causes:
        found: Causes = {
            "queries": services.causes("queries"),
            "embedder": services.causes("embedder"),
            "rewriter": services.causes("rewriter"),
        }
        embeds = config.embedder is not None
        return found | (quotes_folded(services.queries.values()) if embeds else {})

    def run(self, work: StageWork, config: EmbedConfig, services: Services) -> Iterator[QueryRecord | EmbedRecord]:
        yield from map(QueryRecord.of, services.queries.values())
        total = len(services.queries)
        turned = sum(bool(query.history) for query in services.queries.values())
        if turned and not services.rewriter.READS_HISTORY:
            services.workspace.notify(
                f"{plural(turned, 'query')} with earlier turns: the searches read only the last turn. If its "
                "meaning depends on earlier turns, set embed.rewrite.type to conversation"
            )

        prepared = run_ordered(
            services.workspace,
            services.queries.values(),
            lambda query: prepare(query, services.rewriter, config.language),
        )
        done = 0
        while batch := list(islice(prepared, BATCH)):
            yield from self._embed(batch, services)
            done += len(batch)
            work.progress(done, total)

    def _embed(self, batch: list[EmbedRecord], services: Services) -> Iterator[EmbedRecord]:
        yield from batch if services.embedder is None else with_vectors(batch, services.embedder)


def with_vectors(records: Sequence[EmbedRecord], embedder: Embedder) -> list[EmbedRecord]:
    """Return prepared queries with their vectors."""
    vectors = query_vectors(records, embedder)
    return [
        record.model_copy(update={"embedding": tuple(shortest_floats(vector)), "embedder": embedder.identity})
        for record, vector in zip(records, vectors, strict=True)
    ]


def query_vectors(records: Sequence[EmbedRecord], embedder: Embedder) -> Vectors:
    """Return the vectors of prepared queries, shape (len(records), dims).

    The vector of an expanded query is the mean of the unit vectors of the query, its variants and its hypothetical
    passages, of unit length.
    """
    vectors = embedder.embed_queries([record.rewrite for record in records])
    variants = [(row, text) for row, record in enumerate(records) for text in record.variants]
    passages = [(row, text) for row, record in enumerate(records) for text in record.hypothetical]
    if not variants and not passages:
        return vectors
    total = vectors.copy()
    for added, embed in ((variants, embedder.embed_queries), (passages, embedder.embed)):
        for (row, _), vector in zip(added, embed([text for _, text in added]) if added else (), strict=True):
            total[row] += vector
    expanded = sorted({row for row, _ in (*variants, *passages)})
    total[expanded] = unit_rows(total[expanded])
    return total


def quotes_folded(queries: Iterable[Query]) -> Causes:
    """Return the version of the quotation mark normalisation, or nothing if no query contains a typographic mark."""
    read = any(fold_quotes(text) != text for query in queries if not (text := clean_unicode(query.text)).isascii())
    return {"quotes": FOLDING} if read else {}


async def prepare(query: Query, rewriter: Rewriter, usual: str) -> EmbedRecord:
    """Clean, rewrite and expand a query, without embedding it.

    Args:
        usual: language to assume if the query's language cannot be detected.

    Raises:
        ProviderError: the rewriter failed.
    """
    text = one_line(clean_unicode(query.text))
    language = query.language or detect_language(text, usual)
    rewrite = await rewriter.rewrite(query, text, language)
    variants, hypothetical = await rewriter.expand(query, rewrite, language)
    added = (*variants, *hypothetical)
    return EmbedRecord(
        qid=query.qid,
        text=text,
        rewrite=rewrite,
        bm25_text=" ".join(((rewrite,) * rewriter.repeats + added) if added else (rewrite,)),
        variants=variants,
        hypothetical=hypothetical,
        language=language,
        embedding=(),
        embedder="",
    )


STAGE = EmbedStage()
