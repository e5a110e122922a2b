"""`raggs eval` from the outside: every format in, every option, every file out."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import Project, make_project, raggs
from support.scoring import BETTER, QRELS, RUN, means, raggs_eval, scored, write

from raggs.evaluation.models import EvalReport

NESTED = {
    "q1": {"doc-7": 5.0, "doc-3": 4.0, "doc-1": 3, "doc-9": 2.0, "doc-2": 1.0},
    "q2": {"doc-2": 9.0, "doc-8": 8.0},
    "q3": {"doc-8": 2.5, "doc-5": 1.5},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with qrels and runs, which is the current one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, qrels=QRELS, a=RUN, b=BETTER)
    return tmp_path


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A finished run of raggs; tests leave it as it is."""
    project = make_project(tmp_path_factory.mktemp("golden"), queries=6)
    result = invoke("run", "--config", project.config, "--quiet")
    assert result.exit_code == 0, result.stderr
    return project


def comma(rows: str, columns: tuple[int, ...], header: str, delimiter: str = ",") -> str:
    lines = [delimiter.join(line.split()[column] for column in columns) for line in rows.splitlines()]
    return "\n".join([header, *lines]) + "\n"


FORMATS: dict[str, tuple[dict[str, str], str, str]] = {
    "TREC": ({"qrels__txt": QRELS, "run__trec": RUN}, "qrels.txt", "run.trec"),
    "TREC with tabs and Windows' line ends": (
        {"qrels__txt": QRELS.replace(" ", "\t").replace("\n", "\r\n"), "run__trec": RUN.replace("\n", " \r\n")},
        "qrels.txt",
        "run.trec",
    ),
    "TREC with comments and empty lines": (
        {"qrels__txt": f"# by hand\n\n{QRELS}", "run__trec": RUN.replace("q2 Q0 doc-2", "# here\n\nq2 Q0 doc-2")},
        "qrels.txt",
        "run.trec",
    ),
    "compressed": ({"qrels__gz": QRELS, "run__trec__gz": RUN}, "qrels.gz", "run.trec.gz"),
    "BEIR": (
        {
            "test__tsv": comma(QRELS, (0, 2, 3), "query-id\tcorpus-id\tscore", "\t"),
            "run__tsv": comma(RUN, (0, 2, 4), "query-id\tcorpus-id\tscore", "\t"),
        },
        "test.tsv",
        "run.tsv",
    ),
    "ranx JSON": (
        {
            "qrels__json": '{"q1": {"doc-3": 5, "doc-9": 4, "doc-1": 2}, "q2": {"doc-2": 5.0, "doc-7": 1},\n'
            ' "q3": {"doc-5": 4}}',
            "run__json__gz": json.dumps(NESTED, indent=1),
        },
        "qrels.json",
        "run.json.gz",
    ),
    "CSV": (
        {
            "qrels__csv": comma(QRELS, (3, 0, 2), "Grade, QID ,doc_id"),
            "run__csv": comma(RUN, (0, 2, 3, 4), '"qid","doc_id","rank","score"'),
        },
        "qrels.csv",
        "run.csv",
    ),
}


@pytest.mark.parametrize("case", FORMATS)
def test_every_format_gives_the_same_report(case: str, here: Path) -> None:
    files, qrels, run = FORMATS[case]
    write(here, **files)
    report = scored("-g", qrels, "-r", f"mine={run}", "-k", "2")
    expected = scored("-g", "qrels", "-r", "mine=a", "-k", "2")
    own = {"systems": [], "sources": {}}
    assert {**report, **own, "golden": {**report["golden"], "source": ""}} == {
        **expected,
        **own,
        "golden": {**expected["golden"], "source": ""},
    }
    assert means(report) == means(expected)
    assert report["systems"][0]["source"] == run


