"""From a plan to a finished run: decide, run, validate, commit.

Imports: execution, manifests, stages, judges, llm, leaves.
"""
