"""A configuration's documents cut by a chunker that is paid; or what that would cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from raggs.app.addresses import Approve, nobody, permit
from raggs.app.beside import beside, in_loop
from raggs.base.errors import UsageError
from raggs.base.progress import Building
from raggs.base.text import plural
from raggs.chunking.making import Foreseen, Made, foresee, make_cuts
from raggs.config.models import RunConfig
from raggs.llm.credentials import require_keys
from raggs.llm.prices import HIDDEN, reasons
from raggs.parts import corpora
from raggs.parts.chunkers.paid import GUESS, PaidChunker
from raggs.parts.corpora.cut import CutCorpus
from raggs.parts.workshop import Workshop
from raggs.runs.manifests.models import Estimate
from raggs.runs.manifests.outlook import line_of
from raggs.runs.pipeline.events import Listener, silent

LEDGER = "chunks.ledger.jsonl"  # of a workspace, since several runs share its cuts
STAGE = "chunks"
ANSWER = 30  # tokens of an answer
CUT_EARLY = f"a window is taken to be cut at {GUESS:.0%} of its length, where the next one begins"


@dataclass(frozen=True)
class CutForecast:
    """What cutting would cost: documents that would be cut and those that are, and a line for each model."""

    cut: int
    before: int
    estimates: tuple[Estimate, ...]

    def __str__(self) -> str:
        return f"{plural(self.cut, 'document')} to be cut, {self.before:,} cut already"


def in_words(estimates: Sequence[Estimate], cap: float | None, why: str = CUT_EARLY) -> Iterator[str]:
    """What models would take, for people; `cap`: of the budget, in USD; `why`: why calls are not counted exactly."""
    for line in estimates:
        about, usd = "" if line.exact else "about ", line.usd
        price = "an unknown price" if usd is None else f"{about}{usd:,.4f} USD"
        yield (
            f"{line.who}, {line.stage}: {about}{plural(line.calls, 'call')}, {line.input_tokens:,} tokens in, "
            f"{line.output_tokens:,} out, {price}; {line.cached:,} answered already"
        )
        if line.hidden_tokens:
            yield f"{line.hidden_tokens:,} tokens of hidden reasoning are assumed for each answer"
    if not all(line.exact for line in estimates):
        yield f"about: {why}"
    if most := total(line.usd_at_most for line in estimates):
        limit = "no cap" if cap is None else f"cap {cap:,.2f} USD"
        yield f"at most {most:,.4f} USD were every answer corrected as often as may be ({limit})"


def total(costs: Iterable[float | None]) -> float | None:
    """The sum of costs in USD; None where one is not known."""
    known = list(costs)
    return None if None in known else sum(usd or 0.0 for usd in known)


def make_paid_cuts(
    config: RunConfig, listen: Listener = silent, approve: Approve = nobody, *, again: bool = False
) -> Made:
    """Cut what of a configuration's corpus is not cut yet. Works in notebooks too.

    The budget holds for the workspace: what its ledger has of earlier cuts counts.

    Args:
        listen: hears how far it is.
        approve: says whether a key may go to an address that is new (see `raggs.app.addresses`).

    Raises:
        UsageError: the corpus has no documents, or its chunker is not paid.
        RaggsError: a key is missing, a provider refused, or the budget is used up; whatever was answered is kept.
    """
    if in_loop():
        return beside(lambda hear: make_paid_cuts(config, hear, approve, again=again), listen)
    permit(config, [STAGE], approve)
    with _opened(config, listen) as (corpus, chunker, workshop):
        require_keys(chunker.models, config.llm)
        workshop.ledger.turn_to(config.workspace / LEDGER, STAGE)
        return make_cuts(
            chunker,
            corpus.documents(),
            workshop,
            lambda done: listen(Building("cuts of documents", done, 0)),
            again=again,
        )


def forecast_cuts(config: RunConfig, *, again: bool = False) -> CutForecast:
    """What `make_paid_cuts` would cost. Nobody is asked, nothing is written.

    Raises:
        UsageError: as `make_paid_cuts`.
        RaggsError: the folder or what is kept cannot be read.
    """
    with _opened(config, silent) as (corpus, chunker, workshop):
        found = foresee(chunker, corpus.documents(), workshop, again=again)
        return CutForecast(found.cut, found.before, tuple(lines_of(found, workshop)))


def lines_of(found: Foreseen, workshop: Workshop) -> Iterator[Estimate]:
    """A line for each model that is paid for cuts."""
    for model, asked in found.asked.items():
        settings = workshop.llm.settings
        hidden = HIDDEN if reasons(model, settings.parameters_of(model)) else 0
        line = line_of(STAGE, model, asked, workshop.llm.price(model), answer=ANSWER + hidden)
        yield line.model_copy(
            update={"hidden_tokens": hidden, "repairs": settings.max_repairs, "exact": not found.guessed}
        )


@contextmanager
def _opened(config: RunConfig, listen: Listener) -> Iterator[tuple[CutCorpus, PaidChunker, Workshop]]:
    corpus = corpora.REGISTRY.of(config.corpus)(config.corpus)
    spec = corpus.named if isinstance(corpus, CutCorpus) else None
    workshop = Workshop(config.workspace, config.llm, config.budget, hear=listen)
    try:
        chunker = None if spec is None else workshop.chunker(spec)
        if not isinstance(corpus, CutCorpus) or not isinstance(chunker, PaidChunker):
            raise UsageError(
                "nobody is paid for the cuts of this corpus: they are made when it is read",
                remedy="leave this step out, or name the chunker {type: llm} in corpus.chunker",
            )
        chunker.check()
        yield corpus, chunker, workshop
    finally:
        workshop.close()
