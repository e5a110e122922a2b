"""Runs on disk: manifest, locks, reasons, audit.

Imports: stages, judges, indexes, ranking, llm, health, leaves.
"""
