"""Changes of a text whose effect on a vector or a score is measured: a name masked, an order turned, a case changed.

One file each and one line in a registry, as other adapters. A perturber is seeded: the same text, seed and place give
the same change.

Imports: tools, probes, libraries, llm, leaves.
"""
