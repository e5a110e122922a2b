"""The smallest index that is a corpus; what it does beyond the contract is tested in `tests/parts/elastic`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.elastic import fill


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    url = request.getfixturevalue("elastic_url")
    texts = {"b": {"text": "Some text.", "title": "One"}, "a": {"text": "Other text."}}
    return {"url": url, "index": fill(url, texts)}
