"""Many lines in one step give what each line would give by itself, and nothing that a line would be refused for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from raggs.base.artifacts import RetrieveRecord
from raggs.base.errors import DataError
from raggs.base.jsonl import MAX_BATCH_LINES, all_records, batches, read_records

GOOD = RetrieveRecord(qid="q1", retriever="bm25", rank=1, doc_id="d1", score=2.5)
LINE = GOOD.model_dump_json().encode() + b"\n"
LINES = st.sampled_from(
    [
        LINE,
        LINE.replace(b"q1", b"q2"),
        LINE.replace(b'"rank":1', b'"rank":0'),
        LINE[:-9],
        b"[]\n",
        b"null\n",
        LINE.strip() + b"," + LINE,
        b"{},{}\n",
        b"\xff\n",
        b"  " + LINE.strip() + b"\r\n",
    ]
)


def one_by_one(lines):
    try:
        return [RetrieveRecord.model_validate_json(line) for line in lines]
    except ValidationError:
        return None


@given(st.lists(LINES, max_size=6))
def test_all_at_once_is_one_by_one(lines):
    assert all_records(lines, RetrieveRecord) == one_by_one(lines)


@given(st.lists(st.sampled_from([b"a\n", b"\n", b" \r\n", b"b"]), max_size=3 * MAX_BATCH_LINES))
def test_batches_hold_every_line_that_is_not_blank_with_its_number(lines):
    found = list(batches(lines))
    assert [each for batch in found for each in batch] == [
        (number, line) for number, line in enumerate(lines, start=1) if line.strip()
    ]
    assert all(0 < len(batch) <= MAX_BATCH_LINES for batch in found)
    assert not found or len(found[0]) == 1, "whoever wants the first record does not wait for hundreds"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b'{"v":1,"qid":"q1"}\n', "retriever: Field required"),
        (LINE.strip() + b"," + LINE, "Invalid JSON"),
        (LINE[:30] + b"\xe9" + LINE[30:], "not UTF-8"),
        (json.dumps({**GOOD.model_dump(), "rank": 0}).encode() + b"\n", "rank: "),
    ],
)
def test_a_line_that_is_wrong_is_named_however_many_are_read_with_it(tmp_path, bad, said):
    path = tmp_path / "retrieve.jsonl"
    path.write_bytes(LINE * 700 + b"\n" + bad + LINE * 700)
    records, found = read_records(path, RetrieveRecord), []
    with pytest.raises(DataError, match=said) as error:
        found.extend(records)
    assert error.value.line == 702
    assert found == [GOOD] * 700


def test_a_mark_at_the_beginning_of_a_file_is_passed_over(tmp_path):
    path = tmp_path / "retrieve.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + LINE * 3)
    assert list(read_records(path, RetrieveRecord)) == [GOOD] * 3
