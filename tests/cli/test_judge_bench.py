"""`raggs judge bench`: judges on a labelled folder, through the command line, with a server that counts its calls."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.cli import call, invoke
from support.llm_server import LLMServer
from support.project import begin

from raggs.llm.ledger import lines_in
from raggs.stats.agreement import check_labels

MODEL = "openai/gpt-5-mini"
QUERIES, DOCS = 12, 6
WIDTH = 80


def label_of(query: int, doc: int) -> int:
    return (query + doc) % 5 + 1


def truth(query: str, passage: str) -> int:
    """The label, but one grade too high on the passages of every fourth query."""
    label, number = int(passage.rpartition(" ")[2]), int(query.rpartition(" ")[2])
    return min(5, label + (number % 4 == 0))


@pytest.fixture
def folder(tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set in the layout of BEIR, with labels 1 to 5."""
    server.truth = truth
    write_set(tmp_path / "set")
    script = [
        {"qid": f"q{query}", "doc_id": f"d{query}-{doc}", "grade": 3 + (label_of(query, doc) > 3)}
        for query in range(QUERIES)
        for doc in range(DOCS)
    ]
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(row) + "\n" for row in script))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_set(folder: Path) -> None:
    (folder / "qrels").mkdir(parents=True)
    queries, corpus, qrels = [], [], ["query-id\tcorpus-id\tscore"]
    for query in range(QUERIES):
        queries.append({"_id": f"q{query}", "text": f"what does lighthouse {query}"})
        for doc in range(DOCS):
            label = label_of(query, doc)
            text = f"Keeper {query} of tower {doc} wrote letter {label}"
            corpus.append({"_id": f"d{query}-{doc}", "title": "", "text": text})
            qrels.append(f"q{query}\td{query}-{doc}\t{label}")
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (folder / "qrels" / "test.tsv").write_text("\n".join(qrels) + "\n")


def bench(*words: object, code: int = 0) -> Result:
    return call("judge", "bench", "set", *words, code=code)


PAID = ("-j", f"litellm:{MODEL}")
RULED = ("-j", "scripted:script.jsonl")
SMALL = ("--pairs", "60", "--repeats", "20", "--orders", "4")
ONCE = ("--pairs", "60", "--repeats", "0", "--orders", "4")  # no request is sent twice on purpose


def board(folder: Path = Path("bench")) -> Any:
    return json.loads((folder / "leaderboard.json").read_text())


def entry(name: str, folder: Path = Path("bench")) -> Any:
    return next(each for each in board(folder)["entries"] if each["judge"] == name)


def test_judges_are_graded_ranked_and_compared(folder: Path, server: LLMServer) -> None:
    shown = bench(*PAID, *RULED, *SMALL).stdout
    assert shown.startswith(f"litellm:{MODEL} agrees best with the labels of set: kappa ")
    assert "It is significantly better than the other." in shown
    assert all(len(line) <= WIDTH for line in shown.splitlines() if not line.startswith("next: "))
    found = board()
    assert [each["judge"] for each in found["entries"]] == [f"litellm:{MODEL}", "scripted:script.jsonl"]
    labels = found["sample"]["labels"]
    assert len(labels) == 60
    paid = found["entries"][0]
    # the figures are those of the grades that the server gives
    grades = [truth(f"x {qid[1:]}", f"x {label}") for qid, _, label in labels]
    assert paid["grades"] == grades
    own = check_labels(grades, [label for *_, label in labels], [qid for qid, *_ in labels], seed=1)
    assert paid["figures"]["kappa"]["mean"] == pytest.approx(own.kappa.value, abs=1e-6)
    assert paid["figures"]["alpha"]["mean"] == pytest.approx(own.alpha.value, abs=1e-6)
    assert paid["figures"]["exact"]["low"] == pytest.approx(own.exact.low, abs=1e-6)
    assert paid["figures"]["retest"]["mean"] == 1.0
    assert paid["figures"]["repeated"] >= 20
    assert (paid["figures"]["lists"], paid["figures"]["changed"]["mean"]) == (4, 0.0)
    means = [each["mean"] for each in paid["figures"]["by_grade"]]
    assert means[4] == 5.0 and all(grade <= mean < grade + 1 for grade, mean in enumerate(means, start=1))
    (pair,) = found["pairs"]
    assert (pair["verdict"], pair["cases"]) == ("better", 60)
    assert pair["corrected"] < 0.05 and pair["kappa"]["low"] > 0
    # 60 grades, some of them twice, and four lists in two orders
    assert server.count == 60 + paid["figures"]["repeated"] + 8
    assert paid["cost"]["usd_per_1000"] > 0 and paid["cost"]["p50_s"] <= paid["cost"]["p95_s"]
    assert "openai/gpt-5-mini" in shown and "next: raggs run" in shown