def test_numbers_worked_out_by_hand(here: Path) -> None:
    report = scored("-g", "qrels", "-r", "a", "-m", "recall,mrr,hit,precision,ndcg,judged,harm,ra_nwg", "-k", "2")
    assert report["per_query"]["a"]["recall@2"] == {"q1": 0.5, "q2": 1.0, "q3": 1.0}
    log3 = math.log2(3)
    by_hand = {
        "recall@2": 2.5 / 3,
        "precision@2": 0.5,
        "hit@2": 1.0,
        "mrr": 2 / 3,
        "ndcg@2": ((4 / log3) / (4 + 3 / log3) + 1 + 1 / log3) / 3,
        "harm@2": 0.0,
        "judged": (3 / 5 + 1 / 2 + 1 / 2) / 3,
        "holes@2": 0.5,
    }
    found = means(scored("-g", "qrels", "-r", "a", "-m", "judged,mrr")) | means(report)
    assert {name: found[name] for name in by_hand} == pytest.approx(by_hand)
    assert report["golden"] | {"digest": ""} == {
        "source": "qrels",
        "queries": 3,
        "judgments": 6,
        "lowest": 1,
        "highest": 5,
        "relevant": 4,
        "gains": [0.0, 1.0, 2.0, 3.0, 4.0],
        "digest": "",
    }


def test_a_query_that_a_run_leaves_out_scores_0_and_one_that_is_not_judged_is_left_out(here: Path) -> None:
    kept = "".join(line for line in RUN.splitlines(keepends=True) if not line.startswith("q2"))
    write(here, part=kept + "q9 Q0 doc-1 1 1.0 a\n")
    report = scored("-g", "qrels", "-r", "part", "-m", "recall@2")
    assert means(report)["recall@2"] == 0.5
    assert report["per_query"]["part"]["recall@2"]["q2"] == 0.0
    assert (report["systems"][0]["missing"], report["systems"][0]["unknown"]) == (1, 1)
    missing, unknown = report["notes"]
    assert "no results for 1 judged query" in missing
    assert "scored as an empty list" in missing
    assert "1 query without judgments" in unknown
    shown = raggs_eval("-g", "qrels", "-r", "part", "-m", "recall@2", "--details").stdout
    assert f"note: {missing}" in shown
    assert "Queries without results, scored as empty lists: part (1)." in raggs_eval("-g", "qrels", "-r", "part").stdout


def test_negative_grades_are_unjudged(here: Path) -> None:
    write(here, pooled=QRELS + "q1 0 doc-7 -1\nq3 0 doc-8 -2\n")
    report = scored("-g", "pooled", "-r", "a", "-m", "ndcg@2")
    assert report["golden"]["judgments"] == 6
    assert means(report) == means(scored("-g", "qrels", "-r", "a", "-m", "ndcg@2"))


def test_condensed_lists_leave_unjudged_passages_out(here: Path) -> None:
    plain = scored("-g", "qrels", "-r", "a", "-m", "mrr,recall@1")
    condensed = scored("-g", "qrels", "-r", "a", "-m", "mrr,recall@1", "--condensed")
    assert (means(plain)["mrr"], means(condensed)["mrr"]) == pytest.approx((2 / 3, 1.0))
    assert means(condensed)["holes@1"] == 0.0
    assert condensed["condensed"] is True


def test_scale_relevance_and_gains(here: Path) -> None:
    found = scored("-g", "qrels", "-r", "a", "-m", "recall@3,ndcg@3", "--binary-at", "2", "--gains", "5=8,4=1")
    assert found["golden"]["relevant"] == 2
    assert found["golden"]["gains"] == [0.0, 1.0, 2.0, 1.0, 8.0]
    assert found["per_query"]["a"]["recall@3"]["q1"] == pytest.approx(2 / 3)
    log = [math.log2(rank + 1) for rank in (1, 2, 3)]
    ndcg = (8 / log[1] + 1 / log[2]) / (8 / log[0] + 1 / log[1] + 1 / log[2])
    assert found["per_query"]["a"]["ndcg@3"]["q1"] == pytest.approx(ndcg)
    wide = scored("-g", "qrels", "-r", "a", "-m", "ndcg@3", "--scale", "0-7")
    assert (wide["golden"]["lowest"], wide["golden"]["highest"], wide["golden"]["relevant"]) == (0, 7, 1)


def test_cutoffs_multiply_measures_that_name_none(here: Path) -> None:
    found = scored("-g", "qrels", "-r", "a", "-m", "recall,E[ndcg],P(rel=2)@1,map", "-k", "3,1,3")
    assert found["measures"] == [
        "recall@1", "recall@3", "E[ndcg@1]", "E[ndcg@3]", "precision(rel=2)@1", "map@1", "map@3", "holes@1", "holes@3",
    ]  # fmt: skip
    assert scored("-g", "qrels", "-r", "a", "-m", "map,mrr")["measures"] == ["map", "mrr", "holes@10"]
    usual = scored("-g", "qrels", "-r", "a")["measures"]
    assert "ra_nwg@10" in usual
    assert all(name.endswith("@10") or name == "mrr" for name in usual)


