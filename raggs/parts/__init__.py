"""Parts that a configuration names: one package per kind, one class per part.

Each kind's `__init__` holds its base class and its registry.

corpora, documents, chunkers     passages: where they come from, how files are read, how documents are chunked
queries, rewriters               queries: formats, logs, and the text that is searched for
embedders, indexes, elastic      vectors, indexes over them, and Elasticsearch
retrievers, rerankers            ranked lists of passages, and reordered ones
judges, reviews, review_files    grades and orders; human labels and their files
askers                           questions from documents
perturbers, noises               controlled changes of texts and queries, for diagnoses
callables                        user functions as parts
file_shapes, run_files           labels and lists in files
localmodels                      ONNX models on this machine
workspace                         makes the parts that a configuration names
"""
