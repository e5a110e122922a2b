"""What can be wrong with excerpts: one sentence with file, line and remedy, and an exit code that is not 0."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke
from support.project import raggs

TEXT = "# Birds\n\nThe heron nests in May. The boats stay. The heron nests in May.\n\nThe otter sleeps in the reeds.\n"
OTTER, START = "The otter sleeps", TEXT.index("The otter sleeps")
END = START + len(OTTER)
TWICE = "The heron nests in May."


def place(content: object = OTTER, start: object = START, end: object = END, **more: object) -> dict[str, object]:
    return {"content": content, "start_index": start, "end_index": end, **more}


def table(references: object, document: str = "birds") -> str:
    """Two questions: a good one in line 2, and the given one in line 3."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    cells = (json.dumps([place()]), references if isinstance(references, str) else json.dumps(references))
    writer.writerow(["question", "references", "corpus_id"])
    writer.writerow(["Where does the otter sleep?", cells[0], "birds"])
    writer.writerow(["Which?", cells[1], document])
    return text.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "birds.md").write_text(TEXT)
    (tmp_path / "q.csv").write_text(table([place()]))
    return tmp_path


def call(*arguments: str, **options: str) -> Any:
    given = {"--corpus": "docs", "--questions": "q.csv", "--chunkers": "recursive:20", **options}
    return invoke("chunks", "eval", *(word for pair in given.items() for word in pair), *arguments)


def told(result: Any, code: int = 5) -> str:
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    found = " ".join(str(result.stderr).split())
    assert found.count("raggs: ") == 1, "one sentence"
    assert " — " in found, "with a remedy"
    return found