TIED = "q1 Q0 doc-7 1 5 a\nq1 Q0 doc-3 2 5 a\nq2 Q0 doc-2 1 2 a\nq2 Q0 doc-8 2 1 a\nq3 Q0 doc-5 1 3 a\n"


def test_ties_are_said_with_their_range_and_broken_as_asked(here: Path) -> None:
    write(here, tied=TIED)
    by_id = scored("-g", "qrels", "-r", "tied", "-m", "mrr,recall@2")
    assert by_id["per_query"]["tied"]["mrr"]["q1"] == 0.5  # trec_eval: doc-7 before doc-3
    (ties,) = by_id["systems"][0]["ties"]
    assert ties == {
        "measure": "mrr",
        "least": pytest.approx(2.5 / 3),
        "most": 1.0,
        "expected": pytest.approx(2.75 / 3),
        "bias": pytest.approx(2.5 / 3 - 2.75 / 3),
        "queries": 1,
        "across": None,
        "reached": pytest.approx(1 / 3),
    }
    assert by_id["systems"][0]["tied"] == 2
    (note,) = by_id["notes"]
    for part in ("2 passages share their score", "mrr is 0.8333 to 1.0000, expected 0.9167", "(1 query)"):
        assert part in note
    write(here, swapped="".join(reversed(TIED.splitlines(keepends=True)[:2])) + "".join(TIED.splitlines(True)[2:]))
    by_file = scored("-g", "qrels", "-r", "swapped", "-m", "mrr", "--ties", "file")
    assert (by_file["per_query"]["swapped"]["mrr"]["q1"], by_file["ties"]) == (1.0, "file")
    asked = scored("-g", "qrels", "-r", "tied", "-m", "E[mrr],range[mrr],bias[mrr]")
    assert [asked["per_query"]["tied"][name]["q1"] for name in asked["measures"][:3]] == [0.75, 0.5, -0.25]


def test_bounds_enclose_every_score_and_meet_where_nothing_is_unjudged(here: Path) -> None:
    write(here, whole=QRELS + "q1 0 doc-7 3\nq1 0 doc-2 1\nq2 0 doc-8 1\nq3 0 doc-8 2\n")
    for qrels, gap in (("qrels", True), ("whole", False)):
        report = scored("-g", qrels, "-r", "a", "-m", "precision@2", "--bounds")
        score = report["systems"][0]["scores"]["precision@2"]
        assert score["lowest"] <= score["mean"] <= score["highest"]
        assert (score["highest"] > score["lowest"]) is gap
    score = scored("-g", "qrels", "-r", "a", "-m", "precision@2", "--bounds")["systems"][0]["scores"]["precision@2"]
    assert (score["lowest"], score["highest"]) == (0.5, 1.0)
    assert "{0.500 1.000}" in raggs_eval("-g", "qrels", "-r", "a", "-m", "precision@2", "--bounds").stdout


def test_the_bottleneck_is_told_by_query(here: Path) -> None:
    write(here, full=QRELS + "q1 0 doc-7 1\nq3 0 doc-8 1\n")
    report = scored("-g", "full", "-r", "a", "-k", "1", "--pool", "2")
    nwg, recall, _ = report["systems"][0]["bottleneck"]
    assert (nwg["measure"], nwg["pool"], recall["measure"]) == ("ra_nwg@1", 2, "n_recall4@1")
    # q1 and q3 have what they need at rank 2; q2 has it at rank 1
    assert nwg["by_query"] == {"q1": "ordering", "q2": "none", "q3": "ordering"}
    assert nwg["queries"] == {"retrieval": 0, "ordering": 2, "none": 1}
    assert (nwg["kind"], nwg["ceiling"], nwg["retrieval"]) == ("ordering", 1.0, 0.0)
    assert nwg["ordering"] == pytest.approx(nwg["ceiling"] - nwg["actual"]) == pytest.approx(2 / 3)
    narrow = scored("-g", "full", "-r", "a", "-k", "1", "--pool", "1")["systems"][0]["bottleneck"][0]
    assert narrow["by_query"] == {"q1": "retrieval", "q2": "none", "q3": "retrieval"}
    assert (
        "a: ra_nwg@1 0.3333, ceiling 1.0000 with a perfect order"
        in raggs_eval("-g", "full", "-r", "a", "-k", "1", "--details").stdout
    )


