"""`raggs eval --project`: a golden set against systems whose documents are cut in another way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support.cli import invoke
from support.project import write_lines
from support.scoring import means, raggs_eval, scored

from raggs import load_config
from raggs import run as run_config

WORDS = "amber brook cedar delta ember flint grove heron inlet jetty knoll larch maple noble otter pearl".split()  # noqa: SIM905
TEXT = "".join(
    f"The {one} stands near the {other}, says line {number}.\n\n"
    for number, (one, other) in enumerate((one, other) for one in WORDS for other in WORDS[:5])
)


def question(word: str) -> dict[str, object]:
    start = TEXT.index(f"The {word} stands near the cedar")
    end = TEXT.index("\n", start)
    place = {"source": "trees.md", "start": start, "end": end}
    text = f"Where does the {word} stand, near the cedar?"
    return {"_id": f"q-{word}", "text": text, "references": [{"text": TEXT[start:end], "span": place}]}


def made(folder: Path, size: int) -> Path:
    settings = {
        "name": f"at{size}",
        "corpus": {
            "type": "folder",
            "path": "docs",
            "chunker": {"type": "recursive", "size": size, "unit": "characters"},
        },
        "queries": {"type": "jsonl", "path": "queries.jsonl"},
        "embed": {"embedder": None},
        "retrieve": {"retrievers": [{"type": "bm25", "k": 12}]},
        "judge": {"judge": {"type": "reference"}},
        "prune": {"min_keep": 2, "max_keep": 5},
        "rank": {"top": 2, "max_calls": 2},
    }
    config = folder / f"at{size}.yaml"
    config.write_text(yaml.safe_dump(settings))
    return run_config(load_config(config)).store.folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that are cut at 100 and at 300 characters."""
    found = tmp_path_factory.mktemp("projected")
    (found / "docs").mkdir()
    (found / "docs" / "trees.md").write_text(TEXT)
    write_lines(found / "queries.jsonl", map(question, WORDS[::3]))
    for size in (100, 300):
        made(found, size)
    return found


@pytest.fixture
def runs(folder: Path) -> tuple[Path, Path]:
    return folder / "runs" / "at100", folder / "runs" / "at300"


def trec(run: Path, target: Path) -> Path:
    """A run's list as a file of others would have it."""
    rows = (json.loads(line) for line in (run / "retrieve.jsonl").read_text().splitlines())
    target.write_text("".join(f"{row['qid']} Q0 {row['doc_id']} {row['rank']} {row['score']} x\n" for row in rows))
    return target


def test_without_it_other_corpora_are_refused_and_it_is_named(runs: tuple[Path, Path]) -> None:
    result = raggs_eval("-g", runs[0], "-r", runs[1])
    assert result.exit_code == 5
    assert "another corpus" in result.stderr
    assert "--project" in result.stderr


def test_grades_are_carried_over_and_the_report_says_how(runs: tuple[Path, Path], tmp_path: Path) -> None:
    report = scored("-g", runs[0], "-r", runs[1], "--project", "-k", "5", "--out", tmp_path / "out")
    found = means(report)
    assert found["span_recall4@5"] > 0.5
    assert 0 < found["span_precision4@5"] < found["span_recall4@5"]
    assert found["ra_nwg@5"] > 0.5
    part = report["systems"][0]["projection"]
    assert (part["by"], part["least"], part["cutoff"]) == ("cover", 0.5, 5)
    assert part["passages"] > 0
    assert 0 < part["judged"] <= 1
    assert part["corpus"] != part["judged_corpus"]
    page = (tmp_path / "out" / "eval.md").read_text()
    assert "projected: a passage gets the highest grade" in page
    assert f"{part['passages']} passages with a grade and {part['holes']} hole" in page


def test_a_system_that_is_cut_finer_than_the_set_is_told(runs: tuple[Path, Path]) -> None:
    finer, coarser = (scored("-g", golden, "-r", run, "--project")["notes"] for golden, run in (runs[::-1], runs))
    assert any("uses smaller chunks than the judged ones" in note for note in finer)
    assert not any("is cut finer" in note for note in coarser)


def test_onto_its_own_corpus_every_score_stays(runs: tuple[Path, Path]) -> None:
    plain, carried = (
        means(scored("-g", runs[0], "-r", runs[0])),
        means(scored("-g", runs[0], "-r", runs[0], "--project")),
    )
    assert {name: carried[name] for name in plain} == plain
    assert set(carried) - set(plain) == {"span_recall4@10", "span_precision4@10"}


def test_systems_of_two_corpora_stand_side_by_side_and_are_compared(runs: tuple[Path, Path]) -> None:
    report = scored("-g", runs[0], "-r", f"a={runs[0]}", "-r", f"b={runs[1]}", "--project", "-k", "3", "-b", "a.bm25")
    assert [system["name"] for system in report["systems"]] == ["a.bm25", "b.bm25"]
    compared = {part["measure"]: part for part in report["comparisons"]}
    assert compared["span_recall4@3"]["system"] == "b.bm25"


def test_a_file_of_lists_needs_its_corpus_named(runs: tuple[Path, Path], folder: Path, tmp_path: Path) -> None:
    lists = trec(runs[1], tmp_path / "lists.trec")
    bare = raggs_eval("-g", runs[0], "-r", lists, "--project")
    assert bare.exit_code == 5
    assert "--corpus CONFIG" in bare.stderr
    of_run = means(scored("-g", runs[0], "-r", runs[1], "--project"))
    for corpus in (folder / "at300.yaml", runs[1], f"lists={runs[1]}"):
        assert means(scored("-g", runs[0], "-r", lists, "--project", "--corpus", corpus)) == of_run
    longer = trec(runs[0], tmp_path / "longer.trec")
    wrong = raggs_eval("-g", runs[0], "-r", longer, "--project", "--corpus", folder / "at300.yaml")
    assert wrong.exit_code == 5
    assert "is not in the corpus" in wrong.stderr


