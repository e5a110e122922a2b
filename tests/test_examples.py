"""The examples and the starter are what a newcomer runs first: each must load, run, and give sensible passages."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
import yaml
from support.cli import invoke

from raggs.app.run import run
from raggs.base.artifacts import MergeRecord, Passage, Query, RankRecord
from raggs.config.load import load_config
from raggs.diagnosis import REGISTRY as DIAGNOSES
from raggs.parts.corpora.pydoc import PydocConfig, PydocCorpus
from raggs.parts.judges.nuggets import NuggetJudge, NuggetsConfig
from raggs.parts.queries.formats import YamlQueries, YamlQueriesConfig
from raggs.runs.manifests.audit import audit
from raggs.runs.manifests.open_run import OpenedRun, open_run

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = ("diagnose", "elasticsearch", "living", "openai", "quickstart", "runs", "sweep-chunks")
QUESTIONS = {
    query.qid: query
    for _, query in YamlQueries(YamlQueriesConfig(path=EXAMPLES / "quickstart" / "questions.yaml")).queries()
}


def copied(name: str, target: Path) -> Path:
    """A copy of an example, without results that may lie in the original; its configuration."""
    shutil.copytree(EXAMPLES / name, target / name, ignore=shutil.ignore_patterns("runs", ".env"))
    return target / name / "raggs.yaml"


def built(config: Path) -> OpenedRun:
    return open_run(run(config).store.folder)


def best(found: OpenedRun, count: int) -> dict[str, list[str]]:
    """The first passages of each golden order."""
    return {qid: [record.doc_id for record in ranking[:count]] for qid, ranking in found.golden()}


def test_every_example_is_known_here_and_told_in_the_readme() -> None:
    assert tuple(sorted(path.parent.name for path in EXAMPLES.glob("*/raggs.yaml"))) == NAMES
    for name in NAMES:
        readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
        assert f"raggs run --config examples/{name}/raggs.yaml" in readme
    overview = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+)/README.md\)", overview)) == {
        path.parent.name for path in EXAMPLES.glob("*/README.md")
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_example_loads_under_its_own_name(name: str) -> None:
    loaded = load_config(EXAMPLES / name / "raggs.yaml", environment={})
    assert loaded.run.name == name
    assert loaded.run.workspace == EXAMPLES / name / "runs"


# --- quickstart -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference() -> list[Passage]:
    """The reference of this Python, each text once: some topics repeat the text of others."""
    return list({passage.text: passage for passage in PydocCorpus(PydocConfig()).passages()}.values())


def grades_of(query: Query, passages: list[Passage]) -> Counter[int | None]:
    judge = NuggetJudge(NuggetsConfig(), None)  # type: ignore[arg-type] - it uses no context

    async def grade() -> Counter[int | None]:
        return Counter([(await judge.grade(query, passage)).grade for passage in passages])

    return asyncio.run(grade())


def test_the_quickstart_asks_enough() -> None:
    assert len(QUESTIONS) >= 25
    assert all(2 <= len(query.nuggets) <= 5 for query in QUESTIONS.values())


@pytest.mark.nightly(keep=8)
@pytest.mark.parametrize("qid", QUESTIONS)
@pytest.mark.parametrize("quote", ['"', "`"])
def test_a_question_tells_the_passages_of_this_python_apart(qid: str, quote: str, reference: list[Passage]) -> None:
    """Names stand in straight quotes or in backticks, depending on the Python; the grades may not depend on it."""
    passages = [passage.model_copy(update={"text": passage.text.replace('"', quote)}) for passage in reference]
    found = grades_of(QUESTIONS[qid], passages)
    assert found[4] + found[5] >= 1
    assert found[2] + found[3] + found[4] + found[5] >= 5
    assert found[5] <= 12
    assert found[1] > len(passages) / 2


def test_a_passage_has_one_rank_in_show_and_why_though_others_repeat_it(tmp_path: Path) -> None:
    config = copied("quickstart", tmp_path)
    asked = config.parent / "questions.yaml"
    asked.write_text(yaml.safe_dump(yaml.safe_load(asked.read_text(encoding="utf-8"))[4:6]), encoding="utf-8")
    opened = built(config)
    qid = next(record.qid for record in opened.typed("rank", RankRecord) if record.duplicate_of and record.rank < 8)
    ranks = []
    for words in (("show", opened.folder, qid), ("why", opened.folder, "--query", qid)):
        rows = re.findall(r"^(\d+) +(\d+-\d+) .*?% +(\S+#\d+)", invoke(*words).stdout, re.MULTILINE)
        ranks.append({name: (rank, interval) for rank, interval, name in rows})
    shared = ranks[0].keys() & ranks[1].keys()
    assert len(shared) > 5 and all(ranks[0][name] == ranks[1][name] for name in shared), ranks


# --- a sweep over the quickstart's golden set -----------------------------------------------------------------


@pytest.mark.nightly
def test_the_sweep_measures_its_systems_and_chooses_one(tmp_path: Path) -> None:
    built(copied("quickstart", tmp_path))
    shutil.copytree(EXAMPLES / "sweep", tmp_path / "sweep", ignore=shutil.ignore_patterns("sweeps", "runs"))
    config = tmp_path / "sweep" / "sweep.yaml"
    result = invoke("sweep", "--config", config)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("No single best configuration: hybrid+wordllama-256")
    report = json.loads((config.parent / "sweeps" / "sweep" / "sweep.json").read_text(encoding="utf-8"))
    assert report["choice"]["winner"].startswith("hybrid+wordllama-256")
    assert not [row["name"] for row in report["systems"] if row["failed"]]
    readme = (EXAMPLES / "sweep" / "README.md").read_text(encoding="utf-8")
    (limits,) = re.findall(r"sweep.yaml (--slo .*)", readme)
    chosen = invoke("sweep", "--config", config, *limits.split(), "--json")
    assert json.loads(chosen.stdout)["choice"]["winner"], "the example names limits that a system is within"
    again = invoke("sweep", "--config", config, "--slo", "0.001ms")
    assert again.stdout.startswith("No system meets the limits.\nNearest: ")


# --- diagnoses ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of the example whose golden set is made."""
    config = copied("diagnose", tmp_path_factory.mktemp("diagnose"))
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("max_calls: 20", "max_calls: 5"), encoding="utf-8")  # most diagnoses read grades
    assert built(config).folder.name == "diagnose"
    return config