def test_the_page_has_all_tables(folder: Path) -> None:
    bench(*PAID, *RULED, *SMALL)
    page = Path("bench/leaderboard.md").read_text()
    for heading in (
        "Leaderboard",
        "Test-retest agreement",
        "Bias by grade",
        "Pairwise comparison",
        "Grades of litellm",
    ):
        assert heading in page or heading == "Leaderboard"
    assert "| 1 | litellm:openai/gpt-5-mini |" in page
    details = bench(*PAID, *RULED, *SMALL, "--details").stdout
    assert "Pairwise comparison" in details and "p (Holm)" in details


def test_the_sample_depends_on_the_seed_alone_and_has_every_label(folder: Path) -> None:
    samples = []
    for number, words in enumerate((("--seed", "1"), ("--seed", "1"), ("--seed", "2"))):
        bench(*RULED, "--pairs", "20", *words, "-o", f"b{number}")
        samples.append(board(Path(f"b{number}"))["sample"])
    assert samples[0] == samples[1]
    assert samples[0]["sample_hash"] != samples[2]["sample_hash"]
    assert samples[0]["set_hash"] == samples[2]["set_hash"]
    assert all(set(Counter(label for *_, label in each["labels"])) == {1, 2, 3, 4, 5} for each in samples)


def test_again_costs_nothing_and_changes_no_figure(folder: Path, server: LLMServer) -> None:
    bench(*PAID, *SMALL)
    count, before = server.count, board()
    bench(*PAID, *SMALL)
    assert server.count == count
    assert board() == before


def test_killed_and_resumed_the_ledger_has_every_call_of_the_server(folder: Path, server: LLMServer) -> None:
    server.delay_s = 0.05
    process = begin("judge", "bench", "set", *PAID, *ONCE, "--quiet", env=dict(os.environ))
    process.wait(until=lambda: server.count >= 20)
    process.kill()
    assert 20 <= server.count < 60
    assert not Path("bench/leaderboard.json").exists()
    server.delay_s = 0
    bench(*PAID, *ONCE)
    lines = list(lines_in(Path("bench/bench.ledger.jsonl")))
    # a call that was on its way when the process died is booked as possibly billed, whether it arrived or not
    unknown = sum(line.attempts for line in lines if line.outcome == "unknown")
    answered = sum(line.attempts for line in lines if line.outcome == "answered")
    assert answered <= server.count <= answered + unknown
    assert len(server.paid_twice) <= unknown
    bench(*PAID, *ONCE, "-o", "calm")
    assert entry(f"litellm:{MODEL}")["grades"] == entry(f"litellm:{MODEL}", Path("calm"))["grades"]


def test_a_dry_run_counts_the_calls_and_makes_none(folder: Path, server: LLMServer) -> None:
    told = json.loads(bench(*PAID, *SMALL, "--dry-run", "--json").stdout)
    expected = sum(line["calls"] for line in told["estimates"])
    assert (server.count, told["max_usd"]) == (0, 5.0)
    assert told["usd"] > 0
    bench(*PAID, *SMALL)
    assert server.count == expected
    rest = json.loads(bench(*PAID, *SMALL, "--dry-run", "--json").stdout)
    assert sum(line["calls"] for line in rest["estimates"]) == 0


