"""What deciding would do to verdicts: as a plan of reading weighs it, of the passages on which grades differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.project import Project, make_project, raggs
from support.reviewing import graded_pool, speak
from support.reviewpage import differing

from raggs.app.serve import weigher
from raggs.base.errors import NotFoundError, UsageError
from raggs.reviewing.deciding import Dispute, WeighedDisputes
from raggs.runs.manifests.open_run import open_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("project"), queries=8, rank={"max_calls": 2})
    raggs("run", "--config", project.config, "-q")
    return project


def weighed(ordered: WeighedDisputes, found: Sequence[Dispute]) -> tuple[Dispute, ...]:
    """The disputes, after the thread that weighs them has ended."""
    all_of = ordered.weighed(found)
    while ordered.running:
        ordered.weighed(found)
    return all_of


def test_what_could_turn_a_verdict_comes_first(made: Project, tmp_path: Path) -> None:
    graded = [record for _, record, _ in graded_pool(made.run)]
    # A passage at the top of a list matters for verdicts by ten; the last of a pool hardly.
    ends = {(record.qid, record.doc_id) for record in graded if record.rank in (1, 2, 40)}
    speak(made.run, tmp_path, lambda _, grade: 6 - (grade or 1), reads=lambda each: (each.qid, each.doc_id) in ends)
    run = open_run(made.run)
    found = differing(run, tmp_path)
    assert {each.kind for each in found} == {"model"}
    ordered = WeighedDisputes(weigher([run], tmp_path))
    first = sorted(weighed(ordered, found), key=ordered.place)
    weights = ordered.weights
    assert weights.impact
    assert weights.told.endswith(" · ra_nwg@10, ndcg@10, recall@10")
    worth = [weights.worth[each.key] for each in first]
    assert worth == sorted(worth, reverse=True)
    assert worth[0] > 0
    pull = weights.why[first[0].key]
    assert pull.moves > 0
    assert pull.one != pull.other
    agreed = tuple(replace(each, grades=(6 - each.grades[-1],)) for each in found)
    assert not any(weigher([run], tmp_path)(agreed).worth.values()), "what nobody would change moves nothing"


def test_why_verdicts_cannot_be_weighed_is_said(made: Project, tmp_path: Path) -> None:
    speak(made.run, tmp_path, lambda _, grade: 6 - (grade or 1), reads=lambda each: each.rank < 3)
    run = open_run(made.run)
    found = differing(run, tmp_path)
    (made.run / "judge.jsonl").rename(made.run / "elsewhere")
    try:
        ordered = WeighedDisputes(weigher([run], tmp_path))
        first = sorted(weighed(ordered, found), key=ordered.place)
    finally:
        (made.run / "elsewhere").rename(made.run / "judge.jsonl")
    assert (ordered.weights.impact, ordered.weights.told) == (False, "stage judge has not run")
    apart = [each.apart for each in first]
    assert apart == sorted(apart, reverse=True)


def test_systems_of_ones_own_and_what_is_none_is_told_at_once(made: Project, tmp_path: Path) -> None:
    speak(made.run, tmp_path, lambda _, grade: 6 - (grade or 1), reads=lambda each: each.rank < 3)
    run = open_run(made.run)
    lists = (f"{each.qid} Q0 {each.doc_id} 0 {each.rank} mine\n" for _, each, _ in graded_pool(made.run))
    (tmp_path / "mine.trec").write_text("".join(lists))
    ordered = WeighedDisputes(weigher([run], tmp_path, [str(made.run), f"mine={tmp_path / 'mine.trec'}"], ["ndcg@5"]))
    weighed(ordered, differing(run, tmp_path))
    assert ordered.weights.told.endswith("mine · ndcg@5")
    with pytest.raises(NotFoundError):
        weigher([run], tmp_path, ["nowhere.trec"])
    with pytest.raises(UsageError):
        weigher([run], tmp_path, [], ["ndgc@5"])
