"""Default outputs lead with the answer: at most 25 lines of 80 columns and 200 words, also with many systems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import make_project
from support.scoring import QRELS, RUN, write
from support.sweeping import SweepProject, make_sweep

from raggs.sweeps.models import SweepReport
from raggs.sweeps.summary import is_separated, system_names

LINES, COLUMNS, WORDS = 25, 80, 200
LONG = "a-retriever-with-a-very-long-name-and-a-version-1.2.3+reranker"


def summary(*words: object, code: int = 0) -> list[str]:
    """The lines of a default output, which fit the screen; a command may be longer than a line."""
    done = invoke(*words, env={"COLUMNS": str(COLUMNS)})
    assert done.exit_code == code, done.output
    lines = done.stdout.rstrip("\n").split("\n")
    wrapped = sum(-(-max(len(line), 1) // COLUMNS) for line in lines)
    assert wrapped <= LINES, done.stdout
    assert not [line for line in lines if len(line) > COLUMNS and not line.startswith("next: ")], done.stdout
    assert len(done.stdout.split()) <= WORDS, len(done.stdout.split())
    return lines


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labels of thirty queries, with eight systems of which some are better, some worse and some unjudged."""
    monkeypatch.chdir(tmp_path)
    queries = [f"q{number:02}" for number in range(30)]
    write(tmp_path, many="".join(f"{qid} 0 good 5\n{qid} 0 fair 4\n{qid} 0 poor 1\n{qid} 0 bad 1\n" for qid in queries))
    orders = {
        "first": "poor fair good", "best": "good fair poor", "same": "poor fair good", "worst": "bad poor",
        "strange": "x1 x2 x3", "holes": "x1 good x2 fair", "half": "good poor fair", LONG: "fair good bad",
    }  # fmt: skip
    for name, order in orders.items():
        rows = (f"{qid} Q0 {doc} {rank} {9 - rank} s\n" for qid in queries for rank, doc in enumerate(order.split(), 1))
        (tmp_path / name).write_text("".join(rows))
    return tmp_path


def test_eval_with_eight_systems_and_warnings(here: Path) -> None:
    names = ["first", "best", "same", "worst", "strange", "holes", "half", LONG]
    lines = summary("eval", "-g", "many", *(word for name in names for word in ("-r", name)))
    text = " ".join(lines)
    assert lines[0].startswith("warning: strange")
    assert "Better than first on ndcg@10: best by 0." in text
    assert "Equivalent to first on ndcg@10: same." in text
    assert "Worse than first on ndcg@10: worst by 0." in text
    assert "unjudged" in text.split("Inconclusive against first")[1]
    assert [line.split()[0] for line in lines if "  " in line and "[" in line][:7] == names[:7]


def test_eval_of_one_system_gives_its_score_and_of_two_a_verdict(here: Path) -> None:
    assert summary("eval", "-g", "many", "-r", "best")[0] == "best has ndcg@10 1.000 [1.000, 1.000] on 30 queries."
    two = summary("eval", "-g", "many", "-r", "first", "-r", "worst", "-m", "recall@2,mrr", "--precision", "2")
    assert two[0] == "worst is worse than first on recall@2 by 0.50 [0.50, 0.50]."
    head = next(line for line in two if line.startswith("system"))
    assert head.split() == ["system", "recall@2", "mrr"]


def test_the_verdict_without_baseline_is_that_against_the_first_and_json_has_none(here: Path) -> None:
    plain = summary("eval", "-g", "many", "-r", "first", "-r", "best")
    assert plain == [
        line.replace(" -b first", "")
        for line in summary("eval", "-g", "many", "-r", "first", "-r", "best", "-b", "first")
    ]
    report = json.loads(invoke("eval", "-g", "many", "-r", "first", "-r", "best", "--json").stdout)
    assert report["comparisons"] == []


