"""Passages in pieces of letters: judged clean, shown raw, and only where there are some does a run begin again."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from types import SimpleNamespace

from support.onnx_models import write_cross_encoder
from support.project import Project, make_project, passages, raggs, write_lines

from raggs.app.services import RunServices
from raggs.config.load import load_config

JUDGE = """
from pathlib import Path
from types import SimpleNamespace


def grade(query, passage):
    with Path(__file__).with_name("seen.txt").open("a", encoding="utf-8") as file:
        file.write(repr(passage) + "\\n")
    return 1 + len(passage) % 5
"""


def project(folder: Path, accent: str = "é\u202f!") -> Project:
    found = make_project(folder, judge={"judge": {"type": "python", "callable": "functions:grade"}})
    (found.folder / "functions.py").write_text(JUDGE)
    rows = [{**row, "text": unicodedata.normalize("NFD", row["text"] + accent)} for row in passages(40)]
    write_lines(found.folder / "corpus.jsonl", rows)
    return found


def run(found: Project, *arguments: object, command: str = "run") -> str:
    done = raggs(command, *(arguments or ("--config", found.config)))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_judge_reads_clean_text_and_the_golden_set_shows_the_raw(tmp_path: Path) -> None:
    found = project(tmp_path / "demo")
    run(found)
    seen = (found.folder / "seen.txt").read_text(encoding="utf-8")
    assert "é !" in seen
    assert "\u0301" not in seen
    assert "u202f" not in seen
    merged = [json.loads(line) for line in (found.run / "merge.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all("e\u0301\u202f!" in record["text"] for record in merged)
    assert "Audit passed" in run(found, found.run, command="audit")
    stages = found.manifest()["stages"]
    assert {name: stages[name]["components"]["judge"].get("passages") for name in ("judge", "rank")} == {
        "judge": "hygiene 1",
        "rank": "hygiene 1",
    }
    assert "Nothing to do" in run(found)


def test_a_run_over_clean_passages_knows_nothing_of_it(tmp_path: Path) -> None:
    found = project(tmp_path / "demo", accent=" plain")
    run(found)
    assert "hygiene" not in (found.run / "manifest.json").read_text()


def test_typographic_quotes_make_only_the_runs_that_hold_them_search_again(tmp_path: Path) -> None:
    found = make_project(tmp_path / "demo", embed={"embedder": {"type": "wordllama"}})
    run(found, "--config", found.config, "--to", "retrieve")
    assert not any("quotes" in stage["components"] for stage in found.manifest()["stages"].values())
    asked = (found.folder / "queries.jsonl").read_text()
    first = json.loads(asked.splitlines()[0])
    write_lines(found.folder / "queries.jsonl", [{**first, "text": first["text"] + " “l’eau”"}])
    rows = [{**row, "text": row["text"] + " “l'eau”"} for row in passages(40)]
    write_lines(found.folder / "corpus.jsonl", rows)
    run(found, "--config", found.config, "--to", "retrieve")
    stages = found.manifest()["stages"]
    assert {name: stages[name]["components"].get("quotes") for name in stages} == {"embed": 1, "retrieve": 1}
    assert "Nothing to do" in run(found, "--config", found.config, "--to", "retrieve")


def test_typographic_queries_alone_make_a_local_reranker_read_again(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path / "model")
    reranked = {
        "type": "reranked",
        "name": "read",
        "of": {"type": "bm25", "k": 5},
        "by": {"type": "onnx", "path": str(tmp_path / "model")},
    }
    found = make_project(tmp_path / "demo", retrieve={"retrievers": [reranked]})
    run(found, "--config", found.config, "--to", "retrieve")
    assert "quotes in pairs" not in found.manifest()["stages"]["retrieve"]["components"]
    asked = [json.loads(line) for line in (found.folder / "queries.jsonl").read_text().splitlines()]
    write_lines(found.folder / "queries.jsonl", [{**asked[0], "text": asked[0]["text"] + " l’eau"}, *asked[1:]])
    run(found, "--config", found.config, "--to", "retrieve")
    components = found.manifest()["stages"]["retrieve"]["components"]
    assert components["quotes in pairs"] == 1 and "quotes" not in components
    assert "Nothing to do" in run(found, "--config", found.config, "--to", "retrieve")


def test_of_a_corpus_on_a_server_nobody_knows_whether_it_is_clean(tmp_path: Path) -> None:
    services = RunServices(load_config(project(tmp_path / "demo").config).run)
    services.passages = SimpleNamespace(cleaned=None, content_hash="x")
    assert services.causes("hygiene") == {"passages": "hygiene 1"}
    assert "passages" not in services.causes("judge"), "a journal is as good wherever passages come from"
    for cleaned, wanted in ((0, None), (3, "hygiene 1")):
        services.passages = SimpleNamespace(cleaned=cleaned, content_hash="x")
        assert services.causes("hygiene") == {}
        assert services.causes("judge").get("passages") == wanted
    services.close()


def test_skipped_files_are_counted_by_run_status_audit_and_report(tmp_path: Path) -> None:
    found = make_project(tmp_path / "demo", judge={"judge": {"type": "python", "callable": "functions:grade"}})
    (found.folder / "functions.py").write_text(JUDGE)
    docs = found.folder / "docs"
    docs.mkdir()
    for row in passages(30):
        (docs / f"{row['_id']}.txt").write_text(row["text"])
    for name in ("bad.txt", "worse.txt"):
        (docs / name).write_bytes(b"\xff")
    settings = found.settings()
    settings["corpus"] = {"type": "folder", "path": "docs"}
    found.config.write_text(json.dumps(settings))
    stopped = raggs("run", "--config", found.config)
    assert stopped.returncode == 5, stopped.stderr
    assert "2 files cannot be read: bad.txt:1 (not UTF-8), worse.txt:1 (not UTF-8)" in stopped.stderr
    settings["corpus"]["unreadable"] = "skip"
    found.config.write_text(json.dumps(settings))
    told = "2 unreadable files of the corpus skipped: bad.txt, worse.txt"
    assert told in run(found)
    assert told in run(found, found.run, command="status")
    assert json.loads(raggs("status", found.run, "--json").stdout)["unreadable"]["count"] == 2
    assert told in run(found, found.run, command="audit")
    run(found, found.run, "--out", tmp_path / "report.html", command="report")
    assert told in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Nothing to do" in run(found)
    (docs / "worse.txt").write_text("The amber and the otter, mended.")
    again = run(found)
    assert "1 unreadable file of the corpus skipped: bad.txt" in again
    assert "Nothing to do" not in again
