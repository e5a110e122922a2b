"""What counts as a secret, and that no form of it stays in a text."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import RaggsError
from raggs.base.secrets import HIDDEN, find_secrets, is_secret_name, mask, secrets_of

SECRET_NAMES = """
    OPENAI_API_KEY API_KEY api_key apiKey api-key X-Api-Key aws_secret_access_key AWS_ACCESS_KEY_ID azure_ad_token
    HF_TOKEN token SECRET client_secret ELASTIC_PASSWORD passphrase Authorization vertex_credentials KEY key sig
""".split()  # noqa: SIM905
OTHER_NAMES = """
    max_tokens tokens_per_minute max_completion_tokens tokenizer api_key_env key_file monkey turkey keyword id_field
    seed top_p PATH HOME SSH_AUTH_SOCK pass_through passages prompt keys_path XDG_SESSION_ID
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)


@given(
    secret=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=12, max_size=60),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
)
def test_a_variables_value_stays_in_no_text(secret: str, before: str, after: str) -> None:
    if secret in HIDDEN or secret in before + after:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOME_PROVIDER_API_KEY", secret)
        for text in (before + secret + after, f"{before}?q={quote(secret, safe='')}"):
            told = mask(text)
            assert secret not in told
            assert quote(secret, safe="") not in told
            assert mask(told) == told
        error = RaggsError(before + secret, where=secret, remedy=f"not {secret}")
        assert secret not in str(error) + repr(error) + str(error.args) + json.dumps(vars(error), default=str)


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-99, 99), st.sampled_from(["a", "bm25", "openai/gpt-5-mini"]))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "model", "k"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(tree=TREES, name=st.sampled_from(SECRET_NAMES), depth=st.integers(0, 6))
def test_a_secret_is_found_however_deep(tree: object, name: str, depth: int) -> None:
    assert list(find_secrets(tree, {})) == []
    for hidden in ({name: "short"}, {"note": "x=canary-0123456789"}, {"canary-0123456789": 1}):
        value: object = hidden
        for level in range(depth):
            value = {"a": value, "rest": tree} if level % 2 else [tree, value]
        (found,) = find_secrets(value, {"MY_TOKEN": "canary-0123456789"})
        assert "short" not in found.why
        assert "canary" not in found.why


@pytest.mark.parametrize(
    "address",
    [
        "https://host/v1?api_key=abc",
        "https://host/v1?x=1&access_token=abc",
        "https://me:word@host/v1",
        "https://token@host/v1",
        "https://host/sk-proj-0123456789abcdefgh/v1",
    ],
)
def test_addresses_with_a_key(address: str) -> None:
    (found,) = find_secrets({"api_base": address}, {})
    assert found.place == ("api_base",)


@pytest.mark.parametrize("text", ["key-value-store.jsonl", "sk-learn", "https://host:8000/v1?version=1", "risk-2024-a"])
def test_ordinary_words_are_no_secrets(text: str) -> None:
    assert mask(text) == text
    assert list(find_secrets({"path": text}, {})) == []


def test_short_values_are_words() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        assert mask("none of them") == "none of them"
        patch.setenv("OPENAI_API_KEY", "anything")
        assert mask("anything, or anythings") == f"{HIDDEN}, or anythings"


def test_the_folder_in_which_a_shell_stands_is_no_secret() -> None:
    shell = {"PWD": "/home/somebody/project", "OLDPWD": "/home/somebody", "MYSQL_PWD": "hunter2-hunter2"}
    assert secrets_of(shell) == {"MYSQL_PWD": "hunter2-hunter2"}
    assert list(find_secrets({"workspace": "/home/somebody/project/runs"}, shell)) == []


@pytest.mark.parametrize(
    ("text", "told"), [("?sig=a", "?sig=[redacted]"), ("://a:b@", "://[redacted]@"), ("a=b", "a=b")]
)
def test_a_short_text_is_looked_at_where_it_can_hold_a_secret(text: str, told: str) -> None:
    assert mask(text) == told
