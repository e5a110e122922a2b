"""Score bundles, compute their name margins, and apply the same changes to a golden set.

Embedders and rerankers score the bundles. The scores of each scorer in each language under each perturber are stored,
so that an interrupted diagnosis can be resumed. Texts are cleaned as in runs, unless raw texts are requested. The
findings are margins, their changes, and whether the changes are within their limits.

On a golden set, a perturber changes the queries that contain names, and the names in the passages. For example, a
mask replaces every person. The rule for names is in `raggs.diagnosis.names.models`. Search is dense and exact. It
covers all passages or, if there are more than `most_passages`, the judged ones and a random sample of the others. The
result is the change of recall, and how well the change of the name margin predicts it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints, Vectors
from raggs.base.artifacts import Passage
from raggs.base.errors import DataError, NotFoundError, ProviderError
from raggs.base.hashing import generator
from raggs.base.languages import detect_language
from raggs.base.settings import Causes
from raggs.base.text import clean_passage, clean_unicode, plural, shorten
from raggs.base.types import BuildProgress, Number, finite_or_none
from raggs.diagnosis.base import Bench
from raggs.diagnosis.names.models import (
    NAME_SEPARATOR,
    EndToEnd,
    MarginPart,
    NamesConfig,
    NamesEndToEndPart,
    PersonNames,
    PredictionPart,
    SubjectPart,
    all_passages,
    by_question,
    field_of,
    runs_in,
)
from raggs.evaluation.models import ReportPart
from raggs.metrics.columns import GradeScale
from raggs.metrics.evaluate import evaluate
from raggs.parts.embedders import Embedder, FittingTexts
from raggs.parts.perturbers import Bundle, BundleSide, ChangeFamily, Perturber, TextContext
from raggs.parts.rerankers import Reranker
from raggs.runs.forecast import RERANK
from raggs.stages.ordered import run_ordered
from raggs.stats.comparison import compare
from raggs.stats.name_margins import ROLES, MarginMean, predict

TEXTS_PER_BATCH = 1024  # number of texts embedded between two progress messages
Runs = Sequence[Sequence[Bundle]]


class ScoreRow(ReportPart):
    """Scores of one repetition as stored: for each query, the scores of its five candidates."""

    scores: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class TextCleaning:
    """How texts are cleaned before they are embedded."""

    raw: bool

    def question(self, text: str) -> str:
        """Return a query in the form in which it is embedded."""
        return text if self.raw else clean_unicode(text)

    def passage(self, text: str) -> str:
        """Return a passage in the form in which it is embedded."""
        return text if self.raw else clean_passage(text)


class NameScorer(ABC):
    """Interface of scorers: an embedder or a reranker that scores bundles.

    Attributes:
        name: name in tables.
        runs: number of repetitions that it scores.
    """

    name: str
    runs: int

    @property
    @abstractmethod
    def paid(self) -> bool:
        """Whether scoring costs money."""

    @abstractmethod
    def ask(self, runs: Runs) -> None:
        """Make the calls of `score`, with dry-run models that count them."""

    @abstractmethod
    def causes(self) -> Causes:
        """Return everything that can change a score."""

    def fit(self, runs: Runs) -> None:
        """Fit the scorer on the candidates of all bundles without perturbation. Most scorers need no fit."""
        return

    @abstractmethod
    def score(self, runs: Runs) -> Floats:
        """Return the scores, shape (repetitions, queries, 5), higher is better.

        Raises:
            RaggsError: the model failed, or does not support the language.
        """


class _VectorReader:
    """Vectors of texts. A call embeds each distinct text once. All later calls reuse the vectors of the first call.

    Args:
        clean: cleans texts before they are compared.
        embed: returns vectors.
        tell: called with the number of embedded texts and the total number.
    """

    def __init__(
        self, clean: Callable[[str], str], embed: Callable[[Sequence[str]], Vectors], tell: Callable[[int, int], None]
    ) -> None:
        self._clean, self._embed, self._tell = clean, embed, tell
        self._known: dict[str, int] = {}
        self._vectors: list[Vectors] = []

    def read(self, texts: Sequence[Sequence[Sequence[str]]]) -> tuple[Ints, Vectors]:
        """Return the vectors, and for each text the row of its vector, in the shape of the input."""
        place = dict(self._known)
        rows = [[[place.setdefault(self._clean(text), len(place)) for text in each] for each in run] for run in texts]
        fresh, parts = list(place)[len(self._known) :], list(self._vectors)
        for at in range(0, len(fresh), TEXTS_PER_BATCH):
            parts.append(self._embed(fresh[at : at + TEXTS_PER_BATCH]))
            self._tell(min(at + TEXTS_PER_BATCH, len(fresh)), len(fresh))
        found = np.concatenate(parts)
        if not self._known:
            self._known, self._vectors = place, [found]
        return np.array(rows, dtype=np.int64), found


class EmbedderScorer(NameScorer):
    """Scores candidates by their cosine with the query."""

    def __init__(self, name: str, embedder: Embedder, runs: int, hygiene: TextCleaning, bench: Bench) -> None:
        self.name, self.runs = name, runs
        self._given, self._hygiene, self._bench = embedder, hygiene, bench
        self._embedder = embedder
        self._language, self._readers = "", self._new_readers()

    @property
    def paid(self) -> bool:
        return bool(self._given.models)

    def ask(self, runs: Runs) -> None:
        self.score(runs)

    def causes(self) -> Causes:
        return self._given.causes()

    def fit(self, runs: Runs) -> None:
        shown = [text for run in runs for each in run for text in each.texts[1:]]
        self._embedder, self._language = self._given.fitted(FittingTexts.of(shown)), ""

    def score(self, runs: Runs) -> Floats:
        if runs[0][0].language != self._language:
            self._language, self._readers = runs[0][0].language, self._new_readers()
        texts = [[each.texts for each in run] for run in runs]
        asked, questions = self._readers[0].read([[each[:1] for each in run] for run in texts])
        shown, candidates = self._readers[1].read([[each[1:] for each in run] for run in texts])
        if self._bench.rehearsal is None and not questions.any(axis=1).all():
            bundle = runs[0][0]
            raise DataError(
                f"{self.name} returns no vector for queries in {bundle.language!r}, e.g. "
                f"{shorten(bundle.question.text, 60)!r}",
                remedy="pass languages that it knows: --language en",
            )
        found = np.empty((len(runs), len(runs[0]), len(ROLES)))
        for run in range(len(runs)):  # one run at a time, because the vectors of all runs may not fit into memory
            ours = questions[asked[run, :, 0]].astype(np.float64)
            found[run] = np.einsum("qd,qcd->qc", ours, candidates[shown[run]].astype(np.float64))
        return found

    def _new_readers(self) -> tuple[_VectorReader, _VectorReader]:
        """Return two readers of vectors, for queries and for candidates."""
        hygiene, embedder = self._hygiene, self._embedder
        asked = _VectorReader(hygiene.question, embedder.embed_queries, self._tell)
        return asked, _VectorReader(hygiene.passage, embedder.embed, self._tell)

    def _tell(self, done: int, total: int) -> None:
        self._bench.hear(BuildProgress(f"texts embedded by {self.name}", done, total))


class RerankerScorer(NameScorer):
    """Scores candidates with a reranker."""

    def __init__(self, name: str, reranker: Reranker, runs: int, hygiene: TextCleaning, bench: Bench) -> None:
        self.name, self.runs = name, runs
        self._reranker, self._hygiene, self._bench = reranker, hygiene, bench

    def causes(self) -> Causes:
        return self._reranker.causes()

    @property
    def paid(self) -> bool:
        return bool(self._reranker.models)

    def ask(self, runs: Runs) -> None:
        self._bench.counting.turn_to(RERANK)
        for bundle in (bundle for run in runs for bundle in run):
            with suppress(ProviderError):  # in a forecast, an answer may be missing
                self._bench.workspace.loop.run(self._scores(bundle))
        self._bench.counting.turn_to("")

    def score(self, runs: Runs) -> Floats:
        bundles, found = [bundle for run in runs for bundle in run], []
        for scores in run_ordered(self._bench.workspace, bundles, self._scores):
            found.append(scores)
            if len(found) % 100 == 0 or len(found) == len(bundles):
                self._bench.hear(BuildProgress(f"queries scored by {self.name}", len(found), len(bundles)))
        return np.array(found).reshape(len(runs), len(runs[0]), len(ROLES))

    async def _scores(self, bundle: Bundle) -> list[float]:
        question = self._hygiene.question(bundle.question.text)
        shown = [
            Passage(doc_id=role, text=self._hygiene.passage(piece.text))
            for role, piece in zip(ROLES, bundle.candidates, strict=True)
        ]
        told = await self._reranker.rerank(question, bundle.language, shown)
        if told.problems:
            raise ProviderError(
                f"{self.name} returned no scores for a query ({told.problems[0]}): "
                f"{shorten(bundle.question.text, 60)!r}",
                remedy="run the same command again: paid answers are cached",
            )
        by_role = {each.doc_id: each.score for each in told.ranked}
        return [by_role[role] for role in ROLES]


def kept_scores(bench: Bench, scorer: NameScorer, causes: object, runs: Runs) -> Floats:
    """Return the stored scores of bundles, or compute and store them.

    Args:
        bench: the bench.
        scorer: the scorer.
        causes: everything that can change the bundles.
        runs: the bundles by repetition and query.
    """

    def make() -> list[ScoreRow]:
        return [ScoreRow(scores=tuple(map(tuple, run))) for run in scorer.score(runs).tolist()]

    rows = bench.kept(["names", scorer.causes(), causes], ScoreRow, make)
    return np.array([row.scores for row in rows], dtype=np.float64)


# if a larger share of bundles has margins too small for percentages, the scorer is treated as blind to names
MAX_SMALL_MARGIN_SHARE = 0.5


def mean_part(found: MarginMean) -> MarginPart:
    """Convert a mean to the form that reports contain."""
    return MarginPart(
        value=finite_or_none(found.value),
        sd=finite_or_none(found.spread),
        run_low=finite_or_none(found.by_runs.low),
        run_high=finite_or_none(found.by_runs.high),
        low=finite_or_none(found.by_questions.low),
        high=finite_or_none(found.by_questions.high),
        count=found.count,
    )


def is_within_limit(percent: MarginPart, family: ChangeFamily, least: float, most: float) -> bool | None:
    """Return whether a change is within its limit. If its interval over queries contains the limit or is undefined,
    return None.
    """
    low, high = percent.low, percent.high
    if low is None or high is None:
        return None
    if family == "identity":
        return True if high <= -least else False if low > -least else None
    return True if low >= -most else False if high < -most else None


# name of the measure, by whether the grades are 1 to 5
MEASURES = {True: "n_recall4", False: "recall"}


def measure_of(scale: GradeScale, cutoff: int) -> str:
    """Return the name of the measure for searches: N-Recall4+, or recall if the grades are not 1 to 5."""
    return f"{MEASURES[scale.golden]}@{cutoff}"


@dataclass(frozen=True)
class PerturbedTexts:
    """Queries and passages after one perturber. `changed` is the number of passages that it changed."""

    questions: list[str]
    passages: list[str]
    changed: int


class SearchTask:
    """The queries and passages of the searches. They are read when this is created.

    Attributes:
        judged: number of queries with judgments.
        names: names of each query that contains any, in the order of the queries' ids.
        docs: ids of the passages, sorted.
    """

    def __init__(self, bench: Bench, hygiene: TextCleaning, name_field: str | None, most: int) -> None:
        self._bench, self._hygiene = bench, hygiene
        qrels = bench.judgments.qrels
        judged = {qid: query for qid, query in bench.queries.items() if qid in set(qrels.qids)}
        self.judged = len(judged)
        passages = self._chosen(most)
        self.docs = [passage.doc_id for passage in passages]
        self._texts = [passage.raw if hygiene.raw else passage.content for passage in passages]
        known = None
        if name_field is not None:
            fields = filter(None, (field_of(passage, name_field) for passage in passages))
            named = (name.strip() for text in fields for name in text.split(NAME_SEPARATOR))
            known = PersonNames(name for name in named if name)
        self._questions = {qid: hygiene.question(query.text) for qid, query in judged.items()}
        self.names = by_question(self._questions, self._texts, known)
        asked = [name for names in self.names.values() for name in names]
        others = known.names if known is not None else [run for text in self._texts for run in runs_in(text)]
        self.people = PersonNames([*asked, *others])
        self._held = [self.people.within(text) for text in self._texts]
        told = [judged[qid].language or detect_language(self._questions[qid]) for qid in self.names]
        self.language = Counter(told).most_common(1)[0][0] if told else "en"

    def under(self, perturber: Perturber | None) -> PerturbedTexts:
        """Perturb and clean all texts."""
        questions = [self._questions[qid] for qid in self.names]
        if perturber is None:
            return PerturbedTexts(questions, self._texts, 0)
        asked = self._changed(perturber, "question", questions, list(self.names.values()))
        shown = self._changed(perturber, "candidate", self._texts, self._held)
        questions = [self._hygiene.question(text) for text in asked]
        passages = [self._hygiene.passage(text) for text in shown]
        changed = sum(new != old for new, old in zip(passages, self._texts, strict=True))
        return PerturbedTexts(questions, passages, changed)

    def values(self, embedder: Embedder, texts: PerturbedTexts, cutoff: int) -> list[float]:
        """Search with each query that contains names, and return the measure's values; NaN if undefined."""
        questions = embedder.embed_queries(texts.questions)
        lists = self._best(questions, self._vectors(embedder, texts.passages), cutoff)
        qrels = self._bench.judgments.qrels
        measure = measure_of(qrels.scale, cutoff)
        found = evaluate(qrels, dict(zip(self.names, lists, strict=True)), [measure])
        by_query = found.per_query[measure]
        return [by_query[qid] for qid in self.names]

    def rehearse(self, embedder: Embedder, texts: PerturbedTexts) -> None:
        """Make the calls of `values`."""
        embedder.embed_queries(texts.questions)
        self._vectors(embedder, texts.passages)

    def _vectors(self, embedder: Embedder, passages: Sequence[str]) -> Vectors:
        parts = []
        for at in range(0, len(passages), TEXTS_PER_BATCH):
            parts.append(embedder.embed(passages[at : at + TEXTS_PER_BATCH]))
            self._bench.hear(
                BuildProgress("passages embedded", min(at + TEXTS_PER_BATCH, len(passages)), len(passages))
            )
        return np.concatenate(parts)

    def _best(self, questions: Vectors, passages: Vectors, cutoff: int) -> list[list[str]]:
        """Return the ids of the nearest passages, best first. Ties are in the order of their ids."""
        found = []
        for question in questions:
            scores: Floats = np.einsum("pd,d->p", passages, question).astype(np.float64)
            found.append([self.docs[at] for at in np.argsort(-scores, kind="stable")[:cutoff]])
        return found

    def _changed(
        self, perturber: Perturber, side: BundleSide, texts: Sequence[str], held: Sequence[list[str]]
    ) -> list[str]:
        place = TextContext(side, self.language, self._bench.seed)
        renamed = perturber.renamed(self.people.names, place)
        return [perturber.text(text, renamed, names, place) for text, names in zip(texts, held, strict=True)]

    def _chosen(self, most: int) -> list[Passage]:
        """Return all passages, or the judged ones and a random sample of the others; sorted by id."""
        qrels = self._bench.judgments.qrels
        judged = {qrels.docs.text(row) for row in range(len(qrels.docs))}
        found = list(all_passages(self._bench.passages))
        if len(found) > most:
            rest = sorted(passage.doc_id for passage in found if passage.doc_id not in judged)
            drawn = generator(self._bench.seed, "names", "passages").permutation(len(rest))
            kept = judged | {rest[at] for at in drawn[: max(0, most - len(judged))]}
            found = [passage for passage in found if passage.doc_id in kept]
        return sorted(found, key=lambda passage: passage.doc_id)


