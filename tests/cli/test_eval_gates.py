"""Conditions that a CI job sets on `raggs eval`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.scoring import BETTER, QRELS, RUN, raggs_eval, write

JUDGED = QRELS + "q1 0 doc-7 1\nq1 0 doc-2 1\nq2 0 doc-8 1\nq3 0 doc-8 1\n"  # all that RUN and BETTER show


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, qrels=QRELS, a=RUN, b=BETTER)
    return tmp_path


def gate(*arguments: object, code: int) -> str:
    golden = () if "-g" in arguments else ("-g", "qrels")
    result = raggs_eval(*golden, *arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.stderr
    return result.stderr


def test_a_mean_below_its_limit_ends_with_7_after_everything_is_written(here: Path) -> None:
    said = gate("-r", "a", "--fail-under", "MRR=0.7", "--fail-under", "harm@5=0.01", "-o", "out", code=7)
    assert said.startswith(
        "raggs: mrr of a is 0.6667, below 0.7; inconclusive: 47% of the top 10 of a is unjudged, "
        "so mrr could be as high as 1.0000; harm@5 of a is "
    )
    assert "above 0.01 — pool and judge it: raggs run, with {type: runfile, path: a}" in said
    assert len(said.splitlines()) == 1
    assert (here / "out" / "eval.json").is_file()
    assert gate("-r", "a", "--fail-under", "mrr=0.6667e0", code=7)
    assert "mrr occurs twice" in gate("-r", "a", "--fail-under", "MRR=0.7", "--fail-under", "mrr=0.1", code=2)
    assert gate("-r", "a", "--fail-under", "mrr=.6", "--fail-under", "P(rel=2)@2=0.5", code=0) == ""


def test_a_limit_on_what_is_nowhere_defined_fails(here: Path) -> None:
    write(here, none="q1 0 doc-3 4\nq1 0 doc-9 1\n")
    arguments = ("-g", "none", "--scale", "1-5", "-r", "a", "--fail-under", "n_recall5@10=0.1")
    result = raggs_eval(*arguments)
    assert (result.exit_code, "not defined for any query" in result.stderr) == (7, True)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("ndcg@3=0.6", "is 0.4283, below 0.6; inconclusive: {}, so ndcg@3 could be as high as 0.8131"),
        ("harm@3=0.4", "is 0.3333, wanted is at most 0.4; inconclusive: {}, so harm@3 could be as high as 0.6667"),
    ],
)
def test_a_limit_that_unjudged_passages_could_put_a_mean_across_is_inconclusive(
    here: Path, limit: str, said: str
) -> None:
    """Below the limit or above it: the mean is not known well enough."""
    write(here, many=MANY, new=listed("new{n}", "good", "poor"))
    asked = ("-g", "many", "-r", "s=new", "--fail-under", limit)
    result = raggs_eval(*asked, "--junit", "j.xml")
    assert result.exit_code == 7
    told = f"{limit.split('=')[0]} of s {said.format('33% of the top 3 of s is unjudged')}"
    assert told in result.stderr
    assert "pool and judge it: raggs run, with {type: runfile, path: new} under retrieve.retrievers" in result.stderr
    gates = "./testsuite[@name='gates']/testcase/"
    (failure,) = ElementTree.parse(here / "j.xml").getroot().findall(f"{gates}failure")
    assert failure.attrib["type"] == "inconclusive"
    passed = raggs_eval(*asked, "--if-inconclusive", "pass", "--junit", "j.xml")
    assert (passed.exit_code, f"warning: {told}" in passed.stderr) == (0, True)
    assert len(ElementTree.parse(here / "j.xml").getroot().findall(f"{gates}skipped")) == 1


def test_a_limit_out_of_their_reach_is_met_or_missed(here: Path) -> None:
    write(here, many=MANY, new=listed("new{n}", "good", "poor"))
    said = gate("-g", "many", "-r", "s=new", "--fail-under", "ndcg@3=0.95", "--if-inconclusive", "pass", code=7)
    assert said == "raggs: ndcg@3 of s is 0.4283, below 0.95\n"
    assert gate("-g", "many", "-r", "s=new", "--fail-under", "ndcg@3=0.3", code=0) == ""
    assert gate("-g", "many", "-r", "s=new", "--fail-under", "holes@3=0.4", code=0) == ""
    assert gate("-g", "many", "-r", "s=new", "--condensed", "--fail-under", "ndcg@3=0.4", code=0) == ""


def test_a_regression_ends_with_7_and_an_improvement_does_not(here: Path) -> None:
    write(here, qrels=JUDGED)
    assert gate("-r", "b", "-m", "mrr,recall@2", "-o", "before", code=0) == ""
    earlier = ("--fail-on-regression", "before/eval.json")
    said = gate("-r", "a", "-m", "mrr,recall@2", *earlier, code=7)
    assert said.startswith("raggs: mrr of a went from 1.0000 to 0.6667 on 3 queries, not significantly, but by more")
    assert gate("-r", "a", "-m", "mrr,recall@2", *earlier, "--max-drop", "0.5", code=0) == ""
    gate("-r", "a", "-m", "mrr", "-o", "lower", code=0)
    assert gate("-r", "b", "-m", "mrr", "--fail-on-regression", "lower/eval.json", code=0) == ""
    assert gate("-r", "b", "-m", "mrr,recall@2,map", *earlier, code=0) == ""


def test_what_the_earlier_result_holds_and_this_one_does_not_fails_the_gate(here: Path) -> None:
    gate("-r", "a", "-r", "b", "-m", "mrr,recall@2", "-o", "before", code=0)
    earlier = ("--fail-on-regression", "before/eval.json")
    assert gate("-r", "a", "-r", "b", "-r", "c=b", "-m", "mrr,recall@2", *earlier, code=0) == ""
    for renamed in (("-r", "a", "-r", "c=b"), ("-r", "a")):
        said = gate(*renamed, "-m", "mrr,recall@2", *earlier, code=7)
        assert said == "raggs: not compared: b of the earlier result, because this one has no such system\n"
    said = gate("-r", "a", "-r", "b", "-m", "mrr", *earlier, code=7)
    assert said == "raggs: not compared: recall@2 of the earlier result, because this one has no such measure\n"
    said = gate("-r", "a", "-r", "b", "-m", "mrr,recall@3", *earlier, code=7)
    assert said == "raggs: not compared: recall@2 of the earlier result, because this one has no such measure\n"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--gains", "5=9"), "with other gains (0 1 2 3 4, here 0 1 2 3 9)"),
        (("--binary-at", "3"), "with relevance from 4 on, here from 3"),
        (("--scale", "0-5"), "on the scale 1 to 5, here 0 to 5"),
        (("--ties", "file"), "with --ties trec, here file"),
        (("--condensed",), "with whole lists, here condensed"),
    ],
)
def test_results_by_other_rules_are_refused(here: Path, more: tuple[str, ...], said: str) -> None:
    gate("-r", "a", "-m", "mrr,ndcg@5", "-o", "before", code=0)
    refused = gate("-r", "a", "-m", "mrr,ndcg@5", *more, "--fail-on-regression", "before/eval.json", code=5)
    assert said in refused


@pytest.mark.parametrize("gains", ["2=1e308", "2=inf", "2=nan", "5=1001", "2=-1"])
def test_gains_that_no_sum_holds_are_refused(here: Path, gains: str) -> None:
    result = raggs_eval("-g", "qrels", "-r", "a", "--gains", gains)
    assert (result.exit_code, "is not in 0 to 1000" in result.stderr) == (5, True)


@pytest.mark.parametrize("out", ["same", "./same/../same", "linked", "{here}/same"])
@pytest.mark.parametrize("run", ["a", "b"])
def test_the_earlier_result_is_never_replaced_whether_the_gate_holds_or_not(here: Path, out: str, run: str) -> None:
    gate("-r", "b", "-m", "mrr", "-o", "same", code=0)
    (here / "linked").symlink_to(here / "same")
    before = {path.name: path.read_bytes() for path in (here / "same").iterdir()}
    over = ("-m", "mrr", "--fail-on-regression", "same/eval.json")
    said = gate("-r", run, *over, "-o", out.format(here=here), code=2)
    assert "is the earlier result of the comparison, and " in said
    assert "write to another folder" in said
    assert {path.name: path.read_bytes() for path in (here / "same").iterdir()} == before
    gate("-r", run, *over, "--junit", "linked/eval.json", code=2)
    gate("-r", "a", *over, "-o", "other", code=7)
    assert (here / "other" / "eval.json").is_file()


def test_a_link_to_the_earlier_result_counts_as_that_file(here: Path) -> None:
    gate("-r", "b", "-m", "mrr", "-o", "same", code=0)
    (here / "new").mkdir()
    (here / "new" / "eval.json").symlink_to(here / "same" / "eval.json")
    gate("-r", "b", "-m", "mrr", "-o", "new", "--fail-on-regression", "same/eval.json", code=2)
    gate("-r", "b", "-m", "mrr", "-o", "same", "--fail-on-regression", "new/eval.json", code=2)


MANY = "".join(f"q{n:02} 0 good 5\nq{n:02} 0 fair 4\nq{n:02} 0 poor 1\n" for n in range(20))


def listed(*docs: str) -> str:
    """A run with the same list for each of twenty queries; {n} is the query's number."""
    lines = (f"q{n:02} Q0 {doc.format(n=n)} {at} {-at} t" for n in range(20) for at, doc in enumerate(docs, 1))
    return "\n".join(lines) + "\n"