def test_the_notes_are_in_two_languages_and_most_questions_name_an_author(diagnosed: Path) -> None:
    rows = [json.loads(line) for line in (diagnosed.parent / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = (diagnosed.parent / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    authors = {row["author"] for row in rows}
    assert (len(rows), len(authors), Counter(row["language"] for row in rows)) == (72, 24, {"en": 36, "fr": 36})
    assert sum(any(author in line for author in authors) for line in asked) == 48


def test_every_kind_looks_at_the_example_and_the_report_has_their_verdicts(diagnosed: Path) -> None:
    """As run.sh says, but for the kinds that take longer than seconds; what needs what the example has not says so."""
    done = invoke("diagnose", "all", "--quick", "--config", diagnosed, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert {*found["done"], *found["skipped"]} == set(DIAGNOSES)
    assert not {name: why for name, why in found["skipped"].items() if "takes" not in why and "reranker" not in why}
    folder = diagnosed.parent / "runs"
    report = ["report", str(folder / "diagnose"), "--out", str(folder / "report.html")]
    assert invoke(*report).exit_code == 0
    page = unescape(re.sub("</?a[^>]*>", "", (folder / "report.html").read_text(encoding="utf-8")))
    assert not [kind for kind, each in found["done"].items() if each["found"]["verdict"].partition(". ")[0] not in page]


# --- ways of cutting a manual ---------------------------------------------------------------------------------


def test_the_ways_of_cutting_a_manual_are_told_apart(tmp_path: Path) -> None:
    readme = (EXAMPLES / "chunks" / "README.md").read_text(encoding="utf-8")
    words = re.search(r"raggs (chunks eval --corpus.*?)\n\n", readme, re.DOTALL)
    assert words is not None
    command = words[1].replace("\\\n", " ").replace("examples/chunks/runs", str(tmp_path / "out"))
    given = command.replace("examples/chunks", str(EXAMPLES / "chunks")).split()
    result = invoke(*given)
    assert result.exit_code == 0, result.output
    assert "47 questions on 23 documents" in result.stdout
    report = json.loads((tmp_path / "out" / "chunks.json").read_text(encoding="utf-8"))
    found = {part["system"]: part for part in report["systems"] if part["cutoff"] == "5"}
    assert max(found, key=lambda name: found[name]["scores"]["iou"]["mean"]) == "markdown:200"
    verdicts = {(part["system"], part["cutoff"], part["measure"]): part["verdict"] for part in report["comparisons"]}
    assert verdicts["markdown:200", "5", "iou"] == "better"
    assert verdicts["recursive:400:overlap=200", "5", "iou"] == "worse"
    page = (tmp_path / "out" / "chunks.md").read_text(encoding="utf-8")
    assert "(recall-over-length.svg)" in page and (tmp_path / "out" / "iou.svg").is_file()


@pytest.mark.nightly
def test_a_sweep_over_cuts_finds_that_a_manual_is_best_cut_by_its_headings(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "chunks", tmp_path / "chunks", ignore=shutil.ignore_patterns("runs"))
    built(copied("sweep-chunks", tmp_path))
    config = tmp_path / "sweep-chunks" / "sweep.yaml"
    result = invoke("sweep", "--config", config)
    assert result.exit_code == 0, result.output
    assert "10 systems on 47 queries, best reference_recall@5 first" in result.stdout
    folder = config.parent / "sweeps" / "sweep-chunks"
    report = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    assert report["choice"]["winner"] == "lexical+markdown"
    assert [cut["label"] for cut in report["cuts"] if cut["golden"]] == ["markdown"]
    precision = {row["name"]: row["scores"]["reference_precision@5"]["mean"] for row in report["systems"]}
    assert precision["lexical+markdown"] > precision["lexical+recursive-size100"] > precision["lexical+sentence"]
    assert invoke("audit", folder).exit_code == 0


# --- runs of other systems ------------------------------------------------------------------------------------


def test_the_runs_of_two_systems_become_a_golden_set(tmp_path: Path) -> None:
    found = built(copied("runs", tmp_path))
    assert list(audit(found)) == []
    sources = [set(record.sources) for record in found.typed("merge", MergeRecord)]
    assert {"a"} in sources
    assert {"b"} in sources
    assert {"a", "b"} in sources
    firsts = best(found, 2)
    assert len(firsts) == 6
    assert set(firsts["winter"]) == {"winter-store", "winter-ride"}
    assert set(firsts["theft"]) == {"lock-use", "lock-choose"}
    assert firsts["brakes"][0] == "brake-cable"


# --- elasticsearch --------------------------------------------------------------------------------------------


def test_words_and_vectors_of_an_index_become_a_golden_set(
    tmp_path: Path, elastic_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTIC_URL", elastic_url)
    copied("runs", tmp_path)
    config = copied("elasticsearch", tmp_path)
    result = invoke("index", "--config", config)
    assert result.exit_code == 0, result.output
    assert "raggs-bicycles: 32 documents, 32 with vectors; 32 sent" in result.stdout
    found = built(config)
    assert list(audit(found)) == []
    assert {source for record in found.typed("merge", MergeRecord) for source in record.sources} == {"words", "vectors"}
    assert best(found, 1)["brakes"] == ["brake-cable"]


# --- a language model -----------------------------------------------------------------------------------------


def test_the_price_of_the_language_model_is_told_without_asking_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    config = copied("openai", tmp_path)
    result = invoke("run", "--config", config, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "openai/gpt-5-mini" in result.stdout
    assert "estimated cost: expected about $" in result.stdout
    assert "cap $0.50" in result.stdout
    assert not (config.parent / "runs" / "openai").exists()
    result = invoke("validate", "--config", config)
    assert result.exit_code == 0, result.output
    assert "4 queries, 20 passages" in result.stdout


# --- the starter ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `raggs init` makes."""
    folder = tmp_path_factory.mktemp("starter") / "demo"
    result = invoke("init", folder)
    assert result.exit_code == 0, result.output
    return folder


def test_the_starter_runs_offline_and_answers_its_questions(demo: Path) -> None:
    found = built(demo / "raggs.yaml")
    assert found.folder == demo / "runs" / "demo"
    assert list(audit(found)) == []
    firsts = {qid: ids[0] for qid, ids in best(found, 1).items()}
    assert firsts.pop("sale") in {"booksale-spring", "booksale-flyer"}
    assert firsts == {
        "benevole": "benevoles-fr",
        "give": "donate-books",
        "kids": "events-story",
        "late": "fines-late",
        "renew": "loans-renew",
    }


def test_the_near_duplicates_of_the_starter_are_judged_once(demo: Path) -> None:
    pairs = {
        frozenset((record.doc_id, record.duplicate_of))
        for record in built(demo / "raggs.yaml").typed("merge", MergeRecord)
        if record.duplicate_of
    }
    assert pairs == {frozenset(("booksale-spring", "booksale-flyer"))}
    texts = {
        row["_id"]: row["text"].split()
        for row in map(json.loads, (demo / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    }
    one, other = texts["booksale-spring"], texts["booksale-flyer"]
    assert len(one) == len(other) > 60
    assert sum(left != right for left, right in zip(one, other, strict=True)) == 1


def test_the_commented_judge_of_the_starter_is_a_valid_one(demo: Path, tmp_path: Path) -> None:
    """Whoever follows the comment (two lines out, the commented ones in) has a configuration that loads."""
    text = (demo / "raggs.yaml").read_text(encoding="utf-8")
    shown = text.index("# judge:\n")
    commented = text[shown : text.index("\n\n", shown)]
    plain = text[: text.index("judge:  ")] + text[text.index("# A language model instead") : shown]
    plain += "\n".join(line.removeprefix("# ") for line in commented.splitlines()) + text[shown + len(commented) :]
    (tmp_path / "raggs.yaml").write_text(plain, encoding="utf-8")
    loaded = load_config(tmp_path / "raggs.yaml", environment={}).run
    assert loaded.judge.judge.model == "openai/gpt-5-mini"
    assert loaded.budget.max_usd == 1