@pytest.mark.parametrize(
    ("references", "said"),
    [
        ([place("The eagle flies")], "excerpt 'The eagle flies' is not the text at birds["),
        (["The eagle flies"], "excerpt 'The eagle flies' is not in any document"),
        ([place(start=START + 1, end=END + 1)], f"is not the text at birds[{START + 1}:{END + 1}] — it is at"),
        ([place(start=10**6, end=10**6 + len(OTTER))], f"which has {len(TEXT)} characters"),
        ([place(), place("otter", START + 4, START + 9)], "excerpts 'The otter sleeps' and 'otter' overlap"),
        ([place(), place()], "are the same — remove one"),
        ([place(start=END, end=START)], f"its range from {END} to {START} is empty"),
        ([place(start=START, end=START)], "is empty"),
        ([place(start=-3)], "its start_index is -3, not a whole number"),
        ([place(start=float(START))], "not a whole number of at least 0"),
        ([place(end=str(END))], "its end_index is '"),
        ([place(start=True)], "its start_index is True"),
        ([place(start=None)], "its start_index is missing"),
        ([place("")], "reference 1 has no text: its content is blank"),
        ([place(), "  "], "reference 2 has no text"),
        ([place(score=1)], "its key 'score' is unknown"),
        ([3], "reference 1 is a number, neither a string nor an object"),
        ([None], "reference 1 is null"),
        ([[OTTER]], "reference 1 is a list"),
        ('[{"content": "x", ', "column references is not valid JSON"),
        ('[{"content": "x", "start_index": NaN, "end_index": 2}]', "NaN is not a JSON number"),
        (f'[{{"content": "x", "start_index": 1{"0" * 300}, "end_index": 2}}]', "a number of 301 characters"),
        ([place(TEXT[:1] + "\x1b[31m", 0, 6)], "excerpt '#\\x1b[31m'"),
    ],
)
def test_an_excerpt_that_cannot_be_right_is_named_with_its_line(folder: Path, references: object, said: str) -> None:
    (folder / "q.csv").write_text(table(references))
    found = told(call())
    assert "q.csv:3: " in found
    assert said in found


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("brids", "its document 'brids' is not in docs — did you mean 'birds'?"),
        ("twins", "it may be twins.md or twins.txt: add the extension"),
        ("", "start_index and end_index need corpus_id"),
    ],
)
def test_a_document_that_is_not_there(folder: Path, document: str, said: str) -> None:
    for name in ("twins.md", "twins.txt"):
        (folder / "docs" / name).write_text(TEXT)
    (folder / "q.csv").write_text(table([place()], document))
    found = told(call())
    assert "q.csv:3: " in found
    assert said in found


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("question,references,corpus_id\nWhich?,,birds\n", "q.csv: no question has references"),
        ("question,references,corpus_id\nWhich?,[],birds\n", "no question has references"),
        ("question,references,corpus_id\nWhich?,[]\n", "q.csv:2: 2 columns, the header has 3"),
        (table([place()]).encode() + b"\xff,,\n", "q.csv:4: not UTF-8"),
        ("", "q.csv: contains no queries"),
    ],
)
def test_a_table_that_cannot_be_used(folder: Path, content: str | bytes, said: str) -> None:
    (folder / "q.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert said in told(call())


@pytest.mark.parametrize(
    ("chunkers", "said"),
    [
        ("recursive:0", "recursive:0: size"),
        ("recursive:-5", "recursive:-5: size"),
        ("recursive:0.5", "recursive:0.5: size"),
        ("recursive:20:overlap=20", "overlap (20) must be smaller than size (20)"),
    ],
)
def test_a_size_below_one_token(folder: Path, chunkers: str, said: str) -> None:
    assert said in told(call(**{"--chunkers": chunkers}), 2)


def test_documents_that_cannot_be_read(folder: Path) -> None:
    assert "no such folder — give the folder of the documents with --corpus" in told(call(**{"--corpus": "no"}), 4)
    assert "is not a folder" in told(call(**{"--corpus": "q.csv"}), 4)
    (folder / "docs" / "bad.md").write_bytes(b"a\n\xff\n")
    assert "docs/bad.md:2: not UTF-8" in told(call())


def test_an_excerpt_without_offsets_that_stands_twice_is_told(folder: Path) -> None:
    (folder / "q.csv").write_text(table([TWICE]))
    result = call("--json")
    assert result.exit_code == 0, result.output
    at = TEXT.index(TWICE)
    [said] = [note for note in json.loads(result.stdout)["notes"] if "times;" in note]
    assert said.endswith(f"'{TWICE}' occurs 2 times; birds.md[{at}:{at + len(TWICE)}] is used")
    (folder / "q.csv").write_text(table([place(TWICE, TEXT.rindex(TWICE), TEXT.rindex(TWICE) + len(TWICE))]))
    assert "places" not in str(json.loads(call("--json").stdout)["notes"])


@pytest.mark.nightly
def test_a_hundred_thousand_references(folder: Path) -> None:
    (folder / "docs" / "birds.md").write_text("ab" * 100_000)
    (folder / "q.csv").write_text(
        "question,references,corpus_id\n"
        + table([place("ab", at, at + 2) for at in range(0, 200_000, 2)]).splitlines()[2]
        + "\n"
    )
    result = call("--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["questions"] != []


def test_a_run_refuses_the_same_references(folder: Path) -> None:
    (folder / "q.csv").write_text(table([place(start=-3)]))
    (folder / "raggs.yaml").write_text(
        "name: demo\ncorpus: {type: folder, path: docs}\nqueries: {type: csv, path: q.csv}\n"
        "judge: {judge: {type: reference}}\n"
    )
    done = raggs("run", "--config", folder / "raggs.yaml")
    assert done.returncode == 5
    assert "q.csv:3: " in done.stdout + done.stderr
    assert "its start_index is -3, not a whole number of at least 0" in " ".join((done.stdout + done.stderr).split())


def test_a_report_needs_a_folder(folder: Path) -> None:
    assert "q.csv is a file, not a folder — name another folder with --out" in told(call("--out", "q.csv"), 2)
    assert (folder / "q.csv").read_text() == table([place()])
