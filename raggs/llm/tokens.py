"""How many tokens a text has, near enough to reserve money for it and without a tokenizer."""

from __future__ import annotations

BYTES_PER_TOKEN = 3
PER_TEXT = 4  # what a chat format adds to each message


def estimate_tokens(text: str) -> int:
    """A conservative estimate: one token for every 3 bytes of UTF-8, and 4 for the message around it.

    Current vocabularies take about 4.5 bytes of English, 4 of French and 3 of Chinese for a token, so prose is
    overestimated; only text that is mostly digits, hexadecimals or emoji can be underestimated.
    """
    return len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN + PER_TEXT
