"""Systems that differ in how their documents are cut: each cut has parts of its own, and one golden set serves all."""

from __future__ import annotations

import csv
import json
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import invoke
from support.cutting import GOLDEN, SIZES, make_cut_sweep
from support.forging import mend
from support.llm_server import KEY, LLMServer
from support.paidsweeps import EMBEDDER
from support.project import begin, raggs
from support.sweeping import SweepProject, make_sweep

from raggs.app.audit import audit
from raggs.app.eval_request import EvalRequest, JudgedFiles, MeasureRequest, ProjectionRequest
from raggs.app.evaluate import evaluate
from raggs.app.sweep import choose_again, judge_holes, load_sweep, plan_sweep
from raggs.base.errors import UsageError
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.indexes.passages import PassageStore
from raggs.sweeps.judgments import HOLES

OWN, OTHER = (f"recursive-size{size}" for size in SIZES)
MEASURES = ("ra_nwg", "n_recall4", "ndcg", "span_recall4", "span_precision4")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SweepProject:
    project = make_cut_sweep(tmp_path_factory.mktemp("cuts"), prices={"generator": {"input": 1}})
    project.sweep()
    return project


@pytest.fixture
def project(made: SweepProject, tmp_path: Path) -> SweepProject:
    """A copy that has its golden run and no sweep yet."""
    shutil.copytree(made.folder, tmp_path / "copy", ignore=shutil.ignore_patterns("sweeps"))
    return SweepProject(tmp_path / "copy")


def cut_config(project: SweepProject, size: int) -> Path:
    """A configuration of a run whose corpus is cut in this size."""
    path = project.folder / f"at{size}.yaml"
    settings = yaml.safe_load((project.folder / "raggs.yaml").read_text())
    settings["corpus"]["chunker"] = {**GOLDEN, "size": size}
    path.write_text(yaml.safe_dump(settings))
    return path


def test_names_and_levels_say_the_cut(made: SweepProject) -> None:
    report = made.sweep().report
    assert [row.name for row in report.systems] == [
        f"{mode}+{cut}{rest}+k{k}"
        for cut in (OWN, OTHER)
        for mode, rest in (("lexical", ""), ("dense", "+wordllama"))
        for k in (10, 20)
    ]
    assert {row.levels["chunker"] for row in report.systems} == {OWN, OTHER}
    assert {effect.axis for effect in report.effects} == {"chunker", "mode", "k"}


def test_scores_are_those_of_raggs_eval_directly_and_by_projection(made: SweepProject) -> None:
    report, golden = made.sweep().report, made.folder / "runs" / "golden"
    for size, cut in zip(SIZES, (OWN, OTHER), strict=True):
        rows = [row for row in report.systems if row.levels["chunker"] == cut]
        files = tuple(f"{row.name}={made.out / str(row.file)}" for row in rows)
        onto = ProjectionRequest((str(cut_config(made, size)),))
        carried = evaluate(EvalRequest(JudgedFiles(golden, files, onto), MeasureRequest(MEASURES, (5, 10)))).report
        plain = evaluate(EvalRequest(JudgedFiles(golden, files), MeasureRequest(MEASURES[:3], (5, 10)))).report
        for row, theirs, direct in zip(rows, carried.systems, plain.systems, strict=True):
            assert row.name == theirs.name
            for measure, score in theirs.scores.items():
                assert row.scores[measure] == (direct.scores.get(measure, score) if cut == OWN else score), measure
            assert (row.projection is None) == (cut == OWN)
            if row.projection is not None and theirs.projection is not None:
                ours, stated = (
                    part.model_dump(exclude={"cutoff", "judged"}) for part in (row.projection, theirs.projection)
                )
                assert ours == stated
    assert len({row.scores["ndcg@5"].mean for row in report.systems}) > 2, "else equality says nothing"


