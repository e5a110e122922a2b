"""The journal on disk: what is known after a kill, and the final order."""

from __future__ import annotations

import zlib
from pathlib import Path

from raggs.base.artifacts import JournalRecord
from raggs.base.jsonl import dump_line
from raggs.runs.manifests.store import RunJournal


def entry(qid: str, number: int, slot: int = 0) -> JournalRecord:
    return JournalRecord(qid=qid, state="s", engine="online/1", round=number, slot=slot, shown=("a", "b"), order=None)


def test_entries_are_known_at_once_and_to_the_next_one_who_opens_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    noted = [entry("q2", 0), entry("q1", 0), entry("q2", 1)]
    first = RunJournal(path)
    for record in noted:
        first.append(record)
    assert first.entries("q2") == [noted[0], noted[2]]
    first.close()
    with path.open("ab") as file:
        file.write(b'{"v":1,"qid":"q1","to')  # a kill in mid-write
    second = RunJournal(path)
    second.append(entry("q1", 1))
    assert second.entries("q1") == [noted[1], entry("q1", 1)]
    assert second.entries("q2") == [noted[0], noted[2]]
    assert second.entries("q3") == []
    second.close()
    third = RunJournal(path)
    assert third.entries("q1") == [noted[1], entry("q1", 1)]
    third.close()


def test_only_lines_of_the_given_sums_are_believed(tmp_path: Path) -> None:
    path, noted = tmp_path / "journal.jsonl", [entry("q1", 0), entry("q1", 1)]
    path.write_bytes(b"".join(map(dump_line, noted)))
    journal = RunJournal(path, zlib.crc32(dump_line(noted[1])).to_bytes(4, "little"))
    assert journal.entries("q1") == [noted[1]]
    journal.append(entry("q1", 2))
    journal.close()
    assert path.read_bytes() == dump_line(noted[1]) + dump_line(entry("q1", 2))


def test_what_is_settled_comes_in_the_final_order_any_number_of_times(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path / "journal.jsonl")
    journal.append(entry("q1", 5))
    journal.settle("q2", [entry("q2", 1), entry("q2", 0, 1), entry("q2", 0)])
    journal.settle("q1", [entry("q1", 0)])
    final = [entry("q1", 0), entry("q2", 0), entry("q2", 0, 1), entry("q2", 1)]
    assert list(journal.settled()) == final
    assert list(journal.settled()) == final
    assert journal.entries("q1") == [], "a settled query needs no other entries"
    journal.close()
