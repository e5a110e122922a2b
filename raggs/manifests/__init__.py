"""Runs on disk: manifest, locks, reasons, audit.

Imports: questions, stages, judges, indexes, ranking, agreement, llm, health, leaves.
"""
