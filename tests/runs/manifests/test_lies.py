"""Each edit of a finished run is a finding that names file and line, whether or not the hashes were mended."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.forging import edit_file, edit_manifest
from support.llm_server import LLMServer
from support.project import Project, make_project

from raggs.app.audit import audit
from raggs.app.run import run
from raggs.base.errors import BudgetError
from raggs.base.jsonl import dump_line

MODEL = "openai/judge"
MANIFEST = "manifest.json"
Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run whose judge is a model, with calls that were paid, repeated samples and pools that were not walked to
    their ends."""
    project = make_project(tmp_path_factory.mktemp("finished"), queries=3, corpus=24, rank={"max_calls": 4})
    with pytest.MonkeyPatch.context() as patch, LLMServer() as server:
        patch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        project.change(
            judge={"judge": {"type": "litellm", "model": MODEL}, "samples": 2, "stop_after": 4},
            llm={"api_base": server.url, "backoff_s": 0.01, "prices": {MODEL: {"input": 1.0, "output": 2.0}}},
        )
        run(project.config)
    return project


@pytest.fixture
def lied(finished: Project, tmp_path: Path) -> Project:
    return finished.copied(tmp_path / "copy")


def told(project: Project) -> list[str]:
    return [str(finding) for finding in audit(project.run).findings]


def test_the_untouched_run_is_true(finished: Project) -> None:
    found = audit(finished.run)
    assert (found.findings, found.notes) == ((), ())
    locks = finished.manifest()["stages"]
    assert locks["judge"]["cost"]["usd"] > 0
    assert locks["judge"]["booked"][1] == locks["rank"]["booked"][0] > 0
    assert locks["judge"]["health"]["depth"]["saved"] >= 0


# --- the manifest ---------------------------------------------------------------------------------------------


def put(*path: str | int, value: object) -> Callable[[Manifest], None]:
    """An edit that puts a value in a place that there is."""

    def edit(manifest: Manifest) -> None:
        found: Any = manifest
        for key in path[:-1]:
            found = found[key]
        assert found[path[-1]] != value
        found[path[-1]] = value

    return edit


def drop(*path: str) -> Callable[[Manifest], None]:
    def edit(manifest: Manifest) -> None:
        found = manifest
        for key in path[:-1]:
            found = found[key]
        del found[path[-1]]

    return edit


