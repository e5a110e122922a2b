"""Forecasts: expected calls, tokens and cost of a run, from a dry run that calls no model.

The stages run as usual, but with the models of `raggs.llm.rehearsal`, which answer only from the cache and count the
missing answers. Some calls depend on missing answers, so they are estimated here:

- the calls of a reranker, because its candidates are unknown;
- the calls of a ranking after the first missing answer;
- further samples of uncertain grades.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from raggs.base.artifacts import JournalRecord, JudgeRecord, Passage, Query
from raggs.base.errors import ProviderError
from raggs.base.judge_health import JudgeHealth
from raggs.base.text import clean_unicode, one_line
from raggs.llm.messages import written_unasked
from raggs.llm.rehearsal import CallEstimate, DryRunLLM
from raggs.parts.indexes.passages import Passages
from raggs.parts.judges import Calls
from raggs.parts.rerankers import Reranker
from raggs.parts.rewriters import Rewriter
from raggs.runs.manifests.models import CostEstimate
from raggs.runs.manifests.store import RunStore
from raggs.stages.embed import prepare
from raggs.stages.replay import Batch, RankingProcess

RERANK = "rerank"  # default stage name for the calls of rerankers
# expected output tokens of tasks whose answers are much shorter than the reserved number
ANSWERS = {"rewrite": 40, "split": 30}  # other tasks: the reserved number


def line_of(
    llm: DryRunLLM, stage: str, model: str, asked: CallEstimate, length: tuple[int, int] | None = None
) -> CostEstimate:
    """Return the estimate for one model and stage.

    Args:
        length: output tokens per answer, and how many of them are hidden. If None, the number of reserved tokens is
            used.
    """
    answers = asked.answers if length is None else asked.calls * length[0]
    home, price = llm.settings.base_of(model) is None, llm.price(model)
    written = asked.calls * written_unasked(model, asked.tokens // asked.calls, home=home) if asked.calls else 0
    usd = None if price is None else price.most_usd(asked.tokens, answers, asked.searches, written)
    return CostEstimate(
        stage=stage,
        calls=asked.calls,
        cached=asked.known,
        input_tokens=asked.tokens,
        output_tokens=answers,
        hidden_tokens=asked.hidden if length is None else length[1],
        repairs=llm.settings.max_repairs if answers or length else 0,
        usd=usd if asked.paid else 0.0,
        exact=not asked.guessed,
        who=model,
    )


def lines_of(llm: DryRunLLM) -> Iterator[CostEstimate]:
    """Yield an estimate for each stage, model and task that makes calls. If the stage has no name, the name of the task
    is used.
    """
    for (stage, model, task), asked in llm.all_asked.items():
        short = (ANSWERS[task] + asked.hidden, asked.hidden) if task in ANSWERS else None
        yield line_of(llm, stage or task, model, asked, short)


def typical(texts: Collection[str]) -> str:
    """Return the text whose length is nearest to the mean, as a typical text."""
    mean = sum(map(len, texts)) / max(1, len(texts))
    return min(texts, key=lambda text: abs(len(text) - mean), default="")


async def rewritten(queries: Iterable[Query], rewriter: Rewriter, usual: str) -> list[str]:
    """Return the texts to search for, with those that an expansion adds. `usual` is the default language.

    If an answer for a query is not cached, use its own text and the placeholders of the rewriter.
    """
    texts = []
    for query in queries:
        text = one_line(clean_unicode(query.text))
        found = [text, *rewriter.placeholders(text)]
        with suppress(ProviderError):  # raised for an answer that is not cached
            found = list((await prepare(query, rewriter, usual)).searched)
        texts += found
    return texts


def count_reranking(
    loop: asyncio.Runner,
    llm: DryRunLLM,
    reranker: Reranker,
    queries: Collection[str],
    passages: Passages,
    candidates: int,
    *,
    times: int | None = None,
) -> None:
    """Count the maximum number of calls for reranking, and estimate their tokens. Do nothing if it calls no model.

    The candidates are unknown before the search, so a sample of the corpus is used instead.

    Args:
        reranker: a reranker made with `llm`.
        candidates: number of passages per query.
        times: number of queries that are reranked (default: all of `queries`).
    """
    if not reranker.models:
        return
    shown = [Passage(doc_id=str(number), text=text) for number, text in enumerate(passages.sample(candidates))]
    with llm.standing_for(len(queries) if times is None else times), suppress(ProviderError):
        loop.run(reranker.reader.rerank(typical(queries), "en", shown))


def _share_sent_for(store: RunStore) -> float | None:
    """Return the share of passages on which the last run's cascade called the good judge; None if unknown."""
    lock = store.manifest().stages.get("judge") if store.exists else None
    found = lock.health.cascade if lock is not None and isinstance(lock.health, JudgeHealth) else None
    return None if found is None else found.asked.rate