def test_advice_is_given_on_the_measures_that_were_asked_for(here: Path) -> None:
    write(here, full=QRELS + "q1 0 doc-7 1\nq3 0 doc-8 1\n")
    files = ("-g", "full", "-r", "a", "-k", "1")
    shown = {
        names: raggs_eval(*files, "-m", names, "--details").stdout
        for names in ("mrr", "n_recall4", "proc_ra_nwg", "E[ra_nwg]")
    }
    assert {names: text.count(" with a perfect order of its top ") for names, text in shown.items()} == {
        "mrr": 0, "n_recall4": 1, "proc_ra_nwg": 1, "E[ra_nwg]": 1,
    }  # fmt: skip
    assert "a: n_recall4@1 " in shown["n_recall4"]
    assert len(scored(*files, "-m", "mrr")["systems"][0]["bottleneck"]) == 3


def test_sensitivity_tells_whether_the_order_of_systems_holds(here: Path) -> None:
    report = scored("-g", "qrels", "-r", "a", "-r", "b", "-k", "1", "--sensitivity")
    assert len(report["sensitivity"]) == 4 * 2 * 3
    assert all(point["order"] == ["b", "a"] and point["swapped"] == [] for point in report["sensitivity"])
    shown = raggs_eval("-g", "qrels", "-r", "a", "-r", "b", "-k", "1", "--sensitivity").stdout
    assert "changes at 0 of 24 points" in shown
    assert scored("-g", "qrels", "-r", "a")["sensitivity"] == []


def test_robustness_is_a_distribution_whose_area_is_the_mean_recall(here: Path) -> None:
    report = scored("-g", "qrels", "-r", "a", "-m", "recall,map", "-k", "1,2", "--robustness")
    first, second = report["systems"][0]["robustness"]
    for part, name in ((first, "recall@1"), (second, "recall@2")):
        assert part["measure"] == name
        assert part["area"] == pytest.approx(part["mean"]) == pytest.approx(means(report)[name])
        assert sum(part["histogram"]) == 3
    assert first["zero"] == pytest.approx(2 / 3)
    assert second["shares"]["0.5"] == 1.0
    assert second["shares"]["0.6"] == pytest.approx(2 / 3)
    assert second["beside"]["map@2"] == means(report)["map@2"]
    shown = raggs_eval("-g", "qrels", "-r", "a", "-k", "2", "--robustness").stdout
    assert "recall@2 mean 0.8333; it is 0 for 0% of the queries" in shown


def test_a_baseline_gives_verdicts(here: Path) -> None:
    qrels = "".join(f"q{n:02} 0 good 5\nq{n:02} 0 poor 1\n" for n in range(12))
    lists = ["".join(f"q{n:02} Q0 {first} 1 2 a\nq{n:02} Q0 {second} 2 1 a\n" for n in range(12))
             for first, second in (("good", "poor"), ("poor", "good"))]  # fmt: skip
    write(here, many=qrels, good=lists[0], poor=lists[1], same=lists[1])
    report = scored("-g", "many", "-r", "poor", "-r", "good", "-r", "same", "-b", "poor", "-m", "mrr,harm@1")
    found = {(part["system"], part["measure"]): part for part in report["comparisons"]}
    win, harm, tie = found["good", "mrr"], found["good", "harm@1"], found["same", "mrr"]
    assert (win["verdict"], win["difference"], win["wins"], win["losses"]) == ("better", 0.5, 12, 0)
    assert (harm["verdict"], harm["difference"], harm["high"] <= 0) == ("better", -1.0, True)
    assert (tie["verdict"], tie["difference"], tie["ties"]) == ("equivalent", 0.0, 12)
    assert {"holes@1", "holes@10"}.isdisjoint(part["measure"] for part in report["comparisons"])
    arguments = ("-g", "many", "-r", "poor", "-r", "good", "-r", "same", "-m", "mrr")
    for headline in (raggs_eval(*arguments), raggs_eval(*arguments, "-b", "poor")):
        assert "good is better than poor on mrr by 0.500 [0.500, 0.500]." in headline.stdout
        assert "same and poor are equivalent on mrr (difference 0.000 [0.000, 0.000])." in headline.stdout
    reversed_ = " ".join(raggs_eval(*arguments, "-b", "good", "--precision", "1").stdout.split())
    assert "poor is worse than good on mrr by 0.5 [0.5, 0.5]. same is worse than good" in reversed_
    details = raggs_eval(*arguments, "-b", "poor", "--details").stdout
    assert "1.0000▲" in details
    assert "same against poor: equivalent in mrr" in details
    assert "1.00▲" in raggs_eval(*arguments, "-b", "poor", "--details", "--precision", "2").stdout


