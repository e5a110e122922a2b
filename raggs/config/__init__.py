"""The configuration: one YAML file, checked as a whole, with the origin of each value.

models   every setting of a run with its default, and its documentation
load     the file, environment variables and --set to one checked configuration
source   YAML with line numbers

It makes no parts.
"""
