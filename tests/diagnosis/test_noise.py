"""What noise costs and what rewriting brings back, over raggs' own questions as a golden set of two languages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.llm_server import KEY, LLMServer
from support.project import make_project

from raggs.app.diagnose import DiagnoseRequest, DiagnosisResult, forecast_diagnosis, run_diagnosis
from raggs.base.errors import RaggsError, UsageError
from raggs.diagnosis.models import MeanPart
from raggs.diagnosis.noise import NoiseDiagnosis, verdict
from raggs.diagnosis.noise.measuring import NO_REWRITER, LevelPart, NoiseDiagnosisConfig, NoiseFindings, own_questions
from raggs.parts.noises import LANGUAGES

MODEL = "openai/judge"
COUNT = 12  # questions a language
SMALL = {"draws": 1, "levels": (0, 4), "searched": (4,)}


def world(folder: Path, languages: tuple[str, ...] = LANGUAGES) -> Path:
    """A golden set in files: each question's ideal text has grade 5, the next one's grade 1."""
    ideals = [each for code in languages for each in own_questions(code)[:COUNT]]
    names = {each.key: each.key.replace("/", "-") for each in ideals}
    corpus = [{"_id": f"d-{names[each.key]}", "title": "", "text": each.text} for each in ideals]
    queries = [{"_id": names[each.key], "text": each.question, "language": each.language} for each in ideals]
    grades = [
        f"{query['_id']}\t{corpus[(at + step) % len(corpus)]['_id']}\t{grade}"
        for at, query in enumerate(queries)
        for step, grade in ((0, 5), (1, 1))
    ]
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "qrels").mkdir()
    header = "query-id\tcorpus-id\tscore"
    (folder / "qrels" / "test.tsv").write_text("\n".join([header, *grades, ""]), encoding="utf-8")
    return folder


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Both parts, small."""
    return {"golden": world(folder), "settings": SMALL}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> DiagnosisResult:
    folder = world(tmp_path_factory.mktemp("golden"))
    return run_diagnosis(
        DiagnoseRequest("noise", golden=folder, settings={"draws": 2}, out=tmp_path_factory.mktemp("out"))
    )


@pytest.fixture(scope="module")
def found(measured: DiagnosisResult) -> NoiseFindings:
    assert isinstance(measured.found, NoiseFindings)
    return measured.found