def test_each_cut_is_made_once_and_kept_for_other_sweeps(
    project: SweepProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        (project.folder / "docs" / f"short{number}.md").write_text(
            f"A short text {number}, which every cut leaves whole."
        )
    project.change(corpus={"type": "folder", "path": "docs"})
    shutil.rmtree(project.folder / "runs" / ".cache")
    built: list[str] = []
    embedded: list[str] = []
    build, embed = PassageStore.build.__func__, WordLlamaEmbedder.embed  # type: ignore[attr-defined]

    def building(cls: Any, path: Path, *rest: Any, **more: Any) -> PassageStore:
        built.append(path.name)
        found: PassageStore = build(cls, path, *rest, **more)
        return found

    def embedding(self: Any, texts: Any) -> Any:
        embedded.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(PassageStore, "build", classmethod(building))
    monkeypatch.setattr(WordLlamaEmbedder, "embed", embedding)
    first = project.sweep().report
    assert len(built) == len(SIZES)
    passages = {cut.label: cut.passages for cut in first.cuts}
    assert passages[OWN] > passages[OTHER] > 0
    read = [text for text in embedded if not text.startswith("What is")]
    assert sorted(read) == sorted(set(read)), "no text twice"
    assert len(read) == sum(passages.values()) - 5, "the short ones are passages of both cuts"
    built.clear()
    embedded.clear()
    project.change(name="again", axes={**project.settings()["axes"], "mode": ["dense", "hybrid"]})
    project.sweep()
    assert built == []
    assert [text for text in embedded if not text.startswith("What is")] == []


def test_what_a_generator_reads_and_the_time_of_cutting_are_those_of_the_cut(made: SweepProject) -> None:
    report = made.sweep().report
    tokens = {row.name: row.cost.context_tokens for row in report.systems if row.cost}
    usd = {row.name: row.cost.generate for row in report.systems if row.cost}
    small, large = f"lexical+{OWN}+k10", f"lexical+{OTHER}+k10"
    assert (tokens[large] or 0) > 1.5 * (tokens[small] or 0) > 0
    assert (usd[large] or 0) > (usd[small] or 0) > 0
    assert all(cut.seconds is not None and cut.seconds > 0 for cut in report.cuts)
    assert all(row.latency.total is not None for row in report.systems)


def test_the_report_says_who_is_projected_by_which_rule_and_what_may_be_due_to_it(made: SweepProject) -> None:
    report = made.sweep().report
    assert [(cut.label, cut.golden) for cut in report.cuts] == [(OWN, True), (OTHER, False)]
    assert any("4 systems of 8 are scored by projected grades" in note and OTHER in note for note in report.notes)
    assert any("may be due to unjudged text" in note for note in report.notes)
    text = (made.out / "sweep.md").read_text()
    for words in ("## Chunking", "by projection", "as judged", "span_recall4@5", "projected: a passage gets"):
        assert words in text
    with (made.out / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert 0 <= float(row["unjudged characters@5"]) < 1
        assert float(row["span_recall4@5"]) > 0


def characters(place: dict[str, Any]) -> set[tuple[str, int]]:
    return {(place["source"], at) for at in range(place["start"], place["end"])}


def test_references_are_counted_as_characters_one_by_one_are(made: SweepProject) -> None:
    report = made.sweep().report
    rows = [json.loads(line) for line in (made.out / "places.jsonl").read_text().splitlines()]
    places = {(row["cut"], row["doc_id"]): row["span"] for row in rows}
    asked = [json.loads(line) for line in (made.folder / "queries.jsonl").read_text().splitlines()]
    for row in report.systems:
        lines = [line.split() for line in (made.out / str(row.file)).read_text().splitlines()]
        recall, precision = [], []
        for question in asked:
            wanted = characters(question["references"][0]["span"])
            shown = [places[row.levels["chunker"], line[2]] for line in lines if line[0] == question["_id"]][:5]
            read = set().union(*(characters(place) for place in shown))
            recall.append(len(wanted & read) / len(wanted))
            precision.append(len(wanted & read) / sum(place["end"] - place["start"] for place in shown))
        assert row.scores["reference_recall@5"].mean == pytest.approx(sum(recall) / len(asked))
        assert row.scores["reference_precision@5"].mean == pytest.approx(sum(precision) / len(asked))
        assert row.scores["reference_precision@5"].low is not None


def test_references_may_decide_and_then_no_hole_matters(project: SweepProject) -> None:
    project.change(quality=["reference_precision@5", "reference_recall@5"], measures=["reference_recall@3", "mrr"])
    report = project.sweep().report
    assert report.quality == ("reference_precision@5", "reference_recall@5")
    assert {"reference_recall@3", "mrr@5"} <= set(report.measures)
    assert report.system(str(report.choice.winner)).levels["chunker"] == OWN
    assert not any("may be due to" in note for note in report.notes)
    assert report.loyalty == ()
    assert "count characters of references" in (project.out / "sweep.md").read_text()
    assert audit(project.out).ok
    assert choose_again(load_sweep(project.config)).report.choice == report.choice


def test_questions_without_references_have_no_such_measure(project: SweepProject) -> None:
    path = project.folder / "runs" / "golden" / "queries.jsonl"
    rows = [{**json.loads(line), "references": []} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    mend(path.parent)
    report = project.sweep().report
    assert not any(name.startswith("reference_") for name in report.measures)
    project.change(quality=["reference_recall@5"])
    assert "reference_recall" in project.said(code=2)


def test_span_measures_may_decide(project: SweepProject) -> None:
    project.change(quality=["span_precision4@5", "span_recall4@5"])
    report = project.sweep().report
    assert report.quality == ("span_precision4@5", "span_recall4@5")
    assert report.system(str(report.choice.winner)).levels["chunker"] == OWN, "short passages hold less beside the fact"
    buys = next(effect for effect in report.effects if effect.axis == "chunker")
    assert (buys.quality or 0) < 0
    assert audit(project.out).ok


def test_an_audit_derives_all_of_it_and_finds_a_moved_place(made: SweepProject, tmp_path: Path) -> None:
    made.sweep()
    found = audit(made.out)
    assert found.ok and found.records == 8
    folder = tmp_path / "stack"
    shutil.copytree(made.out, folder)
    lines = (folder / "places.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        if row["cut"] == OTHER:
            row["span"]["end"] += 40
    (folder / "places.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert {"places.jsonl", "systems.jsonl"} <= {finding.file for finding in audit(folder).findings}


def test_choosing_again_knows_the_cuts(made: SweepProject) -> None:
    report = made.sweep().report
    again = choose_again(load_sweep(made.config)).report
    assert again.systems == report.systems
    assert again.choice == report.choice
    assert again.cuts == report.cuts


def test_the_plan_counts_the_passages_of_all_cuts_and_names_them(made: SweepProject) -> None:
    plan = plan_sweep(load_sweep(made.config))
    assert plan.cuts == 2
    assert plan.passages == sum(cut.passages for cut in made.sweep().report.cuts)
    assert plan.axes["chunker"] == (OWN, OTHER)
    result = invoke("sweep", "--config", made.config, "--dry-run")
    assert result.exit_code == 0
    assert "in 2 chunkings" in result.output


def test_halving_and_single_systems_know_the_cuts(project: SweepProject) -> None:
    project.sweep()
    theirs = project.folder / "theirs.trec"
    theirs.write_bytes((project.out / "runs" / f"lexical+{OTHER}+k20.trec").read_bytes())
    today = {"mode": {"type": "runfile", "path": "theirs.trec"}, "chunker": {**GOLDEN, "size": SIZES[1]}, "k": 20}
    project.change(
        name="more", systems={"today": today}, baseline="today", search={"type": "halving", "queries": [3, "all"]}
    )
    report = project.sweep().report
    system = report.system("today")
    assert system.scores == report.system(f"lexical+{OTHER}+k20").scores
    assert system.projection is not None
    assert audit(project.out.with_name("more")).ok


def test_a_part_of_the_questions_is_projected_as_all_of_them(project: SweepProject) -> None:
    rows = (project.folder / "queries.jsonl").read_text().splitlines()
    (project.folder / "some.jsonl").write_text("\n".join(rows[1:4]) + "\n")
    project.change(queries={"type": "jsonl", "path": "some.jsonl"})
    report = project.sweep().report
    assert report.questions == 3
    assert all(row.scores["span_recall4@5"].valid == 3 for row in report.systems)
    assert audit(project.out).ok


def test_holes_of_the_golden_cut_are_judged_and_count_for_all_cuts(project: SweepProject) -> None:
    before = project.sweep().report
    asked = judge_holes(load_sweep(project.config))
    assert asked.graded == asked.holes > 0
    after = project.sweep().report
    own = [row for row in after.systems if row.levels["chunker"] == OWN]
    assert all(row.unjudged_characters["10"] == 0 for row in own)
    for old, new in zip(before.systems, after.systems, strict=True):
        if old.levels["chunker"] == OTHER:
            assert (new.unjudged_characters["10"] or 0) < (old.unjudged_characters["10"] or 0)
    assert (project.out / HOLES).is_file()
    assert audit(project.out).ok
    project.change(name="none", axes={"chunker": [{**GOLDEN, "size": 60}], "mode": "lexical", "k": [10]})
    project.sweep()
    with pytest.raises(UsageError, match="no system uses the chunks of the golden set"):
        judge_holes(load_sweep(project.config))


def test_a_golden_cut_that_no_system_has_is_projected_too(project: SweepProject) -> None:
    project.change(axes={"chunker": ["corpus", "markdown"], "mode": "lexical", "k": [10]})
    project.change(corpus={"type": "folder", "path": "docs"})
    report = project.sweep().report
    assert [cut.label for cut in report.cuts] == ["corpus", "markdown"]
    assert all(row.projection is not None for row in report.systems)
    assert all((row.scores["span_recall4@10"].mean or 0) > 0.5 for row in report.systems)
    assert audit(project.out).ok


def test_cuts_that_come_out_alike_are_told_and_share_everything(project: SweepProject) -> None:
    project.change(axes={"chunker": [{"type": "recursive", "size": [5000, 6000]}], "mode": "lexical", "k": [10]})
    report = project.sweep().report
    assert "recursive-size5000 and recursive-size6000 produce the same chunks" in report.notes
    one, other = report.systems
    assert one.scores == other.scores


@pytest.mark.parametrize(
    ("chunker", "said"),
    [
        ("recursiv", "axes.chunker.0: unknown type 'recursiv'"),
        (["recursive", {"type": "recursive", "size": 200}], "recursive occurs twice with the same settings"),
        ([{"type": "recursive", "size": [200, 200]}], "recursive occurs twice with the same settings"),
        ([{"type": "recursive", "size": 0}], "axes.chunker.0.size: input should be greater than or equal to 1"),
        (
            [{"type": "python", "callable": "mine:nothing"}],
            "chunked by python-nothing: the corpus contains no passages",
        ),
    ],
)
def test_a_chunker_that_cannot_be_is_named(project: SweepProject, chunker: Any, said: str) -> None:
    (project.folder / "mine.py").write_text("def nothing(text):\n    return []\n")
    project.change(axes={"chunker": chunker, "mode": "lexical"})
    assert said in project.said(code=5)
    sys.modules.pop("mine", None)


def test_a_corpus_that_comes_in_passages_is_cut_by_nobody(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes={"chunker": ["recursive"], "mode": "lexical"})
    told = project.said(code=5)
    assert "a corpus jsonl consists of passages already, so it cannot be chunked" in told
    assert "{type: folder, path: ...}" in told


def test_a_corpus_on_a_server_is_cut_by_nobody(project: SweepProject) -> None:
    project.change(corpus={"type": "elasticsearch", "url": "http://localhost:1", "index": "x"})
    assert "a corpus elasticsearch consists of passages already, so it cannot be chunked" in project.said(code=5)


def test_a_chunker_that_asks_models_cuts_before_the_sweep(project: SweepProject) -> None:
    project.change(axes={"chunker": {"type": "llm", "model": "openai/x"}, "mode": "lexical"})
    assert "raggs chunks make" in project.said(code=3)
    semantic = {"type": "semantic", "embedder": {"type": "litellm", "model": "openai/x"}}
    project.change(axes={"chunker": semantic, "mode": "lexical"})
    assert "set a local embedder" in project.said(code=5)


def test_labels_without_places_are_of_no_use_to_other_cuts(project: SweepProject) -> None:
    assert (
        raggs(
            "export", project.folder / "runs/golden", "--format", "trec", "--out", project.folder / "labels"
        ).returncode
        == 0
    )
    project.change(golden="labels/qrels.txt", corpus={"type": "folder", "path": "docs", "chunker": GOLDEN})
    project.change(queries={"type": "jsonl", "path": "queries.jsonl"})
    told = project.said(code=5)
    assert "has no position in a document" in told
    assert "--corpus golden=CONFIG" in told


def test_documents_that_changed_since_are_told(project: SweepProject) -> None:
    path = project.folder / "docs" / "amber.md"
    path.write_text(path.read_text().replace("The", "A"))
    project.change(corpus={"type": "folder", "path": "docs"})
    told = project.said(code=5)
    assert "differs from the text that" in told and "was judged on" in told


def test_a_paid_embedder_reads_no_text_twice_and_each_question_once_for_all_cuts(
    project: SweepProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LLMServer() as server:
        embedder = {"type": "litellm", "model": EMBEDDER, "dims": 8}
        axes = {"chunker": [{"type": "recursive", "size": [40, 80]}], "embedder": embedder, "mode": "dense", "k": [10]}
        llm = {"api_base": server.url, "backoff_s": 0.001}
        project.change(axes=axes, llm=llm, prices={EMBEDDER: {"input": 1.0}})
        plan = plan_sweep(load_sweep(project.config))
        assert server.count == 0
        first = project.sweep().report
        assert sum(line.calls for line in plan.paid) >= server.count > 0
        texts = [text for body in server.requests for text in body["input"]]
        assert len(texts) == len(set(texts)) == sum(cut.passages for cut in first.cuts) + 6
        before = server.count
        project.change(axes={**axes, "chunker": [{"type": "recursive", "size": [40, 80]}, "corpus"]})
        project.sweep()
        assert server.count == before, "`corpus` is the cut of the golden set, which was embedded"
        assert server.paid_twice == []


@pytest.mark.nightly
def test_kills_change_nothing(project: SweepProject, tmp_path: Path) -> None:
    calm = SweepProject(tmp_path / "calm")
    shutil.copytree(project.folder, calm.folder)
    calm.sweep()
    draw = random.Random(3)
    for _ in range(3):
        process = begin("sweep", "--config", project.config, "--quiet")
        time.sleep(draw.uniform(0.1, 2))
        process.kill()
    done = raggs("sweep", "--config", project.config, "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.files() == calm.files()
    for name in ("places.jsonl",):
        assert (project.out / name).read_bytes() == (calm.out / name).read_bytes()
    assert audit(project.out).ok
