"""Shards: a partition that every machine agrees on, and its merge."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import EmbedRecord, MergeRecord, Query, Record, RetrieveRecord
from raggs.base.jsonl import write_records
from raggs.runs.execution.channel import PoolTexts, ShardJob, merge_shards, shard_folder, shard_of, shard_work, split
from raggs.stages.base import StageWork

READS = ("embed", "retrieve")


def job_in(folder: Path) -> ShardJob:
    return ShardJob(
        stage="merge",
        config="",
        folder=folder,
        passages=folder,
        topic="",
        asks=None,
        embedder="",
        dims=0,
        causes={},
        versions={},
    )


def embedded(qid: str) -> EmbedRecord:
    return EmbedRecord(qid=qid, text="a", rewrite="a", bm25_text="a", language="en", embedding=(), embedder="")


def hits(qid: str, count: int) -> list[RetrieveRecord]:
    return [RetrieveRecord(qid=qid, retriever="r", rank=n, doc_id=f"d{n}", score=1 / n) for n in range(1, count + 1)]


def test_a_query_has_the_same_shard_on_every_machine() -> None:
    assert [shard_of(qid, 64) for qid in ("q1", "q2", "é")] == [18, 35, 19]


@given(found=st.dictionaries(st.integers(0, 99).map("q{:02}".format), st.integers(0, 3)), count=st.integers(1, 7))
def test_what_is_split_and_merged_is_what_it_was(tmp_path_factory, found: dict[str, int], count: int) -> None:
    queries = [embedded(qid) for qid in sorted(found)]
    records = [record for qid in sorted(found) for record in hits(qid, found[qid])]
    readers = {"embed": lambda: iter(queries), "retrieve": lambda: iter(records)}
    with shard_folder(tmp_path_factory.mktemp("run")) as folder:
        job = job_in(folder)
        shards = split(job, READS, StageWork(readers), [Query(qid=qid, text="a") for qid in found], count)
        members = shards.members
        assert shards.pools == {}
        assert sorted(qid for qids in members.values() for qid in qids) == sorted(found)
        for number, qids in members.items():
            assert {shard_of(qid, count) for qid in qids} == {number}
            part = shard_work(job, READS, number)
            assert [record.qid for record in part.read("embed", EmbedRecord)] == qids
            write_records(job.output("retrieve", number), part.read("retrieve", RetrieveRecord))
        whole: list[Record] = list(merge_shards(job, "retrieve", RetrieveRecord, members))
    assert whole == records
    assert not folder.exists()


def test_what_a_killed_run_left_is_swept_away(tmp_path: Path) -> None:
    with shard_folder(tmp_path) as folder:
        pass
    folder.mkdir()
    (folder / "3.merge.in.jsonl").write_text("stale")
    with shard_folder(tmp_path) as again:
        assert list(again.iterdir()) == []


def test_the_texts_of_a_question_are_those_of_the_pool(tmp_path: Path) -> None:
    records = [
        MergeRecord(qid=qid, rank=place + 1, doc_id=doc_id, score=0, sources={}, text=f"{qid} says: é {doc_id}")
        for qid, ids in {"q1": "abc", "q2": "b", "q3": "ca", "q4": "cb"}.items()
        for place, doc_id in enumerate(ids)
    ]
    with shard_folder(tmp_path) as folder:
        job = job_in(folder)
        shards = split(job, ("merge",), StageWork({"merge": lambda: iter(records)}), [], 2)
        assert len(shards.members) == 2
        pools = PoolTexts(job, shards)
        for record in records:
            assert pools.get(record.qid, [record.doc_id]) == [record.passage]
        assert [passage.doc_id for passage in pools.get("q1", ["c", "a"])] == ["c", "a"]
