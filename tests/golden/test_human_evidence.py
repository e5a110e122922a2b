"""Evidence sets of annotators: they replace the stored sets in evaluations and exports, and reports say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.people import evidence, kept, pools
from support.project import Project, make_project, questions, raggs, write_lines

from raggs.golden.human_evidence import human_evidence
from raggs.golden.sources import open_golden
from raggs.runs.manifests.open_run import open_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run whose query q00 has a stored set of a passage that is not in the pools."""
    project = make_project(tmp_path_factory.mktemp("project"))
    rows = questions(4)
    rows[0]["evidence"] = [["elsewhere"]]
    write_lines(project.folder / "queries.jsonl", rows)
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    return project


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    return made.copied(tmp_path / "project")


def scores(project: Project, *more: object) -> dict[str, float]:
    found = raggs("eval", "-g", project.run, "-r", project.run, "-m", "complete@50", "--out", project.folder / "eval")
    assert found.returncode == 0, found.stderr
    report = json.loads((project.folder / "eval" / "eval.json").read_text(encoding="utf-8"))
    values = report["per_query"][report["systems"][0]["name"]]["complete@50"]
    assert isinstance(values, dict)
    return values


def test_without_labels_the_stored_sets_count(project: Project) -> None:
    assert open_golden(project.run).judgments().evidence == {"q00": (("elsewhere",),)}
    assert scores(project) == {"q00": 0.0}


def test_sets_of_annotators_count_in_evaluations_and_exports(project: Project) -> None:
    asked = pools(project.run)
    (one, pool), (other, few) = asked["q00"], asked["q01"]
    sets = [[pool[0].doc_id]], [[few[0].doc_id, few[1].doc_id]]
    kept(project.folder / "reviews", evidence(one, pool[:3], "ada", *sets[0]), evidence(other, few[:3], "bo", *sets[1]))
    assert scores(project) == {"q00": 1.0, "q01": 1.0}
    note = "evidence sets of 2 queries are by annotators (ada, bo)"
    assert note in (project.folder / "eval" / "eval.md").read_text(encoding="utf-8")
    details = raggs("eval", "-g", project.run, "-r", project.run, "-m", "complete@50", "--details")
    assert note in " ".join(details.stdout.split())
    unrelated = raggs("eval", "-g", project.run, "-r", project.run, "-m", "ndcg@10", "--details")
    assert "by annotators" not in unrelated.stdout, "no measure needs the sets"
    assert raggs("audit", project.folder / "eval" / "eval.json").returncode == 0
    assert raggs("audit", project.run).returncode == 0
    export = project.folder / "export"
    assert raggs("export", project.run, "--format", "jsonl", "--out", export).returncode == 0
    expected = {"q00": tuple(map(tuple, sets[0])), "q01": tuple(map(tuple, sets[1]))}
    assert open_golden(export).judgments().evidence == expected
    kept(project.folder / "reviews", evidence(one, pool[:3], "ada", [pool[1].doc_id, pool[2].doc_id]))
    changed = raggs("audit", project.folder / "eval" / "eval.json")
    assert changed.returncode != 0, "the labels are others since the evaluation"


def test_no_set_suffices_leaves_the_query_out(project: Project) -> None:
    asked = pools(project.run)
    (one, pool), (other, few) = asked["q00"], asked["q01"]
    kept(project.folder / "reviews", evidence(one, pool[:3], "ada"), evidence(other, few[:3], "ada", [few[0].doc_id]))
    assert scores(project) == {"q01": 1.0}
    assert human_evidence(open_run(project.run)).notes == (
        "evidence sets of 2 queries are by annotators (ada); for 1 of them no set suffices",
    )


def test_the_stored_sets_stay_until_differing_annotators_are_adjudicated(project: Project) -> None:
    query, pool = pools(project.run)["q00"]
    reviews = kept(
        project.folder / "reviews",
        evidence(query, pool[:3], "ada", [pool[0].doc_id]),
        evidence(query, pool[:3], "bo", [pool[1].doc_id]),
    )
    found = open_golden(project.run).judgments()
    assert found.evidence == {"q00": (("elsewhere",),)}
    assert "annotators differ on the evidence sets of 1 query" in " ".join(found.evidence_notes)
    status = raggs("review", "status", project.run)
    assert "Evidence sets by annotators: 0 queries; annotators differ on 1 query." in " ".join(status.stdout.split())
    kept(reviews, evidence(query, pool[:3], "cy", [pool[1].doc_id], [pool[2].doc_id], settles=True))
    found = open_golden(project.run).judgments()
    assert found.evidence == {"q00": ((pool[1].doc_id,), (pool[2].doc_id,))}
    assert found.evidence_notes == ("evidence sets of 1 query are by annotators (ada, bo, cy)",)
    status = json.loads(raggs("review", "status", project.run, "--json").stdout)
    assert (status["evidence"], status["evidence_conflicts"], status["evidence_stale"]) == (1, 0, 0)


def test_sets_of_a_changed_text_do_not_count_and_those_of_other_ids_do(project: Project) -> None:
    asked = pools(project.run)
    (one, pool), (other, few) = asked["q00"], asked["q01"]
    changed = pool[0].model_copy(update={"text": "What it said before."})
    renamed = few[0].model_copy(update={"doc_id": "its-former-id"})
    kept(
        project.folder / "reviews",
        evidence(one, [changed], "ada", [changed.doc_id]),
        evidence(other, [renamed], "ada", [renamed.doc_id]),
    )
    found = human_evidence(open_run(project.run))
    assert (dict(found.sets), found.stale) == ({"q01": ((few[0].doc_id,),)}, ("q00",))
    assert open_golden(project.run).judgments().evidence["q00"] == (("elsewhere",),)
    assert "do not count, because the text of a passage has changed" in found.notes[-1]


def test_the_latest_decision_of_an_annotator_counts(project: Project) -> None:
    query, pool = pools(project.run)["q00"]
    reviews = kept(project.folder / "reviews", evidence(query, pool[:3], "ada", [pool[0].doc_id]))
    kept(reviews, evidence(query, pool[:3], "ada", [pool[1].doc_id]))
    assert open_golden(project.run).judgments().evidence == {"q00": ((pool[1].doc_id,),)}
