"""Front matter: what is one, what merely begins with a rule, what is broken, and what is meant to harm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.hashing import canonical_json
from raggs.parts.documents.markdown import split_matter


def body(text: str) -> str:
    return text[split_matter(text).end :]


@pytest.mark.parametrize(
    ("text", "title", "metadata"),
    [
        ("---\ntitle: A\ntags: [x, y]\n---\nwords", "A", {"tags": ["x", "y"]}),
        ("---\r\ntitle: 'A:\n  b'\r\ndraft: true\r\n...\r\nwords", "A: b", {"draft": True}),
        ('+++\ntitle = "A"\ndate = 2024-05-01\nn = inf\n[extra]\nx = 1\n+++\nwords', "A", None),
        ("---\ndate: 2024-05-01\nn: .nan\n---\nwords", "", {"date": "2024-05-01", "n": "nan"}),
        ("---\ntitle: 2024\n---\nwords", "2024", {}),
        ("---\ntitle: [a]\n---\nwords", "", {"title": ["a"]}),
        ("---  \n# a comment\ntitle: A\n---\t\nwords", "A", {}),
    ],
)
def test_it_is_read_and_stands_apart(text: str, title: str, metadata: dict[str, Any] | None) -> None:
    found = split_matter(text)
    assert (found.title, text[found.end :], found.warning) == (title, "words", "")
    assert found.metadata == ({"date": "2024-05-01", "n": "inf", "extra": {"x": 1}} if metadata is None else metadata)
    canonical_json(found.metadata)


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nwords\n\n---\nmore",
        "---\nwords and no more",
        "---\ntitle: A\n",
        "----\ntitle: A\n----\n",
        "--- x\ntitle: A\n---\n",
        "---\n---\nwords",
        "---\n- a\n- b\n---\n",
        "---\n> quoted: [\n---\n",
        "\n---\ntitle: A\n---\n",
        "# A\n---\ntitle: A\n---\n",
        "+++\nwords\n+++\n",
        "---\n" + "a: b\n" * 20_000 + "---\n",
        "",
    ],
)
def test_a_text_that_merely_begins_with_a_rule_has_none(text: str) -> None:
    assert body(text) == text


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("---\ntitle: A\nb: c: d\n---\nwords", 3, "not valid YAML"),
        ("---\na: 1\na: 2\n---\nwords", 3, "occurs twice"),
        ("---\n# x\n\na: !!python/object:os.system {}\n---\nwords", 4, "tag"),
        ("---\na: {{ x }}\n---\nwords", 2, "not valid YAML"),
        ("+++\ntitle = A\n+++\nwords", 2, "not valid TOML"),
        (f"---\na: {'9' * 5000}\n---\nwords", 2, "5,000 characters"),
        (f"+++\na = {'9' * 5000}\n+++\nwords", 2, "not valid TOML"),
        (f"+++\na = {'9' * 200}\n+++\nwords", 2, "more than 100 digits"),
        (f"+++\na = {'[' * 5000}{']' * 5000}\n+++\nwords", 2, "not valid TOML"),
        (f"---\na: {'[' * 500}{']' * 500}\n---\nwords", 2, "levels deep"),
        ('---\na: "\\ud800"\n---\nwords', 2, "surrogate"),
    ],
)
def test_what_cannot_be_read_is_left_out_and_named_by_line(text: str, line: int, said: str) -> None:
    found = split_matter(text)
    assert text[found.end :] == "words"
    assert said in found.warning
    assert found.line == line
    assert (found.title, found.metadata) == ("", {})


def test_aliases_that_stand_for_billions_are_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    found = split_matter("---\n" + "\n".join(lines) + "\n---\nwords")
    assert "aliases expand to more than" in found.warning


PARTS = st.sampled_from(
    ["---", "+++", "...", "title: A", "a = 1", "", "- x", "\r", "words", "{", "a: [", "\ufeff", "'"]
)


@given(st.lists(PARTS, max_size=12).map("\n".join))
def test_any_text_is_split_in_two(text: str) -> None:
    found = split_matter(text)
    assert 0 <= found.end <= len(text)
    assert found.end == 0 or text.startswith(("---", "+++"))
    canonical_json(found.metadata)
