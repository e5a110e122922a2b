"""What can be done with raggs, one file a use case: plain functions from typed requests to typed results.

The command line, Python programs and pages call nothing else.
"""
