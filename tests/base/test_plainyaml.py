"""YAML from anybody: values as they are written, and no text that crashes or stalls whoever reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import ConfigError, DataError
from raggs.base.plainyaml import MAX_ALIAS_VALUES, MAX_NUMBER_CHARS, MAX_YAML_DEPTH, load_plain
from raggs.config.source import parse_value, read_source
from raggs.evaluation.samples import open_samples
from raggs.parts.queries.formats import YamlQueries, YamlQueriesConfig

LAUGHS = "\n".join(
    ["  a: &a [x,x,x,x,x,x,x,x,x]"]
    + [
        f"  {name}: &{name} [{','.join([f'*{before}'] * 9)}]"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
)

# What stands as the value of a key: the text, and what the sentence says.
ATTACKS = {
    "a list in itself": ("&a [*a]", "by an alias"),
    "a list in itself, twice": ("&a [*a, *a]", "by an alias"),
    "a mapping in itself": ("&a {b: *a}", "by an alias"),
    "deep lists": ("[" * 500 + "]" * 500, "levels deep"),
    "deep lists that do not end": ("[" * 100_000, "levels deep"),
    "deep mappings": ("{a: " * 500 + "1" + "}" * 500, "levels deep"),
    "a long integer": ("9" * 5000, "a number of 5,000 characters"),
    "a long hexadecimal": ("0x" + "f" * 5000, "a number of 5,002 characters"),
    "a long float": ("1." + "9" * 5000, "a number of 5,002 characters"),
    "no digits": ("0x_", "'0x_' is not a number"),
    "no bits": ("0b_", "'0b_' is not a number"),
    "!!int abc": ("!!int abc", "tag !!int"),
    "!!int 5": ("!!int 5", "tag !!int"),
    "!!bool maybe": ("!!bool maybe", "tag !!bool"),
    "!!float x": ("!!float x", "tag !!float"),
    "!!timestamp x": ("!!timestamp x", "tag !!timestamp"),
    "!!binary x": ("!!binary '!'", "tag !!binary"),
    "!!set": ("!!set {a, b}", "tag !!set"),
    "!!omap": ("!!omap [a: 1]", "tag !!omap"),
    "!!python": ("!!python/object/apply:os.system [id]", "tag !!python"),
    "a local tag": ("!mine 5", "tag !mine"),
    "an unknown alias": ("*nobody", "undefined alias"),
    "a control character": ("a\x07b", "character 0x07"),
    "an escape beyond Unicode": ('"\\UFFFFFFFF"', "not valid YAML"),
    "half of a surrogate pair": ('"\\ud800"', "surrogate"),
    "a list as key": ("{? [a] : b}", "a key is a list"),
    "a mapping as key": ("{? {a: 1} : b}", "a key is a list"),
    "a key twice": ("{a: 1, a: 2}", "occurs twice"),
    "a merge of a text": ("{<<: words}", "merge"),
    "a merge in itself": ("&a {<<: *a}", "merge|alias"),
}


def config(text: str, folder: Path) -> object:
    path = folder / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return read_source(path, {})


def questions(text: str, folder: Path) -> object:
    path = folder / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return list(YamlQueries(YamlQueriesConfig(path=path)).queries())


def samples(text: str, folder: Path) -> object:
    path = folder / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return open_samples(path, folder / "none")


ENTRANCES: dict[str, tuple[str, Callable[[str, Path], object]]] = {
    "config": ("name: x\nmore: {}\n", config),
    "questions": ("- _id: q1\n  more: {}\n  text: x\n", questions),
    "samples": ("samples:\n- id: q1\n  metadata: {}\n", samples),
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_an_attack_is_a_sentence_with_its_line(attack: str, entrance: str, tmp_path: Path) -> None:
    form, read = ENTRANCES[entrance]
    value, said = ATTACKS[attack]
    text = form.replace("{}", value)
    with pytest.raises(DataError, match=said) as caught:
        read(text, tmp_path)
    line = text[: text.index(value)].count("\n") + 1
    assert (caught.value.line or line) in (line, line + 1)  # one that does not end is noticed where it should have
    assert str(tmp_path / "x.yaml") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_a_billion_laughs(entrance: str, tmp_path: Path) -> None:
    form, read = ENTRANCES[entrance]
    with pytest.raises(DataError, match=f"aliases expand to more than {MAX_ALIAS_VALUES:,} values"):
        read(form.replace(" {}", "\n" + LAUGHS.replace("\n", "\n  ").replace("  a:", "    a:", 1)), tmp_path)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_by_an_override_stays_text(attack: str) -> None:
    value, _ = ATTACKS[attack]
    assert parse_value(value) in (value, {"<<": "words"})


@pytest.mark.parametrize("text", ["2024-02-31", "2024-05-06", "2001-12-14t21:59:43.10-05:00", "0000-00-00", "="])
def test_dates_are_texts(text: str, tmp_path: Path) -> None:
    assert load_plain(f"a: {text}") == {"a": text}
    assert parse_value(text) == text
    config(f"a: {text}", tmp_path)
    questions(f"- {{_id: q, text: x, asked: {text}}}", tmp_path)


@pytest.mark.parametrize("text", ["1:2:3", "12:30", "1:30.5", "-1:59"])
def test_times_are_texts(text: str) -> None:
    assert load_plain(f"top: {text}") == {"top": text}
    assert parse_value(text) == text


@pytest.mark.parametrize(
    ("text", "number"), [("010", 10), ("-010", -10), ("+007", 7), ("0_10", 10), ("00", 0), ("0", 0), ("0x10", 16)]
)
def test_a_leading_zero_makes_no_octal(text: str, number: int) -> None:
    assert load_plain(f"k: {text}") == {"k": number}
    assert parse_value(text) == number


def test_what_is_plain_is_read_as_ever() -> None:
    text = """
    a: &x [1, -2, 0x1F, 0o7, 017, 1_000, 1.5, .5, 1.0e+3, 1e3]
    b: [yes, No, true, ~, null, "", '5', !!str 5]
    c: *x
    d: {<<: {e: 1, f: 2}, e: 3}
    e: {<<: [{f: 1}, {f: 2, g: 3}]}
    """
    numbers = [1, -2, 31, "0o7", 17, 1000, 1.5, 0.5, 1000.0, "1e3"]
    assert load_plain(text) == {
        "a": numbers,
        "b": [True, False, True, None, None, "", "5", "5"],
        "c": numbers,
        "d": {"e": 3, "f": 2},
        "e": {"f": 1, "g": 3},
    }
    assert load_plain("") is None


def test_the_limits_are_where_they_are_said_to_be() -> None:
    assert load_plain("9" * MAX_NUMBER_CHARS) == int("9" * MAX_NUMBER_CHARS)
    deep = MAX_YAML_DEPTH - 1
    load_plain("[" * deep + "1" + "]" * deep)
    with pytest.raises(DataError, match="64 levels"):
        load_plain("[" * MAX_YAML_DEPTH + "1" + "]" * MAX_YAML_DEPTH)
    many = ", ".join(["*a"] * 1000)
    load_plain(f"[&a [{', '.join('x' * 90)}], {many}]")


def test_a_config_fault_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.yaml:2"):
        config("a: 1\nb: !!int x\n", tmp_path)


@given(st.text(alphabet="[]{}:,&*!?|>'\"#%@-ab<1. \n\t~=\\x\u0085", max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    try:
        load_plain(text)
    except DataError as error:
        assert "\n" not in str(error)