def test_the_budget_ends_the_comparison_and_a_larger_one_continues_it(folder: Path, server: LLMServer) -> None:
    result = bench(*PAID, *ONCE, "--max-usd", "0.005", code=7)
    count = server.count
    assert 0 < count < 80
    larger = re.search(r"--max-usd (\S+)", result.stderr)
    assert larger is not None, result.stderr
    bench(*PAID, *ONCE, "--max-usd", larger[1])
    assert not server.paid_twice
    assert server.count > count


def test_a_failing_judge_is_counted_and_tried_again(folder: Path, server: LLMServer) -> None:
    server.fault_for = lambda _, body: "grade 7" if "lighthouse 3" in str(body) else None
    shown = bench(*PAID, *SMALL, "--orders", "0").stdout
    found = entry(f"litellm:{MODEL}")
    missing = sum(grade is None for grade in found["grades"])
    assert missing == found["failed"] > 0
    assert found["figures"]["cases"] == 60 - missing
    assert f"failed on {missing} of 60 pairs" in " ".join(shown.split())
    server.fault_for = None
    bench(*PAID, *SMALL, "--orders", "0")
    assert entry(f"litellm:{MODEL}")["failed"] == 0


# --- probabilities --------------------------------------------------------------------------------------------

STATED = ("-j", f"litellm:{MODEL}:answers=logprobs")


def test_stated_probabilities_are_scored_and_plotted(folder: Path) -> None:
    details = bench(*STATED, *RULED, *ONCE, "--details").stdout
    found, labels = entry(f"litellm:{MODEL}:answers=logprobs"), [label for *_, label in board()["sample"]["labels"]]
    assert len(found["distributions"]) == 60
    held = found["figures"]["calibration"]
    chances = [shares[label - 1] for shares, label in zip(found["distributions"], labels, strict=True)]
    assert min(chances) > 0
    assert held["log_score"] == pytest.approx(sum(-math.log(chance) for chance in chances) / 60, abs=1e-6)
    predictions = [
        (sum(shares[k - 1 :]), label >= k)
        for shares, label in zip(found["distributions"], labels, strict=True)
        for k in range(2, 6)
    ]
    assert sum(part["count"] for part in held["reliability"]) == len(predictions) == 240
    gaps: dict[int, list[float]] = {}
    for chance, is_true in predictions:
        gaps.setdefault(min(9, int(chance * 10 + 1e-9)), []).append(chance - is_true)
    assert held["error"] == pytest.approx(sum(abs(sum(each)) for each in gaps.values()) / 240, abs=1e-6)
    assert "ECE" in details and "Reliability of litellm" in details
    assert Path("bench/reliability.svg").read_text().startswith("<svg")
    ruled = entry("scripted:script.jsonl")
    assert (ruled["figures"]["calibration"], ruled["distributions"]) == (None, [])


def calibration(**more: Any) -> tuple[str, str]:
    row = [0.2] * 5
    Path("map.json").write_text(json.dumps({"temperature": 2.0, "mix": 0.1, "confusion": [row] * 5, **more}))
    return "-j", f"litellm:{MODEL}:answers=logprobs:calibration=map.json"


