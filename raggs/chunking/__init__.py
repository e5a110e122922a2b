"""Chunkers compared by the characters that answer questions, and pages that show how documents are chunked.

comparing   chunks all documents, searches them together, and scores by the excerpts that answer (`raggs.metrics.spans`)
cuts        which chunks a corpus has, and which sentences they break
documents   documents with their chunks, and the time that took
questions   excerpts located in the documents, and checked
models      chunks.json, and parts as command-line words; `layout`: tables, plots and files

Embeddings are stored by text, so chunkers that produce the same chunk share its vector.
"""
