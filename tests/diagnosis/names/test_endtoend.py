"""A golden set whose questions hold names, perturbed: what that does to recall, and what the margin says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raggs.app.diagnose import DiagnoseRequest, forecast_diagnosis, run_diagnosis
from raggs.diagnosis.base import Bench
from raggs.diagnosis.names.models import EndToEnd, NamesEndToEndPart, NamesFindings
from raggs.diagnosis.names.scoring import SearchTask, TextCleaning
from raggs.parts.workspace import Workspace

TOPICS = ("dimmed street lamps", "hedgerows between fields", "the rent of boats")
PEOPLE = ("Amina Kouyaté", "Jean-Luc Abernathy", "Leif Sørensen", "Yuki Tanabe", "Ana de la Cruz", "Maeve O'Rourke")
FEW = {"questions": 10, "runs": 2, "languages": ["en"], "cutoff": 1}


def golden(folder: Path, people: tuple[str, ...] = PEOPLE) -> dict[str, object]:
    """Each person wrote one note on each topic; a question asks for one of them."""
    notes = [(who, what) for who in people for what in TOPICS]
    rows = [
        {"_id": f"d{n}", "text": f"A note on {what}: what was seen and done. Written by {who}.", "author": who}
        for n, (who, what) in enumerate(notes)
    ]
    asked = [{"_id": f"q{n}", "text": f"What did {who} write on {what}?"} for n, (who, what) in enumerate(notes)]
    for name, lines in (("corpus", rows), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    near = [f"q{n} 0 d{(n + 1) % len(notes)} 1\n" for n in range(len(notes))]
    right = [f"q{n} 0 d{n} 5\n" for n in range(len(notes))]
    (folder / "qrels.txt").write_text("".join([*right, *near]))
    inputs = "corpus: {type: jsonl, path: corpus.jsonl}\nqueries: {type: jsonl, path: queries.jsonl}\n"
    judge = "judge: {judge: {type: qrels, path: qrels.txt}}\n"
    (folder / "raggs.yaml").write_text(f"name: names\nworkspace: {folder / 'runs'}\n{inputs}{judge}")
    return {"config": folder / "raggs.yaml", "golden": folder / "qrels.txt"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.fixture(scope="module")
def found(place: Path) -> EndToEnd:
    done = run_diagnosis(DiagnoseRequest("names", settings=FEW, out=place / "d", **golden(place)))  # type: ignore[arg-type]
    assert isinstance(done.found, NamesFindings) and done.found.end_to_end is not None
    assert (place / "d" / "names-recall.svg").is_file()
    assert "Rank correlation between the change" in (place / "d" / "names.md").read_text()
    return done.found.end_to_end


def part(found: EndToEnd, perturber: str) -> NamesEndToEndPart:
    return next(each for each in found.changes if each.perturber == perturber)


def test_who_is_masked_is_not_found_and_whose_form_changes_is(found: EndToEnd) -> None:
    assert (found.measure, found.questions, found.judged, found.passages) == ("n_recall4@1", 18, 18, 18)
    mask = part(found, "hard_name_mask")
    assert mask.before == 1.0 and mask.after is not None and mask.after < 0.5
    assert mask.high is not None and mask.high < 0 and mask.passages == 18
    for form in ("name_order_inversion", "strip_diacritics", "unicode_normalization_stress"):
        assert part(found, form).difference == 0.0, form
    assert part(found, "remove_label").passages == 0


def test_the_margin_foretells_it(found: EndToEnd) -> None:
    told = found.prediction
    assert told is not None and told.points == 10
    assert told.spearman is not None and told.low is not None and told.high is not None
    assert 0 < told.low <= told.high <= 1 and told.spearman > 0.3
    assert part(found, "hard_name_mask").margin == -100.0


def test_questions_that_name_nobody_are_a_sentence(tmp_path: Path) -> None:
    given = golden(tmp_path, ("somebody", "nobody at all"))
    done = run_diagnosis(DiagnoseRequest("names", settings=FEW, out=tmp_path / "d", **given))  # type: ignore[arg-type]
    assert isinstance(done.found, NamesFindings) and done.found.end_to_end is not None
    told = "0 of 6 judged queries contain a name that occurs in the corpus, which is too few for a result."
    assert done.found.end_to_end.note == told
    assert told in (tmp_path / "d" / "names.md").read_text()


def test_a_large_corpus_is_drawn_from_and_keeps_what_is_judged(place: Path, tmp_path: Path) -> None:
    (place / "few.txt").write_text("".join(f"q{n} 0 d{n} 5\n" for n in range(5)))
    request = DiagnoseRequest("names", **{**golden(place), "golden": place / "few.txt", "out": tmp_path})  # type: ignore[arg-type]
    workspace = Workspace(tmp_path)
    scene = SearchTask(Bench(request.given, workspace), TextCleaning(raw=False), "author", most=8)
    assert len(scene.docs) == 8 and {f"d{n}" for n in range(5)} <= set(scene.docs)
    assert scene.names == {f"q{n}": [PEOPLE[n // 3]] for n in range(5)}
    workspace.close()


def test_a_paid_embedder_is_priced_for_the_golden_set_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    paid = ["litellm:openai/text-embedding-3-small"]
    given = {**golden(place), "out": place / "paid", "embedders": paid}
    lines = [
        forecast_diagnosis(DiagnoseRequest("names", settings={**FEW, "end_to_end": ends}, **given)).estimates[0]  # type: ignore[arg-type]
        for ends in (False, True)
    ]
    assert lines[1].input_tokens > lines[0].input_tokens + 18 * 10


def test_a_golden_set_that_lacks_something_is_a_sentence(place: Path, tmp_path: Path) -> None:
    golden(place)
    (tmp_path / "alone.txt").write_text("q0 0 d0 5\nq1 0 d0 1\n")
    settings = {**FEW, "perturbers": ["remove_label"]}
    for labels, told in (
        (tmp_path / "alone.txt", "No corpus to search"),
        (place / "qrels.txt", "A file of labels contains no"),
    ):
        done = run_diagnosis(DiagnoseRequest("names", settings=settings, out=tmp_path / "d", golden=labels))
        assert isinstance(done.found, NamesFindings) and done.found.end_to_end is not None
        assert told in (done.found.end_to_end.note or "")
