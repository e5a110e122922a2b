"""Samples with expected passages, and a system's outputs for them, in two files.

Samples (YAML or JSON): ``samples: [{id, expected_output: [ids] or {id: gain}, metadata: {k, answer}}]``. Outputs (JSON
lines): ``{"id": ..., "output": {"retrieved": [{"id", "text"}, ...]}}``. The output may also be just the array, and its
items may be ids. The cutoff of a sample is its `metadata.k`. A sample without it has the requested cutoff. Samples with
different cutoffs are scored separately, and the results are combined into one report.

The module also reads files with the facets of passages, or with correct and wrong answers. It finds expected answers in
texts; this ignores differences in Unicode form, case and amount of white space.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.base.files import read_whole
from raggs.base.jsonl import decode_json, raw_lines, read_objects
from raggs.base.plainyaml import load_plain
from raggs.base.text import one_line, shorten
from raggs.evaluation.analyses import Analysis
from raggs.evaluation.messages import OWN_CUTOFFS
from raggs.evaluation.models import EvalReport
from raggs.evaluation.report import make_report, score_part
from raggs.evaluation.study import ScoringSettings, hits_of
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import MAX_GAIN, GradeScale, Qrels, Run
from raggs.metrics.evaluate import measure_hits
from raggs.metrics.names import MeasureSpec
from raggs.parts.file_shapes import check_ids, replayable
from raggs.stats.intervals import bootstrap_means


def merged_by_cutoff(
    judgments: Judgments,
    system: NamedSystem,
    scoring: ScoringSettings,
    cutoffs: Mapping[int | None, frozenset[str]],
    analyses: Sequence[Analysis] = (),
) -> EvalReport:
    """Return a report in which each sample is scored at its own cutoff, if it has one.

    In this report, measures with a cutoff are called ``name@k`` with the letter k, because the cutoffs differ.

    Args:
        judgments: expected passages of the samples.
        system: the retrieved passages.
        scoring: settings for samples without a cutoff.
        cutoffs: ids of the samples with each cutoff; the key None is for samples without their own cutoff.
        analyses: analyses to run, at the cutoffs of `scoring`.

    Raises:
        DataError, UsageError: as `make_report`.
    """
    labels: dict[str, MeasureSpec] = {}
    # of several cutoffs of a measure, the first applies to samples without their own cutoff
    for named in scoring.measures:
        labels.setdefault(_label(named), named)
    values: dict[str, dict[str, float | None]] = {}
    whole, hits = make_report(judgments, [system], scoring, analyses), hits_of(judgments, system, scoring)
    for own, names in cutoffs.items():
        moved = {label: _at_cutoff(named, own) for label, named in labels.items()}
        found = measure_hits(hits, list(moved.values())).per_query
        for label, named in moved.items():
            column = found[named.name]
            values.setdefault(label, {}).update({name: column[name] for name in names if math.isfinite(column[name])})
    return _joined_report(whole, system, values, {label: named.higher for label, named in labels.items()})


def _joined_report(
    whole: EvalReport, system: NamedSystem, values: Mapping[str, Mapping[str, float | None]], higher: Mapping[str, bool]
) -> EvalReport:
    qids = sorted({qid for column in values.values() for qid in column})
    matrix: Floats = np.array([[column.get(qid, np.nan) for qid in qids] for column in values.values()], dtype=float)
    intervals = bootstrap_means(matrix, confidence=whole.confidence, seed=whole.seed)
    scores = {name: score_part(one) for name, one in zip(values, intervals, strict=True)}
    rescored = whole.with_systems({system.name: {"scores": scores, "ties": ()}})
    return rescored.model_copy(
        update={
            "measures": tuple(values),
            "higher_is_better": dict(higher),
            "per_query": {system.name: values},
            "notes": (*whole.notes, OWN_CUTOFFS),
        }
    )


def _at_cutoff(named: MeasureSpec, k: int | None) -> MeasureSpec:
    if k is None or named.measure.k is None:
        return named
    return replace(named, measure=replace(named.measure, k=k))


def _label(named: MeasureSpec) -> str:
    return named.name if named.measure.k is None else named.name.replace(f"@{named.measure.k}", "@k")


FACET = "doc_id<TAB>facet"
CORRECT = "qid<TAB>0|1"
ANSWERS = '{"system": "bm25", "qid": "q1", "correct": true}'
FLAGS = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}


def read_facets(path: Path) -> dict[str, str]:
    """Return the facet of each passage, from lines of ``doc_id<TAB>facet``.

    Raises:
        NotFoundError, DataError: the file is missing, or a line is invalid.
    """
    return {doc_id: facet for _, doc_id, facet in _pairs(path, FACET)}


def read_correct(path: Path) -> dict[str, dict[str, bool]]:
    """Return for each system whether its answer to each query was correct. The key "" stands for all systems.

    The file has lines of ``qid<TAB>0|1`` (or true, false, yes, no), or JSON lines (``.jsonl``) with `system`, `qid` and
    `correct`. An answer whose `correct` is null counts as unknown.

    Raises:
        NotFoundError, DataError: the file is missing, or a line is invalid.
    """
    if path.suffix == ".jsonl":
        return _by_system(path)
    flags = {}
    for line, qid, text in _pairs(path, CORRECT):
        if text.lower() not in FLAGS:
            said = f"query {qid}: {text!r} is neither 0 nor 1"
            raise DataError(said, where=path, line=line, remedy="write 1 for a correct answer and 0 for a wrong one")
        flags[qid] = FLAGS[text.lower()]
    return {"": flags}


def _by_system(path: Path) -> dict[str, dict[str, bool]]:
    seen: set[tuple[str, str]] = set()
    flags: dict[str, dict[str, bool]] = {}
    for line, found in read_objects(path):
        system, qid, correct = found.get("system", ""), found.get("qid"), found.get("correct")
        if not isinstance(system, str):
            raise DataError(f"system {system!r} is not text", where=path, line=line, remedy=f"expected: {ANSWERS}")
        if not isinstance(qid, str) or "correct" not in found:
            raise DataError("has no qid or no correct", where=path, line=line, remedy=f"expected: {ANSWERS}")
        if correct is not None and correct not in (0, 1):
            said = f"query {qid}: {correct!r} is not true, false or null"
            raise DataError(said, where=path, line=line, remedy="true for a correct answer, null for an unknown one")
        if (system, qid) in seen:
            of = f" of {system}" if system else ""
            raise DataError(f"query {qid}{of} has two lines", where=path, line=line, remedy="keep one")
        seen.add((system, qid))
        if correct is not None:
            flags.setdefault(system, {})[qid] = bool(correct)
    return flags


def _pairs(path: Path, form: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, key and value of each line."""
    seen = set()
    with replayable(path) as file:
        for line, text in raw_lines(file):
            cells = text.split("\t") if "\t" in text else text.split()
            if len(cells) != 2:
                raise DataError(f"{len(cells)} columns instead of 2", where=path, line=line, remedy=f"expected: {form}")
            key, value = (cell.strip() for cell in cells)
            if key in seen:
                raise DataError(f"{key} occurs twice", where=path, line=line, remedy="keep one")
            seen.add(key)
            yield line, key, value