def test_facets_discount_repeated_passages(here: Path) -> None:
    write(here, facets__tsv="doc-3\tone\ndoc-9\tone\ndoc-5\tother\n")
    arguments = ("-g", "qrels", "-r", "b", "-m", "ra_nwg_novel(nu=0)@3,ra_nwg@3")
    plain = scored(*arguments, "--facets", here / "facets.tsv")["per_query"]["b"]
    assert plain["ra_nwg_novel(nu=0)@3"]["q1"] < plain["ra_nwg@3"]["q1"]
    assert plain["ra_nwg_novel(nu=0)@3"]["q3"] == plain["ra_nwg@3"]["q3"]


def test_answers_given_the_evidence(here: Path) -> None:
    write(here, correct__tsv="q1\tno\nq2\tyes\nq3 1\n")
    report = scored("-g", "qrels", "-r", "a", "-k", "2", "--correct", "correct.tsv")
    answers = report["systems"][0]["answers"]
    # q1 lacks doc-9 within 2, so its wrong answer does not count
    assert (answers["measure"], answers["accuracy"], answers["hits"], answers["correct"]) == ("hit_all@2", 1.0, 2, 2)
    assert answers["queries"] == 3
    all_five = scored("-g", "qrels", "-r", "a", "-k", "5", "--correct", "correct.tsv")["systems"][0]["answers"]
    assert all_five["accuracy"] == pytest.approx(2 / 3)
    assert all_five["low"] < 2 / 3 < all_five["high"]
    shown = raggs_eval("-g", "qrels", "-r", "a", "-k", "5", "--correct", "correct.tsv").stdout
    assert "Acc|hit_all@5 0.6667" in shown


def test_confidence_and_seed_move_intervals_and_nothing_else(golden: Project) -> None:
    usual, narrow, other = (
        scored("-g", golden.run, "-r", golden.run, *more) for more in ((), ("--confidence", "0.5"), ("--seed", "7"))
    )
    assert means(usual) == means(narrow) == means(other)
    scores = [report["systems"][0]["scores"]["ndcg@10"] for report in (usual, narrow, other)]
    assert scores[1]["high"] - scores[1]["low"] < scores[0]["high"] - scores[0]["low"]
    assert scores[2]["low"] != scores[0]["low"]
    assert scored("-g", golden.run, "-r", golden.run) == usual


def test_a_run_directory_is_golden_set_and_systems(golden: Project) -> None:
    report = scored("-g", golden.run, "-r", golden.run, "-r", f"again={golden.run}")
    names = [system["name"] for system in report["systems"]]
    assert names == ["bm25", "dense", "fused", "again.bm25", "again.dense", "again.fused"]
    assert report["golden"]["queries"] == 6
    assert report["per_query"]["bm25"] == report["per_query"]["again.bm25"]
    assert means(report, 2)["holes@10"] == 0.0  # what is fused is judged


def test_the_export_of_a_run_scores_as_the_run(golden: Project, tmp_path: Path) -> None:
    done = invoke("export", golden.run, "--format", "trec", "--out", tmp_path)
    assert done.exit_code == 0
    from_run = scored("-g", golden.run, "-r", tmp_path / "run.trec")
    from_file = scored("-g", tmp_path / "qrels.txt", "-r", tmp_path / "run.trec", "--scale", "1-5")
    assert means(from_run) == means(from_file)
    assert means(scored("-g", tmp_path, "-r", tmp_path / "run.trec")) == means(from_run)
    as_written = scored("-g", tmp_path / "qrels.txt", "-r", tmp_path / "run.trec", "--scale", "0-4", "-m", "ndcg@5")
    assert means(as_written) == means(scored("-g", golden.run, "-r", tmp_path / "run.trec", "-m", "ndcg@5"))
    assert from_run["golden"]["digest"] == from_file["golden"]["digest"]


