"""Sweeps: retrieval systems from a grid are measured on the same queries and compared, and one of them is recommended.

config, grid            the YAML, and the systems that its axes describe
world                   context shared by all systems: golden set, queries, corpus, chunkings
parts, outputs          parts and outputs of systems, created once and stored
reranking               rerankers, fitted weights, and routed depth
measuring, timing       measurements per system: lists, latency, cost, memory
scoring, judgments      scores; unjudged passages, and grades that they get later
halving                 drops systems that are clearly worse before all queries are searched
deriving, models        the report, computed from the sweep's folder, and its records
deciding, effects       the recommendation, main effects of the axes, bounds for unjudged passages
layout, comparing       sections of the report as a document
summary, messages       the default output of `raggs sweep`, and sentences
plots                   figures and files
store, audit            the folder of a sweep, and its verification

Scores are computed by `raggs.evaluation`, choices by `raggs.stats`.
"""
