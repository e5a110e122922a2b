"""A run whose panel hears people first: their grades win, resuming and auditing hold, every grade says who gave it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from support.cli import call
from support.llm_server import LLMServer
from support.paying import paying
from support.people import grade, kept, order, pools
from support.project import Project, make_project, raggs

from raggs.app.audit import audit
from raggs.base.artifacts import JournalRecord, JudgeRecord, MergeRecord, RankingRecord, RankRecord
from raggs.base.jsonl import read_records

QRELS = {"type": "qrels", "path": "qrels.txt"}
FIRST = {"type": "panel", "rule": "first", "judges": [{"type": "human"}, QRELS]}


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose pools are known."""
    project = make_project(tmp_path_factory.mktemp("pooled"), queries=3, judge={"judge": FIRST})
    assert raggs("run", "--config", project.config, "--to", "merge", "-q").returncode == 0
    return project


@pytest.fixture
def project(pooled: Project, tmp_path: Path) -> Project:
    """The same, with ada's grade for the first passage of each question, which is what the label is not."""
    made = pooled.copied(tmp_path / "project")
    words = [grade(query, passages[0], "ada", 5, note="read it") for query, passages in pools(made.run).values()]
    kept(made.folder / "reviews", *words)
    return made


def grades(project: Project) -> list[JudgeRecord]:
    return list(read_records(project.run / "judge.jsonl", JudgeRecord))


def test_people_decide_where_they_spoke_and_the_audit_is_clean(project: Project) -> None:
    done = raggs("run", "--config", project.config)
    assert done.returncode == 0, done.stderr
    assert "human labels grade 3 of the" in done.stderr
    records = [record for record in grades(project) if record.duplicate_of is None]
    firsts = [record for record in records if record.rank == 1]
    assert {(record.grade, record.judge, record.reason) for record in firsts} == {
        (5, "human: ada", "ada; ada: read it")
    }
    assert {record.judge for record in records if record.rank > 1} == {"qrels qrels.txt"}
    audit = raggs("audit", project.run)
    assert audit.returncode == 0, audit.stdout + audit.stderr


def test_status_exports_and_evaluations_say_how_many_grades_are_by_people(project: Project, tmp_path: Path) -> None:
    done = raggs("run", "--config", project.config, "--details")
    others = sum(record.duplicate_of is None for record in grades(project)) - 3
    told = f"3 by people, {others:,} by qrels qrels.txt"
    assert f"grades: {told}" in done.stdout + done.stderr
    assert told in raggs("status", project.run, "--details").stdout
    sidecars = {"trec": "qrels.txt.meta.json", "jsonl": "golden.jsonl.meta.json", "beir": "meta.json"}
    for form, sidecar in sidecars.items():
        out = tmp_path / form
        assert raggs("export", project.run, "--format", form, "--out", out).returncode == 0
        provenance = json.loads((out / sidecar).read_text())["provenance"]
        assert provenance["sources"] == {"human": 3, "qrels qrels.txt": others}
        exported = raggs("eval", "-g", out, "-r", project.run, "--details")
        assert exported.returncode == 0, exported.stderr
        assert f"grades: {told}" in exported.stdout, "the sidecar tells it on"
    lines = [json.loads(line) for line in (tmp_path / "jsonl" / "judgments.jsonl").read_text().splitlines()]
    assert {line["judge"] for line in lines} == {"human: ada", "qrels qrels.txt"}
    shown = raggs("eval", "-g", project.run, "-r", project.run, "--details")
    assert f"grades: {told}" in shown.stdout


def test_a_dry_run_counts_calls_only_where_people_are_silent(project: Project) -> None:
    model = {"type": "litellm", "model": "openai/gpt-4o-mini"}
    project.change(judge={"judge": {**FIRST, "judges": [{"type": "human"}, model]}})
    raw = raggs("run", "--config", project.config, "--dry-run", "--json")
    assert raw.returncode == 0, raw.stderr
    pooled = sum(record.duplicate_of is None for record in read_records(project.run / "merge.jsonl", MergeRecord))
    [line] = [each for each in json.loads(raw.stdout)["estimates"] if each["stage"] == "judge"]
    assert (line["calls"], line["exact"]) == (pooled - 3, True)


def test_where_no_person_spoke_nothing_is_said_of_sources(project: Project, tmp_path: Path) -> None:
    (project.folder / "reviews" / "reviews.jsonl").unlink()
    done = raggs("run", "--config", project.config)
    assert "by people" not in done.stdout + done.stderr
    assert raggs("export", project.run, "--format", "trec", "--out", tmp_path / "out").returncode == 0
    assert "sources" not in (tmp_path / "out" / "qrels.txt.meta.json").read_text()


