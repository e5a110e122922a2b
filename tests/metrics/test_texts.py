from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError
from raggs.evaluation.samples import answer_rank, fold_text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Paris", "The capital is PARIS."),
        ("straße 12", "STRASSE\u00a0\n 12"),
        ("ﬁne", "a FINE day"),
        ("１２３", "call 123 now"),
        ("é", "cafe\u0301"),
        ("two words", "two\t\r\n  words"),
        ("  padded ", "it is padded here"),
        ("²", "x2"),
    ],
)
def test_width_case_composition_and_white_space_do_not_matter(answer, text):
    assert answer_rank(answer, ["nothing", text, text]) == 2.0


def test_what_is_not_there_has_no_rank():
    assert answer_rank("Paris", ["Par is", "pari", ""]) == math.inf
    assert answer_rank("Paris", []) == math.inf


@pytest.mark.parametrize("answer", ["", " ", "\n\t", "\u00a0\u3000"])
def test_an_empty_answer_is_an_error(answer):
    with pytest.raises(DataError, match="empty"):
        answer_rank(answer, ["any text"])


@given(st.text())
def test_folding_twice_changes_nothing_and_forms_fold_alike(text):
    assert fold_text(fold_text(text)) == fold_text(text)
    assert fold_text(unicodedata.normalize("NFD", text)) == fold_text(text)


@given(st.text(min_size=1).filter(lambda text: fold_text(text)), st.text(), st.text())
def test_a_text_contains_what_was_put_into_it_as_words(answer, before, after):
    assert answer_rank(answer, [f"{before} {answer} {after}"]) == 1.0
