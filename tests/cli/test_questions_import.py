"""`raggs questions import` from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import Result
from support.cli import invoke

LOG = """How do I reset my password?
how do i reset my password
How do I reset my password?
Bonjour
Why does error 404 come up?
Why does error 403 come up?
Comment changer l'adresse de livraison ?
Write to jane.doe@example.com about my order

My name is John Smith, where is my order?
???
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users.txt").write_text(LOG)
    return tmp_path


def run(*words: str) -> Result:
    return invoke("questions", "import", *words)


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_log_becomes_questions_and_what_tells_who_asked_is_set_aside(folder: Path) -> None:
    result = run("users.txt")
    assert result.exit_code == 0, result.output
    assert "10 entries: 4 questions (en 3, fr 1)" in result.stdout
    assert "duplicates: 2 with the same text, 0 with similar text" in result.stdout
    assert "not a question: small talk 1, no words 1" in result.stdout
    assert "2 questions set aside" in result.stdout
    kept = rows(folder / "questions.jsonl")
    assert kept[0]["text"] == "How do I reset my password?"
    assert kept[0]["metadata"] == {"frequency": 3, "first": "users.txt:1"}
    assert [row["language"] for row in kept] == ["en", "en", "en", "fr"]
    written = (folder / "questions.jsonl").read_text()
    assert "jane" not in written and "Smith" not in written
    aside = rows(folder / "questions.flagged.jsonl")
    assert [row["metadata"]["personal"] for row in aside] == [["email"], ["name"]]  # type: ignore[index]


def test_every_entry_is_counted_once(folder: Path) -> None:
    found = json.loads(run("users.txt", "--json").stdout)
    kept = sum(row["metadata"]["frequency"] for row in rows(folder / "questions.jsonl"))  # type: ignore[index, misc]
    assert found["entries"] == kept + sum(found["dropped"].values()) + found["flagged"]["entries"]


def test_personal_data_is_masked_or_allowed_when_asked(folder: Path) -> None:
    found = json.loads(run("users.txt", "--json", "--mask").stdout)
    assert found["masked"] == {"email": 1, "name": 1}
    text = (folder / "questions.jsonl").read_text()
    assert "Write to [EMAIL] about my order" in text and "jane" not in text
    assert not (folder / "questions.flagged.jsonl").exists()
    allowed = json.loads(run("users.txt", "--json", "--force", "--allow", "name").stdout)
    assert allowed["flagged"] == {"questions": 1, "entries": 1, "email": 1}
    assert "John Smith" in (folder / "questions.jsonl").read_text()


def test_a_flagged_file_of_before_goes_when_nothing_is_flagged(folder: Path) -> None:
    run("users.txt")
    assert run("users.txt", "--mask", "--force").exit_code == 0
    assert not (folder / "questions.flagged.jsonl").exists()


def test_near_questions_are_counted_with_the_most_frequent(folder: Path) -> None:
    Path("n.txt").write_text("how can I change my password\n" * 2 + "how I can change my own password\n")
    assert json.loads(run("n.txt", "--json", "--similarity", "0.7").stdout)["near"] == 1
    assert rows(folder / "questions.jsonl")[0]["metadata"]["frequency"] == 3  # type: ignore[index]
    assert json.loads(run("n.txt", "--json", "--similarity", "1", "--force").stdout)["near"] == 0


def test_the_questions_can_be_read_by_a_run(folder: Path) -> None:
    for name in ("a.csv", "b.yaml"):
        assert run("users.txt", "--out", name).exit_code == 0
        assert Path(name).exists()


def test_a_dry_run_writes_nothing(folder: Path) -> None:
    result = run("users.txt", "--dry-run")
    assert "no file written" in result.stdout
    assert [path.name for path in folder.iterdir()] == ["users.txt"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("users.txt", "--allow", "emial"), 2, "did you mean 'email'"),
        (("users.txt", "--out", "q.txt"), 2, "unknown query format"),
        (("nobody.txt",), 4, "no such file"),
        (("users.txt", "--column", "a"), 2, "has one text per line, not columns"),
        (("empty.txt",), 5, "none of 2 entries is a question (small talk 1, no words 1)"),
    ],
)
def test_what_cannot_be_is_one_sentence(folder: Path, words: tuple[str, ...], code: int, told: str) -> None:
    (folder / "empty.txt").write_text("hello\n?\n")
    result = run(*words)
    assert result.exit_code == code, result.output
    assert told in result.stderr


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.txt", b"fine line here\n\xff\xfe\n", "a.txt:2: not UTF-8"),
        ("a.csv", b"who,what\nme,what is it\n", "set --column to one of: who, what"),
        ("a.jsonl", b'{"text": "what is it"}\n{"text"\n', "a.jsonl:2: not valid JSON"),
        ("a.txt.gz", b"no archive", "a.txt.gz: cannot be read"),
    ],
)
def test_a_log_that_cannot_be_is_told_and_nothing_is_written(folder: Path, name: str, data: bytes, told: str) -> None:
    (folder / name).write_bytes(data)
    result = run("users.txt", name)
    assert result.exit_code in (4, 5), result.output
    assert told in result.stderr
    assert not (folder / "questions.jsonl").exists()


def test_a_pipe_is_no_log(folder: Path) -> None:
    os.mkfifo(folder / "p.txt")
    result = run("p.txt")
    assert result.exit_code == 5 and "is a pipe" in result.stderr


def test_files_that_exist_stay_unless_forced(folder: Path) -> None:
    (folder / "questions.jsonl").write_text("mine\n")
    result = run("users.txt")
    assert result.exit_code == 2 and "pass --force" in result.stderr
    assert (folder / "questions.jsonl").read_text() == "mine\n"
    assert run("users.txt", "--force").exit_code == 0


def test_a_phone_number_is_known_where_the_log_is_at_home(folder: Path) -> None:
    french = "Comment changer mon adresse de livraison ?\nPourquoi ma commande est en retard ?\n"
    Path("fr.txt").write_text(french + "please call me on 06 12 34 56 78 about it\n")
    assert json.loads(run("fr.txt", "--json").stdout)["flagged"]["phone"] == 1
    Path("en.txt").write_text("how do I change it\nplease enter 06 12 34 56 78 in the field\n")
    assert "phone" not in json.loads(run("en.txt", "--json", "--force").stdout)["flagged"]