def test_an_analysis_that_is_named_is_printed_without_details(here: Path) -> None:
    text = invoke("eval", "-g", "many", "-r", "best", "-r", "half", "--robustness").stdout
    assert "best: recall@10 mean 1.0000" in text
    assert "best: recall@10 mean 1.0000" not in " ".join(summary("eval", "-g", "many", "-r", "best", "-r", "half"))


def test_gates_come_first(here: Path) -> None:
    arguments = ("eval", "-g", "many", "-r", "best", "-r", "worst", "--fail-under")
    assert summary(*arguments, "ndcg@10=0.9", code=7)[0] == "1 of 2 gates failed."
    assert summary(*arguments, "ndcg@10=0.0")[0] == "All gates passed (2)."


def test_labels_of_relevant_passages_only_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    positive = "".join(line for line in QRELS.splitlines(keepends=True) if line.rstrip()[-1] in "45")
    write(tmp_path, qrels=positive, a=RUN)
    assert "The labels list only relevant passages" in " ".join(summary("eval", "-g", "qrels", "-r", "a"))


def test_an_inconclusive_verdict_by_labels_without_the_lowest_grade_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    queries = [f"q{number:02}" for number in range(30)]
    write(tmp_path, labels="".join(f"{qid} 0 good 5\n{qid} 0 fair 2\n" for qid in queries))
    for name, order in {"a": "x y good z", "b": "good v fair w u"}.items():
        rows = (f"{qid} Q0 {doc} {rank} {9 - rank} s\n" for qid in queries for rank, doc in enumerate(order.split(), 1))
        (tmp_path / name).write_text("".join(rows))
    words = ("eval", "-g", "labels", "-r", "a", "-r", "b")
    said = " ".join(summary(*words))
    assert "inconclusive" in said and "pass --binary-at 2." in said
    assert "next: raggs eval -g labels -r a -r b --binary-at 2" in said
    done = " ".join(invoke(*words).output.split())
    assert "unless the labels list all relevant passages" in done and "never pooled" not in done
    assert "pass --binary-at" not in " ".join(summary(*words, "--binary-at", "2"))
    write(tmp_path, labels=(tmp_path / "labels").read_text() + "q00 0 poor 1\n")
    said = " ".join(summary(*words))
    assert "inconclusive" in said and "pass --binary-at" not in said


@pytest.mark.parametrize(
    "options",
    ["-m mrr@5,recall@5 --binary-at 4", "--scale 1-5 --gains 5=4,4=2 -k 3 -b a", "--ties file --seed 7", "--condensed"],
)
def test_the_next_command_of_eval_repeats_the_options(options: str, here: Path) -> None:
    write(here, qrels=QRELS, a=RUN)
    line = summary("eval", "-g", "qrels", "-r", "a", *options.split())[-2]
    assert line.startswith("next: raggs eval -g qrels -r a ")
    following = line.removeprefix("next: raggs ").split()
    assert set(options.split()) <= set(following)
    assert invoke(*following).exit_code == 0


