"""Unicode hygiene as properties, and the small helpers on words."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import raggs.base.text as text_module
from raggs.base.text import (
    COMMANDS,
    clean_passage,
    clean_unicode,
    did_you_mean,
    fold_quotes,
    is_clean,
    join_wrapped_lines,
    nearest,
    of_spreadsheet_cell,
    one_line,
    plural,
    replace_surrogates,
    shorten,
    spreadsheet_cell,
)

JOINERS = "\u200c\u200d"
ODD = st.sampled_from(
    "\u200b\u200c\u200d\ufeff\u00ad\u00a0\u202f\u2028\u2029\x00\x1b\x85\r\n\t\ufb01\uff21\u0301\u2060\u180e"
)
LETTERS = st.sampled_from("aé ا\u0915\u094d\u1100\u1161")
TEXTS = st.one_of(st.text(max_size=60), st.text(st.one_of(ODD, LETTERS), max_size=8))


@given(TEXTS)
@example("क्\u200dष and e\u0301 and \u0915\u200d\u200d\u0937")
@example("\u1100\u200b\u1161")
@example("\u0915\u200d\u200b")
@example("\u0915\u200d\u2028")
@example("a\u200d\u0301\u200d\u0915")
def test_cleaning_twice_changes_nothing(text):
    assert clean_unicode(clean_unicode(text)) == clean_unicode(text)


@given(TEXTS)
def test_nothing_odd_is_left(text):
    clean = clean_unicode(text)
    assert unicodedata.is_normalized("NFKC", clean)
    for char in clean:
        category = unicodedata.category(char)
        assert category not in ("Zl", "Zp", "Cs")
        assert category != "Zs" or char == " "
        assert category != "Cc" or char in "\n\t"
        assert category != "Cf" or char in JOINERS


@given(TEXTS)
def test_a_joiner_stays_only_between_letters_it_can_join(text):
    clean = clean_unicode(text)
    for position, char in enumerate(clean):
        if char in JOINERS:
            before, after = clean[position - 1 : position], clean[position + 1 : position + 2]
            assert before and after
            assert not (before + after).isspace()
            assert not before.isascii() and not after.isascii()


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P")), max_size=60))
def test_plain_text_is_left_alone(text):
    assert clean_unicode(text) == text


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("ﬁne\u00a0tea\u200b", "fine tea"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("page\x0cpage\x85line", "page\npage\nline"),
        ("\ufeffsoft\u00adhyphen", "softhyphen"),
        ("cafe\u0301", "café"),
        ("a\u200db", "ab"),
        ("क्\u200dष", "क्\u200dष"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("bell\x07 tab\there", "bell tab\there"),
        ("٣ \u2003 ½", "٣   1⁄2"),
        ("", ""),
    ],
)
def test_examples(dirty, clean):
    assert clean_unicode(dirty) == clean


def test_one_line_and_shorten():
    assert one_line("  a \n\t b ") == "a b"
    assert shorten("a  b", 3) == "a b"
    assert shorten("one two three", 9) == "one two…"


@given(st.text(max_size=50), st.integers(1, 20))
def test_shorten_keeps_to_its_width(text, width):
    assert len(shorten(text, width)) <= width


def test_nearest_name():
    assert nearest("bm52", ["bm25", "dense"]) == "bm25"
    assert nearest("qqqqqqq", ["bm25", "dense"]) is None
    assert nearest("bm25", []) is None


def test_the_remedy_for_a_name_that_does_not_exist():
    assert did_you_mean("bm52", ("bm25", "dense")) == "did you mean 'bm25'? known: bm25, dense"
    assert did_you_mean("qqqqqqq", iter(["bm25", "dense"])) == "known: bm25, dense"
    assert did_you_mean("bm52", {"bm25": 1}, "see: raggs list") == "did you mean 'bm25'? see: raggs list"
    assert did_you_mean("~", [f"d{number}" for number in range(1024)]).endswith("d22, d23 and 1,000 more")


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(0, "query", "0 queries"), (1, "query", "1 query"), (1400, "passage", "1,400 passages"), (2, "key", "2 keys")],
)
def test_plural(count, noun, text):
    assert plural(count, noun) == text


@given(st.text())
def test_a_cell_comes_back_from_a_spreadsheet(text: str) -> None:
    cell = spreadsheet_cell(text)
    assert of_spreadsheet_cell(cell) == text
    assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r")


@given(st.text(st.characters(exclude_categories=())))
def test_sound_text_can_be_written(text: str) -> None:
    assert replace_surrogates(text).encode().decode() == replace_surrogates(text)
    assert len(replace_surrogates(text)) == len(text)


RAISED = st.sampled_from("1²³⁻⁶½①a2 \u200b\u0301\u202f:é")


@given(st.one_of(TEXTS, st.text(RAISED, max_size=8)))
@example("10⁶\u202f%")
@example("1²\u0301")
def test_cleaning_a_passage_twice_changes_nothing(text):
    assert clean_passage(clean_passage(text)) == clean_passage(text)


@given(st.one_of(TEXTS, st.text(RAISED, max_size=8)))
def test_what_is_clean_at_sight_is_left_alone_and_only_that_is_believed(text):
    """The short cut says nothing that the long way would not say."""
    if is_clean(text):
        assert text_module._clean_once(text) == text
        assert clean_passage(text) is text
    if text.isascii() and "\r" not in text and not COMMANDS.search(text):
        assert is_clean(text)


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("10⁶ cells in 5½ mm², CO₂", "10⁶ cells in 5½ mm2, CO2"),
        ("Voila\u0300\u202f: ﬁn\u00a0!\r\n", "Voilà : fin !\n"),
        ("2⁻³", "2⁻³"),
        ("\u200b \u00ad", "\u200b \u00ad"),
        ("", ""),
    ],
)
def test_numbers_of_a_passage_keep_their_value_and_no_passage_gets_empty(dirty, clean):
    assert clean_passage(dirty) == clean


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Qu’est-ce que l’eau ?", "Qu'est-ce que l'eau ?"),
        ("‘so’ ‚so‘ ‛so ‹so› lʼeau 5′", "'so' 'so' 'so 'so' l'eau 5'"),
        ("“so” „so“ ‟so” 6″ 〝so〞", '"so" "so" "so" 6" "so"'),
        ("« Bonjour », dit-il. Er sagte »gut« zu.", '"Bonjour", dit-il. Er sagte "gut" zu.'),
        ("Guide » Install » Linux", 'Guide " Install " Linux'),
        ("low‐speed wind‑tunnel", "low-speed wind-tunnel"),
        ("l´eau", "l'eau"),
        ("Paris – Dakar — 5 − 2 `so` ʻokina 「so」", "Paris – Dakar — 5 − 2 `so` ʻokina 「so」"),
    ],
)
def test_typographic_quotes_are_read_as_keyboards_have_them(text, folded):
    assert fold_quotes(text) == folded
    assert fold_quotes(clean_unicode(text)) == clean_unicode(folded)


@given(st.text(st.one_of(st.sampled_from("«»‹›‘’´′″‐ ́\u0301 a("), st.characters()), max_size=20))
def test_folding_twice_changes_nothing_and_other_texts_stay(text):
    folded = fold_quotes(text)
    assert fold_quotes(folded) == folded
    if not set(text) & {*text_module.QUOTES, "\u0301"}:
        assert folded is text


WRAPPED = """A class definition defines a class object, and its suite is executed in a
new frame, using a new local namespace and the original global namespace.
It ends there.

   An indented paragraph is prose as well, if its lines are full and have the
   same indentation as the first one.

