"""Comparison of chunkers by the characters that answer questions, and pages that show how documents are chunked.

comparing   chunks all documents, searches the chunks, and scores them by reference excerpts (`raggs.metrics.spans`)
cuts        chunks of a corpus, and the sentences that chunk boundaries split
documents   documents with their chunks, and the time needed
questions   excerpts located in the documents, and checked
models      chunks.json, and chunkers and embedders as command-line arguments; `layout`: tables, plots and files

Embeddings are stored by text, so chunkers that produce the same chunk share its vector.
"""
