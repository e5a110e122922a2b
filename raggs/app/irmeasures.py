"""raggs as a provider of ir_measures: it computes measures of ir_measures, and measures that only raggs has.

Importing this module registers the provider and these measures with ir_measures. Then
`ir_measures.providers.registry["raggs"]` computes them, and `ir_measures.parse_measure` knows names such as
``ra_nwg@10``. No other module of raggs imports this one, so ir_measures is loaded only on request.

Measures of ir_measures keep their definition: passages are relevant from grade 1 on unless `rel` is set. A query for
which a measure is not defined scores 0, except that Accuracy omits it. Equal scores are ordered by descending id, as in
trec_eval. raggs' own measures are defined as in `raggs eval`: an undefined value is NaN, and the mean omits it.
Measures that need grades from 1 to 5 refuse other grades.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ir_measures import measures, providers, util
from ir_measures.providers import base

from raggs.base.errors import UsageError
from raggs.metrics.evaluate import evaluate
from raggs.metrics.measure import Measure
from raggs.metrics.measures import REGISTRY, aliases
from raggs.metrics.names import parse_measure

# parameters that raggs does not write into the name of a measure
SEPARATE_PARAMS = frozenset({"judged_only", "dcg", "gains"})
DEFAULT_MAX_GRADE = 4  # highest grade, as in gdeval, unless the labels contain a higher one
GOLDEN = (1, 5)
COUNTS = frozenset({"NumQ", "NumRel", "NumRet"})
SOME_LEFT_OUT = "Accuracy"  # undefined for a query whose list contains no pair of different grades
# these measures need facets, answers or evidence sets
NEEDS_MORE = frozenset({"alpha_ndcg", "nrbp", "ra_nwg_novel", "containment", "evidence_recall", "complete"})


class DefinedMean(measures.MeanAgg):
    """The mean over the queries for which a measure is defined."""

    def add(self, value: float) -> None:
        """Take the value of one query, unless it is undefined."""
        if not math.isnan(value):
            super().add(value)


class RaggsMeasure(measures.Measure):
    """A measure that raggs has and ir_measures lacks."""

    DEFAULT = math.nan

    def aggregator(self) -> DefinedMean:
        """Return the mean over the queries for which the measure is defined."""
        return DefinedMean()


def _as_ir_measure(kind: type[Measure]) -> RaggsMeasure:
    """Create the ir_measures class of a measure of raggs, and register it under the measure's name."""
    info = {"cutoff": measures.ParamInfo(dtype=int, required=kind.CUTOFF == "needed", desc="ranking cutoff threshold")}
    info |= {name: measures.ParamInfo(dtype=(int, float), desc=name) for name in kind.PARAMS}
    fields = {"__name__": kind.NAME, "NAME": kind.NAME, "SUPPORTED_PARAMS": info}
    found: RaggsMeasure = type(kind.NAME, (RaggsMeasure,), fields)()
    measures.register(found)
    return found


def _own_measures() -> Iterator[RaggsMeasure]:
    """Yield raggs' measures that ir_measures lacks and that need only grades and lists."""
    theirs = {aliases().get(name.lower(), name.lower()) for name in measures.registry}
    for name in REGISTRY.builtin:
        if name not in theirs and name not in NEEDS_MORE and name.isidentifier():
            kind = REGISTRY.load(name)
            if kind.AT is None:
                yield _as_ir_measure(kind)


class Computation(NamedTuple):
    """Settings shared by measures that are computed together."""

    condensed: bool
    gains: tuple[tuple[int, float], ...]
    golden: bool


class RaggsEvaluator(providers.Evaluator):
    """Evaluator that scores runs with raggs.

    Args:
        wanted: the measures.
        labels: ``{qid: {doc_id: grade}}``.
    """

    def __init__(self, wanted: Iterable[measures.Measure], labels: Mapping[str, Mapping[str, int]]) -> None:
        super().__init__(list(wanted), set(labels))
        self._labels = labels

    def iter_calc(self, run: util.TYPE_RUN) -> Iterator[util.Metric]:
        """Yield the value of each measure and query, without undefined values of Accuracy."""
        lists = util.RunConverter(run).as_dict_of_dict()
        for row in super().iter_calc(lists):
            defined = lists.get(row.query_id) and not math.isnan(row.value)
            if defined or row.measure.NAME != SOME_LEFT_OUT:
                yield row

    def _iter_calc(self, run: util.TYPE_RUN) -> Iterator[util.Metric]:
        lists = util.RunConverter(run).as_dict_of_dict()
        found = {qid: lists.get(qid, {}) for qid in self._labels}
        if not any(found.values()):
            found = {}
        together: dict[Computation, list[measures.Measure]] = {}
        for measure in self.measures:
            if measure.NAME in COUNTS:
                for qid in sorted(qid for qid, docs in found.items() if docs):
                    yield util.Metric(qid, measure, _count(measure, self._labels[qid], found[qid]))
            else:
                together.setdefault(_computation(measure), []).append(measure)
        for how, group in together.items() if found else ():
            yield from self._values(how, group, found)

    def _values(
        self, how: Computation, group: list[measures.Measure], lists: Mapping[str, Mapping[str, float]]
    ) -> Iterator[util.Metric]:
        names = {measure: parse_measure(_text(measure)).name for measure in group}
        highest = max((DEFAULT_MAX_GRADE, *(grade for grades in self._labels.values() for grade in grades.values())))
        highest = max((highest, *(int(measure.params.get("rel", 0)) for measure in group)))
        scale = GOLDEN if how.golden else (0, highest)
        gains = {grade: float(dict(how.gains).get(grade, grade)) for grade in range(highest + 1)} if how.gains else None
        scored = evaluate(
            self._labels,
            lists,
            list(dict.fromkeys(names.values())),
            binary_at=None if how.golden else 1,
            gains=gains,
            scale=scale,
            condensed=how.condensed,
        )
        rows = dict(zip(scored.measures, scored.values.tolist(), strict=True))
        for measure, name in names.items():
            for qid, value in zip(scored.qids, rows[name], strict=True):
                absent = math.isnan(value) and measure.NAME != SOME_LEFT_OUT
                yield util.Metric(qid, measure, measure.DEFAULT if absent else value)


