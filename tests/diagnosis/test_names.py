"""The diagnosis of names from request to findings: gates of the offline embedder, rerankers, refusals, figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import raggs
from raggs.app.diagnose import DiagnoseRequest, DiagnosisResult, forecast_diagnosis, run_diagnosis
from raggs.base.errors import RaggsError
from raggs.diagnosis.base import found_in, kind_of
from raggs.diagnosis.names.models import NamesFindings, SubjectPart
from raggs.diagnosis.names.scoring import EmbedderScorer

MODULE = """
def embed(texts):
    return [[float("é" not in text and "à" not in text), 0.0] for text in texts]

def alike(texts):
    return [[1.0, 0.0] for _ in texts]

def overlap(query, passages):
    asked = set(query.replace("?", " ").split())
    return [float(len(asked & set(p.replace(".", " ").replace("'", " ").split()))) for p in passages]
"""


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, object]:
    settings = {"questions": 6, "runs": 2, "languages": ["fr"], "perturbers": ["hard_name_mask", "initials_form"]}
    return {"settings": settings}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> DiagnosisResult:
    return raggs.diagnose("names", out=tmp_path_factory.mktemp("names"), runs=2)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    name = f"mine_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    return name


def subject(done: DiagnosisResult, language: str) -> SubjectPart:
    assert isinstance(done.found, NamesFindings)
    return next(each for each in done.found.subjects if each.language == language)


def percent(done: DiagnosisResult, language: str, perturber: str) -> float:
    found = next(each for each in subject(done, language).ablations if each.perturber == perturber)
    assert found.percent.value is not None
    return found.percent.value


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_gates_of_the_offline_embedder(measured: DiagnosisResult, language: str) -> None:
    assert percent(measured, language, "hard_name_mask") == -100.0
    for identity in ("gibberish_name", "edit_distance_near_miss"):
        assert percent(measured, language, identity) <= -50
    for form in ("name_order_inversion", "author_position_shift", "case_punct_perturb"):
        assert abs(percent(measured, language, form)) <= 2, form
    assert abs(percent(measured, language, "unicode_normalization_stress")) <= 1


def test_base_margins_are_those_of_static_vectors(measured: DiagnosisResult) -> None:
    english, french = subject(measured, "en"), subject(measured, "fr")
    assert english.name.value == pytest.approx(0.37, abs=0.04)
    assert french.name.value == pytest.approx(0.17, abs=0.03)
    for each in (english, french):
        assert each.topic.value and each.both.value and each.name.value
        assert each.both.value > max(each.name.value, each.topic.value) > 0
        assert each.ratio == pytest.approx(each.name.value / each.topic.value)
        assert each.name.low is not None and each.name.low < each.name.value < (each.name.high or 0)
        assert each.small < 0.01


def test_texts_as_they_stand_lose_what_hygiene_saves(tmp_path: Path) -> None:
    done = raggs.diagnose("names", out=tmp_path, runs=1, raw=True, perturbers=["unicode_normalization_stress"])
    assert percent(done, "en", "unicode_normalization_stress") < -5
    assert percent(done, "fr", "unicode_normalization_stress") < -5


def test_the_verdict_says_who_fails_by_what(measured: DiagnosisResult) -> None:
    assert measured.passed is False
    told = r'wordllama fails: "initials only" costs \d\d% \(en\) and \d\d% \(fr\) of the name margin\. First fuse .*'
    assert re.fullmatch(told, measured.verdict)
    figure = kind_of("names").key_figure(measured.found)
    assert figure is not None and '"initials only" (wordllama, fr)' in figure.label
    assert float(figure.value.rstrip("%")) < -20


def test_files_hold_tables_and_a_figure_a_language(measured: DiagnosisResult) -> None:
    names = [path.name for path in measured.files]
    assert names == ["names.json", "names.md", "names-en.svg", "names-fr.svg"]
    text = (measured.folder / "names.md").read_text()
    assert "similar names" in text and "-100.0 [-100.0, -100.0]" in text
    assert "| change of the names | wordllama, en | wordllama, fr |" in text
    figure = (measured.folder / "names-fr.svg").read_text()
    labels = [part.label for part in subject(measured, "fr").ablations]
    assert all(label in figure for label in labels) and "voyage-3.5, published" in figure
    assert found_in(measured.report) == measured.found
    assert json.loads((measured.folder / "names.json").read_text())["found"]["cleaned"] is True


def test_the_same_by_a_reranker_and_another_embedder(tmp_path: Path, module: str) -> None:
    settings = {"questions": 8, "runs": 2, "reranker_runs": 1, "languages": ["en"]}
    done = raggs.diagnose(
        "names", out=tmp_path / "d", embedders=["wordllama:64"], rerankers=[f"python:{module}:overlap"], **settings
    )
    assert isinstance(done.found, NamesFindings)
    first, second = done.found.subjects
    assert (first.what, first.runs, second.what, second.runs) == ("embedder", 2, "reranker", 1)
    mask = next(each for each in second.ablations if each.perturber == "hard_name_mask")
    assert second.name.value and second.name.value >= 1 and mask.of_means == -100.0


def test_what_was_scored_before_a_kill_is_not_scored_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"questions": 5, "runs": 1, "languages": ["en"]}
    first = raggs.diagnose("names", out=tmp_path / "d", perturbers=["remove_label"], **few)
    scored: list[object] = []
    score = EmbedderScorer.score
    monkeypatch.setattr(EmbedderScorer, "score", lambda self, runs: scored.append(runs) or score(self, runs))
    again = raggs.diagnose("names", out=tmp_path / "d", perturbers=["remove_label", "initials_form"], **few)
    assert len(scored) == 1
    assert subject(again, "en").ablations[0] == subject(first, "en").ablations[0]


def test_who_tells_nobody_apart_fails(tmp_path: Path, module: str) -> None:
    few = {"questions": 5, "runs": 2, "languages": ["en"]}
    done = raggs.diagnose("names", out=tmp_path / "d", embedders=[f"python:{module}:alike:dims=2"], **few)
    assert done.passed is False
    assert done.verdict.startswith("Preliminary (5 queries, at least 10 needed): ")
    assert "fails: it hardly distinguishes names in en. First fuse it with a lexical retriever" in done.verdict
    assert subject(done, "en").ratio is None


def refusals(module: str) -> dict[str, tuple[dict[str, object], str]]:
    return {
        "a language": ({"settings": {"languages": ["de"]}}, "there are no test queries in 'de'"),
        "one field": ({"settings": {"name_field": "author"}}, "pass both --name-field and --topic-field, or neither"),
        "no corpus": (
            {"settings": {"name_field": "author", "topic_field": "title"}},
            "no corpus found — pass --config",
        ),
        "a perturber": ({"settings": {"perturbers": ["gibberish"]}}, "did you mean 'gibberish_name'"),
        "one twice": ({"settings": {"perturbers": ["remove_label", "remove_label"]}}, "given twice"),
        "no French": (
            {"settings": {"questions": 40, "runs": 1}, "embedders": [f"python:{module}:embed:dims=2"]},
            "returns no vector for queries in 'en', e.g. .* — pass languages that it knows: --language",
        ),
    }


@pytest.mark.parametrize("case", list(refusals("")))
def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, module: str, case: str) -> None:
    given, said = refusals(module)[case]
    with pytest.raises(RaggsError, match=said):
        run_diagnosis(DiagnoseRequest(**{"kind": "names", "out": tmp_path / "d", **given}))  # type: ignore[arg-type]


def corpus(folder: Path, authors: int) -> Path:
    rows = [
        {
            "_id": f"d{n}",
            "text": f"On matter {n}.",
            "title": f"Matter number {n}",
            "metadata": {"author": f"Name{n} Of{n}"},
        }
        for n in range(authors)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "What is matter 3?"}\n')
    inputs = "corpus: {type: jsonl, path: corpus.jsonl}\nqueries: {type: jsonl, path: queries.jsonl}\n"
    (folder / "raggs.yaml").write_text(f"name: names\n{inputs}judge: {{judge: {{type: scripted, path: none}}}}\n")
    return folder / "raggs.yaml"


def of_fields(folder: Path, config: Path, **fields: str) -> DiagnoseRequest:
    settings = {"name_field": "author", "topic_field": "title", "questions": 10, "runs": 1, "languages": ["en"]}
    return DiagnoseRequest("names", config, {**settings, **fields}, out=folder / "d")


def test_names_and_topics_of_a_corpus(tmp_path: Path) -> None:
    done = run_diagnosis(of_fields(tmp_path, corpus(tmp_path, 30)))
    assert isinstance(done.found, NamesFindings)
    assert done.found.names == {"en": 30} and done.found.source == "the field author of the corpus"


@pytest.mark.parametrize(
    ("authors", "fields", "said"),
    [
        (19, {}, "gives 19 different names, at least 20 are needed"),
        (30, {"name_field": "autor"}, "no passage of the corpus has a field 'autor' — did you mean 'author'"),
    ],
)
def test_a_corpus_without_enough_is_one_sentence(
    tmp_path: Path, authors: int, fields: dict[str, str], said: str
) -> None:
    with pytest.raises(RaggsError, match=said):
        run_diagnosis(of_fields(tmp_path, corpus(tmp_path, authors), **fields))


def test_a_forecast_counts_bundles_and_asks_nobody(tmp_path: Path) -> None:
    told = forecast_diagnosis(DiagnoseRequest("names", out=tmp_path / "d"))
    assert told.what == ("33,000 test cases (a query and five candidates), scored by 1 embedder",)
    assert told.estimates == () and not (tmp_path / "d").exists()


def test_a_paid_embedder_is_priced_by_its_different_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    few = {"questions": 4, "runs": 2, "languages": ["en"], "perturbers": ["remove_label"]}
    paid = ["litellm:openai/text-embedding-3-small"]
    (line,) = forecast_diagnosis(DiagnoseRequest("names", None, few, out=tmp_path / "d", embedders=paid)).estimates
    assert line.who == "openai/text-embedding-3-small" and line.usd is not None and 0 < line.usd < 0.001
    assert 50 < line.input_tokens < 5000


@pytest.mark.parametrize(
    ("reranker", "calls", "usd"),
    [("litellm:cohere/rerank-v3.5", 16, 16 * 2 / 1000), ("pointwise:openai/gpt-4o-mini", 80, None)],
)
def test_a_paid_reranker_is_priced_by_its_bundles(tmp_path: Path, reranker: str, calls: int, usd: float | None) -> None:
    few = {"questions": 4, "runs": 5, "reranker_runs": 2, "languages": ["en"], "perturbers": ["remove_label"]}
    (line,) = forecast_diagnosis(DiagnoseRequest("names", None, few, out=tmp_path, rerankers=[reranker])).estimates
    assert (line.stage, line.calls) == ("rerank", calls)
    assert line.usd is not None and line.usd > 0
    assert usd is None or line.usd == pytest.approx(usd)
