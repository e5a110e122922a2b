"""What holds for every reader of documents, and what each lacks."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from raggs.base.errors import NotFoundError
from raggs.parts.documents import REGISTRY, DocumentReader


@pytest.mark.parametrize("name", list(REGISTRY))
def test_a_reader_is_described_and_says_what_changes_its_texts(name: str) -> None:
    reader = REGISTRY.load(name)()
    assert isinstance(reader, DocumentReader)
    assert 10 < len(REGISTRY.summary(name)) <= 100
    assert reader.causes()["packages"] == {package: version(package) for package in reader.PACKAGES}
    assert reader.PACKAGES or not reader.EXTRACTS, "a text that a package extracts hangs on its version"


@pytest.mark.parametrize("name", list(REGISTRY))
def test_a_file_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=rf"gone\.{name}"):
        REGISTRY.load(name)().read(tmp_path / f"gone.{name}")


def test_readers_load_their_packages_when_a_file_is_read() -> None:
    heavy = {"selectolax", "docutils", "pypdfium2", "markdown_it"}
    code = "import sys, raggs.parts.documents as d; [d.REGISTRY.load(n)() for n in d.REGISTRY]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())
