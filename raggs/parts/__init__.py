"""Parts that a configuration names: one package per kind of part, one class per part.

Each kind's `__init__` contains its base class and its registry.

corpora, documents, chunkers     sources of passages, readers of file formats, chunking
queries, rewriters               formats of queries, query logs, and rewriting of queries
embedders, indexes, elastic      vectors, indexes of vectors and words, Elasticsearch
retrievers, rerankers            ranked lists of passages, and their reordering
judges, reviews, review_files    grades and orders; human labels and their files
askers                           generation of questions from documents
perturbers, noises               controlled changes of texts and queries, for diagnoses
callables                        user functions as parts
file_shapes, run_files           files of labels, and files of ranked lists
localmodels                      ONNX models on this machine
workspace                        creates the parts that a configuration names
"""