def test_who_edits_a_grade_by_hand_is_told_what_lasts(project: Project) -> None:
    raggs("run", "--config", project.config, "-q")
    copy = shutil.copytree(project.run, project.folder / "copy")
    with (project.run / "judge.jsonl").open("a") as file:
        file.write("\n")
    told = f"raggs review set {project.run} QUERY PASSAGE GRADE"
    for words in (
        ("eval", "-g", project.run, "-r", project.run),
        ("export", project.run, "--out", project.folder / "out"),
        ("report", project.run, "--out", project.folder / "report.html"),
        ("diff", project.run, copy),
        ("show", project.run, "q00"),
        ("judge", "check", project.run),
        ("review", "plan", project.run, "--out", project.folder / "plan.jsonl"),
    ):
        done = raggs(*words)
        assert (done.returncode, told in done.stderr.replace("\n", " ")) == (5, True), (words, done.stderr)


def test_a_review_added_afterwards_runs_judge_to_rank_again_and_one_of_other_questions_does_not(
    project: Project,
) -> None:
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    before = project.artifacts()
    query, passages = pools(project.run)["q01"]
    kept(project.folder / "reviews", grade(query.model_copy(update={"text": "Of another set?"}), passages[1], "bo", 1))
    again = raggs("run", "--config", project.config)
    assert "nothing to do" in (again.stdout + again.stderr).lower()
    kept(project.folder / "reviews", grade(query, passages[1], "bo", 4))
    why = raggs("why", project.run, "judge", "--config", project.config)
    assert "reviews" in why.stdout
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    after = project.artifacts()
    assert after["merge"] == before["merge"]
    assert after["judge"] != before["judge"]
    [changed] = [record for record in grades(project) if record.judge == "human: bo"]
    assert (changed.qid, changed.grade) == ("q01", 4)
    assert raggs("audit", project.run).returncode == 0


def test_people_alone_leave_the_rest_unjudged_and_nothing_fails(project: Project) -> None:
    project.change(judge={"judge": {"type": "human"}})
    done = raggs("run", "--config", project.config)
    assert done.returncode == 0, done.stderr
    records = [record for record in grades(project) if record.duplicate_of is None]
    assert all((record.grade == 5) == (record.rank == 1) for record in records)
    assert {record.skipped for record in records if record.rank > 1} == {"no annotator has labelled it"}
    assert raggs("audit", project.run).returncode == 0


KILLING = '''
"""Orders by length and grades all alike; dies in the middle of its work where it is told to."""
import os
from pathlib import Path

LEFT, GRADES = Path(__file__).with_name("left"), Path(__file__).with_name("grades")


def countdown(file):
    left = int(file.read_text()) if file.exists() else 1000
    file.write_text(str(left - 1))
    if left == 0:
        os.kill(os.getpid(), 9)


def grade(query, passage):
    countdown(GRADES)
    return 4


def order(query, passages):
    countdown(LEFT)
    return sorted(range(len(passages)), key=lambda place: (len(passages[place]), passages[place]))
'''


@pytest.fixture
def ordered(project: Project) -> Project:
    """People's orders of five for each question, equals among them, before a judge of one's own that can be killed."""
    mine = {"type": "python", "callable": "killing:grade", "order": "killing:order"}
    project.change(
        judge={"judge": {**FIRST, "judges": [{"type": "human"}, mine]}}, rank={"max_calls": 6, "parallel": 2}
    )
    (project.folder / "killing.py").write_text(KILLING)
    for query, passages in pools(project.run).values():
        five = passages[:5]
        names = [passage.doc_id for passage in five]
        kept(project.folder / "reviews", order(query, five, "ada", names[4:], names[2:4], names[:2]))
    return project


def journal(project: Project) -> list[JournalRecord]:
    return list(read_records(project.run / "rank.journal.jsonl", JournalRecord))


def test_peoples_orders_are_the_first_round_of_the_journal_and_a_kill_changes_no_byte(
    ordered: Project, tmp_path: Path
) -> None:
    other = Project(tmp_path / "killed" / "project")
    shutil.copytree(ordered.folder, other.folder)
    done = raggs("run", "--config", ordered.config, "-q")
    assert done.returncode == 0, done.stderr
    known = [entry for entry in journal(ordered) if entry.groups]
    assert {(entry.qid, entry.round, entry.by, entry.sharpness) for entry in known} == {
        (qid, 0, "human: ada", 4.5) for qid in ("q00", "q01", "q02")
    }
    assert min(entry.round for entry in journal(ordered) if not entry.groups) == 1
    assert raggs("audit", ordered.run).returncode == 0
    why = raggs("why", ordered.run, "--query", "q01", "--details")
    assert "orders known before the judge was called: 1 by human: ada" in why.stdout

    for file, left in (("grades", 5), ("left", 0), ("left", 3)):
        (other.folder / file).write_text(str(left))
        assert raggs("run", "--config", other.config, "-q").returncode == -9
        assert (other.run / "judge.jsonl").exists() == (file == "left")
        (other.folder / "grades").unlink(missing_ok=True)
    (other.folder / "left").unlink()
    assert raggs("run", "--config", other.config, "-q").returncode == 0
    assert other.artifacts() == ordered.artifacts()