def test_labels_of_the_calibration_are_excluded_and_counted(folder: Path, server: LLMServer) -> None:
    bench(*RULED, *ONCE)
    labels = board()["sample"]["labels"]
    fitted = [[qid, doc_id] for qid, doc_id, _ in labels[:17]] + [["q0", "not sampled"]]
    told = json.loads(bench(*calibration(fitted_on=fitted), *ONCE, "--dry-run", "--json").stdout)
    shown = " ".join(bench(*calibration(fitted_on=fitted), *ONCE).stdout.split())
    found = next(each for each in board()["entries"] if "calibration" in each["judge"])
    assert found["excluded"] == list(range(17))
    assert found["grades"][:17] == [None] * 17 and None not in found["grades"][17:]
    assert (found["figures"]["cases"], found["failed"], found["abstained"]) == (43, 0, 0)
    assert board()["pairs"][0]["cases"] == 43
    assert "17 pairs excluded" in shown
    grading = sum("logprobs" in body for body in server.requests)
    assert (grading, server.count) == (43, sum(line["calls"] for line in told["estimates"]))


def test_a_calibration_without_its_labels_is_named(folder: Path) -> None:
    shown = " ".join(bench(*calibration(), *ONCE).stdout.split())
    assert "does not name its labels" in shown
    assert board()["entries"][0]["excluded"] == []
    result = bench(*calibration(fitted_on="all"), *ONCE, "-o", "other", code=5)
    assert "is not a calibration: fitted_on" in result.stderr
    every = [[f"q{query}", f"d{query}-{doc}"] for query in range(QUERIES) for doc in range(DOCS)]
    assert "no pair is left" in bench(*calibration(fitted_on=every), *ONCE, "-o", "other", code=5).stderr


# --- configuration --------------------------------------------------------------------------------------------


CONFIG = """
judges:
  - {type: litellm, model: openai/gpt-5-mini}
  - name: in groups
    judge: {type: litellm, model: openai/gpt-5-mini}
    group: 3
  - name: three samples
    judge: {type: litellm, model: openai/gpt-5-mini}
    samples: 3
"""


CHOSEN = """
judges:
  - name: chosen
    judge: {type: litellm, model: openai/gpt-5-mini, answers: logprobs}
    samples: 2
    samples_if_below: 0.5
  - name: once
    judge: {type: litellm, model: openai/gpt-5-mini, answers: logprobs}
"""


def test_a_judge_with_chosen_samples_is_graded_twice_only_for_the_retest(folder: Path, server: LLMServer) -> None:
    Path("judges.yaml").write_text(CHOSEN)
    bench("--config", "judges.yaml", *SMALL)
    chosen, once = entry("chosen"), entry("once")
    assert chosen["cost"]["calls"] == once["cost"]["calls"] == 60, "the probability of each grade is 0.6"
    assert chosen["figures"]["repeated"] == once["figures"]["repeated"] > 0
    assert chosen["fingerprint"] != once["fingerprint"]


def test_a_file_names_whole_configurations(folder: Path, server: LLMServer) -> None:
    Path("judges.yaml").write_text(CONFIG)
    bench("--config", "judges.yaml", *SMALL)
    grades = {each["judge"]: each["grades"] for each in board()["entries"]}
    assert set(grades) == {f"litellm:{MODEL}", "in groups", "three samples"}
    assert len(set(map(tuple, grades.values()))) == 1
    tied = " ".join(bench("--config", "judges.yaml", *SMALL).stdout.split())
    assert "is inconclusive" in tied
    assert entry("three samples")["figures"]["repeated"] == 60
    forms = Counter(body["response_format"]["json_schema"]["name"] for body in server.requests)
    assert 20 <= forms["grades"] < 60, "groups of up to three passages"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("judges: []\n", 5, "judges"),
        ("judges:\n  - {type: litellm}\n", 5, "model"),
        ("judges:\n  - {type: oracle}\n", 5, "oracle"),
        ("judges:\n  - {judge: {type: scripted, path: script.jsonl}, mode: batch}\n", 5, "direct"),
        ("judges:\n  - {judge: {type: scripted, path: script.jsonl}, sample: 3}\n", 5, "unknown key"),
        (2 * "judges:\n  - {type: scripted, path: script.jsonl}\n", 5, "judges"),
        ("judge: {judge: {type: scripted, path: script.jsonl}}\n", 5, "configuration of a run"),
        (
            "judges:\n  - {type: scripted, path: script.jsonl}\n  - {type: scripted, path: script.jsonl}\n",
            2,
            "two judges have the name",
        ),
    ],
)
def test_a_wrong_configuration_is_refused(folder: Path, text: str, code: int, said: str) -> None:
    Path("judges.yaml").write_text(text)
    result = bench("--config", "judges.yaml", code=code)
    assert said in result.stderr