def test_doubt_about_labels_never_narrows_an_interval(golden: Project) -> None:
    plain, wide = (scored("-g", golden.run, "-r", golden.run, *more) for more in ((), ("--uncertainty",)))
    assert (plain["label_uncertainty"], wide["label_uncertainty"]) == (False, True)
    assert means(plain) == means(wide)
    wider = 0
    for before, after in zip(plain["systems"], wide["systems"], strict=True):
        for name, score in before["scores"].items():
            other = after["scores"][name]
            assert other["low"] <= score["low"] <= score["high"] <= other["high"]
            wider += other["high"] - other["low"] > score["high"] - score["low"]
    assert wider > 0
    assert "interval over queries and labels" in raggs_eval("-g", golden.run, "-r", golden.run, "--uncertainty").stdout


def test_files_hold_what_is_printed(here: Path) -> None:
    arguments = (
        "-g", "qrels", "-r", "a", "-r", "b", "-b", "a", "-k", "2", "--bounds", "--sensitivity", "--robustness"
    )  # fmt: skip
    result = raggs_eval(*arguments, "--out", "new/folder")
    assert result.exit_code == 0, result.output
    folder = here / "new" / "folder"
    assert result.stdout.splitlines()[-1] == f"written: {Path('new/folder/eval.json')}, eval.csv, eval.md"
    written = json.loads((folder / "eval.json").read_text())
    printed = scored(*arguments)
    assert {**written, "sources": {}} == {**printed, "sources": {}}, "paths are relative to the file"
    report = EvalReport.model_validate_json((folder / "eval.json").read_bytes())
    assert report.model_dump_json(indent=2) + "\n" == (folder / "eval.json").read_text()
    rows = list(csv.DictReader(io.StringIO((folder / "eval.csv").read_text())))
    assert [(row["system"], row["qid"]) for row in rows] == [(s, q) for s in "ab" for q in ("q1", "q2", "q3")]
    for row in rows:
        for measure in written["measures"]:
            value = written["per_query"][row["system"]][measure].get(row["qid"])
            assert row[measure] == ("" if value is None else repr(value))
    page = (folder / "eval.md").read_text()
    for part in (
        "# Evaluation",
        "## Comparison with a",
        "## Retrieval or order (pool of 50)",
        "## Robustness",
        "## Sensitivity",
    ):
        assert part in page
    assert f"{written['systems'][1]['scores']['ndcg@2']['mean']:.4f}" in page


def test_a_line_for_each_query(here: Path) -> None:
    lines = raggs_eval("-g", "qrels", "-r", "a", "-m", "mrr", "--per-query").stdout.splitlines()
    assert lines[0] == "system\tqid\tmrr\tholes@10"
    assert lines[1:4] == ["a\tq1\t0.5000\t0.4000", "a\tq2\t1.0000\t0.5000", "a\tq3\t0.5000\t0.5000"]


def test_a_name_may_be_given_and_a_path_may_hold_an_equals_sign(here: Path) -> None:
    write(here, **{"x=1": RUN})
    names = [system["name"] for system in scored("-g", "qrels", "-r", "x=1", "-r", "bm25=x=1")["systems"]]
    assert names == ["x=1", "bm25"]


def test_the_schema_is_printed_and_holds(here: Path) -> None:
    result = invoke("schema", "eval")
    assert result.exit_code == 0, result.output
    schema = json.loads(result.stdout)
    assert schema == json.loads(invoke("schema", "eval.json").stdout)
    report = scored("-g", "qrels", "-r", "a")
    assert set(schema["required"]) <= set(report) <= set(schema["properties"])


