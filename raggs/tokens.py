"""How many tokens a text has, counted with the vocabulary cl100k, which lies in litellm's package: no network is asked.

Models differ by some per cent; where the vocabulary cannot be read, `estimate` stands in and errs upwards.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

VOCABULARY = "cl100k_base"
FOLDER = "TIKTOKEN_CACHE_DIR"
BYTES_PER_TOKEN = 3


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Tokens of each text."""
    count = _counter()
    return [count(text) for text in texts]


def estimate(text: str) -> int:
    """A conservative estimate: one token for every 3 bytes of UTF-8."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


@cache
def _counter() -> Callable[[str], int]:
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return estimate
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    if not folder.is_dir():
        return estimate
    before = os.environ.get(FOLDER)
    os.environ[FOLDER] = str(folder)
    try:
        import tiktoken

        encoding = tiktoken.get_encoding(VOCABULARY)
    except (ImportError, OSError, ValueError):
        return estimate
    finally:
        if before is None:
            del os.environ[FOLDER]
        else:
            os.environ[FOLDER] = before
    return lambda text: len(encoding.encode_ordinary(text))
