"""The kind of `support.diagnosing`, which stands for any other in the contract of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Two embedders of this machine."""
    return {"embedders": ["wordllama,wordllama:64"]}
