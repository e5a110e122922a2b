"""Parts that a configuration names: corpora, chunkers, retrievers, judges and the rest, one package per kind."""
