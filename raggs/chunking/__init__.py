"""Ways of cutting documents, compared by the characters that answer questions, and what a chunker cut where.

Each way cuts all documents, the chunks of all documents are searched together, and what is retrieved is scored against
the excerpts that answer (`raggs.metrics.spans`). Embeddings are kept by text: ways share those of the
chunks that they share.
"""
