"""Passages in pieces of letters: judged clean, shown raw, and only where there are some does a run begin again."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from types import SimpleNamespace

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
    assert "clean" in run(found, found.run, command="audit")
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
