"""What all records and all that is handed on as JSON have in common: they are values.

Imports: no room.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value: unchangeable, no unknown fields, no NaN and no infinity."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )
