"""Worlds in which a router pays and in which none can, from the command line to the run that the router becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke
from support.cranfield import DATA, needs_cranfield
from support.depths import BASE, DEEP, QUESTIONS, hard_ones, make_depths

from raggs import load_config, run
from raggs.app.diagnose import DiagnoseRequest, DiagnosisResult, run_diagnosis
from raggs.base.errors import DataError, UsageError
from raggs.diagnosis.depth.measuring import DepthFindings

SETTINGS = {"mode": "dense", "base": BASE, "deep": DEEP, "timed": 0}
DEPTHS = ("--mode", "dense", "--base", BASE, "--deep", DEEP)


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Sixty questions over vectors that are written down."""
    config = make_depths(folder, f"contract_{abs(hash(request.node.nodeid))}", helps=True)
    return {"config": config, "golden": folder / "qrels.txt", "settings": SETTINGS}


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def found(self) -> DepthFindings:
        return DepthFindings.model_validate(json.loads((self.folder / "out" / "depth.json").read_text())["found"])


def diagnose(folder: Path, *more: object, code: int = 0) -> str:
    """All that the command prints, on one line."""
    given = ["-c", folder / "raggs.yaml", "-g", folder / "qrels.txt", "-o", folder / "out", *DEPTHS, *more]
    result = invoke("diagnose", "depth", *given)
    assert result.exit_code == code, result.output
    return " ".join(result.stdout.split())


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, str]:
    folder = tmp_path_factory.mktemp("helped")
    make_depths(folder, "depths_helped", helps=True)
    return World(folder), diagnose(folder, "--timed", 3, "--details")


def test_a_router_that_pays_is_told_first_with_its_figures_on_questions_it_did_not_see(helped: Any) -> None:
    world, said = helped
    assert said.startswith("Routing is worthwhile:")
    found = world.found
    assert found.passed and found.told.questions == QUESTIONS // 2
    assert set(found.told.thresholds) <= {"head_margin", "tail_margin"} and found.told.thresholds
    assert found.told.share == pytest.approx(1 / 3, abs=0.15)
    rows = {each.policy: each for each in found.policies}
    assert rows["routed"].far.mean == pytest.approx(rows["deep"].far.mean), "all who gain went deep"
    assert rows["shallow"].far.mean < rows["random"].far.mean < rows["routed"].far.mean <= rows["oracle"].far.mean
    assert rows["routed"].mean_k == pytest.approx(BASE + found.told.share * (DEEP - BASE))
    assert found.told.near_change.mean == 0 and found.swapped.above_random.low > 0
    assert all(each.p50_ms for name, each in rows.items() if name in ("shallow", "deep", "routed"))
    assert any("entropy: needs a reranker" in why for why in found.absent)
    assert "{type: routed, base: 12, deep: 24, when: {head_margin: " in said


def test_the_router_is_written_as_a_run_that_searches_those_questions_deep(helped: Any) -> None:
    world, _ = helped
    config = load_config(world.folder / "out" / "routed.yaml")
    assert config.run.name == "depths-routed" and config.run.retrieve.depth is not None
    folder = run(config).store.folder
    assert folder == world.folder / "runs" / "depths-routed"
    lines = [json.loads(line) for line in (folder / "retrieve.jsonl").read_text().splitlines()]
    deep = {int(line["qid"][1:]) for line in lines if line.get("escalated")}
    assert deep == set(hard_ones())
    said = invoke("status", folder, "--details").output
    assert f"depth: {len(deep)} of {QUESTIONS} queries searched deeper" in said


def test_a_limit_of_time_that_it_does_not_keep_is_told_and_the_run_goes_away(helped: Any) -> None:
    world, _ = helped
    said = diagnose(world.folder, "--timed", 3, "--slo", 0.000001)
    assert "Routing is not worthwhile" in said and "but the p95 latency is" in said
    assert not (world.folder / "out" / "routed.yaml").exists()
    assert "but latency was not measured; the limit is 500 ms." in diagnose(world.folder, *("--timed", 0, "--slo", 500))
    assert "Routing is worthwhile" in diagnose(world.folder, "--timed", 3, "--slo", 60_000)
    assert (world.folder / "out" / "routed.yaml").exists()


def test_where_margins_say_nothing_no_router_is_written(tmp_path: Path) -> None:
    make_depths(tmp_path, "depths_idle", helps=False)
    said = diagnose(tmp_path, "--timed", 0)
    assert "is not worthwhile" in said
    assert World(tmp_path).found.passed is False and World(tmp_path).found.config is None
    assert not (tmp_path / "out" / "routed.yaml").exists()