# --- labels ---------------------------------------------------------------------------------------------------


def rewrite_labels(change: Any) -> None:
    path = Path("set/qrels/test.tsv")
    head, *rows = path.read_text().splitlines()
    cells = [row.split("\t") for row in rows]
    path.write_text("\n".join([head, *("\t".join([qid, doc, str(change(int(label)))]) for qid, doc, label in cells)]))


def test_another_scale_is_stretched_and_stated(folder: Path) -> None:
    rewrite_labels(lambda label: min(label, 4) - 1)  # 0 to 3
    shown = " ".join(bench(*RULED).stdout.split())
    assert "0 is grade 1, 1 is grade 2, 2 is grade 4, 3 is grade 5" in shown
    bench(*RULED, "--mapping", "0=1,1=2,2=3,3=4", "-o", "own")
    assert board(Path("own"))["sample"]["mapping"] == {"0": 1, "1": 2, "2": 3, "3": 4}
    bench(*RULED, "--scale", "0-4", "-o", "wide")
    assert board(Path("wide"))["sample"]["mapping"] == {"0": 1, "1": 2, "2": 3, "3": 4}


def test_binary_labels_are_the_ends_of_the_scale(folder: Path) -> None:
    rewrite_labels(lambda label: int(label > 3))
    bench(*RULED)
    assert board()["sample"]["mapping"] == {"0": 1, "1": 5}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--mapping", "1=1,2=2"), 5, "label 3 has no grade in --mapping"),
        (("--mapping", "1=9"), 2, "is not a grade"),
        (("--mapping", "1=1,1=2"), 2, "occurs twice"),
        (("--mapping", "one=1"), 2, "is not a mapping"),
        (("--scale", "5-1"), 5, "not valid"),
        (("--scale", "0-3"), 5, "outside the scale"),
        (("--queries", "none.jsonl"), 4, "none.jsonl"),
        (("--corpus", "none.jsonl"), 4, "none.jsonl"),
        (("--pairs", "0"), 2, "--pairs"),
        (("-j", "scripted:none.jsonl"), 4, "none.jsonl"),
        (("-j", "oracle:x"), 2, "oracle"),
        (("-j", "reference"), 5, "reference: query"),
    ],
)
def test_wrong_input_is_refused(folder: Path, words: tuple[str, ...], code: int, said: str) -> None:
    result = invoke("judge", "bench", "set", *(() if "-j" in words else RULED), *words)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert not Path("bench/leaderboard.json").exists()


def test_without_a_judge_or_labels_nothing_begins(folder: Path) -> None:
    assert "no judge to compare" in bench(code=2).stderr
    assert invoke("judge", "bench", "nowhere", *RULED).exit_code == 4
    Path("empty").mkdir()
    assert invoke("judge", "bench", "empty", *RULED).exit_code == 4
    Path("file").write_text("x")
    assert "is a file" in bench(*RULED, "-o", "file", code=2).stderr


def test_labels_without_texts_are_excluded_and_counted(folder: Path) -> None:
    with Path("set/qrels/test.tsv").open("a") as file:
        file.write("q1\tgone\t3\nq99\td1-1\t3\nq2\td1-1\t-1\n")
    shown = " ".join(bench(*RULED).stdout.split())
    assert board()["sample"]["available"] == QUERIES * DOCS
    assert board()["sample"]["unused"] == {
        "unjudged": 1,
        "without the text of the query": 1,
        "without the text of the passage": 1,
    }
    assert "1 label without the text of the query" in shown
    Path("set/corpus.jsonl").write_text('{"_id": "other", "text": "nothing"}\n')
    assert "no label has the texts" in bench(*RULED, "-o", "other", code=5).stderr