def test_a_loss_that_unjudged_passages_could_reverse_is_inconclusive_and_fails(here: Path) -> None:
    write(here, many=MANY, old=listed("fair", "good", "poor"), new=listed("new{n}", "good", "poor"))
    asked = ("-g", "many", "-m", "ndcg@3,precision@3")
    assert raggs_eval(*asked, "-r", "s=old", "-o", "before").exit_code == 0
    earlier = ("--fail-on-regression", "before/eval.json")
    result = raggs_eval(*asked, "-r", "s=new", *earlier, "--junit", "j.xml")
    assert result.exit_code == 7
    why = "on 20 queries; inconclusive: 33% of the top 3 of s is unjudged"
    assert f"precision@3 of s went from 0.6667 to 0.3333 {why}" in result.stderr
    assert "pool and judge it: raggs run, with {type: runfile, path: new} under retrieve.retrievers" in result.stderr
    failures = ElementTree.parse(here / "j.xml").getroot().findall("./testsuite[@name='gates']/testcase/failure")
    assert {each.attrib["type"] for each in failures} == {"inconclusive"}
    passed = raggs_eval(*asked, "-r", "s=new", *earlier, "--if-inconclusive", "pass", "--junit", "j.xml")
    assert passed.exit_code == 0
    assert f"warning: ndcg@3 of s went from 0.9374 to 0.4283 {why}" in passed.stderr
    skipped = ElementTree.parse(here / "j.xml").getroot().findall("./testsuite[@name='gates']/testcase/skipped")
    assert len(skipped) == 2
    assert raggs_eval(*asked, "-r", "s=new", *earlier, "--if-inconclusive", "maybe").exit_code == 2


