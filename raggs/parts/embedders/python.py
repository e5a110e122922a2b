"""A Python function as an embedder: any model in a few lines, without a package around it.

    def embed(texts: list[str]) -> "array of shape (len(texts), dims)": ...

Vectors are brought to unit length here. They are kept by the content of the function's file: a change embeds anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.base.adapter import CallableConfig, UserFunction
from raggs.base.arrays import unit_rows
from raggs.base.errors import ProviderError
from raggs.base.settings import Causes
from raggs.base.text import fold_quotes, shorten
from raggs.parts.embedders.base import Embedder, EmbedderConfig

if TYPE_CHECKING:
    from raggs.base.arrays import Floats, Vectors


class PythonEmbedder(Embedder):
    """A Python function of yours: embed(texts) gives an array with a row for each text."""

    class Config(EmbedderConfig, CallableConfig):
        type: Literal["python"] = "python"
        dims: int = Field(ge=1, description="length of a vector")

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), **self._function.causes()}

    @property
    def dims(self) -> int:
        return self.config.dims

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for start in range(0, len(texts), self.config.batch):
            batch = list(map(fold_quotes, texts[start : start + self.config.batch]))
            found = self._checked(self._function(_about(batch), batch), batch)
            vectors[start : start + len(batch)] = unit_rows(found)
        return vectors

    @cached_property
    def _function(self) -> UserFunction:
        return UserFunction(self.config.callable, self.config.folder)

    def _checked(self, found: object, batch: list[str]) -> Floats:
        """What the function gave, shape (len(batch), dims).

        Raises:
            ProviderError: it is no such array, or holds NaN or infinity.
        """
        import numpy as np

        try:
            given = np.asarray(found)
            if given.dtype.kind not in "fiubO":
                raise TypeError(f"{given.dtype} holds no real numbers")
            rows: Floats = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._wrong(f"gave {type(found).__name__}, which is no array of numbers", batch) from error
        if rows.shape != (len(batch), self.dims):
            raise self._wrong(f"gave an array of shape {rows.shape}, not {(len(batch), self.dims)},", batch)
        if not np.isfinite(rows).all():
            place = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise self._wrong("gave a vector that is not finite", batch[place : place + 1])
        return rows

    def _wrong(self, problem: str, batch: list[str]) -> ProviderError:
        return ProviderError(f"{self.config.callable} {problem} on {_about(batch)}", remedy="mend the function")


def _about(batch: list[str]) -> str:
    more = f" and {len(batch) - 1} more" if len(batch) > 1 else ""
    return f"the text {shorten(batch[0], 40)!r}{more}"
