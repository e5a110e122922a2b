"""Parts that a configuration names: one package per kind, one class per part.

Each kind's `__init__` contains its base class and its registry.

corpora, documents, chunkers     passages: sources, file formats, chunking
queries, rewriters               queries: formats, logs, and the text that is searched for
embedders, indexes, elastic      vectors, indexes over them, and Elasticsearch
retrievers, rerankers            ranked lists of passages, and reordered ones
judges, reviews, review_files    grades and orders; human labels and their files
askers                           models that write questions from documents
perturbers, noises               controlled changes of texts and queries, for diagnoses
callables                        user functions as parts
file_shapes, run_files           labels and lists in files
localmodels                      ONNX models on this machine
workspace                        creates the parts that a configuration names
"""
