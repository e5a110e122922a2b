"""A run by the judge `reference` over documents that say the same twice, through the command."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from support.project import raggs

FILLER = "Nothing of note happened on the river that year, and the boats stayed where they were. " * 6
EXCERPT = "The amber heron nests beside the cedar jetty in the second week of May."
TEXT = f"{FILLER}\n\n{EXCERPT} {FILLER}\n\n{FILLER}\n\n{EXCERPT} {FILLER}\n"


def project(folder: Path, questions: str, **document: str) -> Path:
    (folder / "docs").mkdir()
    for name, text in {"birds.txt": TEXT, **document}.items():
        (folder / "docs" / name).write_text(text)
    (folder / "q.csv").write_text(questions)
    settings = {
        "name": "demo",
        "corpus": {"type": "folder", "path": "docs", "max_words": 90},
        "queries": {"type": "csv", "path": "q.csv"},
        "retrieve": {"retrievers": [{"type": "bm25", "k": 20}]},
        "judge": {"judge": {"type": "reference"}},
    }
    config = folder / "raggs.yaml"
    config.write_text(yaml.safe_dump(settings))
    return config


def table(document: str, start: int | None) -> str:
    found = {"content": EXCERPT, "start_index": start, "end_index": (start or 0) + len(EXCERPT)}
    cell = json.dumps([EXCERPT if start is None else found]).replace('"', '""')
    return f'question,references,corpus_id\nWhen does the heron nest?,"{cell}",{document}\n'


def fives(folder: Path) -> set[int]:
    """The places of the two excerpts that passages of grade 5 hold."""
    lines = {name: (folder / "runs" / "demo" / f"{name}.jsonl").read_text().splitlines() for name in ("merge", "judge")}
    spans = {record["doc_id"]: record["span"] for record in map(json.loads, lines["merge"])}
    good = [spans[each["doc_id"]] for each in map(json.loads, lines["judge"]) if each["grade"] == 5]
    places = (TEXT.find(EXCERPT), TEXT.rfind(EXCERPT))
    return {place for place in places for span in good if span["start"] <= place < span["end"]}


def test_only_the_marked_place_is_good_whichever_it_is(tmp_path: Path) -> None:
    for number, place in enumerate((TEXT.find(EXCERPT), TEXT.rfind(EXCERPT))):
        (folder := tmp_path / str(number)).mkdir()
        done = raggs("run", "--config", project(folder, table("birds", place)))
        assert done.returncode == 0, done.stdout + done.stderr
        assert fives(folder) == {place}
        assert raggs("audit", folder / "runs" / "demo").returncode == 0


def test_without_offsets_both_are_good_and_it_is_told(tmp_path: Path) -> None:
    done = raggs("run", "--config", project(tmp_path, table("birds", None)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passages of its pool contain the excerpt" in done.stdout + done.stderr
    assert len(fives(tmp_path)) == 2


def test_a_document_that_is_not_there_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    done = raggs("run", "--config", project(tmp_path, table("brids", 3)))
    assert done.returncode == 5
    assert "its document 'brids' is not in the corpus — did you mean 'birds'?" in done.stdout + done.stderr