def test_peoples_orders_come_before_a_budget_of_the_set_and_cost_nothing_of_it(
    ordered: Project, tmp_path: Path
) -> None:
    ordered.change(rank={"max_calls": 20, "budget": {"calls": 14}})
    killed, alone = Project(tmp_path / "killed" / "project"), Project(tmp_path / "alone" / "project")
    for copy in (killed, alone):
        shutil.copytree(ordered.folder, copy.folder)
    done = raggs("run", "--config", ordered.config, "-q")
    assert done.returncode == 0, done.stderr
    entries = journal(ordered)
    assert [entry.round for entry in entries if entry.groups] == [0, 0, 0]
    assert sum(entry.asked for entry in entries) == 14 == len(entries) - 3
    assert not audit(ordered.run).findings

    (killed.folder / "left").write_text("9")
    assert raggs("run", "--config", killed.config, "-q").returncode == -9
    (killed.folder / "left").unlink()
    assert raggs("run", "--config", killed.config, "-q").returncode == 0
    assert killed.artifacts() == ordered.artifacts()

    query, passages = pools(alone.run)["q01"]
    names = [passage.doc_id for passage in passages]
    kept(alone.folder / "reviews", *(order(query, passages, who, *zip(names)) for who in ("bo", "cy", "dee")))
    assert raggs("run", "--config", alone.config, "-q").returncode == 0
    asked = [Counter(entry.qid for entry in journal(each) if entry.asked) for each in (ordered, alone)]
    assert asked[1]["q01"] < asked[0]["q01"] and asked[1].total() == 14, "where people have spoken less is asked"


def test_a_new_order_runs_the_ranking_alone_and_asks_nobody_about_other_questions(ordered: Project) -> None:
    assert raggs("run", "--config", ordered.config, "-q").returncode == 0
    before, left = ordered.artifacts(), ordered.folder / "left"
    query, passages = pools(ordered.run)["q02"]
    two = passages[5:7]
    kept(ordered.folder / "reviews", order(query, two, "bo", [two[1].doc_id], [two[0].doc_id]))
    left.write_text("1000")
    assert raggs("run", "--config", ordered.config, "-q").returncode == 0
    after = ordered.artifacts()
    assert (after["judge"], after["prune"]) == (before["judge"], before["prune"])
    assert after["rank.journal"] != before["rank.journal"]
    assert 1000 - int(left.read_text()) <= 6, "one question's calls at most"
    assert [entry.by for entry in journal(ordered) if entry.groups and entry.qid == "q02"] == [
        "human: ada",
        "human: bo",
    ]
    assert raggs("audit", ordered.run).returncode == 0


def test_people_alone_end_a_ranking_without_an_order_and_nothing_fails(project: Project) -> None:
    project.change(judge={"judge": {"type": "human"}})
    for query, passages in pools(project.run).values():
        kept(project.folder / "reviews", *(grade(query, passage, "ada", 4) for passage in passages[1:8]))
    done = raggs("run", "--config", project.config)
    assert done.returncode == 0, done.stderr
    found = list(read_records(project.run / "rank.queries.jsonl", RankingRecord))
    assert {(record.calls, record.skipped, record.stop_reason) for record in found} == {(0, 0, "nobody ordered them")}
    ranked = [record for record in read_records(project.run / "rank.jsonl", RankRecord) if record.qid == "q01"]
    fused = [passage.doc_id for passage in pools(project.run)["q01"][1]]
    assert [record.doc_id for record in ranked] == [name for name in fused if name in {each.doc_id for each in ranked}]
    assert raggs("audit", project.run).returncode == 0


def test_damaged_reviews_stop_the_run_before_anything_is_judged(project: Project) -> None:
    with (project.folder / "reviews" / "reviews.jsonl").open("a") as file:
        file.write('{"kind": "grade", "grade": 7}\n')
    done = raggs("run", "--config", project.config)
    assert done.returncode == 5, done.stderr
    assert "reviews.jsonl" in done.stderr
    assert not (project.run / "judge.jsonl").exists()


# --- judge.human_first ------------------------------------------------------------------------------------------


