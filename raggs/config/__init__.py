"""Configuration: one YAML file, validated as a whole. The origin of each value is recorded.

models   every setting of a run with its default and its description
load     merge the file, environment variables and --set into one validated configuration
source   YAML with line numbers

This package creates no components.
"""