def test_a_loss_that_unjudged_passages_cannot_reverse_fails_as_one(here: Path) -> None:
    write(here, many=MANY, old=listed("fair", "good", "poor"), new=listed("poor", "new{n}"))
    raggs_eval("-g", "many", "-m", "precision@3", "-r", "s=old", "-o", "before")
    result = raggs_eval("-g", "many", "-m", "precision@3", "-r", "s=new", "--fail-on-regression", "before/eval.json")
    assert (result.exit_code, "on 20 queries, significantly worse" in result.stderr) == (7, True)
    result = raggs_eval("-g", "many", "-m", "precision@3", "-r", "s=new", "--fail-on-regression", "before/eval.json",
                        "--if-inconclusive", "pass")  # fmt: skip
    assert result.exit_code == 7


@pytest.mark.parametrize("measures", ["ndcg@3,precision@3,mrr,map,hit@1,bpref", "map,mrr", "E[ndcg@3]"])
def test_the_same_lists_again_are_no_worse_however_much_of_them_is_unjudged(here: Path, measures: str) -> None:
    write(here, many=MANY, new=listed("new{n}", "good", "other{n}", "fair"))
    asked = ("-g", "many", "-m", measures, "-r", "new")
    assert raggs_eval(*asked, "-o", "before").exit_code == 0
    result = raggs_eval(*asked, "--fail-on-regression", "before/eval.json")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_passing_gate_that_unjudged_passages_could_reverse_is_inconclusive_too(here: Path) -> None:
    """The earlier system showed what nobody judged: it may have been the better one."""
    write(here, many=MANY, old=listed("new{n}", "poor", "good"), new=listed("good", "poor"))
    raggs_eval("-g", "many", "-m", "precision@3", "-r", "s=old", "-o", "before")
    result = raggs_eval("-g", "many", "-m", "precision@3", "-r", "s=new", "--fail-on-regression", "before/eval.json")
    assert (result.exit_code, "inconclusive: 33% of the top 3 of the earlier s is unjudged" in result.stderr) == (
        7,
        True,
    )