NAME_IT = "pass --config raggs.yaml or --golden RUN."
MIN_NAMED_QUERIES = 5  # minimum number of queries with names for a comparison


class ValuesRow(ReportPart):
    """Stored result of one search: one value per query, and the number of changed passages."""

    values: tuple[Number, ...]
    changed: int


def perturb_golden(
    bench: Bench, config: NamesConfig, perturbers: Sequence[Perturber], subjects: Sequence[SubjectPart]
) -> EndToEnd:
    """Measure the effect of each perturber on the golden set's queries with names, for each embedder.

    If an input is missing or there are too few queries, the result contains a note instead.

    Raises:
        RaggsError: the golden set or the corpus cannot be read, or a model failed.
    """
    measure = measure_of(bench.judgments.qrels.scale, config.cutoff)
    if (note := missing_input(bench)) is not None:
        return EndToEnd(measure=measure, questions=0, judged=0, passages=0, language="", note=note)
    scene = SearchTask(bench, TextCleaning(config.raw), config.name_field, config.most_passages)
    found = EndToEnd(
        measure=measure,
        questions=len(scene.names),
        judged=scene.judged,
        passages=len(scene.docs),
        language=scene.language,
    )
    if len(scene.names) < MIN_NAMED_QUERIES:
        of = plural(scene.judged, "judged query")
        note = f"{len(scene.names)} of {of} contain a name that occurs in the corpus, which is too few for a result."
        return found.model_copy(update={"note": note})
    changes: list[NamesEndToEndPart] = []
    differences: list[Floats] = []
    for place, (name, embedder) in enumerate(bench.embedders.items()):
        before = np.array(_kept_values(bench, config, scene, embedder, None).values, dtype=np.float64)
        own = [each for each in subjects if each.scorer == name and each.what == "embedder"]
        # name margins in the queries' language, if it was measured, otherwise in the first language
        near = [each for each in own if each.language == scene.language] or own
        margins = {part.perturber: part.of_means for each in near[:1] for part in each.ablations}
        for at, perturber in enumerate(perturbers, 1):
            row, kind = _kept_values(bench, config, scene, embedder, perturber), perturber.config.type
            after = np.array(row.values, dtype=np.float64)
            changes.append(_part(name, kind, (before, after), row.changed, margins.get(kind), bench.seed))
            # whether the measure is defined depends only on the grades
            differences.append((after - before)[np.isfinite(before)])
            done, total = place * len(perturbers) + at, len(bench.embedders) * len(perturbers)
            bench.hear(BuildProgress("searches of perturbed queries", done, total))
    told = _prediction(changes, differences, bench.seed)
    return found.model_copy(update={"changes": tuple(changes), "prediction": told})