def test_questions_that_the_embedder_gives_no_vector_are_told(tmp_path: Path) -> None:
    make_depths(tmp_path, "depths_mute", helps=True)
    _mute(tmp_path / "depths_mute.py", QUESTIONS // 4)
    told = diagnose(tmp_path, "--details")
    assert f"the embedder knows no word of {QUESTIONS // 4} queries: vector search finds nothing for them" in told
    assert World(tmp_path).found.unknown == QUESTIONS // 4


def test_an_embedder_that_gives_no_question_a_vector_is_refused(tmp_path: Path) -> None:
    make_depths(tmp_path, "depths_dumb", helps=True)
    _mute(tmp_path / "depths_dumb.py", QUESTIONS)
    for mode in ("dense", "hybrid"):
        with pytest.raises(DataError, match=f"the embedder returns no vector for any of {QUESTIONS} queries"):
            ask(tmp_path, {"mode": mode}, tmp_path / "qrels.txt")


def _mute(module: Path, count: int) -> None:
    """Make the vectors of the first questions zeros."""
    code = module.read_text(encoding="utf-8")
    module.write_text(code.replace("row[numbers[0]] = 1.0", f"row[numbers[0]] = float(numbers[0] >= {count})"))


def test_a_reranker_brings_deep_passages_up_and_its_entropy_is_a_signal(tmp_path: Path) -> None:
    by = {"type": "python", "callable": "depths_reranked:rerank", "folder": "."}
    retrievers = [{"type": "dense"}, {"type": "reranked", "of": {"type": "dense"}, "by": by, "duplicates": None}]
    make_depths(tmp_path, "depths_reranked", helps=False, retrieve={"retrievers": retrievers})
    said = diagnose(tmp_path, "--min-cutoff", 1, "--deep-cutoff", 5, "--timed", 3)
    found = World(tmp_path).found
    assert "Routing is worthwhile" in said and set(found.told.thresholds) == {"entropy"}
    assert found.reranker is not None and found.far == "ra_nwg@5"
    routed = load_config(tmp_path / "out" / "routed.yaml").run.retrieve
    assert [spec.type for spec in routed.retrievers] == ["dense", "reranked"]


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ({"deep": BASE}, UsageError, "is not larger than --base"),
        ({"min_cutoff": DEEP}, UsageError, "is not below --deep-cutoff"),
        ({"deep_cutoff": BASE}, UsageError, "without a reranker the first 12 passages are the same at any depth"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(helped: Any, settings: Any, error: type[Exception], told: str) -> None:
    folder = helped[0].folder
    with pytest.raises(error, match=told):
        ask(folder, settings, folder / "qrels.txt")


def test_too_few_questions_are_a_sentence(helped: Any, tmp_path: Path) -> None:
    labels = (helped[0].folder / "qrels.txt").read_text().splitlines(keepends=True)
    (tmp_path / "few.txt").write_text("".join(line for line in labels if line < "q30"))
    with pytest.raises(
        DataError,
        match="has 30 judged queries; half are used to fit and half to evaluate, so the diagnosis needs at least 40",
    ):
        ask(helped[0].folder, {}, tmp_path / "few.txt")


def ask(folder: Path, settings: dict[str, Any], golden: Path) -> DiagnosisResult:
    request = DiagnoseRequest("depth", folder / "raggs.yaml", SETTINGS | settings, golden=golden, out=folder / "none")
    return run_diagnosis(request)


@needs_cranfield
def test_cranfield_without_a_reranker_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    settings = {
        "name": "cranfield",
        "corpus": {"type": "jsonl", "path": str(DATA / "corpus.jsonl")},
        "queries": {"type": "jsonl", "path": str(DATA / "queries.jsonl")},
        "judge": {"judge": {"type": "qrels", "path": str(DATA / "qrels.trec")}},
        "workspace": str(tmp_path / "runs"),
    }
    request = DiagnoseRequest("depth", settings, {"timed": 0}, golden=DATA / "qrels.trec", out=tmp_path)
    found = run_diagnosis(request).found
    assert isinstance(found, DepthFindings)
    rows = {each.policy: each.far.mean for each in found.policies}
    assert rows["deep"] - rows["shallow"] > 0.02, "at 100 the deep list has more"
    assert found.passed is False and found.told.questions >= 70
