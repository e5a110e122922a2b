"""Samples with their expected passages, and what a system returned for them, as two files.

Samples (YAML or JSON): ``samples: [{id, expected_output: [ids] or {id: gain}, metadata: {k, answer}}]``. Outputs
(JSON lines): ``{"id": ..., "output": {"retrieved": [{"id", "text"}, ...]}}``; the output may be the bare array, its
items bare ids. The cutoff of a sample is its own `metadata.k`, else the one asked for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from raggs.base.errors import DataError
from raggs.base.inputs import read_whole
from raggs.base.jsonl import decode_json, read_objects
from raggs.base.plainyaml import load_plain
from raggs.base.text import shorten
from raggs.golden.judgments import Judgments
from raggs.golden.systems import System
from raggs.metrics.columns import MOST_GAIN, Qrels, Run, Scale
from raggs.metrics.texts import answer_rank, folded
from raggs.parts.readers.pipes import replayable
from raggs.parts.readers.shapes import check_ids

DEFAULT_K = 5
MOST_K = 10**9 - 1  # as with --k
OUTPUT_KEYS = ("output", "actual_output", "actualOutput")
FORM = 'write {"retrieved": [{"id": "doc-7", "text": "..."}]} or ["doc-7", ...]'


@dataclass(frozen=True)
class Sample:
    """What is expected of one question."""

    gains: Mapping[str, float]
    k: int | None
    answer: str | None


@dataclass(frozen=True)
class Samples:
    """Samples and outputs, ready to be evaluated.

    Attributes:
        judgments: the expected passages.
        system: what was returned.
        cutoffs: the samples by their own cutoff; those without one by None.
        answer_rank: by sample, where the expected answer first stands; empty where no sample has one.
    """

    judgments: Judgments
    system: System
    cutoffs: Mapping[int | None, frozenset[str]]
    answer_rank: Mapping[str, float]


def open_samples(samples: Path, outputs: Path) -> Samples:
    """Read both files.

    Raises:
        NotFoundError, DataError: a file is missing, or something in it cannot be right.
    """
    wanted = dict(_samples(samples))
    if not wanted:
        raise DataError("holds no samples", where=samples, remedy="write samples: [{id, expected_output}, ...]")
    lists: dict[str, list[str]] = {}
    ranks: dict[str, float] = {}
    for line, name, items in _outputs(outputs):
        if name in lists:
            raise DataError(f"sample {name} stands twice", where=outputs, line=line, remedy="keep one")
        if name not in wanted:
            raise DataError(
                f"{samples} has no sample {name}", where=outputs, line=line, remedy="give both the same ids"
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
    return Samples(judgments, System(outputs.stem, str(outputs), Run.of(lists)), frozen, ranks)


def _qrels(samples: Mapping[str, Sample]) -> Qrels:
    """Gains become grades: the number of the gain among all gains, 0 for none."""
    levels = [0.0, *sorted({gain for sample in samples.values() for gain in sample.gains.values() if gain > 0})]
    high = max(len(levels) - 1, 1)
    scale = Scale.of(0, high, 1, dict(enumerate(levels if len(levels) > 1 else [0.0, 1.0])))
    labels = {
        name: {doc_id: levels.index(float(gain)) for doc_id, gain in sample.gains.items()}
        for name, sample in samples.items()
    }
    return Qrels.of(labels, scale)


def _samples(path: Path) -> Iterator[tuple[str, Sample]]:
    seen = set()
    for place, entry in enumerate(_entries(path), start=1):
        if not isinstance(entry, dict) or (name := _id(entry.get("id"))) is None:
            raise DataError(f"sample {place} has no id", where=path, remedy="write id: q-1")
        check_ids(path, None, name)
        if name in seen:
            raise DataError(f"sample {name} stands twice", where=path, remedy="keep one")
        seen.add(name)
        meta = entry.get("metadata") or {}
        if not isinstance(meta, dict):
            raise DataError(f"sample {name}: metadata is no mapping", where=path, remedy="write metadata: {k: 5}")
        answer = _answer(path, name, meta.get("answer", entry.get("expected_answer")))
        yield name, Sample(_gains(path, name, entry.get("expected_output")), _cutoff(path, name, meta), answer)


def _entries(path: Path) -> list[object]:
    try:
        with replayable(path) as file:
            text = read_whole(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8", where=path, remedy="convert the file to UTF-8") from error
    found = _json(text) or load_plain(text, path)
    entries = found.get("samples") if isinstance(found, dict) else found
    if not isinstance(entries, list):
        raise DataError("holds no list of samples", where=path, remedy="write samples: [{id, expected_output}, ...]")
    return entries


def _json(text: str) -> object:
    """The value of a JSON text, None where it is none: to YAML, 1e-05 would be a word."""
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
            raise DataError(f"sample {name}: {doc_id!r} is no id of a passage", where=path, remedy="quote it")
        check_ids(path, None, written)
        if written in gains:
            raise DataError(f"sample {name} expects {written} twice", where=path, remedy="keep one")
        number = isinstance(gain, int | float) and not isinstance(gain, bool)
        if not number or not 0 <= gain <= MOST_GAIN:
            said = f"sample {name}: gain {gain!r} of {written} is no number in 0 to {MOST_GAIN:g}"
            raise DataError(said, where=path, remedy=remedy)
        gains[written] = float(gain)
    return gains


def _id(value: object) -> str | None:
    """An id as text; None where YAML made something else of it, whose spelling is lost."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _answer(path: Path, name: str, answer: object) -> str | None:
    if answer is None:
        return None
    if not isinstance(answer, str | int | float) or isinstance(answer, bool):
        raise DataError(f"sample {name}: the answer {answer!r} is no text", where=path, remedy="quote it")
    if not folded(str(answer)):
        raise DataError(f"sample {name}: the expected answer is empty", where=path, remedy="leave it out")
    return str(answer)


def _cutoff(path: Path, name: str, meta: Mapping[str, object]) -> int | None:
    k = meta.get("k")
    if k is not None and (not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST_K):
        raise DataError(
            f"sample {name}: k is {shorten(repr(k), 40)}", where=path, remedy=f"k is a whole number in 1 to {MOST_K:,}"
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
            raise DataError(f"the output is not valid JSON ({error})", where=path, line=line, remedy=FORM) from error
    items = output.get("retrieved") if isinstance(output, dict) else output
    if not isinstance(items, list):
        raise DataError("no retrieved list", where=path, line=line, remedy=FORM)
    return [_item(path, line, item) for item in items]


def _item(path: Path, line: int, item: object) -> tuple[str, str]:
    doc_id = _id(item.get("id") if isinstance(item, dict) else item)
    if doc_id is None:
        raise DataError(f"{json.dumps(item)} is no passage", where=path, line=line, remedy=FORM)
    check_ids(path, line, doc_id)
    return doc_id, str(item.get("text") or "") if isinstance(item, dict) else ""
