"""How much memory there is, as files of the system tell it."""

from __future__ import annotations

import pytest

from raggs.parts.indexes import vectors


@pytest.fixture
def system(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(vectors, "CGROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:   2000 kB\n")
    return tmp_path


def contain(system, limit, used=100_000, stat="anon 5\ninactive_file 50000\n"):
    (system / "memory.max").write_text(f"{limit}\n")
    (system / "memory.current").write_text(f"{used}\n")
    (system / "memory.stat").write_text(stat)


def test_the_machine_tells(system):
    assert vectors.available() == 2000 * 1024


@pytest.mark.parametrize(
    ("limit", "used", "there"),
    [(1_000_000, 100_000, 950_000), ("max", 100_000, 2_048_000), (10**9, 100_000, 2_048_000), (1000, 100_000, 0)],
)
def test_a_container_has_less(system, limit, used, there):
    contain(system, limit, used)
    assert vectors.available() == there


def test_a_container_that_does_not_tell_what_it_could_drop(system):
    contain(system, 1_000_000, stat="anon 5\n")
    assert vectors.available() == 900_000


def test_where_nobody_tells_all_of_the_memory_counts(system):
    (system / "meminfo").unlink()
    assert vectors.available() is None or vectors.available() > 1 << 20


def test_the_real_machine():
    assert vectors.available() is None or vectors.available() > 1 << 20


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (4_096_000_000, "3.8 GiB")]
)  # fmt: skip
def test_in_words(size, text):
    assert vectors.in_words(size) == text
