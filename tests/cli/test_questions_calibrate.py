"""`raggs questions calibrate` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from support.cli import invoke

ROWS = [
    {"_id": "1", "text": "When do dogs bark?", "corpus_id": "pets", "references": ["Dogs bark at night."]},
    {"_id": "2", "text": "At what time do dogs bark?", "corpus_id": "pets", "references": ["Dogs bark at night."]},
    {"_id": "3", "text": "What do birds do in spring?", "corpus_id": "birds", "references": ["The bank lends money."]},
    {"_id": "4", "text": "How is bread made?", "corpus_id": "food"},
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def run(questions: Path, *words: str, given: str = "") -> Result:
    return invoke("questions", "calibrate", questions, *words, input=given)


def test_histograms_and_the_pairs_next_to_the_thresholds_are_shown(questions: Path) -> None:
    result = run(questions, "--duplicate", "0.7", "--excerpt", "0.41")
    assert result.exit_code == 0, result.output
    assert "cosines of questions and their nearest earlier question: 3" in result.stdout
    assert "---- duplicate 0.7 ----" in result.stdout
    above = result.stdout.split("---- duplicate")[0]
    assert "When do dogs bark?" in above and "At what time do dogs bark?" in above
    assert "The bank lends money." in result.stdout.split("---- excerpt")[1]
    assert "duplicate 0.7: 1 of 4 questions removed; excerpt 0.41: 1 removed" in result.stdout


def test_as_json_for_others(questions: Path) -> None:
    found = json.loads(run(questions, "--json", "--duplicate", "0.99").stdout)
    assert (found["questions"], found["duplicate"]["gone"], found["excerpt"]["pairs"]) == (4, 0, 3)
    assert sum(each["count"] for each in found["duplicate"]["histogram"]) == 3


def test_answers_move_the_threshold_and_can_be_taken_back(questions: Path) -> None:
    shown = run(questions, "--ask", given="y\n" * 40)
    assert shown.exit_code == 0, shown.output
    low = json.loads(run(questions, "--json").stdout)
    assert "questions removed" in shown.stdout
    assert low["questions"] == 4
    back = run(questions, "--ask", given="x\n\ny\nu\nq\nq\n")
    assert back.exit_code == 0
    assert back.stderr.count("same question? [y/n/u/q]") == 5


def test_the_usual_thresholds_are_the_embedders(questions: Path) -> None:
    found = json.loads(run(questions, "--json").stdout)
    assert (found["duplicate"]["threshold"], found["excerpt"]["threshold"]) == (0.85, 0.15)
    assert "questions.filter.duplicate=0.85 questions.filter.excerpt=0.15" in run(questions).stdout


def test_one_corpus_at_a_time(questions: Path) -> None:
    assert json.loads(run(questions, "--json", "--corpus", "pets").stdout)["questions"] == 2


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--corpus", "pet"), 2, "did you mean 'pets'"),
        (("--embedder", "wordlama"), 2, "did you mean 'wordllama'"),
        (("--duplicate", "2"), 2, "--duplicate"),
    ],
)
def test_what_cannot_be_is_one_sentence(questions: Path, words: tuple[str, ...], code: int, told: str) -> None:
    result = run(questions, *words)
    assert result.exit_code == code
    assert told in result.stderr


def test_a_file_without_corpora_or_of_no_format_is_told(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"text": "What?"}\n')
    assert "no question names its corpus" in run(file, "--corpus", "a").stderr
    assert run(file).exit_code == 0
    assert run(tmp_path / "q.txt").exit_code == 2
    assert run(tmp_path / "nothing.csv").exit_code == 4
