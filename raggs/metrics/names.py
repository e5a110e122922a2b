"""Notation of measures: ``ndcg@10``, ``P(rel=4)@10``, ``E[ndcg@10]``, ``ndcg[utility]@10``.

Case is ignored, and the spelling of ir_measures is accepted. A name that ends in ``-at-k`` needs a cutoff. Each measure
has one canonical name, which is parsed to the same measure.

`definitions` describes each measure of raggs in one line for a lock file: formula, default parameters, and an example
value. If two versions of raggs have different lines for a measure, do not compare their scores. The example value is
computed from fixed data, so the line also changes if a change of the code alters this value but not the formula.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError, PrerequisiteError, UsageError
from raggs.base.text import did_you_mean, one_line
from raggs.metrics.columns import GradeScale, Qrels, Run, belief_of
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.measure import Measure
from raggs.metrics.measures import REGISTRY, aliases
from raggs.metrics.measures.evidence import find_evidence

V = TypeVar("V")

MODE_WORDS = {
    "E": "the mean over all orders of tied passages",
    "min": "the minimum over all orders of tied passages",
    "max": "the maximum over all orders of tied passages",
    "range": "the maximum minus the minimum over all orders of tied passages",
    "range_at_k": "the maximum minus the minimum over all orders of the passages tied across the cutoff",
    "bias": "the value in list order minus the mean over all orders of tied passages",
}
MODES = {"e": "E"} | {mode: mode for mode in MODE_WORDS if mode != "E"}
SPREADS = frozenset({"range", "range_at_k", "bias"})  # the best value is 0, so these modes are not used as scores
WRAPPED = re.compile(r"(\w+)\[(.+)\]")
NAME_SEPARATOR = re.compile(r",(?![^(\[]*[)\]])")
MEASURE_PATTERN = re.compile(r"(\w[\w-]*(?:\[(?i:utility)\])?)(?:\(([^()]*)\))?(?:@(\d+(?:\.\d+)?|\.\d+))?")
FLAGS = {"true": "1", "false": "0"}  # spelling of ir_measures
MAX_CUTOFF = 10**9
AT_K = "-at-k"


@dataclass(frozen=True)
class MeasureSpec:
    """A measure, and how its values over tied orders are aggregated.

    Attributes:
        measure: the measure.
        mode: "" for the value in list order; "E", "min", "max", "range" (max - min), "range_at_k" (range over the
            orders of the tie group at the cutoff) or "bias" (value in list order minus E).
    """

    measure: Measure
    mode: str = ""

    @property
    def name(self) -> str:
        """Canonical name, which parses to the same measure."""
        measure = self.measure
        changed = [
            f"{key}={_format_number(measure.params[key])}"
            for key in measure.PARAMS
            if key in measure.params and key != measure.AT
        ]
        text = measure.NAME + (f"({', '.join(changed)})" if changed else "")
        text += "" if measure.k is None else f"@{measure.k}"
        text += "" if measure.AT is None else f"@{_format_number(measure[measure.AT])}"
        return f"{self.mode}[{text}]" if self.mode else text

    @property
    def higher(self) -> bool:
        """Whether a higher value is better; False for the modes of a range or bias, whose best value is 0."""
        return self.measure.HIGHER and self.mode not in SPREADS

    def values(self, hits: Hits) -> Floats:
        """Return the value of each query, shape (queries,); NaN if the measure is undefined for the query.

        Raises:
            DataError: the measure is not defined on these judgments.
        """
        measure = self.measure
        measure.check(hits)
        match self.mode:
            case "E":
                return measure.expected(hits)
            case "min" | "max":
                return measure.extreme(hits, self.mode == "max")
            case "range" | "range_at_k":
                moved = hits.across(measure.cutoff) if self.mode == "range_at_k" else hits
                return measure.extreme(moved, True) - measure.extreme(moved, False)
            case "bias":
                return measure.score(hits) - measure.expected(hits)
        return measure.score(hits)


def parse_measure(text: str) -> MeasureSpec:
    """Return the measure with the name `text`.

    Raises:
        UsageError: the measure, its mode or a parameter is unknown, a value is out of range, or the cutoff is missing.
    """
    if wrapped := _wrapped(text):
        mode = MODES.get(wrapped[1].lower())
        if mode is None:
            raise UsageError(f"unknown mode {wrapped[1]}[...]", remedy=f"write one of: {', '.join(MODES.values())}")
        inner = parse_measure(wrapped[2])
        if inner.mode or not inner.measure.TIES:
            raise UsageError(f"{mode}[...] is not defined for {inner.name}", remedy="use the measure without brackets")
        if mode == "range_at_k" and inner.measure.k is None:
            raise UsageError(f"{text.strip()} needs a cutoff", remedy=f"write range_at_k[{inner.name}@10]")
        return replace(inner, mode=mode)
    found = MEASURE_PATTERN.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{text!r} is not the name of a measure", remedy="write e.g. ndcg@10 or E[recall@5]")
    kind = _measure_class(found[1])
    if kind.AT is not None:
        return MeasureSpec(kind(None, _params(kind, found[2] or "", at=found[3])))
    if found[3] is not None and not found[3].isdecimal():
        raise UsageError(f"{text}: the cutoff must be a whole number", remedy=f"write e.g. {kind.NAME}@10")
    k = None if found[3] is None else int(found[3])
    if k is not None and not 1 <= k <= MAX_CUTOFF:
        raise UsageError(f"{text}: the cutoff must be in 1 to {MAX_CUTOFF}")
    if k is None and (kind.CUTOFF == "needed" or found[1].lower().endswith(AT_K)):
        raise UsageError(f"{text} needs a cutoff", remedy=f"write e.g. {text}@10")
    return MeasureSpec(kind(k, _params(kind, found[2] or "")))


def parse_measures(texts: Sequence[str]) -> list[MeasureSpec]:
    """Parse several names of measures; a repeated measure is returned once."""
    return list({named.name: named for named in map(parse_measure, texts)}.values())


def split_names(text: str) -> list[str]:
    """Split a list of names at its commas, but not at commas within brackets."""
    return [part.strip() for part in NAME_SEPARATOR.split(text) if part.strip()]


def at_cutoffs(text: str, cutoffs: Sequence[int]) -> list[MeasureSpec]:
    """Return the measure `text` at each of the cutoffs.

    If `text` has its own cutoff, or no cutoffs are given, return only the measure `text` as written.

    Raises:
        UsageError: `parse_measure` rejects the name.
    """
    if "@" in text or not cutoffs:
        return [parse_measure(text)]
    inner, end = (text.rstrip()[:-1], "]") if _wrapped(text) else (text.strip(), "")
    return [parse_measure(f"{inner}@{k}{end}") for k in cutoffs]


def needs_cutoff(text: str) -> bool:
    """Return whether the measure `text` needs a cutoff; False if the measure is unknown."""
    wrapped = _wrapped(text)
    found = MEASURE_PATTERN.fullmatch((wrapped[2] if wrapped else text).strip())
    name = _registered_name(found[1]) if found else ""
    across = wrapped is not None and wrapped[1].lower() == "range_at_k"
    wanted = across or (found is not None and found[1].lower().endswith(AT_K))
    return name in REGISTRY and (wanted or REGISTRY.load(name).CUTOFF == "needed")


def glossary(names: Iterable[str]) -> dict[str, str]:
    """Return short descriptions of measures, by name without cutoff, and of their modes, such as ``E[ ]``.

    Unknown measures, such as those of packages that are not installed, are omitted.
    """
    measures: dict[str, str] = {}
    modes: dict[str, str] = {}
    for name in names:
        try:
            named = parse_measure(name)
        except (UsageError, PrerequisiteError):
            continue
        measures[named.measure.NAME] = _clause(type(named.measure))
        if named.mode:
            modes[f"{named.mode}[ ]"] = MODE_WORDS[named.mode]
    return measures | modes


def _clause(kind: type[Measure]) -> str:
    """Return the first line of a measure's docstring up to its first colon or semicolon."""
    line = (inspect.getdoc(kind) or "").partition("\n")[0]
    return re.split("[:;]", line)[0].rstrip(".")