# An edit, the line of the manifest that must be named, and a finding that must come even where the seal was mended too.
EDITS: dict[str, tuple[Callable[[Manifest], None], str, str]] = {
    "name": (put("name", value="other"), "", ""),
    "created": (put("created", value="2020-01-01T00:00:00Z"), "", ""),
    "raggs": (put("raggs", value="9.9.9"), "", ""),
    "config: a stage": (
        put("config", "rank", "max_calls", value=80),
        '  "config": {',
        "config.rank differs from",
    ),
    "config: prune": (put("config", "prune", "min_keep", value=1), '  "config": {', "min_keep changed"),
    "config: the judge": (
        put("config", "judge", "judge", "model", value="openai/better"),
        '  "config": {',
        "model changed",
    ),
    "config: money": (put("config", "budget", "max_usd", value=0.01), '  "config": {', ""),
    "config: gone": (put("config", value={}), '  "config": {', "config has no section for stage embed"),
    "config_file": (put("config_file", value="/elsewhere/raggs.yaml"), '  "config": {', ""),
    "estimates": (put("estimates", value=[]), '  "estimates": [', ""),
    "prompt": (put("stages", "judge", "params", "prompt", value="grade@2"), '    "judge": {', ""),
    "threshold": (
        put("stages", "prune", "params", "min_keep", value=1),
        '    "prune": {',
        "components and",
    ),
    "max_calls": (
        put("stages", "rank", "params", "max_calls", value=99),
        '    "rank": {',
        "changed (4 -> 99)",
    ),
    "usd": (put("stages", "judge", "cost", "usd", value=0.001), '    "judge": {', "cost.usd is 0.001, but the calls"),
    "calls": (put("stages", "rank", "cost", "calls", value=1), '    "rank": {', "cost.calls is 1, but the calls"),
    "tokens": (put("stages", "judge", "cost", "prompt_tokens", value=0), '    "judge": {', "cost.prompt_tokens is 0"),
    "repaired": (put("stages", "judge", "cost", "repaired", value=9999), '    "judge": {', "cost.repaired is 9,999"),
    "free": (put("stages", "embed", "cost", "usd", value=3.0), '    "embed": {', "cost.usd is 3.0"),
    "health: judge": (
        put("stages", "judge", "health", "samples", "unanimous", value=0.123),
        '    "judge": {',
        "health differs",
    ),
    "health: rank": (
        put("stages", "rank", "health", "first", "count", value=999),
        '    "rank": {',
        "first.count",
    ),
    "health: gone": (
        put("stages", "rank", "health", value=None),
        '    "rank": {',
        "health differs",
    ),
    "failed": (put("stages", "judge", "failed", value=3), '    "judge": {', "3 failures, but its records have 0"),
    "versions": (put("stages", "rank", "versions", "numpy", value="0.0"), '    "rank": {', ""),
    "started": (put("stages", "rank", "started", value="2999-01-01T00:00:00Z"), '    "rank": {', "before it started"),
    "ended": (put("stages", "rank", "ended", value="2020-01-01T00:00:00Z"), '    "rank": {', "before it started"),
    "judge": (put("stages", "judge", "judge", value="litellm openai/better"), '    "judge": {', "its records name"),
    "components": (
        put("stages", "judge", "components", "judge", "model", value="m"),
        '    "judge": {',
        "fingerprint",
    ),
    "fingerprint": (put("stages", "merge", "fingerprint", value="0" * 64), '    "merge": {', "fingerprint"),
    "inputs": (
        put("stages", "prune", "inputs", "judge.jsonl", value="0" * 64),
        '    "prune": {',
        "from another",
    ),
    "rows": (
        put("stages", "judge", "outputs", "judge.jsonl", "rows", value=1),
        '    "judge": {',
        "but 1 in the manifest",
    ),
    "bytes": (
        put("stages", "judge", "outputs", "judge.jsonl", "bytes", value=1),
        '    "judge": {',
        "but 1 in the manifest",
    ),
    "an output": (
        drop("stages", "rank", "outputs", "rank.queries.jsonl"),
        '    "rank": {',
        "does not name it",
    ),
    "the journal": (
        drop("stages", "rank", "outputs", "rank.journal.jsonl"),
        '    "rank": {',
        "does not name it",
    ),
    "a stage": (drop("stages", "merge"), '    "judge": {', "stage merge has no lock"),
    "booked": (put("stages", "judge", "booked", value=[0, 0]), '    "judge": {', "cost.calls is"),
    "the ledger's mark": (put("seal", "ledger", "rows", value=0), '  "seal": {', ""),
}


@pytest.mark.nightly(keep=9)
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_the_manifest_is_named_with_its_line(lied: Project, name: str) -> None:
    edit, place, _ = EDITS[name]
    edit_manifest(lied.run, edit)
    lines = (lied.run / MANIFEST).read_text().splitlines()
    found = [finding for finding in told(lied) if finding.startswith(f"{MANIFEST}:")]
    assert found
    if place:
        named = {int(match[1]) for each in found if (match := re.match(r"manifest\.json:(\d+):", each))}
        assert any(lines[number - 1].startswith(place.rstrip("{[ ")) for number in named), found
    assert any("since raggs wrote it" in each or "was changed since" in each for each in found)


@pytest.mark.nightly(keep=7)
@pytest.mark.parametrize("name", [name for name, (_, _, what) in EDITS.items() if what])
def test_what_can_be_derived_is_found_under_a_mended_seal(lied: Project, name: str) -> None:
    edit, _, what = EDITS[name]
    edit_manifest(lied.run, edit, reseal=True)
    assert any(what in finding for finding in told(lied)), told(lied)


TOGETHER = (
    "usd",
    "tokens",
    "repaired",
    "free",
    "failed",
    "ended",
    "judge",
    "fingerprint",
    "inputs",
    "rows",
    "config: prune",
)


def test_lies_told_together_are_found_one_by_one_under_a_mended_seal(lied: Project) -> None:
    for name in TOGETHER:
        edit_manifest(lied.run, EDITS[name][0], reseal=True)
    found = told(lied)
    assert [name for name in TOGETHER if not any(EDITS[name][2] in each for each in found)] == []
    assert any("stage merge: the fingerprint is not the hash of its components" in each for each in found)


def test_a_seal_that_was_taken_away_is_missed(lied: Project) -> None:
    edit_manifest(lied.run, drop("seal"))
    assert "manifest.json: the seal was removed, but the chains of the locks remain" in told(lied)


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"name":', '"name" :'),
        ("\n", "\r\n"),
        ('{\n  "schema_version"', '\n{\n  "schema_version"'),
        ('  "name": "demo",', '  "name": "another",\n  "name": "demo",'),
    ],
)
def test_a_manifest_in_another_form_is_named(lied: Project, before: str, after: str) -> None:
    path = lied.run / MANIFEST
    path.write_bytes(path.read_text().replace(before, after, 1).encode())
    assert re.match(r"manifest\.json:\d+: is not formatted as raggs writes it", told(lied)[0])


