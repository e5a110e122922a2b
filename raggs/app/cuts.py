"""How a configuration's corpus is cut."""

from __future__ import annotations

from pathlib import Path

from raggs.base.atomic import disk, write_atomic
from raggs.base.errors import UsageError
from raggs.chunking.cutpage import cut_page
from raggs.chunking.models import CutReport
from raggs.chunking.showing import show_cuts as cuts_of
from raggs.config.models import DocumentsConfig, RunConfig
from raggs.parts import corpora
from raggs.parts.corpora.cut import CutCorpus
from raggs.parts.workshop import Workshop
from raggs.runs.pipeline.events import Listener, silent


def show_cuts(
    config: DocumentsConfig | RunConfig, file: str | None = None, listen: Listener = silent, page: Path | None = None
) -> CutReport:
    """What of the corpus is cut where; nothing is paid, and nothing kept but what the chunker itself keeps.

    Args:
        file: only this one, by its path as a shell has it, its path below the folder, or the end of it.
        page: where the same goes as a page of HTML, with the texts; None for nowhere.

    Raises:
        UsageError: the corpus has no documents.
        RaggsError: the folder, a file or a part of the chunker is not what it should be.
    """
    corpus = corpora.REGISTRY.of(config.corpus)(config.corpus)
    if not isinstance(corpus, CutCorpus):
        raise UsageError(
            f"a corpus of type {config.corpus.type} is not cut: its passages are taken as they are",
            remedy="use a corpus of type folder",
        )
    workshop = Workshop(config.workspace, config.llm, config.budget, hear=listen)
    try:
        corpus.context = workshop.cutting
        shown = cuts_of(corpus, file)
    finally:
        workshop.close()
    if page is not None:
        with disk(page, "choose another --html"):
            write_atomic(page, cut_page(shown, file or Path(corpus.place).name).encode())
    return shown.report