def _computation(measure: measures.Measure) -> Computation:
    gains = measure.params.get("gains", base.NOT_PROVIDED)
    own = isinstance(measure, RaggsMeasure)
    return Computation(
        bool(measure.params.get("judged_only", False)),
        () if gains is base.NOT_PROVIDED else tuple(sorted(gains.items())),
        own and parse_measure(_text(measure)).measure.GOLDEN,
    )


def _count(measure: measures.Measure, labels: Mapping[str, int], found: Mapping[str, float]) -> int:
    """Return the value of a counting measure for one query: 1 query, or its number of relevant or retrieved
    documents.
    """
    rel = measure.params.get("rel")
    if measure.NAME == "NumRel":
        return sum(grade >= (1 if rel is None else rel) for grade in labels.values())
    if measure.NAME == "NumRet":
        return len(found) if rel is None else sum(doc in labels and labels[doc] >= rel for doc in found)
    return 1


def _text(measure: measures.Measure) -> str:
    """Return raggs' name for a measure."""
    name = str(measure.NAME)
    if measure.params.get("dcg") == "exp-log2":
        name = "ndcg_exp"
    at = measure.params.get(measure.AT_PARAM)
    left = {
        key: value for key, value in measure.params.items() if key not in SEPARATE_PARAMS and key != measure.AT_PARAM
    }
    inside = ", ".join(f"{key}={value}" for key, value in left.items())
    return name + (f"({inside})" if inside else "") + ("" if at is None else f"@{at}")


def _supported() -> list[measures.Measure]:
    """Return the measures of ir_measures that raggs computes, with the supported parameters."""
    free, some = base.Any(), base.Any(required=True)
    cut: dict[str, object] = {"cutoff": free, "rel": free, "judged_only": free}
    graded: dict[str, object] = {"min_rel": free, "max_rel": free}
    return [
        measures._P(**cut),
        measures._R(**cut),
        measures._RR(**cut),
        measures._AP(**cut),
        measures._Success(**cut),
        measures._nDCG(cutoff=free, dcg=base.Choices("log2", "exp-log2"), gains=free, judged_only=free),
        measures._Rprec(rel=free, judged_only=free),
        measures._SetP(rel=free, relative=free, judged_only=free),
        measures._SetAP(rel=free, judged_only=free),
        measures._SetR(rel=free),
        measures._SetF(rel=free, beta=free, judged_only=free),
        measures._IPrec(recall=free, rel=free, judged_only=free),
        measures._Bpref(rel=free),
        measures._infAP(rel=free),
        measures._NumQ(),
        measures._NumRel(rel=free),
        measures._NumRet(rel=free),
        measures._Accuracy(cutoff=free, rel=free),
        measures._Judged(cutoff=free),
        measures._ERR(cutoff=free),
        measures._RBP(cutoff=free, p=free, rel=some),
        measures._Compat(p=free, normalize=free),
        measures._INST(T=free, **graded),
        measures._INSQ(T=free, **graded),
        measures._SDCG(cutoff=free, dcg=free, **graded),
        measures._BPM(cutoff=free, T=free, **graded),
        measures._NERR8(cutoff=free, **graded),
        measures._NERR9(cutoff=free, **graded),
        measures._NERR10(p=free, **graded),
        measures._NERR11(T=free, **graded),
        *(type(own)(**dict.fromkeys(own.SUPPORTED_PARAMS, free)) for own in _own_measures()),
    ]


class RaggsProvider(providers.Provider):
    """Provider that computes measures of ir_measures and raggs' own measures."""

    NAME = "raggs"
    SUPPORTED_MEASURES = _supported()

    def _evaluator(self, measures: Iterable[measures.Measure], qrels: util.TYPE_QREL) -> RaggsEvaluator:
        """Return the evaluator of some measures.

        Raises:
            UsageError: raggs does not compute a measure, or not with its parameters.
        """
        wanted = list(measures)
        if refused := [str(measure) for measure in wanted if not self.supports(measure)]:
            remedy = "add the other providers: FallbackProvider([provider, *ir_measures.DefaultPipeline.providers])"
            raise UsageError(f"raggs does not compute {', '.join(refused)}", remedy=remedy)
        return RaggsEvaluator(wanted, util.QrelsConverter(qrels).as_dict_of_dict())


provider: RaggsProvider = providers.register(RaggsProvider())
