"""The cache keeps text, never code, and loses nothing that was paid."""

from __future__ import annotations

import multiprocessing
import os
import pickle  # noqa: TID251 - the attack itself
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from raggs.base.errors import BusyError, ProviderError
from raggs.llm.cache import DATABASE, AnswerCache, CachedAnswer, CacheStats, cache_stats, clear_cache

ENTRY = CachedAnswer(raw='{"grade": 4}', model="m", prompt_tokens=10, completion_tokens=5, usd=0.25)


class Trap:
    """A pickle that makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.fixture
def cache(tmp_path):
    opened = AnswerCache(tmp_path / "llm")
    yield opened
    opened.close()


def plant(cache, **columns):
    """Change the one row of the database behind the cache's back."""
    with sqlite3.connect(cache.folder / DATABASE) as connection:
        for name, value in columns.items():
            connection.execute(f"UPDATE Cache SET {name} = ?", (value,))
    connection.close()


def test_gives_back_what_was_put(cache):
    assert cache.get("key") is None
    cache.put("key", ENTRY)
    assert cache.get("key") == ENTRY
    cache.put("key", CachedAnswer("other", "m", 1, 1, 0.0))
    assert cache.get("key").raw == "other"


def test_answers_of_one_call_are_kept_together_or_not_at_all(cache):
    timed = CachedAnswer("other", "m", 1, 1, 0.0, ms=12.5)
    cache.put_all({"one": ENTRY, "two": timed})
    assert (cache.get("one"), cache.get("two")) == (ENTRY, timed)
    with pytest.raises(ValueError, match="not JSON compliant"):
        cache.put_all({"three": ENTRY, "four": CachedAnswer("x", "m", 1, 1, float("nan"))})
    assert cache.get("three") is None


def test_long_answers_stay_in_the_database(cache):
    long = CachedAnswer("x" * 200_000, "m", 1, 1, 0.0)
    cache.put("key", long)
    assert cache.get("key") == long
    assert {path.name for path in cache.folder.rglob("*") if path.is_file()} <= {
        DATABASE,
        f"{DATABASE}-wal",
        f"{DATABASE}-shm",
    }


def test_survives_reopening(cache):
    cache.put("key", ENTRY)
    again = AnswerCache(cache.folder)
    assert again.get("key") == ENTRY
    again.close()


def test_the_folder_is_for_its_owner_only(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    AnswerCache(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("in_a_file", [False, True], ids=["in the database", "in a file"])
def test_a_planted_pickle_is_a_miss_and_does_not_run(cache, tmp_path, in_a_file):
    cache.put("key", ENTRY)
    sprung = tmp_path / "sprung"
    code = pickle.dumps(Trap(sprung))
    if in_a_file:
        (cache.folder / "trap.val").write_bytes(code)
        plant(cache, mode=4, filename="trap.val", value=None)
    else:
        plant(cache, mode=4, value=code)
    assert cache.get("key") is None
    assert not sprung.exists()
    pickle.loads(code)
    assert sprung.exists(), "the trap itself works"
    cache.put("key", ENTRY)
    assert cache.get("key") == ENTRY


def test_a_planted_key_that_is_a_pickle_does_not_run(cache, tmp_path):
    cache.put("key", ENTRY)
    plant(cache, key=pickle.dumps(Trap(tmp_path / "sprung")), raw=0)
    assert cache_stats(cache.folder).entries == 0
    assert clear_cache(cache.folder) == 1
    assert not (tmp_path / "sprung").exists()


def test_a_planted_file_name_is_neither_read_nor_deleted(cache, tmp_path):
    cache.put("key", ENTRY)
    victim = tmp_path / "victim.json"
    victim.write_text('{"raw": "stolen", "model": "m", "prompt_tokens": 1, "completion_tokens": 1, "usd": 0}')
    plant(cache, mode=3, filename="../victim.json", value=None)
    assert cache.get("key") is None
    cache.put("key", ENTRY)
    cache.clear()
    assert victim.exists()


@pytest.mark.parametrize("value", ["not json", "[]", "{}", '{"raw": 5}', b"bytes", 7, None], ids=repr)
def test_a_row_of_another_form_is_a_miss(cache, value):
    cache.put("key", ENTRY)
    plant(cache, value=value)
    assert cache.get("key") is None


@pytest.mark.parametrize("key", [b"bytes", 1, ("a", "tuple"), None], ids=repr)
def test_only_text_can_be_a_key(cache, key):
    with pytest.raises(TypeError):
        cache.get(key)


def test_only_text_can_be_a_value(cache):
    with pytest.raises(TypeError):
        cache._cache.set("key", {"a": 1})


def test_stats_count_what_is_damaged(cache, tmp_path):
    cache.put("good", ENTRY)
    for key, value in (("bad", "{"), ("negative", '{"raw": "x", "model": "m", "usd": -1}')):
        cache._cache.set(key, value)
    found = cache_stats(cache.folder)
    assert (found.entries, found.damaged) == (1, 2)


def test_stats_and_clear(cache):
    for number in range(3):
        cache.put(f"key {number}", ENTRY)
    found = cache_stats(cache.folder)
    assert (found.entries, found.usd) == (3, pytest.approx(0.75))
    assert found.bytes > 0
    assert clear_cache(cache.folder) == 3
    assert cache_stats(cache.folder).entries == 0


def test_there_is_nothing_where_nothing_was_kept(tmp_path):
    assert cache_stats(tmp_path / "none") == CacheStats(0, 0, 0.0)
    assert clear_cache(tmp_path / "none") == 0
    assert not (tmp_path / "none").exists()


def test_a_damaged_database_is_named_and_left_alone(tmp_path):
    (tmp_path / DATABASE).write_bytes(b"this is not a database" * 100)
    with pytest.raises(
        ProviderError, match=r"answer cache cannot be used: file is not a database.*delete cache.db if it is damaged"
    ):
        AnswerCache(tmp_path)
    assert (tmp_path / DATABASE).read_bytes().startswith(b"this is not")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ProviderError, match="cannot be used"):
        AnswerCache(tmp_path / "llm")


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "llm").write_text("")
    with pytest.raises(ProviderError, match="llm: the answer cache cannot be used"):
        AnswerCache(tmp_path / "llm")


