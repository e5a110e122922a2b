"""A run directory as a golden set: everything of a query side by side, one query in memory at a time."""

from __future__ import annotations

import shutil

import pytest
from support.forging import mend
from support.golden import change

from raggs.base.artifacts import JudgeRecord, MergeRecord, QueryRecord, RankRecord
from raggs.base.errors import DataError, NotFoundError
from raggs.base.jsonl import read_records
from raggs.golden.sources import open_golden


def records(run, artifact, model, qid):
    return [record for record in read_records(run / f"{artifact}.jsonl", model) if record.qid == qid]


def test_a_query_has_all_that_its_artifacts_say(run):
    golden = open_golden(run)
    found = list(golden.by_query())
    assert [one.qid for one in found] == ["q00", "q01"]
    for one in found:
        assert [one.query] == records(run, "queries", QueryRecord, one.qid)
        assert list(one.pool) == [record.passage for record in records(run, "merge", MergeRecord, one.qid)]
        assert list(one.order) == records(run, "rank", RankRecord, one.qid)
        assert list(one.grades) == records(run, "judge", JudgeRecord, one.qid)
    assert list(golden.queries()) == [one.query for one in found]
    assert (golden.name, golden.top, golden.source) == ("demo", 3, str(run))


@pytest.mark.parametrize("parts", [("pool",), ("grades",), ("order",), ("grades", "order"), ("pool", "order")])
def test_it_may_be_read_again_and_in_parts(run, parts):
    golden = open_golden(run)
    whole = list(golden.by_query())
    for part, artifact in (("pool", "merge"), ("grades", "judge"), ("order", "rank")):
        if part not in parts:
            (run / f"{artifact}.jsonl").unlink()
    for one, other in zip(whole, golden.by_query(*parts), strict=True):
        assert one.query == other.query
        for part in ("pool", "grades", "order"):
            assert getattr(other, part) == (getattr(one, part) if part in parts else ())


def test_nothing_but_the_run_directory_is_read(run):
    for path in run.parents[1].iterdir():
        if path != run.parent:
            path.unlink()
    shutil.rmtree(run.parent / ".cache")
    assert sum(len(one.pool) for one in open_golden(run).by_query()) > 10
    assert open_golden(run).judgments().qrels.scale.golden


def test_a_failed_judgment_says_so(run):
    def turn(record):
        return record.model_copy(update={"grade": None, "error": "no answer"}) if record.rank == 1 else record

    change(run, "judge", JudgeRecord, turn)
    for one in open_golden(run).by_query("grades"):
        assert [(each.failed, each.error) for each in one.grades[:1]] == [(True, "no answer")]
        assert not any(each.failed for each in one.grades[1:])


def test_without_an_order_there_are_grades(run):
    whole = list(open_golden(run).by_query())
    (run / "rank.jsonl").unlink()
    golden = open_golden(run)
    assert golden.top == 0
    for one, other in zip(whole, golden.by_query(), strict=True):
        assert one.order
        assert (one.grades, one.pool, ()) == (other.grades, other.pool, other.order)


def test_a_query_without_a_pool_is_there(run):
    for artifact, model in (("merge", MergeRecord), ("judge", JudgeRecord), ("rank", RankRecord)):
        change(run, artifact, model, lambda record: record if record.qid == "q01" else None)
    first, second = open_golden(run).by_query()
    assert (first.qid, first.pool, first.grades, first.order) == ("q00", (), (), ())
    assert second.pool and second.grades and second.order


@pytest.mark.parametrize("missing", ["q00", "q01"])
def test_what_belongs_to_no_query_is_named(run, missing):
    change(run, "queries", QueryRecord, lambda record: None if record.qid == missing else record)
    with pytest.raises(DataError, match=f"query {missing} is in the pools but not in the queries"):
        list(open_golden(run).by_query())
    with pytest.raises(DataError, match=f"query {missing} is in the grades but not in the queries"):
        list(open_golden(run).by_query("grades", "order"))


def test_only_one_query_is_held_at_a_time(run):
    """A fault in the second query's lines is met after the first query was given out."""
    lines = (run / "judge.jsonl").read_text().splitlines()
    (run / "judge.jsonl").write_text("\n".join([*lines[:-1], "{"]) + "\n")
    mend(run)
    found = open_golden(run).by_query()
    assert next(found).qid == "q00"
    with pytest.raises(DataError, match=rf"judge\.jsonl:{len(lines)}:"):
        next(found)


def test_without_grades_there_is_no_golden_set(run):
    (run / "judge.jsonl").unlink()
    with pytest.raises(NotFoundError, match="stage judge has not run"):
        list(open_golden(run).by_query())
    (run / "queries.jsonl").unlink()
    with pytest.raises(NotFoundError, match="stage embed has not run"):
        list(open_golden(run).queries())


def test_provenance_says_who_judged_and_how(run):
    found = open_golden(run).provenance
    assert found is not None
    assert (found.run, found.failed, found.rank["top"]) == ("demo", 0, 3)
    assert list(found.fingerprints) == ["embed", "retrieve", "merge", "judge", "prune", "rank"]
    assert isinstance(found.judge, dict) and found.judge["type"] == "qrels"
