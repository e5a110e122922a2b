"""What a run's files say may have been edited by anybody: parameters that are none, records that do not fit together.

Stages and the libraries below them trust their inputs and say so by `ValueError` and `KeyError`; here these become
sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from pydantic import ValidationError

from raggs.base.errors import DataError, RaggsError
from raggs.base.jsonl import first_fault
from raggs.base.settings import Settings

C = TypeVar("C", bound=Settings)


def parameters(model: type[C], stage: str, params: Mapping[str, object]) -> C:
    """The configuration that `params` are of.

    Raises:
        DataError: they are none.
    """
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise _misfit(stage, first_fault(error)) from error
    except (RaggsError, OSError) as error:
        raise _misfit(stage, str(error)) from error


@contextmanager
def fitting(what: str) -> Iterator[None]:
    """A block that computes from records, which may be of different runs.

    Args:
        what: is computed, for the sentence.

    Raises:
        DataError: the records do not fit together.
    """
    try:
        yield
    except KeyError as error:
        raise DataError(f"{what}: the records before it do not fit together: {error} is not among them") from error
    except ValueError as error:
        raise DataError(f"{what}: the records before it do not fit together: {error}") from error


def _misfit(stage: str, why: str) -> DataError:
    remedy = "raggs audit says whether it was edited; running again writes it anew"
    return DataError(f"stage {stage} has parameters in the manifest that it does not take: {why}", remedy=remedy)
