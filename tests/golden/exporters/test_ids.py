"""Ids go out and come back equal in every format, or are refused where they come in."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.golden import GivenGolden

from raggs.base.artifacts import Passage, Query
from raggs.base.errors import DataError
from raggs.base.text import id_problem
from raggs.golden import formats
from raggs.golden.base import GoldenQuery, LabelRecord
from raggs.golden.formats import EXPORTERS
from raggs.golden.sources import open_golden
from raggs.parts.corpora.jsonl import JsonlConfig, JsonlCorpus
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.queries.fields import query_of
from raggs.parts.run_files import read_run

STRANGE = [
    "qid",
    "query-id",
    "corpus-id",
    "score",
    "{",
    '{"a":{"b":1}}',
    '"',
    '""',
    '"a',
    "'",
    "=cmd",
    "-1",
    "a,b",
    "a;b",
    "Q0",
    "ü",
    "0",
]
QIDS = st.lists(
    st.sampled_from(STRANGE)
    | st.text(min_size=1, max_size=8).filter(lambda name: id_problem(name, first=True) is None),
    min_size=1,
    max_size=3,
    unique=True,
)
DOCS = st.lists(
    st.sampled_from([*STRANGE, "#", "#d"])
    | st.text(min_size=1, max_size=8).filter(lambda name: id_problem(name) is None),
    min_size=1,
    max_size=4,
    unique=True,
)


def golden(qids, docs) -> GivenGolden:
    pool = tuple(Passage(doc_id=doc_id, text="x") for doc_id in docs)
    grades = tuple(LabelRecord(qid="q", doc_id=doc_id, grade=1 + place % 5) for place, doc_id in enumerate(docs))
    return GivenGolden("ids", 4, [GoldenQuery(qid, Query(qid=qid, text="?"), pool, grades) for qid in sorted(qids)])


@pytest.mark.parametrize("name", sorted(each for each in EXPORTERS if not EXPORTERS.load(each).TRAINING))
@given(qids=QIDS, docs=DOCS)
@example(qids=["qid,docid,x", "query-id"], docs=["corpus-id"])
@example(qids=['{"q1":'], docs=['{"doc_id":1}}'])
@example(qids=["'@", "'=cmd"], docs=["'-1", "''+"])
def test_any_id_comes_back_equal(name, qids, docs):
    given = golden(qids, docs)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        EXPORTERS.load(name)().write(given, out)
        back = open_golden(out)
        wanted = {query.qid: {one.doc_id: one.grade for one in query.grades} for query in given.by_query()}
        assert {query.qid: {one.doc_id: one.grade for one in query.grades} for query in back.by_query()} == wanted
        qrels = back.judgments().qrels
        texts = [doc.decode() for doc in qrels.docs.take(np.arange(len(qrels.docs))).tolist()]
        rows = zip(qrels.query.tolist(), texts, qrels.grade.tolist(), strict=True)
        assert {(qrels.qids[query], doc_id, grade) for query, doc_id, grade in rows} == {
            (qid, doc_id, grade) for qid, found in wanted.items() for doc_id, grade in found.items()
        }
        if name in formats.IMPORTERS:
            read = formats.IMPORTERS.load(name)().read(out)
            if EXPORTERS.load(name).WHOLE_CORPUS:
                assert {passage.doc_id for passage in read.corpus()} == set(docs)
            if "questions" in EXPORTERS.load(name).HOLDS:
                assert {query.qid for query in read.queries()} == set(qids)


@pytest.mark.parametrize("name", ["#1", "a\0", "a b", "\ufeffa", "a\x7f", "a\ud800"])
def test_other_ids_are_refused_at_the_entrance(name, tmp_path):
    with pytest.raises(DataError, match="query id"):
        query_of({"_id": name, "text": "?"}, Path("q"), 1)
    if not name.startswith("#"):
        (tmp_path / "c.jsonl").write_text(json.dumps({"_id": name, "text": "x"}) + "\n")
        with pytest.raises(DataError, match="_id"):
            list(JsonlCorpus(JsonlConfig(path=tmp_path / "c.jsonl")).passages())


def test_a_store_refuses_them_whatever_corpus_they_are_from(tmp_path):
    with pytest.raises(
        DataError, match=r"passage 1 of the corpus: id 'a\\x00' contains a control character.*rename the id"
    ):
        PassageStore.build(tmp_path / "c.sqlite", [Passage(doc_id="a\0", text="x")])


def test_nul_in_a_trec_file_is_refused_and_never_stripped(tmp_path):
    (tmp_path / "r.trec").write_bytes(b"q Q0 d\0 1 2.0 t\n")
    with pytest.raises(DataError, match=r"r.trec:1: contains a NUL character"):
        read_run(tmp_path / "r.trec")
    (tmp_path / "q.txt").write_bytes(b"q 0 d\0 4\n")
    with pytest.raises(DataError, match=r"q.txt:1: contains a NUL character"):
        open_golden(tmp_path / "q.txt").judgments()
