"""`raggs diagnose`: why retrieval fails, told by small controlled probes in minutes and before a sweep.

A kind is one file or package here, one page in ``docs/diagnose`` and one line in the registry. Its mathematics lies in
`raggs.probes`; it works with a `Bench` and gives typed findings, which alone are drawn.

Imports: sweeps, chunking, config, evaluation, golden, manifests, stages, workshop, adapters, chunkers, inner adapters,
tools, probes, libraries, llm, leaves.
"""
