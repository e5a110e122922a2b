"""Elasticsearch: connection, errors, reading, searching and loading, for whoever keeps passages there."""
