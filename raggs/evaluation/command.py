"""From what a user asked for, as texts and paths, to the report and its gates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from raggs.errors import DataError, UsageError
from raggs.evaluation.gates import Gates, parse_limit, read_report
from raggs.evaluation.models import Report
from raggs.evaluation.report import Options, make_report
from raggs.golden.opened import open_golden
from raggs.golden.systems import open_systems
from raggs.jsonl import raw_lines
from raggs.metrics.columns import Scale
from raggs.metrics.names import at_cutoffs, needs_cutoff, parse_measure, split_names

DEFAULT_CUTOFF = 10
GRADED = ("ra_nwg", "n_recall4", "n_recall5", "precision4", "harm", "ndcg", "recall", "mrr")
OTHERS = ("ndcg", "recall", "precision", "mrr", "map", "hit")
OF_SAMPLES = ("hit", "recall", "precision", "mrr", "ndcg")
SCALE = re.compile(r"([0-9]{1,3})\s*(?:-|\.\.)\s*([0-9]{1,3})")
FACET = "doc_id<TAB>facet"
CUTOFF = re.compile(r"[1-9][0-9]{0,8}")
FLAGS = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}


@dataclass(frozen=True)
class Request:
    """What `raggs eval` was asked; its help says what each means."""

    golden: Path | None
    runs: tuple[str, ...]
    measures: str | None
    cutoffs: str
    baseline: str | None
    ties: str
    scale: str | None
    binary_at: int | None
    gains: str | None
    condensed: bool
    pool: int
    bounds: bool
    sensitivity: bool
    robustness: bool
    uncertainty: bool
    facets: Path | None
    correct: Path | None
    samples: Path | None
    outputs: Path | None
    confidence: float
    seed: int
    fail_under: tuple[str, ...]
    fail_on_regression: Path | None
    max_drop: float


def open_gates(asked: Request) -> Gates:
    """The conditions that were set. To be called first, so that a wrong path is told before the work.

    Raises:
        UsageError, NotFoundError, DataError: a condition cannot be held.
    """
    if not math.isfinite(asked.max_drop):
        raise UsageError("--max-drop is a number", remedy="write e.g. --max-drop 0.01")
    path = asked.fail_on_regression
    return Gates(
        limits=dict(map(parse_limit, asked.fail_under)),
        before=None if path is None else read_report(path),
        where=path,
        drop=asked.max_drop,
    )


def evaluate_files(asked: Request) -> Report:
    """Read all files and score.

    Raises:
        UsageError, NotFoundError, DataError: something asked for does not exist, or a file cannot be right.
    """
    if not math.isfinite(asked.confidence):
        raise UsageError("--confidence is a number", remedy="write e.g. --confidence 0.95")
    if asked.samples is not None or asked.outputs is not None:
        return _of_samples(asked)
    if asked.golden is None or not asked.runs:
        raise UsageError("what is scored, and against what?", remedy="raggs eval --golden RUN|QRELS --run FILE")
    golden = open_golden(asked.golden).judgments(_scale(asked))
    golden = replace(golden, qrels=replace(golden.qrels, scale=_tuned(golden.qrels.scale, asked)))
    if asked.uncertainty and golden.doubt is None:
        raise UsageError("a qrels file says nothing of its doubt", remedy="--uncertainty needs --golden RUN_DIRECTORY")
    usual = GRADED if golden.qrels.scale.golden else OTHERS
    options = _options(asked, usual, DEFAULT_CUTOFF)
    return make_report(golden, list(open_systems(list(asked.runs))), options)


def _of_samples(asked: Request) -> Report:
    from raggs.evaluation.merging import merged_by_cutoff  # late: most evaluations read no YAML
    from raggs.evaluation.samples import DEFAULT_K, open_samples

    if asked.samples is None or asked.outputs is None:
        raise UsageError("--samples and --outputs belong together", remedy="give both")
    if asked.golden is not None or asked.runs:
        raise UsageError("--samples stands for --golden and --run", remedy="give one of both")
    read = open_samples(asked.samples, asked.outputs)
    usual = (*OF_SAMPLES, "containment") if read.answer_rank else OF_SAMPLES
    options = replace(_options(asked, usual, DEFAULT_K), answer_rank=read.answer_rank or None)
    golden = replace(read.golden, qrels=replace(read.golden.qrels, scale=_tuned(read.golden.qrels.scale, asked)))
    if not any(read.cutoffs):
        return make_report(golden, [read.system], options)
    return merged_by_cutoff(golden, read.system, options, read.cutoffs)


def _options(asked: Request, usual: tuple[str, ...], default_k: int) -> Options:
    if asked.ties not in {"trec", "file"}:
        raise UsageError(f"--ties {asked.ties} is not known", remedy="trec or file")
    cutoffs = _cutoffs(asked.cutoffs)
    if asked.measures:
        names = split_names(asked.measures)
        always = asked.samples is not None  # a sample always has a cutoff
        usual_ks = {name: [default_k] if always or needs_cutoff(name) else [] for name in names}
        wanted = [one for name in names for one in at_cutoffs(name, cutoffs or usual_ks[name])]
    else:
        wanted = [one for name in usual for one in at_cutoffs(name, cutoffs or [default_k])]
    shown = sorted({named.measure.k for named in wanted if named.measure.k}) or [default_k]
    wanted += [parse_measure(parse_limit(limit)[0]) for limit in asked.fail_under]
    wanted += [parse_measure(f"holes@{k}") for k in shown]
    return Options(
        measures=list({named.name: named for named in wanted}.values()),
        cutoffs=cutoffs or shown,
        ties="file" if asked.ties == "file" else "trec",
        condensed=asked.condensed,
        baseline=asked.baseline,
        pool=asked.pool,
        bounds=asked.bounds,
        sensitivity=asked.sensitivity,
        robustness=asked.robustness,
        uncertainty=asked.uncertainty,
        confidence=asked.confidence,
        seed=asked.seed,
        facets={} if asked.facets is None else {key: value for _, key, value in _pairs(asked.facets, FACET)},
        correct=None if asked.correct is None else _flags(asked.correct),
    )


def _cutoffs(text: str) -> list[int]:
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if not CUTOFF.fullmatch(part):
            raise UsageError(f"--k {part} is no cutoff", remedy="write e.g. --k 5,10,20")
        found.append(int(part))
    return sorted(set(found))


def _scale(asked: Request) -> Scale | None:
    if asked.scale is None:
        return None
    ends = SCALE.fullmatch(asked.scale.strip())
    if not ends:
        raise UsageError(f"--scale {asked.scale} is no scale", remedy="write e.g. --scale 1-5 or --scale 0-3")
    return Scale.of(int(ends[1]), int(ends[2]))


def _tuned(scale: Scale, asked: Request) -> Scale:
    if asked.binary_at is None and asked.gains is None:
        return scale
    gains = dict(zip(scale.grades().tolist(), scale.gains, strict=True))
    for part in filter(None, (asked.gains or "").split(",")):
        grade, _, gain = part.partition("=")
        try:
            known = int(grade) in gains
            gains[int(grade)] = float(gain)
        except ValueError:
            raise UsageError(f"--gains: {part!r} is no grade=gain", remedy="write e.g. --gains 5=4,4=2") from None
        if not known:
            raise UsageError(f"--gains: {grade} is no grade", remedy=f"grades are {scale.low} to {scale.high}")
    return Scale.of(scale.low, scale.high, scale.relevant if asked.binary_at is None else asked.binary_at, gains)


def _pairs(path: Path, form: str) -> Iterator[tuple[int, str, str]]:
    """Number, key and value of each line."""
    seen = set()
    for line, text in raw_lines(path):
        cells = text.split("\t") if "\t" in text else text.split()
        if len(cells) != 2:
            raise DataError(f"{len(cells)} columns instead of 2", where=path, line=line, remedy=f"expected: {form}")
        key, value = (cell.strip() for cell in cells)
        if key in seen:
            raise DataError(f"{key} stands twice", where=path, line=line, remedy="keep one")
        seen.add(key)
        yield line, key, value


def _flags(path: Path) -> Mapping[str, bool]:
    flags = {}
    for line, qid, text in _pairs(path, "qid<TAB>0|1"):
        if text.lower() not in FLAGS:
            said = f"query {qid}: {text!r} is neither 0 nor 1"
            raise DataError(said, where=path, line=line, remedy="1 for a correct answer")
        flags[qid] = FLAGS[text.lower()]
    return flags
