"""A folder of text and Markdown files, each cut into passages of whole paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import Field

from raggs.artifacts import Passage
from raggs.chunkers.paragraphs import pack_paragraphs
from raggs.corpora.base import LeftOut, hash_source
from raggs.errors import DataError, NotFoundError
from raggs.hashing import hash_value
from raggs.registry import Adapter
from raggs.settings import InputPath, Settings

HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
SAFE = "/!$&'()*+,;=:@"  # left as they are in an id; white space, % and # are escaped


class FolderConfig(Settings):
    type: Literal["folder"] = "folder"
    path: InputPath
    patterns: tuple[str, ...] = Field(("*.txt", "*.md"), min_length=1, description="which files, at any depth")
    max_words: int = Field(200, ge=20, description="words a passage holds at most")


class FolderCorpus(Adapter):
    """Every text and Markdown file below a folder, cut into passages."""

    Config = FolderConfig

    def __init__(self, config: FolderConfig) -> None:
        self.config = config
        self.left_out: list[LeftOut] = []

    def source_hash(self) -> str:
        return hash_value([[name, hash_source(path)] for name, path in self._files()])

    def passages(self) -> Iterator[Passage]:
        for name, path in self._files():
            text = _read(path)
            heading = HEADING.search(text)
            title = heading[1] if heading else path.stem
            for number, chunk in enumerate(pack_paragraphs(text, self.config.max_words), start=1):
                place = {"source": name, "start": chunk.start, "end": chunk.end}
                yield Passage(doc_id=f"{quote(name, safe=SAFE)}#{number}", title=title, text=chunk.text, metadata=place)

    def _files(self) -> list[tuple[str, Path]]:
        root = self.config.path
        if not root.is_dir():
            raise NotFoundError("no such folder", where=root, remedy="check corpus.path")
        found = {path for pattern in self.config.patterns for path in root.rglob(pattern) if path.is_file()}
        if not found:
            wanted = ", ".join(self.config.patterns)
            raise DataError(f"holds no file that fits {wanted}", where=root, remedy="check corpus.path and corpus.patterns")
        return sorted((path.relative_to(root).as_posix(), path) for path in found)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8", where=path, remedy="convert it to UTF-8, or leave it out by corpus.patterns") from error
    except OSError as error:
        raise NotFoundError(f"cannot be read ({error.strerror})", where=path, remedy="check its permissions") from error
