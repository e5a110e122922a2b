"""Files of documents as texts, by their suffix: one file and one line a format (see `base.DocumentReader`).

Imports: leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.documents.base import DocumentReader

REGISTRY: Registry[DocumentReader] = Registry(
    "format of documents",
    "documents",
    "raggs.documents.base:DocumentReader",
    {
        "htm": "raggs.documents.html:HtmlReader",
        "html": "raggs.documents.html:HtmlReader",
        "markdown": "raggs.documents.markdown:MarkdownReader",
        "md": "raggs.documents.markdown:MarkdownReader",
        "pdf": "raggs.documents.pdf:PdfReader",
        "rst": "raggs.documents.rst:RstReader",
        "txt": "raggs.documents.plain:TextReader",
    },
)