@pytest.fixture
def graded(tmp_path: Path, pooled: Project) -> Project:
    """A run that a model-like judge graded alone; ada then grades 24 passages of 3 questions blind."""
    made = pooled.copied(tmp_path / "graded")
    made.change(judge={"judge": QRELS})
    call("run", "--config", made.config, "-q")
    words = [
        grade(query, passage, "ada", 1 + number % 5, blind=True)
        for query, passages in pools(made.run).values()
        for number, passage in enumerate(passages[:8])
    ]
    kept(made.folder / "reviews", *words)
    return made


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("switch", ["flag", "setting"])
def test_labels_come_first_by_one_switch_and_the_judge_s_own_grades_stay_comparable(
    graded: Project, switch: str
) -> None:
    before = {(each.qid, each.doc_id): each for each in grades(graded)}
    alone = json.loads(call("judge", "check", graded.run, "--json").stdout)
    if switch == "setting":
        graded.change(judge={"human_first": True})
    call("run", "--config", graded.config, "-q", *(["--human-first"] if switch == "flag" else []))
    after = {(each.qid, each.doc_id): each for each in grades(graded)}
    labelled = {item for item, each in after.items() if each.judge == "human: ada" and each.duplicate_of is None}
    assert len(labelled) >= 20
    for item, each in after.items():
        if each.judge == "human: ada":
            assert each.votes["qrels qrels.txt"] == (before[item].grade,)
        else:
            assert (each.grade, each.judge) == (before[item].grade, before[item].judge)
    with_labels = json.loads(call("judge", "check", graded.run, "--json").stdout)
    assert with_labels["whole"] == alone["whole"]
    assert with_labels["judges"] == alone["judges"]
    assert not list(audit(graded.run).findings)
    assert not json.loads(call("run", graded.config, "--json", "--human-first").stdout)["ran"]


def test_without_the_switch_no_fingerprint_knows_of_it(graded: Project) -> None:
    components = graded.manifest()["stages"]["judge"]["components"]
    assert "human_first" not in components["config"]
    assert components["judge"]["type"] == "qrels"
    assert json.loads(call("run", graded.config, "--json", "--set", "judge.human_first=false").stdout)["ran"] == {}


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    "judge",
    [
        {"type": "panel", "judges": [QRELS, {"type": "qrels", "path": "qrels.txt", "beta": 2.0}]},
        {"type": "panel", "rule": "first", "judges": [QRELS, {"type": "qrels", "path": "qrels.txt", "beta": 2.0}]},
        {"type": "cascade", "judges": [QRELS, {"type": "qrels", "path": "qrels.txt", "beta": 2.0}], "ask_from": 4},
        FIRST,
        {"type": "human"},
    ],
)
def test_every_judge_can_come_after_people_and_audits_are_clean(graded: Project, judge: dict[str, object]) -> None:
    graded.change(judge={"judge": judge, "human_first": True, "samples": 2})
    call("run", "--config", graded.config, "-q")
    assert sum(each.judge == "human: ada" for each in grades(graded)) >= 20
    found = audit(graded.run)
    assert not found.findings, found.findings
    call("eval", "-g", graded.run, "-r", graded.run)
    call("status", graded.run)
    assert json.loads(call("run", graded.config, "--json").stdout)["ran"] == {}
    if judge["type"] != "human":
        assert json.loads(call("judge", "check", graded.run, "--json").stdout)["whole"]["cases"] >= 20


def test_a_label_in_a_line_is_followed_by_the_command_that_makes_it_count(
    graded: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(graded.folder)
    record = next(each for each in grades(graded) if each.rank == 9)
    words = ("review", "set", graded.run, record.qid, record.doc_id, 5, "--annotator", "bo")
    assert plain(call(*words).stdout).endswith("next: raggs run --config raggs.yaml --human-first")
    call("run", "--config", "raggs.yaml", "--human-first", "-q")
    found = next(each for each in grades(graded) if (each.qid, each.doc_id) == (record.qid, record.doc_id))
    assert (found.grade, found.judge) == (5, "human: bo")
    assert plain(call(*words).stdout).endswith("next: raggs run --config raggs.yaml --human-first")
    elsewhere = plain(call(*words, "--reviews", "elsewhere").stdout)
    assert "next: raggs review import" in elsewhere
    assert "elsewhere/reviews.jsonl && raggs run --config raggs.yaml --human-first" in elsewhere


def test_labels_that_come_first_replace_no_paid_grade(tmp_path: Path, server: LLMServer) -> None:
    """The model's answers are cached, so that nothing is asked twice and nobody has to confirm anything."""
    made = paying(tmp_path, server)
    call("run", "--config", made.config, "-q")
    query, passages = pools(made.run)["q01"]
    kept(made.folder / "reviews", grade(query, passages[0], "ada", 1, blind=True))
    asked = len(server.requests)
    call("run", "--config", made.config, "-q", "--human-first", "--to", "judge")
    assert len(server.requests) == asked
    [mine] = [each for each in grades(made) if each.judge == "human: ada" and each.duplicate_of is None]
    assert mine.votes["litellm openai/judge"][0] is not None
