"""How the contract tests come to an instance of each registered thing, so that a new one edits no test.

Beside its own tests, ``tests/parts/<kind>/test_<name>.py`` (or ``tests/<kind>``) defines

    def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
        "The settings of its smallest working instance; the files that it reads are put into `folder`."

and, where several settings are contracts of their own, ``CONTRACT_VARIANTS``: a list of settings to add.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]


def _folder(kind: str) -> Path:
    """The folder of the tests of a kind: below that of the parts if there is one."""
    below = TESTS / "parts" / kind
    return below if below.is_dir() else TESTS / kind


@cache
def _module(kind: str, name: str) -> ModuleType:
    path = _folder(kind) / f"test_{name}.py"
    found = None
    if path.exists():
        spec = importlib.util.spec_from_file_location(f"contract_{kind}_{name}", path)
        assert spec is not None and spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    if not hasattr(found, "contract_case"):
        pytest.fail(
            f"{kind}: {name!r} is registered and has no contract case: write contract_case(folder, request) in "
            f"{path.relative_to(TESTS.parent)} (see tests/support/contracts.py)",
            pytrace=False,
        )
    assert found is not None
    return found


def has_case(kind: str, name: str) -> bool:
    path = _folder(kind) / f"test_{name}.py"
    return path.exists() and "def contract_case(" in path.read_text(encoding="utf-8")


def cases(kind: str, names: Any) -> list[Any]:
    """Parameters for a test: each name with each of its variants. A name without a case is there too, and fails."""
    found = []
    for name in names:
        variants = getattr(_module(kind, name), "CONTRACT_VARIANTS", [{}]) if has_case(kind, name) else [{}]
        for variant in variants:
            label = " ".join([name, *map(str, variant.values())])
            found.append(pytest.param((name, variant), id=label))
    return found


def more_of(kind: str, name: str) -> str | None:
    """Lines that change the content of the thing's files, where the module with the case gives some."""
    more = getattr(_module(kind, name), "contract_more", None)
    return None if more is None else str(more())


def says(kind: str, name: str, trait: str) -> bool:
    """Whether the module with the case sets a name, such as ``JUDGES_ANY_QUERY = True``."""
    return bool(getattr(_module(kind, name), trait, False))


def settings_of(kind: str, name: str, folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings of the smallest working instance."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = _module(kind, name).contract_case(folder, request)
    return found


def write_module(folder: Path, request: pytest.FixtureRequest, text: str) -> str:
    """A Python module in `folder`, of a name that no other test has; its name."""
    name = f"user_{abs(hash(request.node.nodeid))}"
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return name