* An item of a list keeps its place, and the lines that continue the item are
  joined with it.
* The next item is short.

For example, this is code, which keeps every line break that its author chose:

   def answer(question, passages):
       return max(passages, key=lambda passage: score(question, passage))
"""


def test_wrapped_prose_is_joined_and_all_else_keeps_its_lines() -> None:
    assert join_wrapped_lines(WRAPPED).split("\n") == [
        "A class definition defines a class object, and its suite is executed in a new frame, using a new local "
        "namespace and the original global namespace. It ends there.",
        "",
        "   An indented paragraph is prose as well, if its lines are full and have the same indentation as the first "
        "one.",
        "",
        "* An item of a list keeps its place, and the lines that continue the item are joined with it.",
        "* The next item is short.",
        "",
        "For example, this is code, which keeps every line break that its author chose:",
        "",
        "   def answer(question, passages):",
        "       return max(passages, key=lambda passage: score(question, passage))",
        "",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Short lines stay\nas their author broke them\nin a poem",
        "One long sentence on a line of its own, which no editor wrapped anywhere near here.\nA short one.\nAnother.",
        '   parameter ::= identifier [":" expression] and a rule as wide as prose\n   decorator ::= "@" expression',
        "| a table with words | that is as wide as a wrapped line of prose would be |\n| and a | second line of it |",
        "",
    ],
)
def test_lines_that_were_not_wrapped_stay(text: str) -> None:
    assert join_wrapped_lines(text) == text


def test_code_does_not_set_the_width_of_prose_and_quoted_code_is_prose() -> None:
    prose = 'The bounds are determined by the formula "r[i] = start + step*i"\nwhere "i >= 0" holds, without its end.\n'
    rule = f"   rule ::= {' | '.join(f'name{number}' for number in range(12))}\n"
    assert join_wrapped_lines(prose + rule) == prose.replace("\n", " ", 1) + rule


LINES = st.lists(st.text(st.sampled_from("abc é-*:1.(\t "), max_size=90), max_size=8).map("\n".join)


@given(st.one_of(TEXTS, LINES))
def test_joining_changes_white_space_alone(text: str) -> None:
    assert "".join(join_wrapped_lines(text).split()) == "".join(text.split())
