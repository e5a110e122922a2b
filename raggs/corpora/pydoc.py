"""The language reference that ships inside CPython, as a demonstration corpus: nothing to download, known to all.

`pydoc_data.topics` holds the texts behind ``help("yield")``. They differ from one version of Python to the next, so
the content counts, not the version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from raggs.adapter import AdapterConfig
from raggs.artifacts import Passage, Span
from raggs.chunkers.paragraphs import heading_of, pack_paragraphs
from raggs.corpora.base import Corpus
from raggs.errors import PrerequisiteError
from raggs.hashing import hash_value


class PydocConfig(AdapterConfig):
    type: Literal["pydoc"] = "pydoc"
    max_words: int = Field(200, ge=20, description="words a passage holds at most")


class PydocCorpus(Corpus):
    """CPython's own language reference (pydoc topics), some hundreds of passages."""

    Config = PydocConfig
    config: PydocConfig

    def source_hash(self) -> str:
        """Over the texts of all topics, whatever the version of Python."""
        return hash_value(_topics())

    def passages(self) -> Iterator[Passage]:
        """See `Corpus.passages`; topic after topic by name, each with its span."""
        for topic, text in sorted(_topics().items()):
            title = heading_of(text) or topic
            for number, chunk in enumerate(pack_paragraphs(text, self.config.max_words), start=1):
                span = Span(source=topic, start=chunk.start, end=chunk.end)
                yield Passage(doc_id=f"{topic}#{number}", title=title, text=chunk.text, span=span)


def _topics() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics  # 700 kB of text
    except ImportError as error:  # some distributions put documentation into a package of its own
        remedy = "install the documentation of your Python, or choose another corpus"
        raise PrerequisiteError("this Python comes without pydoc_data", remedy=remedy) from error
    return dict(topics)