def fold_text(text: str) -> str:
    """Return `text` in NFKC and case-folded, with each run of white space replaced by one blank."""
    return one_line(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))


def answer_rank(answer: str, texts: Iterable[str]) -> float:
    """Return the first rank, counted from 1, whose text contains `answer`; inf if no text contains it.

    Raises:
        DataError: the answer is empty, so every text would contain it.
    """
    wanted = fold_text(answer)
    if not wanted:
        raise DataError("the expected answer is empty", remedy="omit it, or write the text to search for")
    return next((float(rank) for rank, text in enumerate(texts, start=1) if wanted in fold_text(text)), math.inf)


DEFAULT_K = 5
MAX_K = 10**9 - 1  # the same limit as for --k
OUTPUT_KEYS = ("output", "actual_output", "actualOutput")
OUTPUT_FORM = 'write {"retrieved": [{"id": "doc-7", "text": "..."}]} or ["doc-7", ...]'


@dataclass(frozen=True)
class ExpectedSample:
    """Expected passages of one query, with its cutoff and its expected answer."""

    gains: Mapping[str, float]
    k: int | None
    answer: str | None


@dataclass(frozen=True)
class SampleSet:
    """Samples and outputs, in the form that an evaluation needs.

    Attributes:
        judgments: the expected passages.
        system: the retrieved passages.
        cutoffs: ids of the samples with each cutoff; the key None is for samples without their own cutoff.
        answer_rank: maps each sample to the first rank whose text contains the expected answer; empty if no sample has
            an expected answer.
    """

    judgments: Judgments
    system: NamedSystem
    cutoffs: Mapping[int | None, frozenset[str]]
    answer_rank: Mapping[str, float]