def test_help_names_every_option_and_the_command_works_as_a_process(here: Path) -> None:
    done = raggs("eval", "-g", "qrels", "-r", "a", "-m", "mrr", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mrr" in done.stdout
    shown = invoke("eval", "--help", env={"COLUMNS": "160"}).stdout
    for option in (
        "--golden", "--run", "--measures", "--k", "--baseline", "--out", "--per-query", "--ties", "--scale",
        "--binary-at", "--gains", "--condensed", "--pool", "--bounds", "--sensitivity", "--robustness",
        "--uncertainty", "--facets", "--correct", "--samples", "--outputs", "--fail-under", "--fail-on-regression",
        "--max-drop", "--confidence", "--seed", "--json",
    ):  # fmt: skip
        assert option in shown


LABELS = "qid,docid,grade,score\nq1,doc-3,0,3\nq1,doc-9,3,0\nq2,doc-2,3,3\n"


def test_a_table_is_read_as_an_import_reads_it(here: Path) -> None:
    write(here, labels__csv=LABELS)
    refused = [raggs_eval("-g", "labels.csv", "-r", "a"), invoke("import", "labels.csv", "-f", "csv", "-o", "out")]
    for told in refused:
        said = " ".join(told.output.split())
        assert told.exit_code == 5 and "labels.csv:1: columns 'grade' and 'score' both mean the grade" in said
        assert "--column grade=grade or --column grade=score" in said
    for name in ("grade", "score"):
        chosen = ("--column", f"grade={name}")
        assert invoke("import", "labels.csv", "-f", "csv", *chosen, "-o", f"out-{name}").exit_code == 0
        ours = scored("-g", "labels.csv", "-r", "a", *chosen)
        assert ours["per_query"] == scored("-g", f"out-{name}", "-r", "a")["per_query"]
    told = raggs_eval("-g", "labels.csv", "-r", "a", "--column", "grade=marks")
    assert told.exit_code == 2 and "no file has a column 'marks'" in told.output


def test_a_column_may_be_chosen_for_lists(here: Path) -> None:
    rows = "".join(f"{qid},{doc},{score},1\n" for qid, found in NESTED.items() for doc, score in found.items())
    write(here, run__csv=f"qid,docid,similarity,x\n{rows}")
    told = raggs_eval("-g", "qrels", "-r", "run.csv")
    assert told.exit_code == 5 and "no column score" in told.output and "--column score=NAME" in told.output
    assert means(scored("-g", "qrels", "-r", "run.csv", "--column", "score=similarity")) == means(
        scored("-g", "qrels", "-r", "a")
    )


def test_labels_that_are_all_1_are_scored_as_they_are(here: Path) -> None:
    import ir_measures

    write(here, ones="q1 0 doc-3 1\nq1 0 doc-9 1\nq2 0 doc-2 1\nq3 0 doc-5 1\n")
    ours = means(scored("-g", "ones", "-r", "a", "-m", "ndcg@10,recall@2,mrr"))
    theirs = ir_measures.calc_aggregate(
        [ir_measures.nDCG @ 10, ir_measures.R @ 2, ir_measures.RR],
        ir_measures.read_trec_qrels("ones"),
        ir_measures.read_trec_run("a"),
    )
    assert [ours["ndcg@10"], ours["recall@2"], ours["mrr"]] == pytest.approx(
        [theirs[ir_measures.nDCG @ 10], theirs[ir_measures.R @ 2], theirs[ir_measures.RR]], abs=1e-9
    )
    table = "query-id\tcorpus-id\tscore\nq1\tdoc-3\t1\nq1\tdoc-9\t1\nq2\tdoc-2\t1\nq3\tdoc-5\t1\n"
    write(here, ones__tsv=table)
    assert means(scored("-g", "ones.tsv", "-r", "a", "-m", "ndcg@10,recall@2,mrr")) == ours


def test_a_set_without_a_relevant_passage_is_not_scored_in_silence(here: Path) -> None:
    write(here, none="q1 0 doc-3 0\nq2 0 doc-2 0\n", low="q1 0 doc-3 1\nq2 0 doc-2 3\n")
    told = raggs_eval("-g", "none", "-r", "a")
    assert told.exit_code == 5 and "no passage is relevant: the highest grade is 0" in " ".join(told.output.split())
    warnings = scored("-g", "low", "-r", "a", "--scale", "1-5")["warnings"]
    assert any("no passage is relevant (grade 4 or more on the scale 1 to 5)" in each for each in warnings)
    assert not any("relevant (grade" in each for each in scored("-g", "qrels", "-r", "a")["warnings"])


def test_a_run_upside_down_is_refused_and_one_half_so_is_named(here: Path) -> None:
    write(here, distances="q1 Q0 doc-3 1 0.1 a\nq1 Q0 doc-9 2 0.2 a\nq2 Q0 doc-2 1 0.1 a\nq2 Q0 doc-7 2 0.3 a\n")
    told = raggs_eval("-g", "qrels", "-r", "distances")
    said = " ".join(told.output.split())
    assert told.exit_code == 5 and "distances: the scores rise with the rank: in 2 of 2 pairs" in said
    assert "Negate distances" in said
    warnings = scored("-g", "qrels", "-r", "b")["warnings"]
    assert any("ranks and scores disagree in 33% of the neighbouring pairs" in each for each in warnings)