def test_what_was_edited_is_not_sealed_anew_but_made_again(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=24)
    run(project.config)
    before = project.artifacts()
    edit_manifest(project.run, drop("stages", "merge"))
    edit_manifest(project.run, put("stages", "rank", "versions", "numpy", value="0.0"))
    found = run(project.config)
    assert set(found.ran) == {"merge", "judge", "rank"}, "the chain behind merge is broken, and so is that of rank"
    assert [str(reason) for reason in found.ran["rank"]] == [
        "its lock in manifest.json was edited manually (raggs audit shows the place)"
    ]
    assert told(project) == []
    assert project.artifacts() == before


# --- artifacts ------------------------------------------------------------------------------------------------


def each_line(change: Callable[[Manifest], object]) -> Callable[[bytes], bytes]:
    def edit(data: bytes) -> bytes:
        rows = [json.loads(line) for line in data.splitlines()]
        for row in rows:
            change(row)
        return b"".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for row in rows)

    return edit


def first_line(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: change(data[: (end := data.index(b"\n"))]) + data[end:]


@dataclass(frozen=True)
class Forgery:
    file: str
    edit: Callable[[bytes], bytes]
    resealed: str = ""  # found even under a mended seal and without checksums of lines


FORGERIES: dict[str, Forgery] = {
    "judge's name": Forgery("judge.jsonl", each_line(lambda row: row.update(judge="litellm x")), "its records name"),
    "reasons": Forgery("judge.jsonl", each_line(lambda row: row.update(reason="because"))),
    "texts": Forgery("merge.jsonl", each_line(lambda row: row.update(text=row["text"] + "!"))),
    "scores": Forgery("retrieve.jsonl", each_line(lambda row: row.update(score=row["score"] + 1))),
    "questions": Forgery("queries.jsonl", each_line(lambda row: row.update(answer="42"))),
    "blank line": Forgery("rank.jsonl", first_line(lambda line: line + b"\n"), "rank.jsonl:2: is blank"),
    "blank end": Forgery("rank.jsonl", lambda data: data + b"\n", "is blank"),
    "CRLF": Forgery("judge.jsonl", lambda data: data.replace(b"\n", b"\r\n"), "judge.jsonl:1: ends with"),
    "BOM": Forgery("merge.jsonl", lambda data: b"\xef\xbb\xbf" + data, "merge.jsonl:1: starts with a byte order mark"),
    "spaces": Forgery(
        "prune.jsonl", first_line(lambda line: line.replace(b'"qid":', b'"qid": ', 1)), "prune.jsonl:1: its bytes"
    ),
    "escapes": Forgery(
        "judge.jsonl",
        first_line(lambda line: line.replace(b'"judge"', b'"\\u006audge"', 1)),
        "judge.jsonl:1: its bytes",
    ),
    "a key twice": Forgery(
        "prune.jsonl", first_line(lambda line: b'{"rank":9,' + line[1:]), "prune.jsonl:1: its bytes"
    ),
    "no last break": Forgery("rank.jsonl", lambda data: data[:-1], "does not end with a line break"),
}


@pytest.mark.nightly(keep=5)
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_artifact_is_named_with_its_line_though_its_hash_was_mended(lied: Project, name: str) -> None:
    forgery = FORGERIES[name]
    edit_file(lied.run, forgery.file, forgery.edit)
    found = told(lied)
    assert any(re.match(rf"{re.escape(forgery.file)}:\d+: ", each) for each in found), found
    assert any(each.startswith("manifest.json:") and "since raggs wrote it" in each for each in found), found


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("name", [name for name, forgery in FORGERIES.items() if forgery.resealed])
def test_a_foreign_form_is_found_under_a_mended_seal(lied: Project, name: str) -> None:
    forgery = FORGERIES[name]
    shutil.rmtree(lied.run / ".sums")
    edit_file(lied.run, forgery.file, forgery.edit, reseal=True)
    assert any(forgery.resealed in each for each in told(lied)), told(lied)


def keep_lines(wanted: Callable[[Manifest], bool]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(line for line in data.splitlines(keepends=True) if wanted(json.loads(line)))


def one_line_more(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([lines[0], *lines])


# Facts that two files, or a file and a lock, both state: one side is edited, and every hash and the seal are mended.
PAIRS: dict[str, Forgery] = {
    "a query's text": Forgery(
        "queries.jsonl", each_line(lambda row: row.update(text="Where else?")), "but 'Where else?' when recomputed"
    ),
    "the text that was embedded": Forgery(
        "embed.jsonl", each_line(lambda row: row.update(text="Where else?")), "embed.jsonl:1: text is 'Where else?'"
    ),
    "a rewrite": Forgery("embed.jsonl", each_line(lambda row: row.update(rewrite="amber")), "rewrite is 'amber'"),
    "words": Forgery("embed.jsonl", each_line(lambda row: row.update(bm25_text="amber")), "bm25_text is 'amber'"),
    "a language": Forgery("embed.jsonl", each_line(lambda row: row.update(language="fr")), "language is 'fr'"),
    "an answer": Forgery(
        "queries.jsonl", each_line(lambda row: row.update(answer="42")), "other queries than stage embed read"
    ),
    "metadata": Forgery(
        "queries.jsonl", each_line(lambda row: row["metadata"].update(a=1)), "other queries than stage judge read"
    ),
    "a query gone": Forgery(
        "queries.jsonl", keep_lines(lambda row: row["qid"] != "q01"), "embed.jsonl:2: qid is 'q01'"
    ),
    "an embedded query gone": Forgery(
        "embed.jsonl", keep_lines(lambda row: row["qid"] != "q02"), "embed.jsonl:3: lines are missing"
    ),
    "a vector": Forgery(
        "embed.jsonl", each_line(lambda row: row.update(embedding=[1.0])), "embed.jsonl:1: its vector has 1 values"
    ),
    "the embedder": Forgery(
        "embed.jsonl", each_line(lambda row: row.update(embedder="other")), "embed.jsonl:1: its embedder is 'other'"
    ),
    "a hit of no query": Forgery(
        "retrieve.jsonl", each_line(lambda row: row.update(qid="x" + row["qid"])), "query xq00 is not in embed.jsonl"
    ),
    "a hit of no retriever": Forgery(
        "retrieve.jsonl", each_line(lambda row: row.update(retriever="r" + row["retriever"])), "no retriever 'rbm25'"
    ),
    "ranks with a gap": Forgery(
        "retrieve.jsonl", keep_lines(lambda row: row["rank"] != 2), "retrieve.jsonl:2: query q00: rank 3 is at"
    ),
    "a hit twice": Forgery(
        "retrieve.jsonl", each_line(lambda row: row.update(doc_id="p000")), "query q00: p000 occurs twice"
    ),
}


@pytest.mark.nightly(keep=5)
@pytest.mark.parametrize("name", PAIRS)
def test_what_is_stated_twice_must_agree_though_all_hashes_were_mended(lied: Project, name: str) -> None:
    forgery = PAIRS[name]
    shutil.rmtree(lied.run / ".sums")
    edit_file(lied.run, forgery.file, forgery.edit, reseal=True)
    assert any(forgery.resealed in each for each in told(lied)), told(lied)


LOCKS: dict[str, tuple[Callable[[Manifest], None], str]] = {
    "another corpus": (put("stages", "merge", "components", "corpus", value="0" * 64), "different corpora"),
    "other questions": (put("stages", "rank", "components", "queries", value="0" * 64), "than stage rank read"),
    "another rewriter": (
        put("stages", "embed", "components", "rewriter", "type", value="none"),
        "components say 'none'",
    ),
    "another embedder": (put("stages", "embed", "components", "embedder", "type", value="x"), "components say 'x'"),
    "another retriever": (
        put("stages", "retrieve", "components", "retriever bm25", "type", value="x"),
        "components say 'x'",
    ),
    "another model": (
        put("stages", "rank", "judge", value="litellm openai/better"),
        "its components call 'openai/judge'",
    ),
}


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("name", LOCKS)
def test_what_locks_state_twice_must_agree_under_a_mended_seal(lied: Project, name: str) -> None:
    edit, what = LOCKS[name]
    edit_manifest(lied.run, edit, reseal=True)
    found = [each for each in told(lied) if what in each]
    assert found, told(lied)
    assert re.match(r"manifest\.json:\d+: |queries\.jsonl: ", found[0])


def test_two_stages_cannot_claim_the_same_calls(lied: Project) -> None:
    booked = lied.manifest()["stages"]["judge"]["booked"]
    edit_manifest(lied.run, put("stages", "rank", "booked", value=booked), reseal=True)
    assert any("claims calls in llm.ledger.jsonl that stage" in each for each in told(lied)), told(lied)


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("file", ["rank.jsonl", "rank.journal.jsonl", "llm.ledger.jsonl", MANIFEST])
def test_a_link_in_place_of_a_file_is_named(lied: Project, tmp_path: Path, file: str) -> None:
    shutil.move(lied.run / file, tmp_path / "elsewhere")
    (lied.run / file).symlink_to(tmp_path / "elsewhere")
    assert any(each.startswith(f"{file}: is a link") for each in told(lied))


# --- the ledger -----------------------------------------------------------------------------------------------

LEDGER = "llm.ledger.jsonl"


def without_line(data: bytes, number: int) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[: number - 1] + lines[number:])


LEDGERS: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "an amount": (lambda data: data.replace(b'"usd":0.', b'"usd":1.', 1), 1),
    "a time": (lambda data: data.replace(b'"time":"20', b'"time":"21', 1), 1),
    "a line gone": (lambda data: without_line(data, 3), 3),
    "the last line gone": (lambda data: without_line(data, len(data.splitlines())), -1),
    "a line twice": (lambda data: data.splitlines(keepends=True)[0] + data, 2),
    "cut": (lambda data: data[:-9], -1),
    "empty": (lambda data: b"", 1),
}


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("name", LEDGERS)
def test_an_edit_of_the_ledger_is_named_with_its_line(lied: Project, name: str) -> None:
    edit, line = LEDGERS[name]
    path = lied.run / LEDGER
    data = path.read_bytes()
    path.write_bytes(edit(data))
    number = len(data.splitlines()) if line < 0 else line
    found = [each for each in told(lied) if each.startswith(LEDGER)]
    assert found[0].startswith(f"{LEDGER}:{number}: was changed") or name == "a line twice", found
    assert found[0].startswith(f"{LEDGER}:")


def test_a_ledger_that_is_gone_is_missed(lied: Project) -> None:
    (lied.run / LEDGER).unlink()
    assert any(each.startswith(f"{LEDGER}: the file is missing") for each in told(lied))


def test_lines_that_were_added_to_a_ledger_are_named(lied: Project) -> None:
    path = lied.run / LEDGER
    rows = len(path.read_bytes().splitlines())
    path.write_bytes(path.read_bytes() + path.read_bytes())
    assert (
        f"{LEDGER}:{rows + 1}: {rows} lines from here on were added after the run had recorded its last call"
        in told(lied)
    )


def test_a_ledger_in_a_run_that_called_no_model_is_a_finding_and_stays_one(tmp_path: Path, finished: Project) -> None:
    project = make_project(tmp_path, queries=2, corpus=24)
    run(project.config)
    shutil.copy(finished.run / LEDGER, project.run / LEDGER)
    rows = len((project.run / LEDGER).read_bytes().splitlines())
    planted = f"{LEDGER}:1: {rows} lines from here on were added after the run had recorded its last call"
    assert planted in told(project)
    project.change(rank={"max_calls": 4})
    run(project.config)
    assert planted in told(project)


def test_an_altered_ledger_is_not_marked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    project = make_project(tmp_path, queries=2, corpus=24, rank={"max_calls": 2}, budget={"max_usd": None})
    with LLMServer() as server:
        project.change(judge={"judge": {"type": "litellm", "model": MODEL}}, llm={"api_base": server.url})
        run(project.config)
        mark = project.manifest()["seal"]["ledger"]
        path = project.run / LEDGER
        path.write_bytes(path.read_bytes().replace(b'"prompt_tokens":', b'"prompt_tokens":1', 1))
        project.change(rank={"max_calls": 4})
        run(project.config)
    assert project.manifest()["seal"]["ledger"] == mark
    assert any(each.startswith(f"{LEDGER}:1: was changed") for each in told(project))


def test_a_ledger_of_a_version_with_fewer_fields_is_no_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    project = make_project(tmp_path, queries=2, corpus=24, rank={"max_calls": 2}, budget={"max_usd": None})
    with LLMServer() as server, monkeypatch.context() as before:
        before.setattr("raggs.base.jsonl.dump_line", lambda record: dump_line(record).replace(b'"searches":0,', b""))
        project.change(judge={"judge": {"type": "litellm", "model": MODEL}}, llm={"api_base": server.url})
        run(project.config)
    assert b"searches" not in (project.run / LEDGER).read_bytes()
    assert not told(project)


def test_what_was_booked_before_a_stop_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    project = make_project(tmp_path, queries=2, corpus=24, budget={"max_calls": 10, "max_usd": None})
    with LLMServer() as server:
        project.change(judge={"judge": {"type": "litellm", "model": MODEL}}, llm={"api_base": server.url})
        with pytest.raises(BudgetError):
            run(project.config)
    rows = len((project.run / LEDGER).read_bytes().splitlines())
    assert project.manifest()["seal"]["ledger"]["rows"] == rows > 0
