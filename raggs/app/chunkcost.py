"""What a comparison of chunkers would cost, before it costs anything.

Whoever would ask is given models that only remember: what is paid for already counts as known, the rest is counted.
Where a model has not cut yet, or a cut hangs on vectors that nobody has, texts of about that length stand in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raggs.app.chunks import ChunkRequest, open_questions
from raggs.app.cutting import lines_of
from raggs.chunking.comparing import chunks_read, questions_read
from raggs.chunking.documents import Documents, read_documents
from raggs.chunking.making import foresee
from raggs.llm.rehearsal import Rehearsal
from raggs.parts import chunkers
from raggs.parts.chunkers.base import Chunker, ChunkerContext
from raggs.parts.chunkers.embedding import EmbeddingChunker
from raggs.parts.chunkers.paid import PaidChunker
from raggs.parts.workshop import Workshop
from raggs.runs.manifests.models import Estimate
from raggs.runs.manifests.outlook import line_of

EMBED = "embed"  # the ledger's name for it


def forecast_chunks(request: ChunkRequest, out: Path) -> tuple[Estimate, ...]:
    """A line for each model and task that `eval_chunks` would pay for. Nobody is asked, nothing is written.

    Raises:
        RaggsError: as `eval_chunks`, of what the request names.
    """
    workshop = request.workshop(out)
    rehearsal = workshop.rehearsal()
    try:
        return tuple(_lines(request, workshop, rehearsal))
    finally:
        workshop.loop.run(rehearsal.close())
        workshop.close()


def _lines(request: ChunkRequest, workshop: Workshop, rehearsal: Rehearsal) -> Iterator[Estimate]:
    documents, asked = read_documents(request.corpus), open_questions(request.questions)
    embedders = [workshop.embedder(spec, rehearsal) for spec in request.embedder_specs().values()]
    paid, guessed = [each for each in embedders if each.models], False
    models = [model for each in paid for model in each.models]
    lent = ChunkerContext(lambda spec: workshop.embedder(spec, rehearsal))
    for spec in request.chunker_specs().values():
        chunker = workshop.chunker(spec)
        if isinstance(chunker, PaidChunker):
            found = foresee(chunker, documents.whole, workshop)
            guessed = guessed or found.cut > 0
            yield from lines_of(found, workshop)
            texts = _guessed(chunker, documents, workshop, rehearsal) if paid else []
        else:
            chunker = chunkers.REGISTRY.of(spec)(spec, lent)
            own = chunker.embedder.models if isinstance(chunker, EmbeddingChunker) else ()
            models, guessed = [*models, *own], guessed or bool(own)
            texts = _texts(chunker, documents) if paid or own else []
        for each in paid:
            each.embed(chunks_read(texts, request.compat))
    for each in paid:
        each.embed_queries(questions_read([query.text for _, query in asked.values()], request.compat))
    for model in dict.fromkeys(models):
        line = line_of(EMBED, model, rehearsal.asked(model, EMBED), workshop.llm.price(model))
        yield line.model_copy(update={"exact": not guessed})


def _texts(chunker: Chunker, documents: Documents) -> list[str]:
    return [chunk.text for document in documents.whole for chunk in chunker.chunk(document)]


def _guessed(chunker: PaidChunker, documents: Documents, workshop: Workshop, rehearsal: Rehearsal) -> list[str]:
    """The chunks of documents that are cut, and of others what is taken for them."""
    texts = []
    for document in (each.body for each in documents.whole):
        cuts = chunker.kept(document) or workshop.loop.run(chunker.ask(document.body, rehearsal, guess=True))
        texts += [document.body.text[start:end] for start, end in cuts.places(document.body.text)]
    return texts
