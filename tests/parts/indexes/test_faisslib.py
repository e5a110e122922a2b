"""What raggs does about faiss itself."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from raggs.base.errors import DataError, ProviderError
from raggs.parts.indexes import approximate


@pytest.fixture
def index():
    package = approximate.faiss("hnsw")
    return package, approximate.new(package, "Flat", 4)


def test_it_is_told_to_sleep_while_it_waits_and_the_environment_stays_as_it_was():
    script = (
        "import os, sys\nfrom raggs.parts.indexes import approximate as faisslib\n"
        "seen = []\nload = faisslib.import_module\n"
        "faisslib.import_module = lambda name: (seen.append(os.environ['OMP_WAIT_POLICY']), load(name))[1]\n"
        "package = faisslib.faiss('hnsw')\n"
        "print(seen, os.environ.get('OMP_WAIT_POLICY'), package.omp_get_max_threads())"
    )
    for given, wanted in (({}, "['passive'] None 1"), ({"OMP_WAIT_POLICY": "active"}, "['active'] active 1")):
        environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | given
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == wanted


def test_what_it_cannot_write_is_the_disks_fault(index, tmp_path):
    with pytest.raises(ProviderError, match="the index cannot be stored"):
        approximate.write(*index, tmp_path / "missing" / "index")


def test_what_it_cannot_read_is_said(index, tmp_path):
    package, _ = index
    (tmp_path / "index").write_bytes(b"none")
    with pytest.raises(DataError, match=r"faiss cannot read the index — delete its folder"):
        approximate.read(package, tmp_path / "index")


def test_where_files_cannot_be_mapped_they_are_read(index, tmp_path):
    package, made = index
    made.add(np.eye(4, dtype=np.float32))
    approximate.write(package, made, tmp_path / "index")

    def read_index(path, flags):
        if flags:
            raise RuntimeError("not on this system")
        return package.read_index(path, flags)

    elsewhere = SimpleNamespace(read_index=read_index, IO_FLAG_MMAP_IFC=package.IO_FLAG_MMAP_IFC)
    assert approximate.read(elsewhere, tmp_path / "index").ntotal == 4