def levels(found: NoiseFindings, language: str, rewriter: str = NO_REWRITER) -> list[LevelPart]:
    return [part for part in found.cosines if (part.language, part.rewriter) == (language, rewriter)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_cosines_fall_with_the_level_and_level_0_is_not_1(found: NoiseFindings, language: str) -> None:
    cosines = [part.cosine.mean for part in levels(found, language)]
    assert cosines == sorted(cosines, reverse=True)
    assert 0.3 < cosines[0] < 0.95
    assert all(part.change.high < 0 for part in levels(found, language)[1:])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rules_bring_something_back_and_cost_questions_without_noise_nothing(
    found: NoiseFindings, language: str
) -> None:
    cleaned = levels(found, language, "clean")
    assert cleaned[0].change.mean == 0 and cleaned[0].cosine == levels(found, language)[0].cosine
    assert all(part.regained.low > 0 for part in cleaned[1:3])
    plain = [part for part in found.ends if part.level == 0 and part.rewriter == "clean"]
    assert plain and all(part.change.mean == 0 for part in plain)


def test_every_system_is_measured_on_the_paper_s_measures_and_lists(found: NoiseFindings) -> None:
    assert found.searched == 2 * COUNT and found.untold is None and found.strange == 0
    assert {part.system for part in found.ends} == {"lexical", "dense", "hybrid"}
    assert {part.measure for part in found.ends} == {"n_recall4@10", "n_recall4@30", "ra_nwg@10", "ra_nwg@30"}
    for part in found.ends:
        assert (part.change.mean == 0) or part.level
        assert (part.gained.mean is None) == (part.rewriter == NO_REWRITER)
    noisy = [part for part in found.shuffles if part.level == 4 and part.rewriter == NO_REWRITER]
    assert noisy and all(0 < part.overlap.mean < 1 for part in noisy if part.k == 10)


def test_what_was_published_stands_beside_and_is_not_repeated(measured: DiagnosisResult, found: NoiseFindings) -> None:
    assert {(part.language, part.level, part.cosine) for part in found.targets} >= {("fr", 4, 0.522), ("en", 0, 0.908)}
    page = (measured.folder / "noise.md").read_text(encoding="utf-8")
    assert "published results" in page
    assert {path.name for path in measured.files} == {
        "noise.json", "noise.md", "noise-cosine.svg", "noise-search.svg"
    }  # fmt: skip


def test_the_verdict_says_what_noise_costs_and_who_brings_what_back(found: NoiseFindings) -> None:
    told = r"Noise of level 4 reduces .*; rewriter clean recovers .*\. "
    unclear = r"Its effect on .* of hybrid search is not significant .*"
    assert re.fullmatch(told + unclear, found.verdict), found.verdict
    clear = [each.model_copy(update={"change": MeanPart(mean=-0.2, low=-0.3, high=-0.1)}) for each in found.ends]
    told = verdict(found.cosines, clear)
    loss = "Noise of level 4 reduces n_recall4@10 of hybrid search by 20.0 points"
    assert told.startswith(f"{loss}; rewriter clean recovers ")
    action = NoiseDiagnosis(NoiseDiagnosisConfig()).action(found.model_copy(update={"ends": tuple(clear)}))
    assert action is not None
    command = "raggs diagnose noise --rewriter llm:gpt-5-mini --dry-run"
    assert action.sentence == f"First try another rewriter, such as a model: {command}."


def test_too_few_judged_questions_are_told_in_the_verdict(tmp_path: Path) -> None:
    golden = world(tmp_path)
    labels = golden / "qrels" / "test.tsv"
    labels.write_text("".join(labels.read_text(encoding="utf-8").splitlines(keepends=True)[:5]), encoding="utf-8")
    few = run_diagnosis(DiagnoseRequest("noise", golden=golden, settings=SMALL, out=tmp_path / "out")).found
    assert re.search(
        r"\. Nothing was searched: .* has 2 judged queries in en, fr; at least 5 are needed\.$", few.verdict
    )


def test_without_a_golden_set_the_cosines_are_measured_and_the_rest_is_said(tmp_path: Path) -> None:
    alone = run_diagnosis(DiagnoseRequest("noise", settings=SMALL, out=tmp_path)).found
    assert isinstance(alone, NoiseFindings)
    assert alone.cosines and not alone.ends
    assert "no golden set (pass --golden" in (alone.untold or "")


def test_a_golden_set_gives_questions_and_ideal_texts_too(tmp_path: Path) -> None:
    golden = world(tmp_path)
    settings = SMALL | {"of": "golden", "retrieval": False}
    alone = run_diagnosis(DiagnoseRequest("noise", golden=golden, settings=settings, out=tmp_path / "out")).found
    assert isinstance(alone, NoiseFindings)
    assert alone.questions == {"en": COUNT, "fr": COUNT}
    assert levels(alone, "en")[0].cosine.mean == pytest.approx(_mean_cosine(own_questions("en")[:COUNT]), abs=1e-5)
    assert "--cosine-only" in (alone.untold or "")


def _mean_cosine(ideals: Any) -> float:
    from raggs.parts.embedders import REGISTRY

    kind = REGISTRY.load("wordllama")
    embedder = kind(kind.Config.model_validate({"type": "wordllama"}))
    questions, texts = (
        embedder.embed([each.question for each in ideals]),
        embedder.embed([each.text for each in ideals]),
    )
    return float((questions * texts).sum(axis=1).mean())


def test_a_forecast_counts_questions_and_searches(tmp_path: Path) -> None:
    request = DiagnoseRequest("noise", golden=world(tmp_path), settings=SMALL, out=tmp_path / "out")
    first, second = forecast_diagnosis(request).what
    assert first == "120 queries, 2 rewriters, 1 embedder by cosine"
    assert second == "96 queries searched by lexical, dense and hybrid search"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"languages": ("de",)}, "there is no noise in 'de'"),
        ({"levels": (5,)}, "no noise level 5"),
        ({"searched": (0,)}, "add a level above 0: level 0 has no noise"),
        ({"rewriters": ("clean", "clean")}, "a rewriter is given twice"),
        ({"rewriters": ("tidy",)}, "tidy"),
        ({"noises": ("sirens",)}, "sirens"),
        ({"cutoffs": (0,)}, "a cutoff is at least 1"),
    ],
)
def test_a_setting_that_cannot_be_is_said(settings: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        _ = DiagnoseRequest("noise", settings=settings).diagnosis


def test_too_few_questions_of_a_language_are_said(tmp_path: Path) -> None:
    golden = world(tmp_path, ("en",))
    with pytest.raises(RaggsError, match="0 queries with labels in 'fr'; at least 5 are needed"):
        run_diagnosis(DiagnoseRequest("noise", golden=golden, settings={"of": "golden"}, out=tmp_path / "out"))
    few = run_diagnosis(
        DiagnoseRequest("noise", golden=golden, settings=SMALL | {"languages": ("fr",)}, out=tmp_path / "out")
    ).found
    assert isinstance(few, NoiseFindings)
    assert few.strange == 0 and "0 judged queries in fr; at least 5 are needed" in (few.untold or "")


PAID = {"draws": 1, "levels": (4,), "languages": ("en",), "rewriters": ("clean", f"llm:{MODEL}"), "retrieval": False}


def test_a_paid_rewriter_is_forecast_asked_once_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LLMServer() as server:
        project = make_project(tmp_path / "run")
        project.change(llm={"api_base": server.url, "prices": {MODEL: {"input": 1.0, "output": 2.0}}})
        request = DiagnoseRequest("noise", project.config, settings=PAID, out=tmp_path / "out")
        (line,) = forecast_diagnosis(request).estimates
        assert (line.stage, line.who, line.calls, server.count) == ("rewrite", MODEL, 60, 0)
        assert line.usd is not None and line.usd > 0
        paid = run_diagnosis(request)
        assert isinstance(paid.found, NoiseFindings)
        assert server.count == 60, "30 questions with noise and without; the examples are among them"
        name = f"llm:{MODEL}"
        restated = {part.level: part.cosine.mean for part in levels(paid.found, "en", name)}
        plain = {part.level: part.cosine.mean for part in levels(paid.found, "en")}
        assert restated == pytest.approx(plain), "this model repeats the question"
        again = DiagnoseRequest("noise", project.config, settings=PAID | {"draws": 2}, out=tmp_path / "more")
        (line,) = forecast_diagnosis(again).estimates
        assert (line.calls, line.cached) == (30, 60)


def test_a_reranker_s_lists_are_measured_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared_words.py").write_text(
        "def score(query, passages):\n"
        "    words = set(query.lower().split())\n"
        "    return [len(words & set(passage.lower().split())) for passage in passages]\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    settings = SMALL | {"languages": ("en",)}
    golden = world(tmp_path, ("en",))
    rerankers = ["python:shared_words:score"]
    request = DiagnoseRequest("noise", golden=golden, rerankers=rerankers, settings=settings, out=tmp_path / "out")
    alone = run_diagnosis(request).found
    assert isinstance(alone, NoiseFindings)
    assert f"reranked by {rerankers[0]}" in {part.system for part in alone.ends}
    assert "reranked by" in alone.verdict


def test_an_embedder_that_knows_no_word_of_a_language_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def embed(texts):\n    return [[0.0, 0.0] for _ in texts]\n"
    (tmp_path / "no_words.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    request = DiagnoseRequest("noise", embedders=["python:no_words:embed:dims=2"], settings=SMALL, out=tmp_path / "out")
    with pytest.raises(RaggsError, match="knows no word of the queries in 'en'") as told:
        run_diagnosis(request)
    assert "--language" in (told.value.remedy or "")
