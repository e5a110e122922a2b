"""Sweeps: retrieval systems from a grid, measured on the same queries, compared, and one of them recommended.

config, grid               the YAML, and the systems that its axes describe
world                      what all systems share: golden set, queries, corpus, chunkings
parts, part_store          parts of systems, made once and stored; `reranking`: rerankers and fitted weights
measuring, timing          measurements per system: lists, latency, cost, memory
scoring, judgments         scores; unjudged passages, and grades added for them
halving                    drops systems that are clearly worse before all queries are searched
deriving                   the report, computed from the sweep's folder; `models`: its records
deciding, effects          the recommendation, main effects of the axes, bounds for unjudged passages
layout, comparing, words   the report as a document; `plots`: figures and files
store, audit               the folder of a sweep, and its verification

Scores are computed by `raggs.evaluation`, choices by `raggs.stats`.
"""