def test_trec_labels_take_the_files_next_to_them(folder: Path) -> None:
    rows = Path("set/qrels/test.tsv").read_text().splitlines()[1:]
    trec = [f"{qid} 0 {doc} {label}" for qid, doc, label in (row.split("\t") for row in rows)]
    Path("set/labels.trec").write_text("\n".join(trec) + "\n")
    call("judge", "bench", "set/labels.trec", *RULED, "-o", "trec")
    bench(*RULED)
    assert board(Path("trec"))["sample"]["sample_hash"] == board()["sample"]["sample_hash"]


# --- leaderboards of others -----------------------------------------------------------------------------------


def test_entries_of_others_are_added_and_kept(folder: Path, server: LLMServer) -> None:
    bench(*PAID, *SMALL, "-o", "theirs")
    count = server.count
    bench(*RULED, *SMALL, "--add", "theirs/leaderboard.json")
    assert server.count == count
    assert [each["judge"] for each in board()["entries"]] == [f"litellm:{MODEL}", "scripted:script.jsonl"]
    assert len(board()["pairs"]) == 1
    bench(*SMALL, "--add", "theirs/leaderboard.json")
    assert len(board()["entries"]) == 2, "equal entries count once, and the folder keeps its own"


def tampered(change: Any) -> str:
    found = board(Path("theirs"))
    change(found)
    Path("theirs/leaderboard.json").write_text(json.dumps(found))
    return "theirs/leaderboard.json"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found["sample"].update(set_hash="0" * 64), "another labelled set"),
        (lambda found: found["sample"].update(sample_hash="0" * 64), "another sample"),
        (lambda found: found["sample"]["labels"][0].__setitem__(2, 6 - found["sample"]["labels"][0][2]), "kappa"),
        (lambda found: found["entries"][0]["figures"]["kappa"].update(mean=0.999), "kappa is stated as 0.9990"),
        (lambda found: found["entries"][0]["grades"].pop(), "59 grades for 60 labels"),
        (lambda found: found["entries"][0]["grades"].__setitem__(0, 9), "is not 1 to 5"),
        (lambda found: found["entries"][0]["repeats"].append([99, 1, 1]), "second sample"),
        (lambda found: found["entries"][0]["orders"].append({"qid": "q", "shown": ["a"], "order": ["b"]}), "order"),
        (lambda found: found["entries"][0].update(distributions=[[1, 0, 0, 0, 0]]), "1 distributions for 60 grades"),
        (lambda found: found["entries"][0].update(distributions=60 * [[0.9] * 5]), "five probabilities"),
        (lambda found: found["entries"][0].update(distributions=60 * [[0.2] * 5]), "error is stated as –"),
        (lambda found: found["entries"][0].update(excluded=[60]), "excluded pair"),
        (lambda found: found.update(v=2), "is not a leaderboard"),
    ],
)
def test_a_file_that_contradicts_itself_or_the_sample_is_refused(folder: Path, change: Any, said: str) -> None:
    bench("-j", "qrels:set/qrels/test.tsv:grade_noise=0.5", *SMALL, "-o", "theirs")
    result = bench(*RULED, *SMALL, "--add", tampered(change), code=5)
    assert said in result.stderr