class ByMeasure(Mapping[str, V]):
    """Values by measure, accessible by any spelling of its name.

    Args:
        values: values by canonical name.
    """

    def __init__(self, values: Mapping[str, V]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> V:
        if name in self._values:
            return self._values[name]
        try:
            return self._values[parse_measure(name).name]
        except UsageError as error:
            raise KeyError(name) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


def _wrapped(text: str) -> re.Match[str] | None:
    """Match a mode with its brackets; return None for a measure without a mode, whose name may contain brackets."""
    return None if MEASURE_PATTERN.fullmatch(text.strip()) else WRAPPED.fullmatch(text.strip())


def _measure_class(name: str) -> type[Measure]:
    known = _registered_name(name)
    if known not in REGISTRY:
        # "r" is similar to every name, so suggest only longer aliases
        names = [*REGISTRY, *(alias for alias in aliases() if len(alias) > 2)]
        remedy = did_you_mean(known, names, "see: raggs list measures")
        raise UsageError(f"unknown measure {name!r}", remedy=remedy)
    return REGISTRY.load(known)


def _registered_name(name: str) -> str:
    """Return the name under which a measure is registered; aliases are looked up if `name` is not registered itself."""
    known = name.lower()
    if known in REGISTRY.builtin:
        return known
    return aliases().get(known) or aliases(packages=True).get(known, known)


def _params(kind: type[Measure], text: str, at: str | None = None) -> dict[str, float]:
    """Return the parameters that differ from the defaults; `at` is the value after "@", for a measure with `AT`."""
    given: dict[str, float] = {}
    behind = [] if kind.AT is None or at is None else [f"{kind.AT}={at}"]
    for part in filter(None, (piece.strip() for piece in [*text.split(","), *behind])):
        key, _, value = part.rpartition("=")
        key = key.strip().lower() or kind.FIRST or ""
        if key not in kind.PARAMS:
            allowed = ", ".join(kind.PARAMS) or "none"
            raise UsageError(f"{kind.NAME} has no parameter {part!r}", remedy=f"parameters of {kind.NAME}: {allowed}")
        try:
            given[key] = float(FLAGS.get(value.strip().lower(), value))
        except ValueError:
            raise UsageError(f"{kind.NAME}: {part!r} is not a number") from None
        wanted = kind.PARAMS[key]
        if not wanted.low <= given[key] <= wanted.high:
            raise UsageError(f"{kind.NAME}: {key} must be in {wanted.low:g} to {wanted.high:g}, got {given[key]:g}")
        if wanted.whole and not given[key].is_integer():
            raise UsageError(f"{kind.NAME}: {key} must be a whole number, got {given[key]:g}")
    if kind.AT is not None and kind.AT not in given:
        raise UsageError(f"{kind.NAME} needs a {kind.AT} after @", remedy=f"write e.g. {kind.NAME}@0.5")
    return {key: value for key, value in given.items() if value != kind.PARAMS[key].usual}


def _format_number(value: float) -> str:
    """Return the shortest text of a number that is parsed to the same number."""
    return repr(int(value) if float(value).is_integer() else value)


CUTOFF = 3
LABELS = {
    "one": {"a": 5, "b": 4, "c": 3, "d": 2, "e": 1, "f": 4},
    "two": {"a": 4, "b": 1, "c": 5, "d": 3},
    "three": {"a": 1, "b": 4, "c": 2},
}
RANKED = {("one", "b"): (4.4, 0.3), ("one", "f"): (3.7, 0.3), ("two", "a"): (4.2, 0.0), ("two", "c"): (4.8, 0.5)}
EVIDENCE = {"one": [["a", "x"], ["b"]], "two": [["a", "c"], ["b", "c", "d"]]}
LISTS = {
    "one": {"d": 9.0, "a": 8.0, "x": 8.0, "c": 6.0, "f": 5.0, "b": 4.0},
    "two": {"c": 3.0, "b": 2.0, "y": 1.5, "a": 1.0},
    "three": {"c": 2.0, "z": 1.0},
}


def definitions() -> dict[str, str]:
    """Return the definition line of each built-in measure, by name."""
    qrels = Qrels.of(LABELS, GradeScale.of(1, 5))
    pairs = ((qid, doc_id) for qid in qrels.qids for doc_id in LABELS[qid])
    hits = find_hits(replace(qrels, belief=belief_of(pairs, RANKED)), Run.of(LISTS), "trec")
    hits = replace(hits, evidence=find_evidence(qrels, Run.of(LISTS), EVIDENCE))
    return {name: _line(name, hits) for name in REGISTRY.builtin}


def _line(name: str, hits: Hits) -> str:
    measure = REGISTRY.load(name)
    usual = [f"{key}={each.usual:g}" for key, each in measure.PARAMS.items() if each.usual is not None]
    parts = [one_line(measure.FORMULA), ", ".join(usual), _example(name, hits)]
    return "; ".join(part for part in parts if part)


def _example(name: str, hits: Hits) -> str:
    """Return the mean over the example queries as text; empty if the measure needs data that the example lacks."""
    try:
        values = parse_measure(f"{name}@{CUTOFF if REGISTRY.load(name).AT is None else 0.5}").values(hits)
    except DataError:  # without character offsets, span measures are not defined
        return ""
    valid = values[np.isfinite(values)]
    return f"example {float(valid.mean()) + 0.0:.6f}" if len(valid) else ""
