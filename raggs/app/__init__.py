"""What can be done with raggs, one file a use case: plain functions from typed requests to typed results.

The command line, Python programs and pages call nothing else.

Imports: reporting, diagnosis, sweeps, chunking, config, evaluation, diffs, execution, pipeline, exporters, golden,
manifests, questions, stages, workshop, adapters, chunkers, inner adapters, tools, probes, libraries,
llm, health, leaves.
"""
