"""How a configuration's corpus is cut."""

from __future__ import annotations

from raggs import corpora
from raggs.chunking.models import CutReport
from raggs.chunking.showing import show_cuts as cuts_of
from raggs.config.models import RunConfig
from raggs.corpora.folder import FolderCorpus
from raggs.errors import UsageError
from raggs.pipeline.events import Listener, silent
from raggs.workshop import Workshop


def show_cuts(config: RunConfig, file: str | None = None, listen: Listener = silent) -> CutReport:
    """What of the corpus is cut where; nothing is paid, and nothing kept but what the chunker itself keeps.

    Args:
        file: only this one, by its path below the folder or the end of it.

    Raises:
        UsageError: the corpus is no folder of files.
        RaggsError: the folder, a file or a part of the chunker is not what it should be.
    """
    corpus = corpora.REGISTRY.of(config.corpus)(config.corpus)
    if not isinstance(corpus, FolderCorpus):
        raise UsageError(
            f"a corpus of type {config.corpus.type} is not cut: its passages are taken as they are",
            remedy="use a corpus of type folder",
        )
    workshop = Workshop(config.workspace, config.llm, config.budget, hear=listen)
    try:
        corpus.context = workshop.cutting
        return cuts_of(corpus, file)
    finally:
        workshop.close()