def test_the_diagnosis_after_eval_uses_the_same_measure_and_baseline(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    assert invoke("run", "--config", project.config).exit_code == 0
    words = ("eval", "-g", project.run, "-r", project.run, "-m", "recall@5,ndcg@5", "-b", "bm25")
    line = next(line for line in summary(*words) if line.startswith("next: "))
    assert line.startswith("next: raggs diagnose retrieval ") and line.endswith(" -m recall@5 --baseline bm25")
    assert invoke(*line.split()[2:]).exit_code == 0


def sweep_summary(project: SweepProject, *more: object) -> list[str]:
    return summary("sweep", "--config", project.config, *more)


def test_a_sweep_recommends_a_system_that_the_data_separate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project = make_sweep(tmp_path, axes={"mode": ["lexical"], "k": [5, 30]}, count=12)
    text = " ".join(lines := sweep_summary(project))
    report = SweepReport.model_validate_json((project.out / "sweep.json").read_bytes())
    assert lines[0].startswith(f"Recommended: {system_names(report)[str(report.choice.winner)]} (")
    assert "is chosen in 100% of 1,000 resamples of 12 queries." in text
    assert "No single best" not in text and "Ship" not in text


def test_a_sweep_that_the_data_do_not_separate_has_no_single_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    axes = {"embedder": [{"type": "wordllama", "dims": [64, 128, 256]}], "mode": ["dense", "lexical", "hybrid"]}
    project = make_sweep(tmp_path, axes={**axes, "k": [10, 20]}, judged=8)
    lines = sweep_summary(project)
    report = SweepReport.model_validate_json((project.out / "sweep.json").read_bytes())
    assert not is_separated(report)
    assert lines[0].startswith("No single best configuration: ")
    assert "Statistically tied: " in " ".join(lines)
    assert any(line.startswith("Unjudged passages in the top 5: up to ") for line in lines)
    rows = [line for line in lines if "[0." in line]
    assert 0 < len(rows) <= 8
    assert str(report.choice.winner).split("+")[0] in rows[0]
    details = invoke("sweep", "--config", project.config, "--details").stdout
    assert "Main effects" in details and "Main effects" not in "\n".join(lines)


def test_limits_that_no_system_meets_name_the_nearest_and_the_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = make_sweep(tmp_path, axes={"mode": ["lexical"], "k": [5, 30]}, prices={"generator": {"input": 1.0}})
    sweep_summary(project)
    lines = sweep_summary(project, "--max-usd-per-1k", 0.0001, "--target", 0.1)
    assert lines[0] == "No system meets the limits."
    assert lines[1].startswith("Nearest: lexical+k")
    assert "Change --max-usd-per-1k." in " ".join(lines[1:3])
    command = next(line for line in lines if line.startswith("next: "))
    needed = command.partition("--max-usd-per-1k ")[2]
    assert not sweep_summary(project, "--max-usd-per-1k", needed, "--target", 0.1)[0].startswith("No system")
    assert "--target" not in command


def test_a_diff_leads_with_the_verdicts_that_flip(here: Path) -> None:
    judged = (here / "many").read_text()
    (here / "turned").write_text(judged.replace(" good 5", " good 1").replace(" poor 1", " poor 5"))
    runs = [word for name in ("first", "best", "same", "worst", "half", LONG) for word in ("-r", name)]
    lines = summary("diff", "many", "turned", *runs)
    assert lines[0] == "28 of 60 verdicts flip."
    assert lines[1].startswith("first against best on ndcg@10: worse (-0.")
    assert "better (+0." in " ".join(lines[1:3])
    same = summary("diff", "many", "many2" if (here / "many2").write_text(judged) else "", *runs)
    assert same[0] == "No verdict flips: 60 comparisons of 6 systems agree."
    assert "Both sets contain the same judgments." in same
    assert [line.split()[0] for line in same if "+0.000" in line][:2] == ["first", "best"]


def test_a_comparison_of_runs_says_that_leaving_rank_out_affects_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = make_project(tmp_path, queries=4)
    assert invoke("run", "--config", project.config, "--quiet").exit_code == 0
    project.change(name="norank", rank=None)
    config = project.config.read_text()
    project.config.write_text(config if "rank: null" in config else config + "rank: null\n")
    assert invoke("run", "--config", project.config, "--quiet").exit_code == 0
    runs = sorted((path.parent for path in tmp_path.rglob("manifest.json")), key=lambda path: path.name == "norank")
    lines = summary("compare", *(path.relative_to(tmp_path) for path in runs))
    assert lines[0] == "2 settings differ, and 1 of them affects results: rank."
    told = "Stages with the same results: embed, retrieve, merge, judge, prune. Stages in only one run: rank."
    assert " ".join(lines[1:3]) == told
    head = next(line for line in lines if line.startswith("setting"))
    assert head.split() == ["setting", "A", "B", "affects", "results"]
    assert next(line for line in lines if line.startswith("rank ")).split()[-2:] == ["null", "yes"]
