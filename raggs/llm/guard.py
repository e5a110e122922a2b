"""The guard against injected orders: marks around a text that its author cannot guess.

A question or a passage may hold any words, such as an end mark followed by orders to the judge. So each text
stands between marks made from a keyed hash (HMAC-SHA256) of the text itself: nobody without the key can write
them, and the same text under the same key gives the same bytes, so the same call finds its answer in the cache.
The key lies beside the cache; losing it costs the cached answers, nothing else.
"""

from __future__ import annotations

import hmac
import os
import secrets
import tempfile
from pathlib import Path

from raggs.base.errors import ProviderError
from raggs.base.inputs import regular_file

KEY_FILE = "fence.key"
KEY_BYTES = 32
MARK_DIGITS = 20  # 80 bits, and nobody can try twice


class InjectionGuard:
    """Puts texts between marks. `key`: 32 secret bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __call__(self, content: str) -> str:
        """``<data-MARK>``, the text unchanged, ``</data-MARK>``, each on lines of their own."""
        digest = hmac.digest(self._key, content.encode("utf-8", "surrogatepass"), "sha256")
        mark = digest.hex()[:MARK_DIGITS]
        return f"<data-{mark}>\n{content}\n</data-{mark}>"


def random_key() -> bytes:
    """A key that nobody keeps: marks of one object's life."""
    return secrets.token_bytes(KEY_BYTES)


def stored_key(folder: Path) -> bytes:
    """The key in `folder`, made (mode 0600) if there is none; two processes that make one at once agree on it.

    Raises:
        ProviderError: the file is damaged, or cannot be read or written.
        DataError: it is a pipe or a device.
    """
    path = folder / KEY_FILE
    try:
        if not path.exists():
            _plant(path, random_key())
        key = regular_file(path).read_bytes()
    except OSError as error:
        raise ProviderError(
            f"cannot be used: {error.strerror}", where=path, remedy="check the folder's permissions"
        ) from None
    if len(key) != KEY_BYTES:
        raise ProviderError(
            f"holds {len(key)} bytes instead of {KEY_BYTES}", where=path, remedy="delete the file and run again"
        )
    return key


def _plant(path: Path, key: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent)  # mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(key)
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return  # another process was first
        except OSError:  # a file system without links
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