def open_samples(samples: Path, outputs: Path) -> SampleSet:
    """Read the files of samples and outputs.

    Raises:
        NotFoundError, DataError: a file is missing or invalid.
    """
    wanted = dict(_samples(samples))
    if not wanted:
        raise DataError("contains no samples", where=samples, remedy="write samples: [{id, expected_output}, ...]")
    lists: dict[str, list[str]] = {}
    ranks: dict[str, float] = {}
    for line, name, items in _outputs(outputs):
        if name in lists:
            raise DataError(f"sample {name} occurs twice", where=outputs, line=line, remedy="keep one")
        if name not in wanted:
            raise DataError(
                f"{samples} has no sample {name}", where=outputs, line=line, remedy="use the same ids in both files"
            )
        ids = [doc_id for doc_id, _ in items]
        if len(set(ids)) < len(ids):
            raise DataError(f"sample {name} returns a passage twice", where=outputs, line=line, remedy="keep the first")
        lists[name] = ids
        if (answer := wanted[name].answer) is not None:
            ranks[name] = answer_rank(answer, (text for _, text in items))
    for name, sample in wanted.items():
        if sample.answer is not None:
            ranks.setdefault(name, math.inf)
    cutoffs: dict[int | None, set[str]] = {}
    for name, sample in wanted.items():
        cutoffs.setdefault(sample.k, set()).add(name)
    judgments = Judgments(str(samples), _qrels(wanted))
    frozen = {k: frozenset(names) for k, names in cutoffs.items()}
    return SampleSet(judgments, NamedSystem(outputs.stem, str(outputs), Run.of(lists)), frozen, ranks)


def _qrels(samples: Mapping[str, ExpectedSample]) -> Qrels:
    """Convert gains to grades. A gain of 0 has grade 0; the smallest other gain of the file has grade 1, and so on."""
    levels = [0.0, *sorted({gain for sample in samples.values() for gain in sample.gains.values() if gain > 0})]
    high = max(len(levels) - 1, 1)
    scale = GradeScale.of(0, high, 1, dict(enumerate(levels if len(levels) > 1 else [0.0, 1.0])))
    labels = {
        name: {doc_id: levels.index(float(gain)) for doc_id, gain in sample.gains.items()}
        for name, sample in samples.items()
    }
    return Qrels.of(labels, scale)


def _samples(path: Path) -> Iterator[tuple[str, ExpectedSample]]:
    seen = set()
    for place, entry in enumerate(_entries(path), start=1):
        if not isinstance(entry, dict) or (name := _id(entry.get("id"))) is None:
            raise DataError(f"sample {place} has no id", where=path, remedy="write id: q-1")
        check_ids(path, None, name)
        if name in seen:
            raise DataError(f"sample {name} occurs twice", where=path, remedy="keep one")
        seen.add(name)
        meta = entry.get("metadata") or {}
        if not isinstance(meta, dict):
            raise DataError(f"sample {name}: metadata is not a mapping", where=path, remedy="write metadata: {k: 5}")
        answer = _answer(path, name, meta.get("answer", entry.get("expected_answer")))
        yield name, ExpectedSample(_gains(path, name, entry.get("expected_output")), _cutoff(path, name, meta), answer)