def _fill(folder, name):
    cache = AnswerCache(folder)
    for number in range(50):
        cache.put(f"{name} {number}", ENTRY)
    cache.close()


def test_several_processes_may_write(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(tmp_path, name)) for name in ("one", "two")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert cache_stats(tmp_path).entries == 100


def hold(folder: Path, how: str) -> sqlite3.Connection:
    """The database locked as another process would lock it."""
    connection = sqlite3.connect(folder / "cache.db", isolation_level=None)
    connection.execute(f"PRAGMA locking_mode={how}")
    connection.execute(f"BEGIN {'EXCLUSIVE' if how == 'EXCLUSIVE' else 'IMMEDIATE'}")
    return connection


@pytest.mark.parametrize("do", [lambda cache: cache.put("b", ENTRY), lambda cache: cache.clear()])
def test_a_database_that_another_process_writes_is_waited_for_with_a_limit(
    do: Callable[[AnswerCache], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raggs.llm.cache.PATIENCE_S", 0.1)
    cache = AnswerCache(tmp_path)
    cache.put("a", ENTRY)
    with closing(hold(tmp_path, "NORMAL")), pytest.raises(BusyError, match=r"cache\.db: .*another process has locked"):
        do(cache)
    do(cache)


HOLDER = """import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN " + sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_opening_waits_once_for_a_process_that_writes(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    AnswerCache(tmp_path).close()
    monkeypatch.setattr("raggs.llm.cache.PATIENCE_S", 0.1)
    monkeypatch.setattr("raggs.llm.cache.diskcache.Cache", lambda folder, **_: opened.append(folder))
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "cache.db"), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(
            BusyError, match=r"cache\.db: .*another process has locked the answer cache for more than 0\.1 s"
        ):
            AnswerCache(tmp_path)
        holder.communicate()
    assert not opened, "diskcache must not meet the lock: it retries each statement for a minute"


def test_who_has_waited_in_vain_does_not_wait_again_for_the_next_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience: list[float] = []
    connect = sqlite3.connect
    AnswerCache(tmp_path).close()
    with closing(hold(tmp_path, "NORMAL")):
        monkeypatch.setattr("raggs.llm.cache.PATIENCE_S", 3.0)

        def noted(path: Path, timeout: float) -> sqlite3.Connection:
            patience.append(timeout)
            return connect(path, timeout=min(timeout, 0.05))

        monkeypatch.setattr("raggs.llm.cache.sqlite3.connect", noted)
        for _ in range(3):
            with pytest.raises(BusyError):
                AnswerCache(tmp_path)
    assert patience == [3.0, 0, 0]


def test_a_lock_that_is_taken_later_is_waited_for_once_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.llm.cache.PATIENCE_S", 0.1)
    cache, waited = AnswerCache(tmp_path), []
    transact = cache._cache.transact
    monkeypatch.setattr(cache._cache, "transact", lambda: waited.append(1) or transact())
    with closing(hold(tmp_path, "NORMAL")):
        for key in ("a", "b", "c"):
            with pytest.raises(BusyError, match="another process has locked"):
                cache.put(key, ENTRY)
    assert waited == [1], "diskcache waits with each transaction"
    cache.put("d", ENTRY)
    cache.put("e", ENTRY)
    assert (cache.get("d"), cache.get("c"), len(waited)) == (ENTRY, None, 3)
    cache.close()


def test_a_database_that_another_process_holds_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.llm.cache.PATIENCE_S", 0.1)
    AnswerCache(tmp_path).close()
    with closing(hold(tmp_path, "EXCLUSIVE")), pytest.raises(BusyError, match="another process has locked"):
        AnswerCache(tmp_path)
