"""Files of documents as texts, by their suffix: one file and one line a format (see `base.DocumentReader`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.documents.base import DocumentReader

REGISTRY: Registry[DocumentReader] = Registry(
    "format of documents",
    "documents",
    "raggs.parts.documents.base:DocumentReader",
    {
        "htm": "raggs.parts.documents.html:HtmlReader",
        "html": "raggs.parts.documents.html:HtmlReader",
        "markdown": "raggs.parts.documents.markdown:MarkdownReader",
        "md": "raggs.parts.documents.markdown:MarkdownReader",
        "pdf": "raggs.parts.documents.pdf:PdfReader",
        "rst": "raggs.parts.documents.rst:RstReader",
        "txt": "raggs.parts.documents.plain:TextReader",
    },
)
