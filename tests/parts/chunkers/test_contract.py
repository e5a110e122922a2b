"""What holds for every chunker: exact places, in order, nothing lost and nothing invented, the same again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.contracts import cases, settings_of

from raggs.base.errors import PrerequisiteError
from raggs.parts.chunkers import REGISTRY, Chunk, Chunker, Document
from raggs.parts.chunkers.sizes import MeasuringChunker
from raggs.parts.corpora.folder import FolderConfig, FolderCorpus
from raggs.parts.workspace import Workspace

LINES = ["# A", "## B ##", "#", "```", "~~~~", "| a | b |\n|---|---|\n| 1 | 2 |", "- x", "  - y", "1. z", "> q", "---"]
LINES += ["Title\n===", "Two words. Three more words! Four?", "«Oui.» Non…", "word " * 60, "x" * 300, "翼の揚力。" * 20]
LINES += ["", "", " ", "\t", "    code", "[l]: http://x", "<div>", "\r", "\u2028", "\x00", "a\u0301 e\u200d", "\x0c"]
LINES += ["\U0001f6e9\ufe0f" * 9, "\u00a0"]
UGLY = st.lists(st.sampled_from(LINES), max_size=30).map("\n".join)
TEXTS = st.one_of(UGLY, st.text(max_size=300), UGLY.map(lambda text: text.replace("\n", "\r\n")))

TAGS = ["h1", "h2", "p", "ul", "li", "pre", "table", "tr", "td", "div", "b", "nav"]
HTML = st.lists(
    st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + [*LINES, "&lt;", "<br>"]),
    max_size=40,
).map("".join)
RST = st.lists(
    st.sampled_from([*LINES, "Title", "=====", "-----", "Code::", "   x = 1", ".. note:: y", "+--+\n|a |\n+--+"]),
    max_size=30,
).map("\n".join)
MATTER = st.sampled_from(["", "---\ntitle: T\n---\n", "---\r\na: [\r\n---\r\n", "+++\na = 1\n+++\n", "---\n\n"])
SOURCES = st.one_of(
    st.tuples(st.just("md"), st.tuples(MATTER, UGLY).map("".join)),
    st.tuples(st.just("rst"), RST),
    st.tuples(st.just("html"), HTML),
)


def read(suffix: str, source: str) -> Document:
    """A source as the folder gives it to chunkers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{suffix}"
        path.write_bytes(source.replace("\0", "\ufffd").encode())
        return next(FolderCorpus(FolderConfig(path=Path(folder))).documents())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SOURCES)
def test_so_are_those_of_any_documents_text(chunker: Chunker, found: tuple[str, str]) -> None:
    document = read(*found)
    loses_and_invents_nothing(chunker, document)
    assert document.text[: document.begin].strip() == "" or document.text.startswith(("---", "+++"))


Make = Callable[[], Chunker]


@pytest.fixture(params=cases("chunkers", REGISTRY))
def chunker(request: pytest.FixtureRequest, tmp_path: Path) -> Chunker:
    name, variant = request.param
    adapter = REGISTRY.load(name)
    spec = adapter.Config(**{**settings_of("chunkers", name, tmp_path / "case", request), **variant})
    workspace = Workspace(tmp_path / "runs")
    request.addfinalizer(workspace.close)
    return workspace.chunker(spec)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
def test_chunks_are_slices_in_order_that_lose_and_invent_nothing(chunker: Chunker, text: str) -> None:
    loses_and_invents_nothing(chunker, Document(text))


def loses_and_invents_nothing(chunker: Chunker, document: Document) -> None:
    text, end, last = document.text, document.begin, Chunk("", document.begin, 0)
    for chunk in chunker.chunk(document):
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip()
        assert not text[end : chunk.start].strip(), "a word between two chunks is in neither"
        assert chunk.start >= last.start and chunk.end > last.end, "each chunk has something new"
        end, last = max(end, chunk.end), chunk
    assert not text[end:].strip()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
def test_sizes_and_overlaps_are_within_what_was_asked(chunker: Chunker, text: str) -> None:
    config = chunker.config
    size = getattr(config, "size", getattr(config, "max_size", None))
    if not isinstance(chunker, MeasuringChunker) or size is None:
        pytest.skip("cuts to no size")
    most = size * getattr(config, "whole", 1)
    overlap = getattr(config, "overlap", 0)
    chunks = list(chunker.chunk(Document(text)))
    for chunk, length in zip(chunks, chunker.ruler.lengths([chunk.text for chunk in chunks]), strict=True):
        slack = 0 if config.unit == "characters" else 2 + most // 4  # the sum over pieces counts
        letters = chunker.ruler.lengths([chunk.text[:1]])[0]  # one letter may have more tokens than a chunk
        assert length <= max(most + slack, letters)
    for before, after in pairwise(chunks):
        shared = text[after.start : before.end]
        assert not overlap or chunker.ruler.lengths([shared])[0] <= overlap + (config.unit != "characters") * 3
        assert overlap or not shared


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
def test_the_same_text_is_cut_in_the_same_way(chunker: Chunker, text: str) -> None:
    again = type(chunker)(chunker.config, chunker.context)
    assert list(again.chunk(Document(text))) == list(chunker.chunk(Document(text)))


def test_there_is_no_chunk_without_text(chunker: Chunker) -> None:
    for text in ("", " ", "\n\n\t", "\u00a0\u2028"):
        assert list(chunker.chunk(Document(text))) == [], repr(text)


def test_it_can_be_checked_and_its_causes_are_plain(chunker: Chunker) -> None:
    try:
        chunker.check()
    except PrerequisiteError as error:
        pytest.fail(error.message)
    assert chunker.causes()["type"] == chunker.config.type
