"""How many tokens a text has. The vocabularies cl100k and o200k lie in litellm's package: no network is asked.

Models differ by some per cent; where a vocabulary cannot be read, `estimate` stands in and errs upwards.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

VOCABULARY = "cl100k_base"
FOLDER = "TIKTOKEN_CACHE_DIR"
BYTES_PER_TOKEN = 3
HALVES = re.compile("[\ud800-\udfff]")


def count_tokens(texts: Sequence[str], vocabulary: str = VOCABULARY) -> list[int]:
    """Tokens of each text."""
    found = encoding(vocabulary)
    return [estimate(text) if found is None else len(found.encode_ordinary(text)) for text in texts]


def token_borders(text: str, vocabulary: str = VOCABULARY) -> list[int] | None:
    """The character in which each token of a text begins, in order; None where the vocabulary cannot be read."""
    found = encoding(vocabulary)
    if found is None:
        return None
    whole = HALVES.sub("\ufffd", text)  # two halves would become one character, and move what follows
    return found.decode_with_offsets(found.encode_ordinary(whole))[1]


def estimate(text: str) -> int:
    """A conservative estimate: one token for every 3 bytes of UTF-8."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


@cache
def encoding(vocabulary: str) -> Encoding | None:
    """A vocabulary, or None where it cannot be read from this disk."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    if not folder.is_dir():
        return None
    before = os.environ.get(FOLDER)
    os.environ[FOLDER] = str(folder)
    try:
        import tiktoken

        return tiktoken.get_encoding(vocabulary)
    except (ImportError, OSError, ValueError):
        return None
    finally:
        if before is None:
            del os.environ[FOLDER]
        else:
            os.environ[FOLDER] = before