def missing_input(bench: Bench) -> str | None:
    """Return a message about the input that is missing for a search of the golden set, or None."""
    if not bench.has("corpus"):
        return f"No corpus to search: {NAME_IT}"
    try:
        found = bench.queries
    except NotFoundError:
        found = {}
    return None if found else f"A file of labels contains no queries: {NAME_IT}"


def rehearse_golden(bench: Bench, config: NamesConfig, perturbers: Sequence[Perturber]) -> None:
    """Make the calls of `perturb_golden` to paid embedders."""
    paid = [embedder for embedder in bench.embedders.values() if embedder.models]
    if paid:
        scene = SearchTask(bench, TextCleaning(config.raw), config.name_field, config.most_passages)
        for each in (None, *perturbers) if len(scene.names) >= MIN_NAMED_QUERIES else ():
            for embedder in paid:
                scene.rehearse(embedder, scene.under(each))


def _kept_values(
    bench: Bench, config: NamesConfig, scene: SearchTask, embedder: Embedder, perturber: Perturber | None
) -> ValuesRow:
    def make() -> list[ValuesRow]:
        texts = scene.under(perturber)
        values = scene.values(embedder, texts, config.cutoff)
        return [ValuesRow(values=tuple(map(finite_or_none, values)), changed=texts.changed)]

    causes = {
        "of": [bench.causes("golden"), bench.causes("corpus"), bench.seed],
        "settings": [config.raw, config.name_field, config.cutoff, config.most_passages],
        "embedder": embedder.causes(),
        "perturber": None if perturber is None else perturber.causes(),
    }
    return bench.kept(["names", "golden", causes], ValuesRow, make)[0]


def _part(
    embedder: str, perturber: str, values: tuple[Floats, Floats], passages: int, margin: Number, seed: int
) -> NamesEndToEndPart:
    before, after = values
    found = compare(after, before, seed=seed).difference
    return NamesEndToEndPart(
        embedder=embedder,
        perturber=perturber,
        before=_mean(before),
        after=_mean(after),
        difference=finite_or_none(found.mean),
        low=finite_or_none(found.low),
        high=finite_or_none(found.high),
        passages=passages,
        margin=margin,
    )


def _prediction(
    changes: Sequence[NamesEndToEndPart], differences: Sequence[Floats], seed: int
) -> PredictionPart | None:
    pairs = zip(changes, differences, strict=True)
    points = [(part.margin, row) for part, row in pairs if part.margin is not None and row.size]
    if not points:
        return None
    found = predict(np.array([margin for margin, _ in points]), np.array([row for _, row in points]), seed=seed)
    return PredictionPart(
        spearman=finite_or_none(found.spearman),
        low=finite_or_none(found.low),
        high=finite_or_none(found.high),
        points=found.points,
    )


def _mean(values: Floats) -> Number:
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else None