def test_labels_that_are_all_relevant_leave_the_rest_not_relevant_by_custom(here: Path) -> None:
    positive = "".join(f"q{n:02} 0 good 1\n" for n in range(20))
    write(here, many=positive, old=listed("good", "x{n}"), new=listed("x{n}", "y{n}"))
    raggs_eval("-g", "many", "--scale", "0-1", "-m", "mrr", "-r", "s=old", "-o", "before")
    asked = ("-g", "many", "--scale", "0-1", "-m", "mrr", "-r", "s=new")
    result = raggs_eval(*asked, "--fail-on-regression", "before/eval.json")
    assert (result.exit_code, "significantly worse" in result.stderr) == (7, True)


def test_a_wrong_path_is_told_before_anything_else_is_read(here: Path) -> None:
    result = raggs_eval("-g", "none", "-r", "none", "--fail-on-regression", "before.json")
    assert (result.exit_code, "before.json: no such file" in result.stderr) == (4, True)


def test_a_significant_loss_is_a_regression_however_large_the_drop_allowed(here: Path) -> None:
    qrels = "".join(f"q{n:02} 0 good 5\nq{n:02} 0 poor 1\n" for n in range(12))
    good, poor = ("".join(f"q{n:02} Q0 {first} 1 2 a\nq{n:02} Q0 x 2 1 a\n" for n in range(12))
                  for first in ("good", "poor"))  # fmt: skip
    write(here, many=qrels, good=good, poor=poor)
    assert raggs_eval("-g", "many", "-r", "good", "-m", "mrr", "-o", "before").exit_code == 0
    result = raggs_eval(
        "-g", "many", "-r", "poor", "-m", "mrr", "--fail-on-regression", "before/eval.json", "--max-drop", "5"
    )
    assert result.exit_code == 7
    assert "from 1.0000 to 0.0000 on 12 queries, significantly worse" in result.stderr


def test_results_on_other_judgments_are_refused(here: Path) -> None:
    gate("-r", "a", "-o", "before", code=0)
    write(here, other=QRELS.replace("doc-9 4", "doc-9 5"))
    result = raggs_eval("-g", "other", "-r", "a", "--fail-on-regression", "before/eval.json")
    assert result.exit_code == 5
    one, two = (fingerprint(name) for name in ("qrels", "other"))
    assert f"measured on other judgments: fingerprint {one} (qrels), here {two} (other)" in result.stderr
    assert "raggs diff OLD NEW" in result.stderr
    shuffled = "".join(reversed(QRELS.splitlines(keepends=True)))
    write(here, same=shuffled)
    assert raggs_eval("-g", "same", "-r", "a", "--fail-on-regression", "before/eval.json").exit_code == 0


def fingerprint(name: str) -> str:
    return str(json.loads(raggs_eval("-g", name, "-r", "a", "--json").stdout)["golden"]["digest"])[:12]