def test_measures_in_characters_need_places(runs: tuple[Path, Path]) -> None:
    result = raggs_eval("-g", runs[0], "-r", runs[0], "-m", "span_recall4@5")
    assert result.exit_code == 5
    assert "--project" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--corpus", "x.yaml"), 2, "add --project"),
        (("--project", "--corpus", "x.yaml"), 4, "x.yaml"),
        (("--project", "--corpus", "other=x.yaml"), 2, "no system has the name other"),
        (("--project", "--corpus", "x.yaml", "--corpus", "y.yaml"), 2, "a second corpus for all"),
        (("--project", "--uncertainty"), 2, "does not record the uncertainty"),
        (("--project", "--condensed", "-m", "span_recall4@5"), 5, "without --condensed"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    runs: tuple[Path, Path], tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    subject = trec(runs[0], tmp_path / "lists.trec") if "x.yaml" in words else runs[0]
    result = raggs_eval("-g", runs[0], "-r", subject, *words)
    assert result.exit_code == code, result.output
    assert said in result.stderr


def test_labels_of_a_file_have_the_places_of_the_corpus_that_is_named_for_them(
    runs: tuple[Path, Path], folder: Path, tmp_path: Path
) -> None:
    of_run = means(scored("-g", runs[0], "-r", runs[1], "--project"))
    result = invoke("export", runs[0], "--format", "jsonl", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    exported = tmp_path / "out"
    found = scored("-g", exported, "-r", runs[1], "--project", "--corpus", f"golden={folder / 'at100.yaml'}")
    assert means(found) == of_run
    other = raggs_eval("-g", exported, "-r", runs[1], "--project", "--corpus", f"golden={folder / 'at300.yaml'}")
    assert other.exit_code == 5
    assert "was judged on another corpus (" in other.stderr
    assert means(scored("-g", exported, "-r", runs[1], "--project")) == of_run, "its corpus.jsonl holds the places"
    (exported / "corpus.jsonl").unlink()
    bare = raggs_eval("-g", exported, "-r", runs[1], "--project")
    assert "--corpus golden=CONFIG" in bare.stderr


def test_labels_from_0_on_are_carried_over_for_measures_that_take_them(
    runs: tuple[Path, Path], folder: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in (runs[0] / "judge.jsonl").read_text().splitlines()]
    lines = (f"{row['qid']} 0 {row['doc_id']} {int(row['grade'] >= 4)}\n" for row in rows)
    (tmp_path / "qrels").write_text("".join(lines))
    corpus = f"golden={folder / 'at100.yaml'}"
    report = scored("-g", tmp_path / "qrels", "-r", runs[1], "--project", "--corpus", corpus, "--scale", "0-1")
    assert report["systems"][0]["projection"]["proof"] == 1
    assert means(report)["recall@10"] > 0.5


def test_labels_without_places_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q-amber 0 trees.md#1 5\n")
    result = raggs_eval("-g", tmp_path / "qrels", "-r", runs[0], "--project")
    assert result.exit_code == 5
    assert "with --corpus golden=CONFIG" in result.stderr


def test_a_document_that_changed_since_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "trees.md").write_text(TEXT.replace("near the cedar", "near the river"))
    (tmp_path / "queries.jsonl").write_bytes((folder / "queries.jsonl").read_bytes())
    (tmp_path / "at100.yaml").write_text((folder / "at300.yaml").read_text())
    lists = trec(folder / "runs" / "at300", tmp_path / "lists.trec")
    result = raggs_eval("-g", folder / "runs" / "at100", "-r", lists, "--project", "--corpus", tmp_path / "at100.yaml")
    assert result.exit_code == 5
    assert "the document has changed" in result.stderr


def test_a_run_whose_folder_changed_since_is_refused_with_both_hashes(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "trees.md").write_text(TEXT)
    (tmp_path / "queries.jsonl").write_bytes((folder / "queries.jsonl").read_bytes())
    own = made(tmp_path, 300)
    (tmp_path / "docs" / "more.md").write_text("One more.\n")
    result = raggs_eval("-g", folder / "runs" / "at100", "-r", own, "--project")
    assert result.exit_code == 5
    assert "searched another corpus (" in result.stderr


def test_a_run_whose_folder_is_gone_says_how_to_name_its_corpus(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "trees.md").write_text(TEXT)
    (tmp_path / "queries.jsonl").write_bytes((folder / "queries.jsonl").read_bytes())
    own = made(tmp_path, 300)
    (tmp_path / "docs").rename(tmp_path / "moved")
    gone = raggs_eval("-g", folder / "runs" / "at100", "-r", own, "--project")
    assert gone.exit_code == 4
    assert "--corpus CONFIG" in gone.stderr
    named = scored("-g", folder / "runs" / "at100", "-r", own, "--project", "--corpus", f"bm25={folder / 'at300.yaml'}")
    assert means(named)["span_recall4@10"] > 0


def test_a_gate_tells_results_with_and_without_it_apart(runs: tuple[Path, Path], tmp_path: Path) -> None:
    scored("-g", runs[0], "-r", runs[0], "--out", tmp_path)
    result = raggs_eval("-g", runs[0], "-r", runs[0], "--project", "--fail-on-regression", tmp_path / "eval.json")
    assert result.exit_code == 5
    assert "was measured without --project" in result.stderr
