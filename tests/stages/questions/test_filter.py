"""Which questions are kept, and what is measured of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.asking import make_config

from raggs.app.questions import make_questions, open_questions
from raggs.base.artifacts import Passage, Reference, Span
from raggs.config.load import load_config
from raggs.stages.questions.filter import FilterConfig, holds_excerpt, thresholds_of, usual_thresholds
from raggs.stages.questions.records import FilterRecord
from raggs.stats.question_filters import Thresholds


def filtered(folder: Path, *settings: str, **sections: Any) -> list[FilterRecord]:
    config = make_config(folder, **sections)
    loaded = load_config(config, ["questions.filter={}", *settings])
    with open_questions(loaded) as runner:
        made = make_questions(runner, folder / "questions.jsonl")
        return list(made.run.typed("filter", FilterRecord))


def scripted(folder: Path, *lines: str) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "script.jsonl").write_text("".join(f"{line}\n" for line in lines))
    ask = {"asker": {"type": "scripted", "path": "script.jsonl"}}
    return {"questions": {"sample": {"n": len(lines), "window": 4000, "types": {"fact": 1}}, "ask": ask}}


LINE = '{{"qid": "q00000{}", "question": "{}", "references": ["is a device"]}}'


def test_of_two_that_are_the_same_the_earlier_stays(tmp_path: Path) -> None:
    asked = ("What kind of device is it?", "What kind of device is it??", "Which device opens a valve?")
    lines = [LINE.format(number, text) for number, text in enumerate(asked, start=1)]
    found = filtered(tmp_path, **scripted(tmp_path, *lines))
    assert [record.kept for record in found] == [True, False, True]
    assert (found[1].rejected, found[1].nearest) == ("duplicate", "q000001")
    assert found[1].similarity is not None and found[1].similarity > 0.85
    assert found[0].leakage is not None and found[1].leakage is None


def test_an_excerpt_about_something_else_takes_its_question_with_it(tmp_path: Path) -> None:
    lines = [
        LINE.format(1, "What kind of device is it?"),
        LINE.format(2, "Who sang opera in Vienna yesterday evening?"),
    ]
    found = filtered(tmp_path, **scripted(tmp_path, *lines))
    assert [record.rejected for record in found] == [None, "off the question"]
    assert found[1].relevance is not None and found[1].relevance < 0.15


def test_difficulty_is_left_out_where_it_is_not_wanted(tmp_path: Path) -> None:
    assert all(record.found_by is None for record in filtered(tmp_path / "1", "questions.filter.k=0"))
    found = filtered(tmp_path / "2", "retrieve.retrievers=[{type: bm25}]")
    assert {record.found_by for record in found if record.kept} <= {(), ("bm25",)}
    assert any(record.found_by == ("bm25",) for record in found)


def test_all_questions_about_a_window_are_in_one_part(tmp_path: Path) -> None:
    found = filtered(tmp_path, "questions.sample.n=90", "questions.filter.dev=0.3")
    parts = [record.part for record in found]
    assert 0.1 < parts.count("dev") / len(parts) < 0.5


def test_thresholds_are_those_of_the_document_its_folder_the_settings_or_the_embedder() -> None:
    corpora = {"guide": {"excerpt": 0.5}, "guide/a": {"duplicate": 0.9}, "b.md": {"excerpt": 0.1, "duplicate": 0.2}}
    config = FilterConfig.model_validate({"corpora": corpora, "duplicate": 0.8})
    usual = usual_thresholds("wordllama", config)
    assert usual == Thresholds(0.15, 0.8)
    assert usual_thresholds("litellm", FilterConfig()) == Thresholds(0.41, 0.70)
    assert thresholds_of("guide/deep/c.md", usual, config) == Thresholds(0.5, 0.8)
    assert thresholds_of("guide/a.md", usual, config) == Thresholds(0.15, 0.9)
    assert thresholds_of("b.md", usual, config) == Thresholds(0.1, 0.2)
    assert thresholds_of("c.md", usual, config) == usual


@pytest.mark.parametrize(("start", "end", "held"), [(0, 20, True), (0, 14, False), (15, 40, True), (12, 13, True)])
def test_a_passage_holds_an_excerpt_by_half(start: int, end: int, held: bool) -> None:
    passage = Passage(doc_id="p", text="x" * (end - start), span=Span(source="a", start=start, end=end))
    reference = Reference(text="y" * 10, span=Span(source="a", start=10, end=20))
    assert holds_excerpt(passage, reference) == held
    assert not holds_excerpt(passage, Reference(text="y", span=Span(source="b", start=10, end=20)))
    assert holds_excerpt(passage, Reference(text="y", doc_id="p"))