def test_across_sets_the_difference_is_shown_and_shared_queries_are_compared(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate("-r", "b", "-m", "mrr", "-o", "before", code=0)
    write(here, other=QRELS.replace("doc-9 4", "doc-9 5").replace("q2 0 doc-7 1\n", "q4 0 doc-7 5\n"))
    asked = ("-g", "other", "-r", "a", "-m", "mrr", "--fail-on-regression", "before/eval.json", "--across-sets")
    result = raggs_eval(*asked)
    assert result.exit_code == 7
    assert "mrr of a went from 1.0000 to 0.6667 on 3 queries of both sets" in result.stderr
    assert "Judgments: 6 in OLD, 6 in NEW; 1 shared with another grade (20%)." in result.stdout
    assert "Content: 1 query added." in result.stdout
    details = raggs_eval(*asked, "--details").stdout
    for said in ("OLD: qrels, 6 grades", "NEW: other, 6 grades", "Grades that changed", "queries added: q4"):
        assert said in details
    shown = raggs_eval(*asked, "--json")
    assert json.loads(shown.stdout)["golden"]["source"] == "other"
    assert "Judgments: 6 in OLD, 6 in NEW" in shown.stderr
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    raggs_eval(*asked, "--summary")
    told = (here / "summary.md").read_text()
    assert told.index("## Gates") < told.index("# Evaluation") < told.index("Grades that changed")
    same = raggs_eval("-g", "qrels", *asked[2:], "--summary")
    assert "Grades that moved" not in same.stdout + (here / "summary.md").read_text().removeprefix(told)
    assert raggs_eval("-g", "other", "-r", "a", "--across-sets").exit_code == 2
    (here / "qrels").write_text((here / "other").read_text())
    gone = raggs_eval("-g", "qrels", *asked[2:], "--summary")
    assert "qrels now contains other judgments" in (here / "summary.md").read_text()
    assert (gone.exit_code, "qrels now contains other judgments" in gone.stderr) == (7, True)
    (here / "qrels").unlink()
    assert "cannot be read again: qrels is missing" in raggs_eval(*asked).stderr


def test_a_result_without_a_fingerprint_is_refused_in_a_sentence(here: Path) -> None:
    gate("-r", "a", "-m", "mrr", "-o", "before", code=0)
    path = here / "before" / "eval.json"
    old = json.loads(path.read_text())
    del old["golden"]["digest"]
    path.write_text(json.dumps(old))
    said = gate("-r", "a", "-m", "mrr", "--fail-on-regression", path, code=5)
    assert "does not say by which judgments it was measured" in said


def test_results_with_nothing_in_common_are_refused(here: Path) -> None:
    gate("-r", "a", "-m", "mrr", "-o", "one", code=0)
    assert "no measure in common" in gate(
        "-r", "a", "-m", "map", "--fail-on-regression", "one/eval.json", "-k", "5", code=5
    )
    gate("-r", "a", "-r", "b", "-m", "mrr", "-o", "two", code=0)
    said = gate("-r", "x=a", "-m", "mrr", "--fail-on-regression", "two/eval.json", code=5)
    assert "no system in common" in said


def test_an_earlier_result_that_lacks_values_is_no_bug(here: Path) -> None:
    gate("-r", "a", "-m", "mrr", "-o", "before", code=0)
    path = here / "before" / "eval.json"
    damaged = json.loads(path.read_text()) | {"per_query": {}}
    path.write_text(json.dumps(damaged))
    said = gate("-r", "a", "-m", "mrr", "--fail-on-regression", path, code=5)
    assert "has no query with a value in both results" in said
    half = json.loads(raggs_eval("-g", "qrels", "-r", "a", "-m", "mrr,map", "--json").stdout)
    half["per_query"]["a"]["map"] = {}
    path.write_text(json.dumps(half))
    said = gate("-r", "a", "-m", "mrr,map", "--fail-on-regression", path, code=7)
    assert said == "raggs: not compared: map of a, because no query has a value in both results\n"
    half["per_query"]["a"]["map"] = {"q1": 0.1, "unheard-of": 0.2}
    path.write_text(json.dumps(half))
    said = gate("-r", "a", "-m", "mrr,map", "--fail-on-regression", path, code=7)
    assert said == "raggs: not compared: map of a on 1 query that had a value in the earlier result\n"
    path.write_text(path.read_text().replace('"mean": 0.6', '"mean": Infinity, "x": 0.6'))
    assert "eval.json" in gate("-r", "a", "-m", "mrr", "--fail-on-regression", path, code=5)
