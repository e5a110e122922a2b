"""Prompts: what ships is sound, what users bring is checked, and values are never expanded twice."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import ConfigError, NotFoundError
from raggs.llm.prices import remembered_tokens
from raggs.parts.judges.litellm import check_grade, check_order
from raggs.prompts import FOLDER, PLACEHOLDERS, Prompt, Template, known_prompts, load_prompt
from raggs.reviewing.agreeing import rubric_of

SHIPPED = [(f"{task}@1", task) for task in ("grade", "grades", "order", "rewrite", "hyde", "multi_query", "rerank")]
SHIPPED += [("relevance@1", "relevance"), ("split@1", "split")]
LONGER = [("grade@2", "grade"), ("order@2", "order")]
SHIPPED += LONGER
GRADE = "A note.\n\n# system\n\nBe fair.\n\n# user\n\n{{query}} against {{ passage }}\n"


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "task"), SHIPPED)
def test_what_ships_is_there_in_both_languages(name, task):
    prompt = load_prompt(name, task)
    assert prompt.name == name
    assert set(prompt.templates) == {"en", "fr"}
    for language, parts in prompt.templates.items():
        assert parts.system
        assert parts.note
        assert "JSON" in parts.system
        fields = dict.fromkeys(PLACEHOLDERS[task], "VALUE")
        system, user = prompt.render(language, **fields)
        assert (system["role"], user["role"]) == ("system", "user")
        assert user["content"].count("VALUE") == len(fields)
        assert "{{" not in system["content"] + user["content"]


@pytest.mark.parametrize(("name", "task"), SHIPPED)
@pytest.mark.parametrize(
    ("language", "words"), [("en", ("untrusted data", "never to be obeyed")), ("fr", ("non fiable", "jamais pour"))]
)
def test_what_ships_declares_the_fenced_text_as_data(name, task, language, words):
    system = load_prompt(name, task).templates[language].system
    assert all(word in system for word in words)
    assert "<data-" in system


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_rubric_has_all_five_grades_and_is_the_same_for_one_passage_and_for_several(language):
    alone, together = (
        [line for line in load_prompt(f"{task}@1", task).templates[language].system.splitlines() if line[:2] == "- "]
        for task in ("grade", "grades")
    )
    assert [line[2] for line in alone] == list("54321")
    assert alone == together


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(("name", "task"), LONGER)
def test_the_longer_prompts_say_the_same_with_examples_and_are_long_enough_to_be_remembered(name, task, language):
    short, longer = (load_prompt(each, task).templates[language] for each in (f"{task}@1", name))
    assert longer.user == short.user
    assert [line for line in short.system.splitlines() if line not in longer.system.splitlines()] == []
    assert remembered_tokens("openai/gpt-5-mini", longer.system) == 1024, "not many more: each is paid for"
    assert rubric_of(load_prompt("grade@2", "grade")) == rubric_of(load_prompt("grade@1", "grade"))


@pytest.mark.parametrize("language", ["en", "fr"])
def test_examples_answer_in_the_form_that_is_asked_for(language):
    grades = load_prompt("grade@2", "grade").templates[language].system
    orders = load_prompt("order@2", "order").templates[language].system
    head, *examples = re.findall(r"\{[^{}]*\}", grades)[::-1]
    assert len(examples) >= 14 and all(check_grade(json.loads(" ".join(each.split()))) for each in (head, *examples))
    shown = [re.findall(r"^([A-Z]) ?: ", part, re.MULTILINE) for part in orders.split("Question")]
    told = [json.loads(each) for each in re.findall(r'\{"order".*?\}', orders)]
    given = [labels for labels in shown if labels]
    assert len(given) == 4 and all(map(check_order, told[:4], given))


def test_every_shipped_file_belongs_to_a_known_prompt():
    files = sorted(path.name for path in FOLDER.glob("*.md"))
    assert files == sorted(f"{name}.{language}.md" for name in known_prompts() for language in ("en", "fr"))
    assert all(known_prompts().values())


def test_a_language_without_a_template_is_served_in_english():
    prompt = load_prompt("grade@1", "grade")
    fields = {"query": "q", "passage": "p"}
    assert prompt.render("de", **fields) == prompt.render("en", **fields) != prompt.render("fr", **fields)


def test_the_hash_covers_all_that_is_sent_and_nothing_else(tmp_path):
    path = write(tmp_path / "mine.md", GRADE)
    first = load_prompt(path, "grade").sha256
    write(path, GRADE.replace("A note.", "Another note."))
    assert load_prompt(path, "grade").sha256 == first
    write(path, GRADE.replace("fair", "harsh"))
    changed = load_prompt(path, "grade").sha256
    write(tmp_path / "mine.fr.md", GRADE)
    assert len({first, changed, load_prompt(path, "grade").sha256}) == 3


@given(query=st.text(), passage=st.text())
def test_values_go_in_unchanged_and_once(query, passage):
    prompt = Prompt("p", {"en": Template("", "[{{query}}|{{passage}}]")})
    assert prompt.render("en", query=query, passage=passage) == [{"role": "user", "content": f"[{query}|{passage}]"}]


def test_a_placeholder_inside_a_value_stays_as_it_is():
    prompt = Prompt("p", {"en": Template("", "{{query}} {{passage}}")})
    assert prompt.render("en", query="{{passage}}", passage=r"\1 {0} %s")[0]["content"] == r"{{passage}} \1 {0} %s"


def test_a_file_of_ones_own(tmp_path):
    write(tmp_path / "mine.md", GRADE)
    prompt = load_prompt("mine.md", "grade", base=tmp_path)
    assert prompt == load_prompt(tmp_path / "mine.md", "grade")
    assert prompt.name == "mine"
    assert prompt.templates == {"en": Template("Be fair.", "{{query}} against {{ passage }}", "A note.")}
    assert prompt.render("fr", query="q", passage="p")[1]["content"] == "q against p"


def test_languages_beside_a_file_come_along(tmp_path):
    write(tmp_path / "mine.md", GRADE)
    write(tmp_path / "mine.fr.md", GRADE.replace("against", "contre"))
    write(tmp_path / "mine2.de.md", "not mine")
    prompt = load_prompt(tmp_path / "mine.md", "grade")
    assert set(prompt.templates) == {"en", "fr"}
    assert prompt.render("fr", query="q", passage="p")[1]["content"] == "q contre p"


def test_a_file_in_one_language_only_serves_all(tmp_path):
    path = write(tmp_path / "mienne.fr.md", GRADE)
    prompt = load_prompt(path, "grade")
    assert set(prompt.templates) == {"fr"}
    assert prompt.name == "mienne"
    assert prompt.render("en", query="q", passage="p")


def test_the_system_part_may_be_missing(tmp_path):
    path = write(tmp_path / "mine.md", "# user\n{{query}} {{passage}}")
    assert load_prompt(path, "grade").render("en", query="q", passage="p") == [{"role": "user", "content": "q p"}]


def test_other_headings_belong_to_the_text(tmp_path):
    path = write(tmp_path / "mine.md", "# user\n\n# Rules\n{{query}}\n## user\n{{passage}}")
    assert load_prompt(path, "grade").render("en", query="q", passage="p")[0]["content"] == "# Rules\nq\n## user\np"


@pytest.mark.parametrize(
    ("name", "task", "hint"),
    [
        ("grade@3", "grade", "did you mean 'grade@1'? known for this task: grade@1, grade@2"),
        ("grad@1", "grade", "did you mean 'grade@1'?"),
        ("grade@1", "order", "known for this task: order@1"),
        ("*", "grade", "known for this task: grade@1"),
        ("", "grade", "known for this task: grade@1"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(name, task, hint):
    with pytest.raises(ConfigError) as caught:
        load_prompt(name, task)
    assert caught.value.message == f"unknown prompt {name!r}"
    assert hint in caught.value.remedy


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"none\.md: there is no such prompt"):
        load_prompt("none.md", "grade", base=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# user\n{{query}}", "the placeholder {{passage}} is missing"),
        ("# user\n{{query}} {{pasage}}", "unknown placeholder {{pasage}} — did you mean 'passage'?"),
        ("# user\n{{query}} {{passage}} {{doc_id}}", "unknown placeholder {{doc_id}} — "),
        ("{{query}} {{passage}}", 'a prompt has one part "# user"'),
        ("# system\n{{query}} {{passage}}", 'a prompt has one part "# user"'),
        ("# user\n{{query}}\n# user\n{{passage}}", 'a prompt has one part "# user"'),
        ("# user\n\n# system\n{{query}} {{passage}}", 'a prompt has one part "# user"'),
        ("{{query}}\n# user\n{{passage}}", "the placeholder {{query}} is missing"),
        ("", 'a prompt has one part "# user"'),
    ],
)
def test_a_file_that_cannot_work_is_refused(tmp_path, text, message):
    path = write(tmp_path / "mine.md", text)
    with pytest.raises(ConfigError) as caught:
        load_prompt(path, "grade")
    assert f"{path}: " in str(caught.value)
    assert message in str(caught.value)


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "mine.md"
    path.write_bytes(b"# user\n{{query}} {{passage}} \xe9")
    with pytest.raises(ConfigError, match="byte 29 is not UTF-8"):
        load_prompt(path, "grade")
