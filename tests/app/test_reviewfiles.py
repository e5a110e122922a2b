"""Grades from elsewhere and to elsewhere: what is written comes back, and what cannot be right is one sentence."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.people import evidence, grade, kept, order, pools
from support.project import Project, make_project, raggs

from raggs.app.review_files import export_reviews, import_reviews
from raggs.base.errors import DataError, RaggsError, UsageError
from raggs.parts.review_files import EXPORT_FORMS
from raggs.parts.reviews import GradeReview, ReviewStore, Withdrawal, fold_reviews, key_of
from raggs.runs.manifests.open_run import OpenedRun, open_run

ENDING = {"csv": "csv", "jsonl": "jsonl", "argilla": "json", "label-studio": "json"}
DIGEST = "0123456789abcdef" * 2


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("project"))
    raggs("run", "--config", project.config, "-q")
    return project


@pytest.fixture
def run(made: Project) -> OpenedRun:
    return open_run(made.run)


@pytest.fixture
def said(made: Project, tmp_path: Path) -> Path:
    """Two people on two passages, of which one is settled, and hostile words."""
    query, pool = next(iter(pools(made.run).values()))
    return kept(
        tmp_path / "reviews",
        grade(query, pool[0], "ada", 4, note='=HYPERLINK("http://x") "so"\nit, is', seconds=2.5),
        grade(query, pool[0], "bo", 2),
        grade(query, pool[1], "ada", None, note="'@sum"),
        grade(query, pool[0], "ada", 3, settles=True),
    )


def words(folder: Path) -> list[tuple[Any, ...]]:
    """What holds, without what only some forms can hold."""
    held = fold_reviews(ReviewStore(folder).read())
    each = [word for by in held.grades.values() for word in by.values()] + list(held.settling.values())
    return [
        (word.key, word.qid, word.doc_id, word.who, word.at, word.grade, word.note, word.seconds, word.settles)
        for word in each
    ]


@pytest.mark.parametrize("form", EXPORT_FORMS)
def test_what_people_say_comes_back(run: OpenedRun, said: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"out.{ENDING[form]}"
    assert export_reviews(run, out, form, folder=said).words == 4
    new = tmp_path / "new"
    taken = import_reviews(run, [out], folder=new)
    assert (taken.added, taken.known, taken.stale) == (4, 0, 0)
    assert words(new) == words(said)
    before = ReviewStore(new).path.read_bytes()
    again = import_reviews(run, [out], folder=new)
    assert (again.added, again.known) == (0, 4)
    assert ReviewStore(new).path.read_bytes() == before, "what was imported once adds nothing"
    assert import_reviews(run, [out], folder=said).added == 0


def test_no_cell_is_run_by_a_spreadsheet(run: OpenedRun, said: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    export_reviews(run, out, "csv", folder=said)
    with out.open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell]


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("csv", lambda task: {**task, "grade": "4", "who": "bo"}),
        ("jsonl", lambda task: {**task, "grade": 4, "who": "bo"}),
        (
            "argilla",
            lambda task: {
                **task,
                "responses": {
                    "grade": [{"value": 4, "user_id": "bo"}],
                    "note": [{"value": "because", "user_id": "bo"}],
                },
                "_server_id": "1",
            },
        ),
        (
            "label-studio",
            lambda task: {
                **task,
                "id": 1,
                "annotations": [
                    {"was_cancelled": True, "result": []},
                    {
                        "completed_by": {"id": 7, "email": "bo"},
                        "lead_time": 4.288,
                        "created_at": "2021-03-09T22:16:08.728353Z",
                        "result": [
                            {"from_name": "grade", "to_name": "text", "type": "rating", "value": {"rating": 4}},
                            {"from_name": "note", "to_name": "text", "type": "textarea", "value": {"text": ["be"]}},
                        ],
                    },
                ],
            },
        ),
    ],
)
def test_tasks_come_back_with_grades(
    run: OpenedRun, said: Path, tmp_path: Path, form: str, answer: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    out, pool = tmp_path / f"todo.{ENDING[form]}", next(iter(pools(run.folder).values()))[1]
    given = export_reviews(run, out, form, folder=said, todo=True)
    total = len({key_of(query, passage) for query, pool in pools(run.folder).values() for passage in pool})
    assert (given.items, given.words) == (total - 2, 0)
    assert import_reviews(run, [out], folder=said, who=["ada"]).added == 0, "tasks say nothing"
    if form == "csv":
        with out.open(newline="", encoding="utf-8") as file:
            tasks: list[dict[str, Any]] = list(csv.DictReader(file))
    elif form == "jsonl":
        tasks = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        tasks = json.loads(out.read_text())
    assert not any(word in json.dumps(tasks) for word in ("score", "rank", "sources")), "nothing of machines is shown"
    tasks[0] = answer(tasks[0])
    if form == "csv":
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(tasks[0]))
            writer.writeheader()
            writer.writerows(tasks)
    elif form == "jsonl":
        out.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    else:
        out.write_text(json.dumps(tasks))
    assert import_reviews(run, [out], folder=said).added == 1
    last = ReviewStore(said).read()[-1]
    assert isinstance(last, GradeReview)
    assert (last.who, last.doc_id, last.grade, last.blind) == ("bo", pool[2].doc_id, 4, True)
    if form == "label-studio":
        assert (last.seconds, last.note, last.at.isoformat()) == (4.288, "be", "2021-03-09T22:16:08.728353+00:00")


def test_reviewers_whom_argilla_knows_by_uuids_alone_are_named(run: OpenedRun, said: Path, tmp_path: Path) -> None:
    out, ada, bo = (
        tmp_path / "todo.json",
        "11111111-2222-3333-4444-555555555555",
        "99999999-2222-3333-4444-555555555555",
    )
    export_reviews(run, out, "argilla", folder=said, todo=True)
    tasks = json.loads(out.read_text())
    for task, users in zip(tasks, ([ada], [ada, bo]), strict=False):
        task["responses"] = {"grade": [{"value": 4, "user_id": user} for user in users]}
    out.write_text(json.dumps(tasks))
    with pytest.raises(DataError, match="2 annotators named only by UUID") as caught:
        import_reviews(run, [out], folder=tmp_path / "new", who=["ada"])
    assert f"--annotator {ada}=NAME --annotator {bo}=NAME" in str(caught.value.remedy)
    assert not (tmp_path / "new").exists()
    assert import_reviews(run, [out], folder=tmp_path / "new", who=[f"{ada}=ada", f"{bo}=bo"]).added == 3
    assert [line.who for line in ReviewStore(tmp_path / "new").read()] == ["ada", "ada", "bo"]
    tasks[1]["responses"]["grade"].pop()
    out.write_text(json.dumps(tasks))
    assert import_reviews(run, [out], folder=tmp_path / "new", who=["ada"]).known == 2, "of one alone the name is plain"
    for wrong in (["ada", "bo"], [f"{ada}=ada", f"{ada}=bo"], [f"{ada}="]):
        with pytest.raises(UsageError):
            import_reviews(run, [out], folder=tmp_path / "new", who=wrong)


def test_all_lines_keep_what_holds_no_longer(run: OpenedRun, said: Path, tmp_path: Path) -> None:
    query, pool = next(iter(pools(run.folder).values()))
    first = ReviewStore(said).read()[0]
    ranked = order(query, pool[:3], "ada", *([passage.doc_id] for passage in pool[:3]))
    gone = Withdrawal(who="ada", at=first.at, qid=query.qid, query=first.query, replaces=first.id)
    ReviewStore(said).append(ranked, gone)
    out, new = tmp_path / "all.jsonl", tmp_path / "new"
    export_reviews(run, out, "jsonl", folder=said, everything=True)
    assert out.read_bytes() == ReviewStore(said).path.read_bytes()
    import_reviews(run, [out], folder=new)
    assert ReviewStore(new).read() == ReviewStore(said).read()
    assert import_reviews(run, [out], folder=new).added == 0


def test_evidence_is_in_json_lines_and_comes_back_once(run: OpenedRun, said: Path, tmp_path: Path) -> None:
    query, pool = next(iter(pools(run.folder).values()))
    ids = [passage.doc_id for passage in pool[:3]]
    kept(
        said,
        evidence(query, pool[:3], "ada", ids[:2]),
        evidence(query, pool[:3], "bo"),
        evidence(query, pool[:3], "bo", ids[2:], settles=True),
    )
    out, new = tmp_path / "out.jsonl", tmp_path / "new"
    assert export_reviews(run, out, "jsonl", folder=said).words == 7
    assert export_reviews(run, tmp_path / "out.csv", "csv", folder=said).words == 4, "a table has no place for sets"
    assert import_reviews(run, [out], folder=new).added == 7
    assert import_reviews(run, [out], folder=new).added == 0
    one, other = (fold_reviews(ReviewStore(folder).read()) for folder in (said, new))
    assert one.evidence == other.evidence and one.settling_evidence == other.settling_evidence
    assert len(one.settling_evidence) == 1


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"sets":[["{0}"]]', '"sets":[["nothing"]]', "passage nothing of an evidence set was not shown"),
        ('"sets":[["{0}"]]', '"sets":[[]]', "evidence set 1 is empty"),
        ('"sets":[["{0}"]]', '"sets":[["{0}"],["{0}","{1}"]]', "contains all passages of set 1"),
        ('"qid":"q00","query":"', '"qid":"elsewhere","query":"0', "no query elsewhere|query"),
    ],
)
def test_invalid_evidence_is_not_imported(run: OpenedRun, tmp_path: Path, old: str, new: str, sentence: str) -> None:
    query, pool = next(iter(pools(run.folder).values()))
    ids = [passage.doc_id for passage in pool[:2]]
    text = evidence(query, pool[:2], "ada", ids[:1]).model_dump_json()
    before, after = (each.replace("{0}", ids[0]).replace("{1}", ids[1]) for each in (old, new))
    assert before in text
    (tmp_path / "in.jsonl").write_text(text.replace(before, after) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=sentence) as error:
        import_reviews(run, [tmp_path / "in.jsonl"], folder=tmp_path / "new")
    assert error.value.line == 1
    assert not (tmp_path / "new").exists()


def test_ids_alone_mean_the_text_of_now_and_digests_find_other_ids(run: OpenedRun, tmp_path: Path) -> None:
    query, pool = next(iter(pools(run.folder).values()))
    question, content = key_of(query, pool[0])
    file = tmp_path / "grades.csv"
    file.write_text(f"qid,doc_id,grade\n{query.qid},{pool[0].doc_id},5\n{query.qid},{pool[1].doc_id},\n")
    taken = import_reviews(run, [file], folder=tmp_path / "a", who=["ada"])
    assert (taken.added, taken.open) == (1, 1)
    assert import_reviews(run, [file], folder=tmp_path / "a", who=["ada"]).known == 1
    file.write_text(
        f"query,passage,qid,doc_id,who,grade\n{question},{content},x,y,bo,2\n"
        f"{question},{DIGEST},{query.qid},{pool[1].doc_id},bo,2\n"
    )
    taken = import_reviews(run, [file], folder=tmp_path / "a")
    assert (taken.added, taken.stale) == (2, 1), "a text that changed is kept, and does not count"
    found = [line for line in ReviewStore(tmp_path / "a").read() if isinstance(line, GradeReview)]
    assert [line.doc_id for line in found] == [pool[0].doc_id, pool[0].doc_id, pool[1].doc_id]
    assert found[0].key == found[1].key == (question, content)


@pytest.mark.parametrize(
    ("name", "text", "sentence", "line"),
    [
        ("g.csv", "qid,doc_id,grade,who\n{q},{d},4,ada\n{q},{d},7,bo\n", "grade 7 is outside 1..5", 3),
        ("g.csv", "qid,doc_id,grade,who\n{q},{d},4,ada\n{q},{d},3,ada\n", "twice", 3),
        ("g.csv", "qid,doc_id,grade\n{q},{d},4\n", "does not name the annotator", 2),
        ("g.csv", "qid,doc_id,grade,who\n{q},nothing,4,ada\n", "no passage nothing in the pool", 2),
        ("g.csv", "qid,doc_id,grade,who\nnobody,{d},4,ada\n", "no query nobody in this run", 2),
        ("g.csv", "qid,doc_id,grade,who\n{q},{d},four,ada\n", "'four' is not a grade", 2),
        ("g.csv", "qid,doc_id,who\n{q},{d},ada\n", "no column grade", 1),
        ("g.csv", "qid,doc_id,grade,grade\n", "twice", 1),
        ("g.csv", "grade,who\n4,ada\n", "does not identify a query", 2),
        ("g.csv", "qid,doc_id,grade,who\n{q},{d},4\n", "3 columns", 2),
        ("g.csv", 'qid,doc_id,grade,who\n{q},"{d},4,ada\n', "not valid CSV", 2),
        ("g.csv", "qid,doc_id,grade,who,at\n{q},{d},4,ada,noon\n", "'noon' is not a time", 2),
        ("g.csv", "qid,doc_id,grade,who,seconds\n{q},{d},4,ada,-1\n", "greater than or equal to 0", 2),
        ("g.csv", "qid,doc_id,grade,who,settles\n{q},{d},4,ada,so\n", "neither true nor false", 2),
        ("g.csv", "qid,doc_id,grade,who\n{q},{d},4," + "x" * 81 + "\n", "1 to 80 characters", 2),
        ("g.jsonl", '{{"qid":"{q}","doc_id":"{d}","grade":true,"who":"ada"}}\n', "'True' is not a grade", 1),
        ("g.jsonl", '\n{{"v":1,"kind":"grade","grade":9}}\n', "who", 2),
        ("g.jsonl", '{{"qid":"{q}"\n', "not valid JSON", 1),
        ("g.json", '[\n{{"data":{{}}}},\n7]', "not a JSON object", 3),
        ("g.json", '[\n{{"data":{{}}}}\n', "a comma or the end of the list", 2),
        ("g.json", '[\n{{"data":\n}}', "not valid JSON", 3),
        ("g.json", "[" * 100_000, "nested", 1),
        ("g.json", '{{"data":{{}}}}', "not a JSON list", 1),
        ("g.csv", "qid,doc_id,grade,who\n{q},{d},4,\udcff\n", "not UTF-8", 2),
    ],
)
def test_what_cannot_be_right(run: OpenedRun, tmp_path: Path, name: str, text: str, sentence: str, line: int) -> None:
    query, pool = next(iter(pools(run.folder).values()))
    good, bad = tmp_path / "good.csv", tmp_path / name
    good.write_text(f"qid,doc_id,grade,who\n{query.qid},{pool[3].doc_id},4,ada\n")
    bad.write_bytes(text.format(q=query.qid, d=pool[0].doc_id).encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=name) as caught:
        import_reviews(run, [good, bad], folder=tmp_path / "reviews")
    assert sentence in str(caught.value)
    assert caught.value.line == line
    assert not (tmp_path / "reviews").exists(), "nothing is half imported"


@pytest.mark.parametrize(
    ("form", "more", "sentence"),
    [
        ("cvs", {}, "did you mean 'csv'"),
        ("csv", {"everything": True}, "cannot be combined"),
        ("jsonl", {"everything": True, "todo": True}, "cannot be combined"),
    ],
)
def test_what_cannot_be_written(
    run: OpenedRun, tmp_path: Path, form: str, more: dict[str, bool], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        export_reviews(run, tmp_path / "out", form, folder=tmp_path, **more)
    (tmp_path / "out.csv").touch()
    with pytest.raises(RaggsError, match="exists"):
        export_reviews(run, tmp_path / "out.csv", "csv", folder=tmp_path)


def test_on_the_command_line_under_either_name(made: Project, tmp_path: Path) -> None:
    folder, out = tmp_path / "reviews", tmp_path / "todo.csv"
    told = raggs("review", "export", made.run, "--todo", "--out", out, "--reviews", folder)
    assert told.returncode == 0, told.stderr
    assert "passages to label" in told.stdout
    lines = out.read_text().splitlines()
    query, pool = next(iter(pools(made.run).values()))
    out.write_text(f"qid,doc_id,grade\n{query.qid},{pool[0].doc_id},?\n")
    for words, said in ((("review",), "1 label added"), (("reviews",), "1 duplicate row skipped")):
        told = raggs(*words, "import", made.run, out, "--annotator", "ada", "--reviews", folder)
        assert told.returncode == 0, told.stderr
        assert said in told.stdout
    assert len(lines) > 1
    assert " reviews " not in raggs("--help").stdout
    wrong = raggs("reviews", "import", made.run, tmp_path / "none.csv")
    assert wrong.returncode == 4
    assert "Traceback" not in wrong.stderr
