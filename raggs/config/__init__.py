"""The configuration: one YAML file, checked as a whole, and the wiring that it asks for.

Imports: pipeline, execution, exporters, golden, manifests, stages, adapters, tools, libraries, llm, leaves.
"""
