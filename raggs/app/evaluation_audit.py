"""Audit of an eval.json: evaluate the recorded files again with the recorded options, and compare the results.

Recorded paths are relative to the folder of eval.json, so you can move that folder together with the files.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from raggs.app.eval_request import (
    AnalysisRequest,
    EvalRequest,
    JudgedFiles,
    MeasureRequest,
    ProjectionRequest,
    SampleFiles,
    ScaleRequest,
    _hash,
)
from raggs.app.evaluate import evaluate
from raggs.app.gates import GateRequest
from raggs.base import __version__
from raggs.base.document import markdown
from raggs.base.errors import DataError, RaggsError
from raggs.base.files import hash_file, regular_file
from raggs.base.types import Number, as_object
from raggs.evaluation.gates import read_report
from raggs.evaluation.layout import RESULT, lay_out, per_query_csv
from raggs.evaluation.models import EvalReport, InputPart, SourcesPart, SystemPart
from raggs.golden.files import labels_in
from raggs.metrics.spans import ProjectionRule
from raggs.runs.manifests.models import AuditFinding
from raggs.runs.manifests.store import RunStore

UNCHECKED = ("whether the systems really returned the lists in the files",)
MAX_NAMED_QUERIES = 3  # maximum number of queries per measure that a finding names
RELATIVE_TOLERANCE = 1e-9  # different processors may round differently
# fields of the report that the audit ignores or checks in another way
SENTENCES = frozenset({"raggs", "v", "notes", "warnings", "sources"})
FIELDS_COMPARED_IN_DETAIL = frozenset(
    {"golden", "systems", "comparisons", "per_query"}
)  # fields of the report that are compared part by part
MISSING_FILE = "is missing, so its contents cannot be checked"


def is_evaluation(path: Path) -> bool:
    """Return whether a path is an eval.json, or a folder with an eval.json and neither a run nor labels."""
    file = _file(path)
    if path.is_dir() and (RunStore(path).exists or labels_in(path) is not None):
        return False
    try:
        found = as_object(json.loads(regular_file(file).read_bytes())) if file.suffix == ".json" else {}
    except (OSError, ValueError, RecursionError, DataError):
        return False
    return {"golden", "systems", "measures", "per_query"} <= found.keys()


def findings(path: Path) -> tuple[list[AuditFinding], int, tuple[str, ...]]:
    """Return the findings, the number of compared values, and notes on checks that were not possible.

    Raises:
        DataError: the file is not an eval.json of this version.
    """
    file = _file(path)
    report = read_report(file)
    values = sum(len(column) for measures in report.per_query.values() for column in measures.values())
    found = list(_pages(report, file.parent))
    if report.sources is None:
        said = "names no input files: the lists were in memory, or an earlier version of raggs wrote it"
        return [*found, AuditFinding(file.name, None, said)], values, UNCHECKED
    if report.sources.options_sha256 != _hash(report.sources.options):
        found.append(AuditFinding(file.name, None, "options changed after the evaluation: their sha256 differs"))
    changed, missing = _files(report.sources, file.parent)
    found += changed
    if missing:
        return [*found, *missing], values, (*UNCHECKED, "scores: without these files nothing can be evaluated again")
    try:
        fresh = _evaluate_again(report.sources, file.parent)
    except RaggsError as error:
        where = str(error.where) if error.where else file.name
        return (
            [*found, AuditFinding(where, error.line, f"cannot be evaluated again: {error.message}")],
            values,
            UNCHECKED,
        )
    found += [AuditFinding(file.name, None, said) for said in _differences(report, fresh)]
    writer = f"whether raggs {report.raggs}, which wrote the report, gives the same values"
    other = () if report.raggs == __version__ else (writer,)
    return found, values, (*UNCHECKED, *other)


def _file(path: Path) -> Path:
    return path / RESULT if path.is_dir() else path


# --- comparison ---------------------------------------------------------------------------------------------------


def _files(sources: SourcesPart, folder: Path) -> tuple[list[AuditFinding], list[AuditFinding]]:
    """Return findings for files that have changed and for files that are missing."""
    changed, missing = [], []
    for part in sources.inputs:
        place = folder / part.path
        held: dict[Path, str | None] = {place / name: sha256 for name, sha256 in part.files.items()}
        held = held or {place: part.sha256}
        for file, sha256 in held.items():
            what, shown = f"{part.role} {part.name}".strip(), os.path.normpath(file)
            if not file.exists():
                missing.append(AuditFinding(shown, None, f"{MISSING_FILE} ({what})"))
            elif sha256 is None and not file.is_dir():
                missing.append(AuditFinding(shown, None, f"was a pipe, which cannot be read again ({what})"))
            elif sha256 is not None and hash_file(file) != sha256:
                changed.append(AuditFinding(shown, None, f"changed after the evaluation: its sha256 differs ({what})"))
    return changed, missing


def _evaluate_again(sources: SourcesPart, folder: Path) -> EvalReport:
    """Evaluate the recorded files with the recorded options and return the report.

    Raises:
        RaggsError: the files cannot be evaluated.
    """
    asked = sources.options
    of = {part.role: folder / part.path for part in sources.inputs}
    subject: JudgedFiles | SampleFiles
    if "samples" in of:
        subject = SampleFiles(of["samples"], of["outputs"])
    else:
        runs = tuple(_spec(part, folder) for part in sources.inputs if part.role == "run")
        corpora = tuple(_spec(part, folder) for part in sources.inputs if part.role == "corpus")
        rule = None if asked.project is None else TypeAdapter(ProjectionRule).validate_python(asked.project)
        projection = None if rule is None else ProjectionRequest(corpora, rule)
        subject = JudgedFiles(of["golden"], runs, projection, asked.columns)
    return evaluate(
        EvalRequest(
            subject,
            MeasureRequest(
                asked.measures, asked.cutoffs, asked.ties, asked.condensed, of.get("facets"), asked.default_k
            ),
            ScaleRequest(
                asked.scale, asked.relevant, {int(grade): gain for grade, gain in asked.gains.items()}, asked.as_of
            ),
            AnalysisRequest(
                frozenset(asked.analyses), asked.baseline, asked.pool, of.get("correct"), of.get("reviews"),
                asked.against_first,
            ),
            GateRequest(limits=asked.limits),
            asked.confidence,
            asked.seed,
        )
    ).report  # fmt: skip


def _spec(part: InputPart, folder: Path) -> str:
    place = folder / part.path
    return f"{part.name}={place}" if part.name else str(place)


def _differences(stored: EvalReport, fresh: EvalReport) -> Iterator[str]:
    """Yield one sentence per difference, with the system, the measure and both values."""
    for name, said in _fields(stored.golden, fresh.golden, {"source"}):
        yield f"golden set: {name} is {said}"
    theirs = {system.name: system for system in fresh.systems}
    for system in stored.systems:
        if (again := theirs.pop(system.name, None)) is None:
            yield f"system {system.name}: is not in the recorded files"
        else:
            yield from _system(system, again, stored, fresh)
    yield from (f"system {name}: is in the recorded files, but not in the report" for name in theirs)
    pairs = {(part.system, part.measure): part for part in fresh.comparisons}
    for part in stored.comparisons:
        against = f"comparison of {part.system} with {part.baseline} on {part.measure}"
        found = pairs.pop((part.system, part.measure), None)
        if found is None:
            yield f"{against}: is missing when the files are evaluated again"
            continue
        yield from (f"{against}: {name} is {said}" for name, said in _fields(part, found, {"unjudged"}))
        if (part.unjudged and part.unjudged.tops) != (found.unjudged and found.unjudged.tops):
            yield f"{against}: the unjudged shares differ when the files are evaluated again"
    yield from (f"the comparison of {system} on {measure} is missing in the report" for system, measure in pairs)
    # Without --as-of, the number of expired parts depends on the day of the evaluation.
    by_day = {"validity"} if stored.validity and not stored.validity.excluded else set()
    for name in EvalReport.model_fields:
        if name not in SENTENCES | FIELDS_COMPARED_IN_DETAIL | by_day and not _is_equal_json(
            _as_json_value(stored, name), _as_json_value(fresh, name)
        ):
            yield f"{name} differs when the files are evaluated again"


def _system(stored: SystemPart, fresh: SystemPart, report: EvalReport, again: EvalReport) -> Iterator[str]:
    """Yield the differences in one system: scores, values per query, and all other fields."""
    which = f"system {stored.name}"
    for measure in report.measures:
        ours, theirs = stored.scores.get(measure), fresh.scores.get(measure)
        if ours is None or theirs is None:
            yield f"{which}, {measure}: {'is missing in the report' if ours is None else 'is not measured again'}"
            continue
        yield from (f"{which}, {measure}: {name} is {said}" for name, said in _fields(ours, theirs))
        values = [each.per_query.get(stored.name, {}).get(measure, {}) for each in (report, again)]
        yield from (f"{which}, {measure}, {said}" for said in _values(*values))
    for name in SystemPart.model_fields:
        if name not in ("name", "source", "scores") and not _is_equal_json(
            _as_json_value(stored, name), _as_json_value(fresh, name)
        ):
            yield f"{which}: {name} differs when the files are evaluated again"


def _values(ours: Mapping[str, Number], theirs: Mapping[str, Number]) -> Iterator[str]:
    differing = [qid for qid in sorted({*ours, *theirs}) if not _is_equal_json(ours.get(qid), theirs.get(qid))]
    for qid in differing[:MAX_NAMED_QUERIES]:
        yield f"query {qid}: value is {_both_values(ours.get(qid), theirs.get(qid))}"
    if len(differing) > MAX_NAMED_QUERIES:
        yield f"the values of {len(differing) - MAX_NAMED_QUERIES} more queries differ"


def _fields(
    ours: BaseModel, theirs: BaseModel, but: frozenset[str] | set[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Yield the name of each field that differs, and both values."""
    for name in type(ours).model_fields:
        one, other = _as_json_value(ours, name), _as_json_value(theirs, name)
        if name not in but and not _is_equal_json(one, other):
            yield name, _both_values(one, other)


def _both_values(stored: object, fresh: object) -> str:
    one, other = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in (stored, fresh))
    return f"{one}, evaluated again {other}"


def _as_json_value(part: BaseModel, name: str) -> object:
    """Return the JSON value of a field."""
    return part.model_dump(mode="json", include={name}).get(name)


def _is_equal_json(one: object, other: object) -> bool:
    """Return whether two JSON values are equal, with numbers compared up to rounding."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_equal_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal_json, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=RELATIVE_TOLERANCE, abs_tol=RELATIVE_TOLERANCE)
    return one == other


def _pages(report: EvalReport, folder: Path) -> Iterator[AuditFinding]:
    """Yield a finding if eval.csv or eval.md in the same folder does not match the report."""
    for name, text in (("eval.csv", per_query_csv(report)), ("eval.md", markdown(lay_out(report)))):
        page = folder / name
        if page.is_file() and page.read_text(encoding="utf-8") != text:
            yield AuditFinding(name, None, f"differs from the text generated from {RESULT}")
