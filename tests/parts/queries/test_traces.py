"""Traces of every product in every form of file: events, hostile files, bounded memory, and the log of searches."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.traces import FORMS, WRITERS, Searched, document, ids, json_lines, langfuse, langsmith, otlp, phoenix

from raggs.base.artifacts import Passage
from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.queries import REGISTRY
from raggs.parts.queries.traces import detect_trace_format, log, read_trace_events, streaming
from raggs.parts.queries.traces.log import CorpusIds, TraceLog, TraceOptions
from raggs.parts.queries.traces.payloads import (
    TracedSearch,
    TraceFeedback,
    document_of,
    documents_in,
    duration_ms,
    feedback_value,
    query_text,
    seconds_of,
)

SEARCHES = [
    Searched("How do I reset the clock?", [("d1", "Press reset.", 0.9), ("d2", "Hold it.", 0.5)], feedback=1.0),
    Searched("Où est le manuel ?", [("d3", "Dans la boîte.", 0.25)], 1_700_000_060_000, 250, feedback=0.0),
    Searched("Why does it beep at night?", [], 1_700_000_120_000, 40),
    Searched("Can I wash the filter?", [], 1_700_000_180_000, 5000, failed=True),
]


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    path = folder / "traces.jsonl"
    path.write_text(json_lines(otlp(SEARCHES)), encoding="utf-8")
    return {"path": path}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text(FORMS[path.suffix](rows), encoding="utf-8")
    return path


def searches_in(path: Path, **options: Any) -> list[TracedSearch]:
    events = (each for each in read_trace_events(path, **options) if isinstance(each, TracedSearch))
    return [each for each in events if each.documents is not None]


def same(found: TracedSearch, wanted: Searched) -> None:
    assert found.query == wanted.query
    assert [tuple(each) for each in found.documents or ()] == [tuple(each) for each in wanted.documents]
    assert found.start_s == pytest.approx(wanted.start_ms / 1e3)
    assert found.latency_ms == pytest.approx(wanted.latency_ms)
    assert found.failed == wanted.failed


# --- formats ---


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_searches(name: str, suffix: str, tmp_path: Path) -> None:
    form, rows_of = WRITERS[name]
    rows = rows_of(SEARCHES)
    if suffix == ".csv" and (form == "otlp" or name == "langfuse traces"):
        pytest.skip("these are nested, so they are never tables")
    path = written(tmp_path / f"traces{suffix}", rows)
    assert detect_trace_format(path) == form
    found = searches_in(path)
    assert len(found) == len(SEARCHES)
    for each, wanted in zip(found, SEARCHES, strict=True):
        same(each, wanted)


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "phoenix table"])
def test_feedback_reaches_the_search_of_its_trace(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "traces.jsonl", WRITERS[name][1](SEARCHES))
    with TraceLog(TraceOptions()) as found:
        found.read(path)
        queries = {each.text: each for each in found.queries()}
    first, second, third, last = (queries[each.query] for each in SEARCHES)
    assert (first.positive, first.negative, first.signals) == (1, 0, 0)
    assert (second.positive, second.negative, second.signals) == (0, 1, 1)
    assert (third.empty, third.signals, third.positive) == (1, 1, 0)
    assert (last.failed, last.empty, last.signals) == (1, 0, 1)
    assert found.counts.requests == 0 and found.counts.searches == 4 and found.counts.feedback == 2
    assert first.language == "en" and second.language == "fr" and last.latency_ms == pytest.approx(5000)


texts = st.text(st.characters(codec="utf-8"), max_size=30).map(lambda text: f"- {text} -")
words = st.lists(st.from_regex(r"[a-zé]{2,9}", fullmatch=True), min_size=2, max_size=6).map(" ".join)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.:-]{0,11}", fullmatch=True)
scores = st.floats(-1e6, 1e6, allow_nan=False, width=32)
made_searches = st.lists(
    st.builds(
        Searched,
        query=words,
        documents=st.lists(st.tuples(names, texts, scores), min_size=1, max_size=4),
        start_ms=st.integers(1_600_000_000_000, 1_900_000_000_000),
        latency_ms=st.integers(0, 100_000),
        feedback=st.none() | st.sampled_from([0.0, 1.0]),
        failed=st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("name", WRITERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(searches=made_searches, suffix=st.sampled_from([".jsonl", ".json"]), lookahead=st.sampled_from([1, 64, 1 << 20]))
def test_a_round_trip_changes_nothing(
    name: str, searches: list[Searched], suffix: str, lookahead: int, tmp_path: Path
) -> None:
    path = written(tmp_path / f"traces{suffix}", WRITERS[name][1](searches))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "LOOKAHEAD", lookahead)
        patch.setattr(streaming, "read_blocks", lambda path: iter_blocks(path, 7 if lookahead == 1 else 1 << 16))
        found = searches_in(path)
    assert len(found) == len(searches)
    for each, wanted in zip(found, searches, strict=True):
        same(each, wanted)


def iter_blocks(path: Path, size: int) -> Any:
    data = path.read_bytes()
    return (data[at : at + size] for at in range(0, len(data), size))


# --- payloads ---


@pytest.mark.parametrize(
    ("payload", "wanted"),
    [
        ("plain words", "plain words"),
        ('{"query": "inside JSON"}', "inside JSON"),
        ({"input": {"question": "two levels"}}, "two levels"),
        ([{"role": "system", "content": "be kind"}, {"role": "user", "content": "the last"}], "the last"),
        ([{"role": "user", "parts": [{"type": "text", "content": "in parts"}]}], "in parts"),
        ({"messages": [[{"type": "human", "data": {"content": "of LangChain"}}]]}, "of LangChain"),
        ({"args": 3}, None),
        ([{"role": "assistant", "content": "an answer"}], None),
        ("   ", None),
        (None, None),
        (17, None),
        ("{not JSON", "{not JSON"),
    ],
)
def test_the_query_in_a_payload(payload: object, wanted: str | None) -> None:
    assert query_text(payload) == wanted


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"id": 7, "text": "a", "distance": "0.5"}, ("7", "a", 0.5)),
        ({"node": {"id_": "n", "text": "b"}, "score": 1}, ("n", "b", 1.0)),
        ({"document": {"page_content": "c", "metadata": {"chunk_id": "k"}}}, ("k", "c", None)),
        ([{"page_content": "d", "id": "x"}, 0.25], ("x", "d", 0.25)),
        ("only text", ("", "only text", None)),
        ({"kwargs": {"page_content": "e", "id": "y"}}, ("y", "e", None)),
        ({"score": 1.0}, None),
        (3, None),
    ],
)
def test_the_document_in_an_entry(entry: object, wanted: tuple[object, ...] | None) -> None:
    assert document_of(entry) == wanted


def test_an_entry_without_id_and_text_keeps_the_ranks_of_the_others() -> None:
    assert documents_in([{"id": "a"}, {"score": 1}]) == (("a", "", None), ("", "", None))
    assert documents_in([{"score": 1}]) is None
    assert documents_in({"documents": []}) == ()


def test_times_and_feedback() -> None:
    for value in (
        1_700_000_000,
        1_700_000_000_000,
        "1700000000000000000",
        "2023-11-14T22:13:20Z",
        "2023-11-14 22:13:20",
    ):
        assert seconds_of(value) == 1_700_000_000
    assert duration_ms("1700000000000000001", "1700000000000000003") == 2e-6
    assert duration_ms("2023-11-14T22:13:20Z", "2023-11-14T22:13:19Z") is None
    assert [feedback_value(each) for each in ("thumbs-up", "NO", True, "0.5", "maybe", None)] == [
        1,
        0,
        1,
        0.5,
        None,
        None,
    ]


# --- files ---


@pytest.mark.parametrize("name", ["otlp openinference", "langfuse", "langsmith"])
def test_a_broken_line_is_an_error_with_its_line_and_is_only_left_out_on_request(name: str, tmp_path: Path) -> None:
    lines = json_lines(WRITERS[name][1](SEARCHES)).splitlines(keepends=True)
    path = tmp_path / "traces.jsonl"
    for broken in (lines[1][:50] + "\n", lines[1][:-2] + "\n", "nonsense\n", "[1]\n", '{"a": NaN}\n', '"a"\n'):
        path.write_text("".join([lines[0], broken, *lines[2:]]))
        with pytest.raises(DataError) as caught:
            list(read_trace_events(path))
        assert caught.value.line == 2 and "--skip-invalid" in str(caught.value), broken
        skipped: Counter[str] = Counter()
        left = list(read_trace_events(path, "auto", skipped))
        assert skipped == {"broken line": 1}
        path.write_text("".join([lines[0], *lines[2:]]))
        assert [event for event in left if isinstance(event, TracedSearch)] == [
            event for event in read_trace_events(path) if isinstance(event, TracedSearch)
        ] or len(left) == len(list(read_trace_events(path)))


def test_a_broken_document_is_never_left_out(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    whole = document(otlp(SEARCHES))
    path.write_text(whole[: len(whole) // 2])
    line = path.read_text().count("\n") + 1
    for skipped in (None, Counter[str]()):
        with pytest.raises(DataError) as caught:
            list(read_trace_events(path, "otlp", skipped))
        assert abs((caught.value.line or 0) - line) <= 1
        assert "correct the file" in str(caught.value)


@pytest.mark.parametrize(("name", "said"), [("a.parquet", "convert it to JSON lines"), ("a.txt", "use one of .json")])
def test_an_unknown_suffix_is_named_before_the_format_is_detected(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(UsageError, match=said):
        read_trace_events(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "data", "error", "said"),
    [
        ("a.json", b'{"resourceSpans": ' + b"[" * 100_000, DataError, "nested"),
        ("a.json", b'{"spans": [' * 70 + b"{}" + b"]}" * 70, DataError, "nested more than"),
        ("a.jsonl", b'{"resourceSpans": []}\n{"a": "\xff"}\n', DataError, "a.jsonl:2: not UTF-8"),
        ("a.json", b'{"resourceSpans": [], "n": 1' + b"0" * 200 + b"}", DataError, "a number of 201 characters"),
        ("a.csv", b"run_type,id\nretriever\n", DataError, "a.csv:2: 1 columns, the header has 2"),
        ("a.csv", b'run_type,id\n"retriever,1\n', DataError, "not valid CSV"),
        ("a.json.gz", gzip.compress(b" " * 100_000_000), DataError, "unpacks to more than 200 times"),
        ("a.json.gz", b"no archive", NotFoundError, "cannot be read"),
        ("a.parquet", b"PAR1", UsageError, "Parquet files cannot be read"),
        ("a.txt", b"{}", UsageError, "unknown trace format"),
    ],
)
def test_hostile_files_are_one_sentence(
    name: str, data: bytes, error: type[Exception], said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(error) as caught:
        list(read_trace_events(path, "otlp"))
    assert said in str(caught.value)


@pytest.mark.parametrize("data", ["", '{"a": 1}', '[{"text": "a"}]', "[", "\n\n"])
def test_an_unknown_format_names_the_known_ones(data: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(data)
    with pytest.raises(DataError) as caught:
        list(read_trace_events(path))
    assert "the format of the traces is not recognised" in str(caught.value)
    assert "set --format or `format` (otlp: OTLP JSON" in str(caught.value)


@pytest.mark.parametrize("lookahead", [1 << 20, 1])
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.jsonl", '{"a": 1}\n{"name": "x", "name": "y"}\n', 2),
        ("a.jsonl", '{"a": 1}\n{"b": {"c": [{"d{": 1}, {"d": 1, "\\u0064": 2}]}}\n', 2),
        ("a.json", '[\n {"a": "}"},\n {"b": {\n  "c": 1,\n  "c": 2}}\n]\n', 5),
        ("a.json", '{"data": [],\n "x": [1, {"y": 0}],\n "data": []}\n', 3),
    ],
)
def test_a_key_that_occurs_twice_is_an_error_with_its_line(
    name: str, text: str, line: int, lookahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "LOOKAHEAD", lookahead)
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="occurs twice in one object") as caught:
        list(streaming.read_trace_records(path))
    assert caught.value.line == line
    if line == 2:
        skipped = Counter[str]()
        assert [record.line for record in streaming.read_trace_records(path, skipped)] == [1]
        assert skipped == {streaming.BROKEN_LINE: 1}


def test_a_single_huge_value_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "LOOKAHEAD", 1 << 10)
    monkeypatch.setattr(streaming, "MAX_VALUE_CHARS", 1 << 14)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x" * (1 << 22)}]}]}]}))
    with pytest.raises(DataError, match="a value has more than 16,384 characters"):
        list(read_trace_events(path, "otlp"))


def peak_bytes(path: Path) -> tuple[int, int]:
    """The number of searches in a file, and the peak of the memory while it is read."""
    tracemalloc.start()
    count = sum(1 for _ in read_trace_events(path, "otlp"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return count, peak


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_memory_does_not_grow_with_the_file(suffix: str, tmp_path: Path) -> None:
    """One document of 24 MB, on one line, and the same spans as lines."""
    search = Searched("How do I reset the clock?", [("d", "x" * 16_000, 0.5)])
    span = json.dumps(otlp([search])[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0])
    path = tmp_path / f"a{suffix}"
    opening, closing = '{"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [', "]}]}]}"
    with path.open("w") as file:
        if suffix == ".json":
            file.write(opening + ", ".join([span] * 1250) + closing)
        else:
            file.writelines(f"{opening}{span}{closing}\n" for _ in range(1250))
    count, peak = peak_bytes(path)
    assert count == 1250 and path.stat().st_size > 20_000_000
    assert peak < 12_000_000


# --- the log ---


def test_personal_data_is_masked_before_it_is_stored(tmp_path: Path) -> None:
    asked = ["Write to jane.doe@example.com about my order", "My name is John Smith, where is my order?"]
    path = written(tmp_path / "a.jsonl", langsmith([Searched(text) for text in asked]))
    with TraceLog(TraceOptions()) as found:
        found.read(path)
        stored = b"".join(file.read_bytes() for file in Path(found._folder.name).iterdir())
        texts = [each.text for each in found.queries()]
    assert texts == ["Write to [EMAIL] about my order", "My name is [NAME], where is my order?"]
    assert found.counts.masked == {"email": 1, "name": 1}
    assert b"jane" not in stored and b"Smith" not in stored and b"order" in stored


def test_documents_are_found_by_id_then_by_text(tmp_path: Path) -> None:
    passages = [Passage(doc_id="p1", text="Press  reset."), Passage(doc_id="p2", text="Hold it.")]
    store = PassageStore.build(tmp_path / "passages.sqlite", passages)
    documents = [("x9", "Press reset.", 0.9), ("p2", "", 0.5), ("zz", "Nothing of this.", 0.4), ("p2", "", 0.3)]
    path = written(tmp_path / "a.jsonl", phoenix([Searched("How do I reset it?", documents)]))
    with store, TraceLog(TraceOptions(), CorpusIds(store)) as found:
        found.read(path)
        (only,) = found.lists(found.queries())
    assert [(hit.doc_id.partition("-")[0], hit.rank, hit.score) for hit in only.hits] == [
        ("p1", 1, 0.9),
        ("p2", 2, 0.5),
        ("unmapped", 3, 0.4),
    ]
    assert found.counts.documents == {"id": 2, "text": 1, "unmapped": 1, "repeated": 1}


def test_the_last_list_of_a_query_counts_and_scores_fall_with_the_rank(tmp_path: Path) -> None:
    searches = [
        Searched("How do I reset it?", [("b", "", 0.1), ("a", "", 0.3)], 1_700_000_002_000),
        Searched("how do i RESET it", [("c", "", 0.1), ("d", "", 0.3)], 1_700_000_001_000),
        Searched("Where is the manual?", [("e", "", 0.2), ("f", "", 0.2)], 1_700_000_000_000),
        Searched("Is there another manual?", [("e", "", 0.4), ("g", "", 0.2), ("f", "", 0.3)], 1_700_000_000_000),
        Searched("Is there no manual?", [("e", "", None), ("g", "", None)], 1_700_000_000_000),
    ]
    with TraceLog(TraceOptions()) as found:
        found.read(written(tmp_path / "a.jsonl", langfuse(searches)))
        queries = found.queries()
        lists = {each.qid: [(hit.doc_id, hit.score) for hit in each.hits] for each in found.lists(queries)}
    by_text = {each.text: lists[each.qid] for each in queries}
    assert queries[0].searches == 2 and queries[0].text == "How do I reset it?"
    assert by_text["How do I reset it?"] == [("b", -0.1), ("a", -0.3)]
    assert by_text["Where is the manual?"] == [("e", -0.2), ("f", -0.2)]
    assert by_text["Is there another manual?"] == [("e", -1.0), ("g", -2.0), ("f", -3.0)]
    assert by_text["Is there no manual?"] == [("e", -1.0), ("g", -2.0)]
    assert found.counts.distances and found.counts.unordered == 2


def test_low_scores_and_high_latencies_are_those_of_the_log(tmp_path: Path) -> None:
    searches = [
        Searched(f"What is number {number} of these?", [("a", "", 0.5 + number / 100)], latency_ms=100 + number)
        for number in range(40)
    ]
    with TraceLog(TraceOptions()) as found:
        found.read(written(tmp_path / "a.jsonl", langfuse(searches)))
        queries = found.queries()
    assert sorted(each.text for each in queries if each.low) == sorted(each.query for each in searches[:4])
    assert [each.text for each in queries if each.slow] == [searches[39].query]


def test_other_retrievers_feedback_and_repeated_spans_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = langsmith([Searched("Is this the first one?", feedback=0.0), Searched("Is this the second one?")])
    rows[2]["name"] = "other"
    path = written(tmp_path / "a.jsonl", rows)
    with TraceLog(TraceOptions(retriever="retriever", feedback=("stars",))) as found:
        found.read(path)
        found.read(path)
        queries = found.queries()
    assert [each.searches for each in queries] == [1, 1] and not queries[0].negative
    assert found.counts.dropped == {"repeated span": 1, "another retriever": 2}
    assert found.counts.requests == 1 and queries[1].text == "asked: Is this the second one?"


def test_a_log_with_too_many_queries_keeps_some_with_all_their_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MAX_TEXTS", 50)
    searches = [Searched(f"What is number {number % 300} here?") for number in range(600)]
    with TraceLog(TraceOptions()) as found:
        found.read(written(tmp_path / "a.jsonl", langfuse(searches)))
        queries = found.queries()
    assert 10 < len(queries) <= 50 and {each.searches for each in queries} == {2}
    assert 2**found.counts.halvings >= 300 / 50


def test_traces_as_queries_of_a_configuration(tmp_path: Path) -> None:
    adapter: Any = REGISTRY.load("traces")
    path = written(tmp_path / "a.json", otlp([SEARCHES[1], SEARCHES[0], SEARCHES[0]]))
    found = list(adapter(adapter.Config(path=path, format="otlp", min_searches=2)).queries())
    assert [query.text for _, query in found] == ["How do I reset the clock?"]
    assert found[0][1].metadata == {
        "frequency": 2,
        "first": f"a.json:{path.read_text().count(chr(10)) + 1}",
        "positive": 2,
        "latency_ms": 100.0,
    }


def test_events_name_traces_and_spans(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", langfuse(SEARCHES[:1]))
    found = list(read_trace_events(path))
    trace, root, span = ids(0)
    spans = [(each.trace, each.span) for each in found if isinstance(each, TracedSearch)]
    assert spans == [(trace, span), (trace, root)]
    assert [each.trace for each in found if isinstance(each, TraceFeedback)] == [trace]
