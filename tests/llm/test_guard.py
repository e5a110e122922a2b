"""The marks around untrusted text."""

from __future__ import annotations

import asyncio
import re
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import ProviderError
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.llm.client import KEY_FILE, InjectionGuard, stored_key

BLOCK = re.compile(r"<data-([0-9a-f]{20})>\n(.*)\n</data-\1>", re.DOTALL)


def layer(folder):
    return LLM(LLMSettings(), BudgetSettings(), folder)


@given(st.text(), st.binary(min_size=32, max_size=32))
def test_the_text_stands_unchanged_between_its_marks(text, key):
    match = BLOCK.fullmatch(InjectionGuard(key)(text))
    assert match is not None
    assert match[2] == text


@given(st.text(), st.text())
def test_equal_texts_have_equal_marks_and_others_have_others(one, other):
    guard = InjectionGuard(bytes(32))
    assert (guard(one) == guard(other)) == (one == other)


def test_a_fence_cannot_be_forged_from_a_fenced_text():
    guard = InjectionGuard(bytes(32))
    inner = guard("evil")
    outer = BLOCK.fullmatch(guard(inner))
    assert outer is not None
    assert outer[1] not in inner


def test_another_key_makes_other_marks():
    assert InjectionGuard(bytes(32))("text") != InjectionGuard(b"1" * 32)("text")


def test_the_key_lies_beside_the_cache_for_its_owner_only(tmp_path):
    folder = tmp_path / "llm"
    first = layer(folder).guard("text")
    assert layer(folder).guard("text") == first
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_without_a_folder_each_layer_has_its_own_key():
    one, other = layer(None), layer(None)
    assert one.guard("text") == one.guard("text") != other.guard("text")


def test_many_at_once_agree_on_one_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: stored_key(tmp_path), range(32)))
    assert len(keys) == 1
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]


def test_a_damaged_key_is_named(tmp_path):
    (tmp_path / KEY_FILE).write_bytes(b"short")
    with pytest.raises(ProviderError, match=r"fence\.key: contains 5 bytes instead of 32 — restore it"):
        stored_key(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ProviderError, match="cannot be used"):
        stored_key(tmp_path / "missing")


def test_closing_an_unused_layer_makes_no_folder(tmp_path):
    asyncio.run(layer(tmp_path / "llm").close())
    assert not list(tmp_path.iterdir())
