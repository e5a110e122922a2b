"""Runs on disk: manifest, locks, reasons, audit.

Imports: stages, judges, ranking, llm, health, leaves.
"""
