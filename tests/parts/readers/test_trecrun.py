"""The fast reader of runs: the same columns as the plain reader, or the same error, whatever the file."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from raggs.base.errors import DataError, NotFoundError
from raggs.base.trec import read_scored
from raggs.parts.run_files import quick_run, read_trec_run

IDS = st.text("abcXYZ019#-_./:é文𝄞", min_size=1, max_size=20)
SCORES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-100, 100).map(lambda score: f"{score:.17f}"),
    st.floats(-1000, 1000).map(lambda score: f"{score:.6f}"),
    st.integers(-(10**22), 10**22).map(str),
    st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{1,20}([eE][+-]?[0-9]{1,2})?", fullmatch=True),
)
GAPS = st.sampled_from([" ", "\t", "  ", " \t "])
ENDS = st.sampled_from(["\n", "\r\n", " \n", "\t\r\n"])
EXTRAS = st.sampled_from(["", "", "", "\n", "  \n", "# a comment\n"])

files_are_shared = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def contents(draw, ids):
    """A run file without a passage twice."""
    pairs = draw(st.lists(st.tuples(ids, ids), unique=True, min_size=1, max_size=25))
    gap, end = draw(GAPS), draw(ENDS)
    odd = draw(st.booleans())
    text = ""
    for number, (qid, doc) in enumerate(pairs):
        text += gap.join((qid, "Q0", doc, str(number), draw(SCORES), "tag")) + end
        text += draw(EXTRAS) if odd else ""
    return text if draw(st.booleans()) else text.rstrip()


def plain(path):
    return [(row.qid, row.doc_id, row.score) for row in read_scored(path)]


def rows(run):
    docs = run.docs.take(np.arange(len(run.docs))).tolist() if len(run.docs) else []
    return [
        (run.qids[query], doc.decode(), score)
        for query, doc, score in zip(run.query.tolist(), docs, run.score.tolist(), strict=True)
    ]


def same(first, second):
    """Equal rows, with the bits of their scores."""
    assert [row[:2] for row in first] == [row[:2] for row in second]
    assert [row[2].hex() for row in first] == [row[2].hex() for row in second]


def write(folder, content, name="run.trec"):
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@files_are_shared
@given(contents(IDS), st.sampled_from(["run.trec", "run.gz"]), st.sampled_from([7, 64, 1 << 22]))
def test_equals_the_plain_reader(tmp_path, content, name, chunk):
    path = write(tmp_path, content, name)
    try:
        expected = plain(path)
    except DataError as error:  # an id that begins a comment, a score beyond the largest number
        with pytest.raises(DataError) as caught:
            read_trec_run(path, chunk)
        assert str(caught.value) == str(error)
        return
    run = read_trec_run(path, chunk)
    same(rows(run), expected)
    assert run.qids == tuple(dict.fromkeys(qid for qid, _, _ in expected))


@files_are_shared
@given(st.lists(SCORES, min_size=1, max_size=30))
@example(["9007199254740993", "9007199254740992", "0.1", "-0", "-0.0", "+.5", "5.", "1e22", "1e-300", "4.9e-324"])
@example(["12345678901234567", "0.12345678901234567", "123456789012345678", "1234567890123456789", "0" * 30 + "1"])
@example(["0.30000000000000004", "17.999999999999996", "99999999999999999.5", "1." + "0" * 40, "-" + "9" * 18])
def test_scores_are_the_nearest_doubles(tmp_path, scores):
    usable = [score for score in scores if math.isfinite(float(score))]
    path = write(tmp_path, "".join(f"q Q0 d{place} 1 {score} t\n" for place, score in enumerate(usable)))
    assert [score.hex() for score in quick_run(path).score.tolist()] == [float(score).hex() for score in usable]


@pytest.mark.parametrize("gap", [" ", "\t", " \t  "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n"])
@pytest.mark.parametrize("chunk", [1, 40, 1 << 22])
def test_usual_files_go_the_fast_way(tmp_path, gap, end, chunk):
    table = [(f"q{n // 4}", f"doc-{n}" * (n + 1), n / 7) for n in range(11)]
    text = end.join(gap.join((qid, "Q0", doc, "1", repr(score), "tag")) for qid, doc, score in table)
    same(rows(quick_run(write(tmp_path, text), chunk)), table)
    same(rows(quick_run(write(tmp_path, text + end, "run.gz"), chunk)), table)


def test_queries_may_come_back(tmp_path):
    path = write(tmp_path, "q1 Q0 a 1 3 t\nq2 Q0 a 1 2 t\nq1 Q0 b 2 1 t\n")
    run = quick_run(path)
    assert (run.qids, run.query.tolist()) == (("q1", "q2"), [0, 1, 0])


def test_an_id_wider_than_the_fast_way_takes(tmp_path):
    path = write(tmp_path, f"q Q0 {'w' * 300} 1 1.5 t\nq Q0 a 2 1 t\n")
    same(rows(read_trec_run(path)), [("q", "w" * 300, 1.5), ("q", "a", 1.0)])


@pytest.mark.parametrize("content", ["", "\n", "  \n\t\n", "# nothing\n"])
def test_a_file_without_rows_is_an_empty_run(tmp_path, content):
    run = read_trec_run(write(tmp_path, content))
    assert (run.qids, len(run.score), len(run.docs), len(run.doc_keys)) == ((), 0, 0, 0)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("q Q0 a 1 1 t\nq Q0 b 2 t\n", 2, "5 columns instead of 6"),
        ("q Q0 a 1 1 t\nq Q0 b 2 0.5 t extra\n", 2, "7 columns instead of 6"),
        ("q Q0 a 1 1\nt q Q0 b 2 0.5 t\n", 1, "5 columns instead of 6"),
        ("q Q0 a 1 1 t q\nQ0 b 2 0.5 t\n", 1, "7 columns instead of 6"),
        ("q Q0 a 1 high t\n", 1, "'high' is not a finite number"),
        ("q Q0 a 1 1 t\n\nq Q0 b 2 nan t\n", 3, "'nan' is not a finite number"),
        ("q Q0 a 1 inf t\n", 1, "'inf' is not a finite number"),
        ("q Q0 a 1 1e999 t\n", 1, "'1e999' is not a finite number"),
        ("q Q0 a 1 1_0 t\n", 1, "'1_0' is not a finite number"),
        ("q Q0 a 1 - t\n", 1, "'-' is not a finite number"),
        ("q Q0 a 1 . t\n", 1, "'.' is not a finite number"),
        ("q Q0 a 1 1.2.3 t\n", 1, "'1.2.3' is not a finite number"),
        ("q Q0 a 1 0x10 t\n", 1, "'0x10' is not a finite number"),
        ("q Q0 a 1 5-3 t\n", 1, "'5-3' is not a finite number"),
        ("q Q0 a 1 1 t\nq Q0 b 2 1 t\nq Q0 a 3 0 t\n", 3, "query q and passage a occur twice (first in line 1)"),
        (b"q Q0 a 1 1 t\nq Q0 \xff 2 1 t\n", 2, "not UTF-8"),
    ],
)
@pytest.mark.parametrize("chunk", [5, 1 << 22])
def test_errors_name_file_and_line(tmp_path, content, line, message, chunk):
    path = write(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_trec_run(path, chunk)
    assert message in str(caught.value)
    assert f"{path}:{line}" in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"no gzip at all\n", gzip.compress(b"q Q0 a 1 1 t\n" * 50)[:-9]], ids=["no archive", "cut short"]
)
def test_a_broken_archive(tmp_path, data):
    path = tmp_path / "run.gz"
    path.write_bytes(data)
    with pytest.raises((NotFoundError, DataError), match=r"run\.gz"):
        read_trec_run(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(NotFoundError, match="no such file"):
        read_trec_run(tmp_path / "none.trec")


@pytest.mark.parametrize("comment", ["# q Q0 b 2 1", "#q Q0 b 2 high t", "#"])
def test_a_comment_of_as_many_columns_is_a_comment(tmp_path, comment):
    for text in (f"q Q0 a 1 1 t\n{comment}\n", f"{comment}\nq Q0 a 1 1 t\n"):
        path = write(tmp_path, text)
        assert quick_run(path) is None
        assert len(read_trec_run(path).score) == 1


@pytest.mark.parametrize("text", ["q Q0 a 1 1 t\n#q Q0 b 2 1 t\n", "#q Q0 a 1 1 t\nq Q0 b 2 1 t\n"])
def test_a_comment_that_reads_as_a_hit_is_refused(tmp_path, text):
    path = write(tmp_path, text)
    assert quick_run(path) is None
    with pytest.raises(DataError, match=r"run\.trec:[12]: starts with # .* a row of query '#q' — rename the query, or"):
        read_trec_run(path)


@pytest.mark.parametrize(
    "text", ["q Q0  1 1 t\n", "q Q0 a 1 1\n t q Q0 b 2 1 t\n", " q Q0 a 1 1 t\n", "q Q0 a 1 1 t \n"]
)
def test_what_is_not_tight_is_read_as_by_the_plain_reader(tmp_path, text):
    path = write(tmp_path, text)
    try:
        expected = plain(path)
    except DataError:
        assert quick_run(path) is None
        return
    same(rows(read_trec_run(path)), expected)


def lines(ranks, scores, qid="q1"):
    return "".join(
        f"{qid} Q0 d{place} {rank} {score} t\n" for place, (rank, score) in enumerate(zip(ranks, scores, strict=True))
    )


@pytest.mark.parametrize("extra", ["", "q9 Q0 \u00e9 1 1 t\n"])  # the fast way and the slow one
def test_scores_that_rise_with_the_rank_are_refused(extra, tmp_path):
    path = tmp_path / "run"
    path.write_text(lines([1, 2, 3], [0.1, 0.2, 0.9]) + lines([1, 2], [0.3, 0.4], "q2") + extra)
    with pytest.raises(DataError, match=r"run: the scores rise with the rank: in 3 of 3 pairs .* — .*Negate distances"):
        read_trec_run(path)
    path.write_text(lines([1, 2, 3], [-0.1, -0.2, -0.9]) + extra)
    assert read_trec_run(path).note == ""
    path.write_text(lines([0, 0, 0], [0.1, 0.2, 0.9]) + extra)
    assert read_trec_run(path).note == "", "ranks that say nothing contradict nothing"


@pytest.mark.parametrize("extra", ["", "q9 Q0 \u00e9 1 1 t\n"])
def test_a_few_swaps_and_ties_are_normal_and_more_are_named(extra, tmp_path):
    path = tmp_path / "run"
    scores = [100.0 - place for place in range(50)]
    scores[10], scores[11] = scores[11], scores[10]
    scores[20] = scores[21]
    path.write_text(lines(range(1, 51), scores) + extra)
    assert read_trec_run(path).note == ""
    for place in range(20, 40, 4):
        scores[place], scores[place + 1] = scores[place + 1], scores[place]
    path.write_text(lines(range(1, 51), scores) + extra)
    assert "ranks and scores disagree in 10% of the neighbouring pairs" in read_trec_run(path).note
