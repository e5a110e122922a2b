"""`raggs prompts`: what a model is asked can be read without knowing where raggs is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import invoke

from raggs.prompts import FOLDER, load_prompt


def prompts(*arguments: str, code: int = 0) -> str:
    result = invoke("prompts", *arguments)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_prompt_is_printed_as_its_file_has_it(language: str) -> None:
    assert prompts("show", "grade@1", "--language", language) == (FOLDER / f"grade@1.{language}.md").read_text("utf-8")


def test_what_is_printed_can_be_used_as_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.en.md"
    mine.write_text(prompts("show", "order@1"), encoding="utf-8")
    assert load_prompt(mine, "order").template("en") == load_prompt("order@1", "order").template("en")


def test_the_list_names_each_prompt_its_languages_and_its_use() -> None:
    assert "grade@1        en, fr  How useful one passage is" in prompts("list")
    found = json.loads(prompts("list", "--json"))
    judging = ["grade@1", "grade@2", "digit@1", "grades@1", "order@1", "order@2"]
    assert list(found) == [
        *judging,
        "rewrite@1",
        "standalone@1",
        "hyde@1",
        "multi_query@1",
        "rerank@1",
        "relevance@1",
        "split@1",
        "ask@1",
        "answer@1",
        "correct@1",
        "evidence@1",
        "suffices@1",
    ]
    assert found["order@1"]["languages"] == ["en", "fr"]


def test_json_has_the_hash_that_answers_depend_on() -> None:
    found = json.loads(prompts("show", "grade@1", "--json"))
    assert found["sha256"] == load_prompt("grade@1", "grade").sha256


def test_a_name_or_language_that_is_not_there_is_said_in_one_sentence() -> None:
    assert "did you mean 'grade@1'" in prompts("show", "grade1", code=5)
    assert "known: en, fr" in prompts("show", "grade@1", "-l", "de", code=4)