def test_the_same_judge_with_other_answers_is_refused(folder: Path) -> None:
    bench(*RULED, *SMALL, "-o", "theirs")

    def other_grade(found: Any) -> None:
        entry = found["entries"][0]
        entry["grades"][0] = 6 - entry["grades"][0] if entry["grades"][0] != 3 else 5
        entry["figures"] = None

    result = bench(*RULED, *SMALL, "--add", tampered(other_grade), code=5)
    assert "other answers of the same judge" in result.stderr
    tampered(lambda found: found["entries"][0].update(fingerprint="0" * 64))
    result = bench(*RULED, *SMALL, "--add", "theirs/leaderboard.json", code=5)
    assert "has other settings, prompts or files" in result.stderr


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"v": 1', "\x00\xff", '{"v": 1, "sample": {}, "entries": []}'])
def test_garbage_is_no_leaderboard(folder: Path, content: str) -> None:
    Path("garbage.json").write_text(content)
    assert "is not a leaderboard" in bench(*RULED, "--add", "garbage.json", code=5).stderr
    assert "none.json" in bench(*RULED, "--add", "none.json", code=4).stderr


def test_a_larger_sample_reuses_paid_grades_and_keeps_the_earlier_leaderboard(folder: Path, server: LLMServer) -> None:
    words = ("--repeats", "0", "--orders", "0")
    bench(*PAID, *words, "--pairs", "30")
    smaller = board()
    shown = bench(*PAID, *words, "--pairs", "50")
    assert (server.count, server.paid_twice) == (50, [])
    kept = Path("bench") / f"leaderboard-{smaller['sample']['sample_hash'][:12]}.json"
    assert json.loads(kept.read_text()) == smaller
    assert str(kept) in shown.stderr
    assert set(map(tuple, smaller["sample"]["labels"])) < set(map(tuple, board()["sample"]["labels"]))
    bench(*RULED, *words, "--pairs", "30")
    assert server.count == 50
    assert {each["judge"] for each in board()["entries"]} == {f"litellm:{MODEL}", "scripted:script.jsonl"}


def test_a_damaged_leaderboard_of_the_folder_is_refused_before_any_call(folder: Path, server: LLMServer) -> None:
    Path("bench").mkdir()
    Path("bench/leaderboard.json").write_text("{}")
    assert "is not a leaderboard" in bench(*PAID, *SMALL, code=5).stderr
    assert server.count == 0


def test_no_key_and_no_path_of_this_machine_is_in_the_leaderboard(folder: Path) -> None:
    bench(*PAID, *RULED, *SMALL)
    text = Path("bench/leaderboard.json").read_text() + Path("bench/leaderboard.md").read_text()
    assert os.environ["OPENAI_API_KEY"] not in text
    assert str(folder) not in text


def test_a_run_is_a_labelled_set_and_says_who_graded(folder: Path) -> None:
    config = {
        "name": "demo",
        "workspace": "runs",
        "corpus": {"type": "jsonl", "path": "set/corpus.jsonl"},
        "queries": {"type": "jsonl", "path": "set/queries.jsonl"},
        "embed": {"embedder": None},
        "retrieve": {"retrievers": [{"type": "bm25", "k": 20}]},
        "judge": {"judge": {"type": "scripted", "path": "script.jsonl"}},
    }
    Path("raggs.yaml").write_text(json.dumps(config))
    call("run", "--config", "raggs.yaml", "--to", "judge", "--quiet")
    shown = " ".join(call("judge", "bench", "runs/demo", *RULED).stdout.split())
    assert "are grades by a model (scripted script.jsonl), not by humans" in shown
    assert board()["entries"][0]["figures"]["exact"]["mean"] == 1.0


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs" / "how-to" / "choose-a-judge.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^raggs (judge bench examples(?:.*\\\n)+.*)$", page, re.MULTILINE)
    words = command.replace("\\\n", " ").replace("examples/", f"{root}/examples/").split()
    shown = call(*[tmp_path / "bench" if word == "bench" and at > 1 else word for at, word in enumerate(words)]).stdout
    assert "grade_noise=0.2 agrees best with the labels" in shown
    assert "It is significantly better than the other." in shown
    assert all(len(line) <= WIDTH for line in shown.splitlines() if not line.startswith("/"))