def share_sampled_again(store: RunStore) -> float | None:
    """Return the share of passages that the last run with `samples_if_below` graded again; None if unknown."""
    lock = store.manifest().stages.get("judge") if store.exists else None
    found = lock.health.samples if lock is not None and isinstance(lock.health, JudgeHealth) else None
    return found.passages / found.judged if found is not None and found.judged else None


def bounded(line: CostEstimate, each: Calls, store: RunStore) -> CostEstimate:
    """Return the estimate with the minimum and the expected number of calls; `line` has the maximum.

    Args:
        each: minimum and maximum number of calls per answer.
    """
    if line.exact or each.least == each.most:
        return line
    share = _share_sent_for(store)
    expected = None if share is None else round(share * line.calls / each.most)
    least = round(line.calls * each.least / each.most)
    likely = line.likely_usd
    if likely is not None and line.calls:  # the middle between minimum and maximum until a run has measured the share
        likely *= ((least + line.calls) / 2 if expected is None else expected) / line.calls
    return line.model_copy(update={"least": least, "expected": expected, "likely_usd": likely})


def sent_for_words(line: CostEstimate) -> str:
    """Return the minimum, maximum and expected calls and cost of a cascade's good judge, or of a judge that grades only
    uncertain passages again, as text.
    """
    least, expected = line.least or 0, line.expected
    usd = [line.usd_for(calls) for calls in (least, line.calls)]
    money = "" if None in usd else f", ${usd[0]:,.4f} to ${usd[1]:,.4f}"
    what = "again only passages with an uncertain grade" if line.again else "only passages that the cascade passes on"
    found = f"{line.who} grades {what}: {least:,} to {line.calls:,} calls{money}"
    if expected is None:
        return f"{found}; the first run shows how many"
    likely = line.usd_for(expected)
    return f"{found}; about {expected:,}{'' if likely is None else f', ${likely:,.4f}'} at the share of the last run"


@dataclass
class MissingGrades:
    """Counts of missing grades in a dry run.

    Attributes:
        passages: passages whose first grade is missing.
        grades: missing grades.
    """

    passages: int = 0
    grades: int = 0

    def see(self, graded: Iterable[JudgeRecord]) -> None:
        """Count the grades of one pool."""
        for record in graded:
            if record.duplicate_of is None and record.carried is None and record.grades:
                self.passages += record.grades[0] is None
                self.grades += record.grades.count(None)

    def doubtful(self, samples: int) -> float:
        """Return the share of missing grades that are requested only if the first grade is uncertain."""
        return self.passages * (samples - 1) / self.grades if self.grades else 0.0


def sampled_again(line: CostEstimate, doubtful: float, share: float | None) -> CostEstimate:
    """Return the estimate with the minimum and the expected number of calls; `line` has the maximum number of samples.

    Args:
        doubtful: share of the calls that are made only if the first grade of the passage is uncertain.
        share: expected share of these calls; None if unknown.
    """
    if line.exact or not doubtful:
        return line
    sure = 1 - doubtful
    whole = line.calls if line.expected is None and line.least is None else line.expected
    expected = None if share is None or whole is None else round(whole * (sure + share * doubtful))
    least = round((line.calls if line.least is None else line.least) * sure)
    # the middle until a run has measured the share
    likely = (
        None if line.likely_usd is None else line.likely_usd * (sure + (0.5 if share is None else share) * doubtful)
    )
    return line.model_copy(
        update={"least": least, "expected": expected, "likely_usd": likely, "again": line.least is None}
    )


async def follow(
    llm: DryRunLLM,
    course: RankingProcess,
    rounds: Iterable[Sequence[Batch]],
    answer: Callable[[Batch], Awaitable[JournalRecord | None]],
    most: int,
) -> int:
    """Follow a ranking by its cached answers, and return the maximum number of calls after the first missing answer.
    `most` is the maximum number of calls of the ranking.
    """
    for batches in rounds:
        before = llm.missing
        entries = [entry for batch in batches if (entry := await answer(batch)) is not None]
        # the second condition: a panel returns an entry even if a member's answer is missing
        if len(entries) < len(batches) or llm.missing > before:
            return max(0, most - course.asked)
        course.learn(entries)
    return 0
