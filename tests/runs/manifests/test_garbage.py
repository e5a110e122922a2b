"""Whatever stands in a manifest or an artifact, a command says a sentence and never shows a traceback."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke
from support.forging import edit_file, edit_manifest
from support.garbage import mutated
from support.project import Project, make_project

from raggs.app.audit import audit
from raggs.app.export import export_run
from raggs.app.run import run
from raggs.base.errors import NotFoundError, RaggsError
from raggs.runs.manifests.explain import explain
from raggs.runs.manifests.goldenlock import read_lock
from raggs.runs.manifests.models import LedgerMark, RunManifest
from raggs.runs.manifests.open_run import open_run
from raggs.runs.manifests.store import sealed

MUTATIONS = range(12)
FORGERIES = range(60)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("made"), queries=2, corpus=20, judge={"samples": 2, "stop_after": 3})
    run(project.config)
    return project


@pytest.fixture
def broken(finished: Project, tmp_path: Path) -> Project:
    return finished.copied(tmp_path / "copy")


def each_command(project: Project, *, found: bool = True) -> None:
    """Every command that reads a run gives its result or a sentence; the audit, where it should, a finding."""
    out = project.folder / "out"
    for arguments in (
        ("audit", project.run),
        ("audit", project.run, "--json"),
        ("status", project.run),
        ("why", project.run, "rank"),
        ("why", project.run, "--query", "q00"),
        ("cost", project.run),
        ("export", project.run, "--format", "beir", "--out", out),
    ):
        result = invoke(*arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exception)
        if arguments[0] == "audit" and found:
            assert result.exit_code == 5, (arguments, result.output)


# --- manifests ------------------------------------------------------------------------------------------------


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def at(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(manifest: dict[str, Any]) -> None:
        target = manifest
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return edit


MANIFESTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "unknown engine": at("stages", "rank", "params", "engine", value="nonsense"),
    "unknown engine in components": at("stages", "rank", "components", "engine", value="nonsense/3"),
    "engine of another type": at("stages", "rank", "components", "engine", value=["bayes"]),
    "unknown judge": at("stages", "judge", "params", "judge", value={"type": "nonsense"}),
    "a judge that is a number": at("stages", "judge", "params", "judge", value=7),
    "garbage in params": at("stages", "prune", "params", value={"min_keep": "many", "x": [1]}),
    "params of another stage": at("stages", "rank", "params", value={"samples": 1}),
    "NaN": at("stages", "rank", "params", "top", value=float("nan")),
    "infinity": at("config", "budget", value=float("inf")),
    "deep": at("config", "merge", value=nested(900)),
    "half as deep": at("stages", "merge", "components", "config", value=nested(99)),
    "a lone surrogate": at("name", value="\ud800"),
    "a huge number": at("stages", "rank", "params", "max_calls", value=10**4000),
    "a number past all floats": at("stages", "judge", "cost", "usd", value=10**400),
    "a foreign stage": at("stages", "nonsense", value={}),
    "a foreign pipeline": at("pipeline", value="silver"),
    "a foreign file": at("stages", "rank", "outputs", "../../x", value={"sha256": "0", "rows": 0, "bytes": 0}),
    "a list for locks": at("stages", value=[]),
    "no locks": at("stages", value={}),
    "a later schema": at("schema_version", value=2),
    "a date that is none": at("stages", "rank", "ended", value="2026-02-31T00:00:00Z"),
    "a seal that is none": at("seal", value="0" * 64),
    "a seal of nothing": at("seal", value={}),
}


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_of_garbage_is_a_finding(broken: Project, name: str) -> None:
    path = broken.run / "manifest.json"
    content = json.loads(path.read_text())
    MANIFESTS[name](content)
    path.write_bytes((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
    each_command(broken)


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"\xef\xbb\xbf{}", b"[" * 100_000, b"{}", b'"x"']
)
def test_a_manifest_that_is_none_is_a_finding(broken: Project, data: bytes) -> None:
    (broken.run / "manifest.json").write_bytes(data)
    each_command(broken)


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("seed", MUTATIONS)
def test_no_mutation_of_a_manifest_shows_a_traceback(broken: Project, seed: int) -> None:
    path = broken.run / "manifest.json"
    content = mutated(json.loads(path.read_text()), seed, 1 + seed % 3)
    if seed % 2 and isinstance(content.get("stages"), dict):  # past the seal, to what lies behind
        with suppress(ValueError, RaggsError):
            content = sealed(RunManifest.model_validate(content), LedgerMark())
    path.write_bytes((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
    each_command(broken, found=seed % 2 == 0)


# --- artifacts ------------------------------------------------------------------------------------------------

IDS = ("p000", "p003", "nope", "q00", "q01")
KEYS = ("doc_id", "qid", "duplicate_of", "shown", "order", "locks_out", "rank", "round", "slot", "votes", "grades")


def lines_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def bytes_of(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(
        json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        for row in rows
    )


def forged(chance: random.Random, rows: list[dict[str, Any]]) -> None:
    """Change, take away or repeat one line, most often by a value that might stand there."""
    place, kind = chance.randrange(len(rows)), chance.random()
    row = rows[place]
    if kind < 0.4:
        rows[place] = mutated(row, chance.randrange(1000))
    elif kind < 0.8:
        key = chance.choice([key for key in KEYS if key in row])
        if isinstance(row[key], list):
            row[key] = [chance.choice(IDS) for _ in row[key]] or [5]
        else:
            row[key] = chance.choice((1, 2, 99)) if isinstance(row[key], int) else chance.choice(IDS)
    elif kind < 0.9:
        del rows[place]
    else:
        rows.insert(place, rows[chance.randrange(len(rows))])


@pytest.mark.nightly(keep=10)
@pytest.mark.parametrize("seed", FORGERIES)
def test_no_forged_line_shows_a_traceback(broken: Project, seed: int) -> None:
    chance = random.Random(seed)
    file = chance.choice(sorted(path.name for path in broken.run.glob("*.jsonl")))
    before = (broken.run / file).read_bytes()
    rows = lines_of(before)
    forged(chance, rows)
    if bytes_of(rows) == before:
        return  # the same by chance
    edit_file(broken.run, file, lambda _: bytes_of(rows), reseal=True)
    assert audit(broken.run).findings
    opened = open_run(broken.run)
    for use in (
        lambda: explain(opened, "q00"),
        lambda: export_run(opened, "trec", broken.folder / "out"),
        lambda: export_run(opened, "jsonl", broken.folder / "out"),
    ):
        try:
            use()
        except RaggsError:
            continue


def test_a_foreign_id_in_the_journal_is_a_finding(broken: Project) -> None:
    def edit(data: bytes) -> bytes:
        rows = lines_of(data)
        rows[0]["shown"] = rows[0]["order"] = ["nope", *rows[0]["shown"][1:]]
        return bytes_of(rows)

    edit_file(broken.run, "rank.journal.jsonl", edit, reseal=True)
    each_command(broken)
    assert any(finding.file.startswith("rank.") for finding in audit(broken.run).findings)


def test_a_number_that_is_no_text_is_a_finding_where_it_stands(broken: Project) -> None:
    edit_manifest(broken.run, at("stages", "rank", "params", "top", value="ten"))
    found = [str(finding) for finding in audit(broken.run).findings]
    assert any("stage rank has invalid parameters in the manifest: top" in each for each in found), found


def test_a_manifest_or_lock_that_exists_but_cannot_be_read_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(NotFoundError, match=r"manifest.json: cannot be read \("):
        open_run(tmp_path)
    with pytest.raises(NotFoundError, match=r"the lock file cannot be read \("):
        read_lock(tmp_path)
    with pytest.raises(NotFoundError, match="the lock file does not exist"):
        read_lock(tmp_path / "golden.lock")
    with pytest.raises(NotFoundError, match="no run here"):
        open_run(tmp_path / "none")
