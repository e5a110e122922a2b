"""Configuration: one YAML file, validated as a whole. The origin of each value is recorded.

models   the settings of a run, and their descriptions for the reference
load     merge the file, environment variables and --set into one validated configuration
source   YAML with line numbers

This package creates no components.
"""