def _entries(path: Path) -> list[object]:
    try:
        with replayable(path) as file:
            text = read_whole(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8", where=path, remedy="convert the file to UTF-8") from error
    found = _json(text) or load_plain(text, path)
    entries = found.get("samples") if isinstance(found, dict) else found
    if not isinstance(entries, list):
        raise DataError("contains no list of samples", where=path, remedy="write samples: [{id, expected_output}, ...]")
    return entries


def _json(text: str) -> object:
    """Return the value of a JSON text, or None if it is not JSON. JSON is tried before YAML, which would read 1e-05
    as a string.
    """
    try:
        value: object = decode_json(text)
    except ValueError:
        return None
    return value


def _gains(path: Path, name: str, expected: object) -> dict[str, float]:
    remedy = "write expected_output: [doc-3, doc-9] or {doc-3: 3, doc-9: 1}"
    if not isinstance(expected, list | dict) or not expected:
        raise DataError(f"sample {name} expects no passage", where=path, remedy=remedy)
    gains = {}
    for doc_id, gain in expected.items() if isinstance(expected, dict) else [(one, 1) for one in expected]:
        if (written := _id(doc_id)) is None:
            raise DataError(f"sample {name}: {doc_id!r} is not a passage id", where=path, remedy="quote it")
        check_ids(path, None, written)
        if written in gains:
            raise DataError(f"sample {name} expects {written} twice", where=path, remedy="keep one")
        number = isinstance(gain, int | float) and not isinstance(gain, bool)
        if not number or not 0 <= gain <= MAX_GAIN:
            said = f"sample {name}: gain {gain!r} of {written} is not a number in 0 to {MAX_GAIN:g}"
            raise DataError(said, where=path, remedy=remedy)
        gains[written] = float(gain)
    return gains


def _id(value: object) -> str | None:
    """Return an id as text. Return None if it is neither a text nor a whole number: YAML converts some ids to other
    types, so that their spelling is lost.
    """
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _answer(path: Path, name: str, answer: object) -> str | None:
    if answer is None:
        return None
    if not isinstance(answer, str | int | float) or isinstance(answer, bool):
        raise DataError(f"sample {name}: the answer {answer!r} is not text", where=path, remedy="quote it")
    if not fold_text(str(answer)):
        raise DataError(f"sample {name}: the expected answer is empty", where=path, remedy="omit it")
    return str(answer)


def _cutoff(path: Path, name: str, meta: Mapping[str, object]) -> int | None:
    k = meta.get("k")
    if k is not None and (not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MAX_K):
        raise DataError(
            f"sample {name}: k is {shorten(repr(k), 40)}", where=path, remedy=f"k is a whole number in 1 to {MAX_K:,}"
        )
    return k


def _outputs(path: Path) -> Iterator[tuple[int, str, list[tuple[str, str]]]]:
    with replayable(path) as file:
        for line, entry in read_objects(file):
            if (name := _id(entry.get("id"))) is None:
                raise DataError("no id", where=path, line=line, remedy='each line is {"id": ..., "output": ...}')
            output = next((entry[key] for key in OUTPUT_KEYS if key in entry), entry.get("retrieved"))
            yield line, name, _retrieved(path, line, output)


def _retrieved(path: Path, line: int, output: object) -> list[tuple[str, str]]:
    if isinstance(output, str):
        try:
            output = decode_json(output)
        except ValueError as error:
            raise DataError(
                f"the output is not valid JSON ({error})", where=path, line=line, remedy=OUTPUT_FORM
            ) from error
    items = output.get("retrieved") if isinstance(output, dict) else output
    if not isinstance(items, list):
        raise DataError("no retrieved list", where=path, line=line, remedy=OUTPUT_FORM)
    return [_item(path, line, item) for item in items]


def _item(path: Path, line: int, item: object) -> tuple[str, str]:
    doc_id = _id(item.get("id") if isinstance(item, dict) else item)
    if doc_id is None:
        raise DataError(f"{json.dumps(item)} is not a passage", where=path, line=line, remedy=OUTPUT_FORM)
    check_ids(path, line, doc_id)
    return doc_id, str(item.get("text") or "") if isinstance(item, dict) else ""
