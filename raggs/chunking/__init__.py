"""Comparison of chunkers by the characters that answer questions, and pages that show how documents are chunked.

comparing   search the chunks of all documents, and score them by reference excerpts (`raggs.metrics.spans`)
cuts        show the chunks of a corpus, and the sentences that chunk boundaries split
documents   read documents, chunk them, and measure the time that chunking takes
questions   locate the reference excerpts of questions in the documents, and check them
models      contents of chunks.json; chunkers and embedders as command-line arguments
layout      tables, plots and files of the report

Embeddings are stored by text, so if two chunkers produce the same chunk, it is embedded once.
"""
